package session_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/bench"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/rules"
)

// walk is a live session on a simulated server, in a synctest bubble.
type walk struct {
	t      *testing.T
	host   *bench.Host
	live   *session.Live
	record bool
	file   bytes.Buffer // the recording
	seen   []string     // the digest of each snapshot
	done   chan error
	cancel context.CancelFunc
}

// replayed are the tests that record and replay in every run of the tests: one each by hand, on its own and
// by a key.
var replayed = []string{"TestTheEngineerMakesTheChange", "TestASignalDuringATrial", "TestASignalDuringAChange"}

// begin starts a session on a host without a server yet.
func begin(t *testing.T, scenario string, mayRestart bool) *walk {
	t.Helper()
	w := newWalk(t, scenario)
	attach := w.host.AttachOnly
	if mayRestart {
		attach = w.host.Attach
	}
	w.run(loop.Plan{Measure: 20 * time.Second}, attach)
	return w
}

// newWalk returns a walk on the host of a scenario, without a server yet.
func newWalk(t *testing.T, scenario string) *walk {
	t.Helper()
	list, err := settings.Select(scenario)
	if err != nil || len(list) != 1 {
		t.Fatalf("scenario %s: %d, %v", scenario, len(list), err)
	}
	list[0].Startup = 4 * time.Second
	return &walk{t: t, host: bench.New(&list[0], 1), record: longtest.Tests || slices.Contains(replayed, t.Name()), done: make(chan error, 1)}
}

// run starts the session of a plan.
func (w *walk) run(plan loop.Plan, attach func(context.Context) (*session.Server, error)) {
	plan.Started, plan.Version, plan.Rules, plan.Watch = time.Now().UTC(), "test", rules.All(), "http://127.0.0.1:8000"
	var record *session.Recorder
	if w.record {
		record = session.NewRecorder(&w.file)
	}
	w.live = session.NewLive(session.LivePlan{
		Loop: plan, Attach: attach, Clock: w.host.Clock, Record: record, Tell: w.host.Follow(nil),
	})
	session.Observe(w.live, func(s *loop.Snapshot) { w.seen = append(w.seen, digest(s)) })
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(w.t.Context())
	go func() {
		err := w.live.Run(ctx)
		if closed := record.Close(); err == nil {
			err = closed
		}
		w.done <- err
	}()
}

// digest returns a text that is equal for two snapshots that look the same on the screen.
func digest(s *loop.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %v phase %d since %v progress %v %q ask %q firm %v quiet %q", s.Seq, s.Now, s.Phase, s.Since, s.Progress.Elapsed, s.Progress.Text, s.Ask, s.Firm, s.Quiet)
	if s.Advice != nil {
		fmt.Fprintf(&b, " advice %q", s.Advice.Command)
	}
	if s.Live != nil {
		fmt.Fprintf(&b, " live %s of %d", s.Live.Outcome, s.Live.Windows.Evaluable)
	}
	for _, it := range s.Iterations {
		fmt.Fprintf(&b, " | %d %s %s %q", it.N, it.End, it.Noticed, it.Text)
		if it.Delta != nil {
			fmt.Fprintf(&b, " %s %v", it.Delta.Direction, it.Delta.Throughput)
		}
	}
	for _, p := range s.Processes {
		fmt.Fprintf(&b, " %s %v", p.Role, p.Age)
	}
	fmt.Fprintf(&b, " points %d journal %d", len(s.Points), len(s.Journal))
	if n := len(s.Journal); n > 0 {
		fmt.Fprintf(&b, " %q", s.Journal[n-1].Text)
	}
	return b.String()
}

// until waits for a snapshot that meets a condition and returns it. It fails the test after most.
func (w *walk) until(what string, most time.Duration, holds func(*loop.Snapshot) bool) *loop.Snapshot {
	w.t.Helper()
	began := time.Now()
	for time.Since(began) < most {
		if s := w.live.Latest(); s != nil && holds(s) {
			return s
		}
		time.Sleep(250 * time.Millisecond)
	}
	s := w.live.Latest()
	for _, e := range s.Journal {
		w.t.Logf("%v %s", e.T, e.Text)
	}
	w.t.Fatalf("%s: not within %v; phase %d, progress %+v, attach %q", what, most, s.Phase, s.Progress, s.AttachWhy)
	return nil
}

// end quits and returns the error of Run.
func (w *walk) end() error {
	w.live.Do(loop.CommandQuit)
	defer w.cancel()
	return <-w.done
}

// phase returns a condition for until: a phase.
func phase(p loop.Phase) func(*loop.Snapshot) bool {
	return func(s *loop.Snapshot) bool { return s.Phase == p }
}

