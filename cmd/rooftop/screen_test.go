package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/bench"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/rules"
)

// desk is the whole program without sockets and terminal: a simulated server, the session on it,
// the screen on a glass, and a keyboard, all in fake time.
type desk struct {
	t      *testing.T
	host   *bench.Host
	live   *session.Live
	glass  *glass
	keys   *keyboard
	stdout bytes.Buffer // output after the screen is closed
	end    chan error
	last   *loop.Snapshot // that the files were written from

	transcript *transcript
}

// sit begins a run on a host without a server, with a plan that alter may change.
func sit(t *testing.T, width, height int, alter ...func(*loop.Plan)) *desk {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	found, err := settings.Select(settings.Default)
	must(t, err)
	found[0].Startup = 2 * time.Second
	d := &desk{t: t, host: bench.New(&found[0], 1), glass: newGlass(width, height), keys: newKeyboard(), end: make(chan error, 1), transcript: newTranscript()}
	env := func(name string) (string, bool) { return "", false }
	w := &cli.World{Env: env, Stdout: &d.stdout, Stderr: &d.stdout}
	v := &screenView{w: w, out: &cli.Output{Color: "auto"}, options: oddRefresh(glassOptions(d.glass, d.keys))}
	plan := loop.Plan{
		Started: time.Now(), Version: "test", Rules: rules.All(), Measure: 20 * time.Second, Watch: "http://127.0.0.1:8000", CanApply: true,
	}
	for _, f := range alter {
		f(&plan)
	}
	d.live = session.NewLive(session.LivePlan{
		Loop:   plan,
		Attach: d.host.Attach, Clock: d.host.Clock, Tell: d.host.Follow(d.transcript.handle),
	})
	f := &following{session: d.live, view: v, stderr: &d.stdout, keep: func(s *loop.Snapshot) kept {
		d.last = s
		return kept{}
	}}
	go func() { d.end <- f.run(ctx) }()
	t.Cleanup(func() { // also of a test that failed on the way: nothing may stay in its bubble
		cancel()
		d.keys.Unplug()
		time.Sleep(time.Minute)
	})
	return d
}

// until lets time pass until the run is in a state.
func (d *desk) until(what string, within time.Duration, is func(s *loop.Snapshot) bool) *loop.Snapshot {
	d.t.Helper()
	for began := time.Now(); ; time.Sleep(250 * time.Millisecond) {
		synctest.Wait()
		if s := d.live.Latest(); s != nil && is(s) {
			time.Sleep(500 * time.Millisecond) // so that it is drawn
			synctest.Wait()
			return s
		}
		if time.Since(began) > within {
			d.t.Fatalf("no %s within %v; the screen shows:\n%s\n%v", what, within, d.glass, d.glass.Unknown)
		}
	}
}

// shows checks that the screen contains words.
func (d *desk) shows(words ...string) {
	d.t.Helper()
	seen := strings.ToLower(strings.Join(strings.Fields(d.glass.String()), " "))
	for _, word := range words {
		if !strings.Contains(seen, strings.ToLower(word)) {
			d.t.Errorf("no %q on the screen:\n%s", word, d.glass)
		}
	}
}

// press types keys one after the other, and lets the screen respond.
func (d *desk) press(keys ...string) {
	for _, k := range keys {
		d.keys.Press(k)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
	}
}

// restart restarts the server with another number of slots, like a user.
func (d *desk) restart(slots string) {
	d.t.Helper()
	words := strings.Fields(d.host.Command())
	for i := range words {
		if words[i] == "--max-num-seqs" {
			words[i+1] = slots
		}
	}
	must(d.t, d.host.Start(strings.Join(words, " ")))
}

func inPhase(p loop.Phase) func(*loop.Snapshot) bool {
	return func(s *loop.Snapshot) bool { return s.Phase == p }
}

// tokens returns the output tokens per second of a diagnosis.
func tokens(d *engine.Diagnosis) float64 { return d.Quantity("generation_tokens_per_s").Value.V }

// step has the expectations for an iteration.
type step struct {
	Noticed   loop.Noticed
	From, To  string
	Direction verdict.Direction
	End       loop.IterationEnd
}

func steps(s *loop.Snapshot) []step {
	var out []step
	for _, it := range s.Iterations {
		st := step{Noticed: it.Noticed, End: it.End}
		for _, c := range it.Changes {
			if c.Flag == "--max-num-seqs" {
				st.From, st.To = c.From, c.To
			}
		}
		if it.Delta != nil {
			st.Direction = it.Delta.Direction
		}
		out = append(out, st)
	}
	return out
}

// signalsBegin makes the runtime start its goroutine for signals, which must not start in a
// synctest bubble.
func signalsBegin() {
	early := make(chan os.Signal, 1)
	signal.Notify(early, syscall.SIGHUP)
	signal.Stop(early)
}

