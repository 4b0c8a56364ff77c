package session_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/simlive"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/rules"
)

// fly begins an automatic run on a simulated server that runs already.
func fly(t *testing.T, alter func(*engine.LoopPlan)) *walk {
	t.Helper()
	list, err := scenarios.Select("seat-capped/8b-a100")
	if err != nil || len(list) != 1 {
		t.Fatalf("%d, %v", len(list), err)
	}
	list[0].Startup = 4 * time.Second
	w := &walk{t: t, host: simlive.New(&list[0], 1), done: make(chan error, 1)}
	if err := w.host.Start(""); err != nil {
		t.Fatal(err)
	}
	plan := engine.LoopPlan{
		Started: time.Now().UTC(), Version: "test", Rules: rules.All(), Watch: "http://127.0.0.1:8000", Hands: true, Auto: true,
		Limits: engine.Limits{Restarts: 5},
	}
	alter(&plan)
	record := session.NewRecorder(&w.file)
	w.live = session.NewLive(session.LivePlan{
		Loop: plan, Attach: w.host.Attach, Clock: w.host.Clock, Record: record, Tell: w.host.Follow(nil),
	})
	session.Observe(w.live, func(s *engine.Snapshot) { w.seen = append(w.seen, digest(s)) })
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(t.Context())
	go func() {
		err := w.live.Run(ctx)
		if closed := record.Close(); err == nil {
			err = closed
		}
		w.done <- err
	}()
	return w
}

// TestAnAutomaticRun goes from a server with too few seats to what is kept, held on
// the way, and its recording shows the same.
func TestAnAutomaticRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fly(t, func(p *engine.LoopPlan) {
			p.Countdown, p.Start, p.Limits.Downtime = 10*time.Second, 12*time.Second, 2*time.Minute
		})
		w.until("the countdown", 6*time.Minute, func(s *engine.Snapshot) bool { return s.Pending.Text != "" })
		w.live.Do(engine.CommandHold)
		time.Sleep(time.Minute)
		if n := len(w.live.Latest().Iterations); n != 0 || !w.live.Latest().Held {
			t.Errorf("%d changes while it was held", n)
		}
		w.live.Do(engine.CommandHold)
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		s := w.live.Latest()
		if f := s.Finished; f == nil || f.ExitCode != 0 || !f.GainKnown || f.Gain.V < 0.5 || s.Iterations[0].End != engine.IterationKept {
			t.Errorf("%+v", f)
		}
		if s.Iterations[0].Downtime < 3*time.Second || s.Limits.UsedStarts < 1 {
			t.Errorf("down for %v, %d starts", s.Iterations[0].Downtime, s.Limits.UsedStarts)
		}
		w.replays()
	})
}

// TestASignalDuringATrial: what is kept is put back before the session ends.
func TestASignalDuringATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fly(t, func(*engine.LoopPlan) {})
		before := w.host.Command()
		w.until("measuring", 8*time.Minute, measuring(1))
		w.cancel()
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
		if got := w.host.Command(); got != before {
			t.Errorf("left with %s", got)
		}
		if f := w.live.Latest().Finished; f == nil || !strings.Contains(f.Reason, "put back") {
			t.Errorf("%+v", f)
		}
		if _, err := w.host.Page(t.Context(), nil); err != nil {
			t.Errorf("the server does not answer: %v", err)
		}
		w.replays()
	})
}