// measuring returns a condition for until: the measurement of the n-th change.
func measuring(n int) func(*loop.Snapshot) bool {
	return func(s *loop.Snapshot) bool { return s.Phase == loop.PhaseMeasuring && len(s.Iterations) == n }
}

func advised(s *loop.Snapshot) bool {
	return s.Firm && s.Advice != nil && s.Advice.Kind == engine.KindFlag
}

// judged returns a condition for until: the verdict of the n-th iteration.
func judged(n int) func(*loop.Snapshot) bool {
	return func(s *loop.Snapshot) bool { return len(s.Iterations) >= n && s.Iterations[n-1].Delta != nil }
}

// changed returns the launch command with a flag set to a value.
func (w *walk) changed(flag, to string) string {
	fields := strings.Fields(w.host.Command())
	for i, f := range fields {
		if f == flag {
			fields[i+1] = to
			return strings.Join(fields, " ")
		}
	}
	return strings.Join(append(fields, flag, to), " ")
}

// TestTheEngineerMakesTheChange runs the whole loop on a simulated server: it appears, is measured,
// is restarted by hand as recommended, and improves; then it dies, comes back with a worse setting,
// is reverted, hangs, and the session ends. Replaying the recording shows the same, step by step.
func TestTheEngineerMakesTheChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, "slot-capped/8b-a100", false)
		time.Sleep(3 * time.Second)
		must(t, w.host.Start(""))
		s := w.until("advice", time.Minute, advised)
		if s.Advice.Flag != "--max-num-seqs" {
			t.Fatalf("advice %+v", s.Advice)
		}
		must(t, w.host.Start(w.changed(s.Advice.Flag, s.Advice.To)))
		s = w.until("verdict", 90*time.Second, judged(1))
		if it := s.Iterations[0]; it.Delta.Direction != verdict.Better || it.Noticed != loop.AsRecommended {
			t.Errorf("%s, %s, want Better as recommended", it.Delta.Direction, it.Noticed)
		}
		w.host.Kill()
		w.until("down", 10*time.Second, phase(loop.PhaseDown))
		time.Sleep(20 * time.Second)
		must(t, w.host.Start(w.changed("--max-num-seqs", "4")))
		s = w.until("worse", 90*time.Second, phase(loop.PhaseWorse))
		if it := s.Iterations[1]; it.Delta.Direction != verdict.Worse {
			t.Errorf("second iteration %s", it.Delta.Direction)
		}
		w.live.Do(loop.CommandContinue)
		time.Sleep(10 * time.Second)
		w.host.Hang(20 * time.Second)
		time.Sleep(30 * time.Second)
		must(t, w.end())
		t.Logf("%d steps, recording of %d bytes for %v", len(w.seen), w.file.Len(), w.live.Latest().Now)
		w.replays()
	})
}

// replays checks that the recording, if there is one, shows the same snapshots as the session.
func (w *walk) replays() {
	w.t.Helper()
	if !w.record {
		return
	}
	rec, err := session.OpenRecording(bytes.NewReader(w.file.Bytes()))
	must(w.t, err)
	var again []string
	if err := session.Snapshots(rec, "test", func(s *loop.Snapshot) bool { again = append(again, digest(s)); return true }); err != nil {
		w.t.Fatal(err)
	}
	if len(again) != len(w.seen) {
		w.t.Errorf("%d steps live, %d replayed", len(w.seen), len(again))
	}
	for i := range min(len(again), len(w.seen)) {
		if again[i] != w.seen[i] {
			w.t.Fatalf("step %d differs (-live +replay):\n%s", i, cmp.Diff(w.seen[i], again[i]))
		}
	}
	if bytes.Contains(w.file.Bytes(), []byte("Bearer")) {
		w.t.Error("the recording holds a token")
	}
}

// beginApplying begins a walk with an applier, up to the change that a key requests.
func beginApplying(t *testing.T) *walk {
	t.Helper()
	w := begin(t, "slot-capped/8b-a100", true)
	must(t, w.host.Start(""))
	w.until("advice", time.Minute, advised)
	time.Sleep(45 * time.Second) // for a complete baseline
	w.live.Do(loop.CommandApply)
	w.until("applying", 2*time.Second, phase(loop.PhaseApplying))
	return w
}

// TestASignalDuringAChange checks that the change is completed before the session ends.
func TestASignalDuringAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := beginApplying(t)
		w.cancel()
		must(t, <-w.done)
		if _, err := w.host.Page(t.Context(), nil); err != nil {
			t.Errorf("the server was left in the middle of its change: %v", err)
		}
		if s := w.live.Latest(); s.Finished == nil || s.Finished.Reason == "" {
			t.Errorf("finished %+v", s.Finished)
		}
		w.replays()
	})
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