// TestTheWholeProgram is some minutes with a server: none at first, then one with too few slots;
// the advice applied by a key; a manual change that is restarted during its measurement, is worse,
// and is reverted; the same again, but continued; then the server fails and returns; and the user
// quits.
func TestTheWholeProgram(t *testing.T) {
	signalsBegin()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := sit(t, 80, 24)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		d.shows("127.0.0.1:8000")

		must(t, d.host.Start(""))
		d.until("concurrency saturation", 15*time.Second, func(s *loop.Snapshot) bool {
			return s.Advice != nil && s.Advice.Finding == engine.ConcurrencySaturation
		})
		d.shows("SIMULATED", "concurrency saturation", "--max-num-seqs 16 → ")
		first := d.until("advice that stands", 30*time.Second, func(s *loop.Snapshot) bool { return s.Firm && s.Advice != nil })
		d.everyView("advice")
		more := first.Advice.To

		d.press("a")
		d.shows("--max-num-seqs", more)
		d.transcript.frame("asked for a yes", d.glass)
		d.press("y")
		d.until("the change", 10*time.Second, func(s *loop.Snapshot) bool { return len(s.Iterations) == 1 })
		better := d.until("a verdict", 90*time.Second, inPhase(loop.PhaseWaiting))
		d.shows("better", more)
		d.everyView("better")
		if better.Baseline == first.Baseline {
			t.Error("what is better is not the new baseline")
		}

		d.restart("8")
		d.until("the second measurement", time.Minute, inPhase(loop.PhaseMeasuring))
		time.Sleep(3 * time.Second)
		d.restart("8")
		d.until("worse", 90*time.Second, inPhase(loop.PhaseWorse))
		d.shows("worse", "revert", "continue")
		d.everyView("worse")
		d.press("3")
		d.shows("History")
		d.press("1", "r", "y")
		reverted := d.until("the revert", time.Minute, inPhase(loop.PhaseWaiting))
		if got, want := tokens(reverted.Baseline), tokens(better.Baseline); got < 0.9*want {
			t.Errorf("after the revert the baseline is %.0f tok/s, before it was %.0f", got, want)
		}
		if !strings.Contains(d.host.Command(), "--max-num-seqs "+more) {
			t.Errorf("the revert left %s", d.host.Command())
		}

		d.restart("8")
		d.until("worse", 90*time.Second, inPhase(loop.PhaseWorse))
		d.press("c")
		continued := d.until("going on", 10*time.Second, inPhase(loop.PhaseWaiting))
		if got := continued.Baseline.Quantity("running_mean").Value.V; got > 8 {
			t.Errorf("%.1f run in the new baseline, which has 8 slots", got)
		}
		d.shows("--max-num-seqs 8 → ")

		d.host.Kill()
		d.until("that the server is down", 10*time.Second, inPhase(loop.PhaseDown))
		d.shows("has not answered")
		time.Sleep(10 * time.Second)
		d.shows("has not answered for 10 s")
		d.everyView("down")
		d.restart("8")
		d.until("the same settings, measured again", 7*time.Minute, func(s *loop.Snapshot) bool {
			return len(s.Noise) == 1 && s.Phase == loop.PhaseWaiting
		})
		d.shows("noise")
		d.press("3")
		d.shows("continued", "noise", "reverted")
		frame := d.glass.String()
		d.press("j", "j", "j", "j", "j", "j", "j", "j")
		d.shows("Change 5")
		d.everyView("measured again")
		d.press("q")
		if d.last == nil {
			d.press("y") // it asks during a change
		}
		err := <-d.end
		took := time.Since(began)

		want := []step{
			{loop.AsRecommended, "16", more, verdict.Better, loop.IterationKept},
			{loop.SomethingElse, more, "8", "", loop.IterationBroken},
			{loop.SomethingElse, more, "8", verdict.Worse, loop.IterationReverted},
			{loop.SomethingElse, more, "8", verdict.Worse, loop.IterationContinued},
			{loop.SameSettings, "", "", verdict.Inconclusive, loop.IterationNoise},
		}
		if took < 3*time.Minute {
			t.Errorf("%v of server time, want three minutes", took)
		}
		if diff := cmp.Diff(want, steps(d.last)); diff != "" {
			t.Errorf("iterations (-want +got):\n%s", diff)
		}
		now := d.last.Baseline
		if got, want := d.last.Finished.Gain.V, tokens(now)/tokens(first.Baseline)-1; math.Abs(got-want) > 0.05 {
			t.Errorf("gain %+.2f since the first baseline, want %+.2f", got, want)
		}
		if code := errCode(err); code != 3 {
			t.Errorf("exit code %d (%v), want 3: a recommendation is open", code, err)
		}
		if d.glass.TakenOver() {
			t.Error("the terminal is not as it was")
		}
		if !strings.Contains(d.stdout.String(), "--max-num-seqs "+more) {
			t.Errorf("the report at the end does not have the best launch command:\n%s", d.stdout.String())
		}
		for _, u := range d.glass.Unknown {
			t.Errorf("the glass does not know %s", u)
		}
		d.hold("session-by-hand", false)
		t.Logf("%v of server time, %d bytes to the terminal\n%s\n%s", took.Round(time.Second), d.glass.Written(), frame, d.stdout.String())
	})
}

// errCode returns the exit code of an error as run does.
func errCode(err error) int {
	var coded *cli.CodedError
	if err == nil {
		return 0
	}
	if errors.As(err, &coded) {
		return int(coded.Code)
	}
	return -1
}
