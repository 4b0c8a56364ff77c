package session_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// startAutopilot starts an automatic run on a simulated server that is already running.
func startAutopilot(t *testing.T, alter func(*loop.Plan)) *walk {
	t.Helper()
	w := newWalk(t, "slot-capped/8b-a100")
	must(t, w.host.Start(""))
	plan := loop.Plan{CanApply: true, Auto: true, Limits: loop.Limits{Restarts: 5}}
	alter(&plan)
	w.run(plan, w.host.Attach)
	return w
}

// TestAnAutomaticRun runs from a server with too few slots to the kept configuration, with a pause
// on the way, and checks that the recording shows the same.
func TestAnAutomaticRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startAutopilot(t, func(p *loop.Plan) {
			p.Countdown, p.Start, p.Limits.Downtime = 10*time.Second, 12*time.Second, 2*time.Minute
		})
		w.until("the countdown", 6*time.Minute, func(s *loop.Snapshot) bool { return s.Pending.Text != "" })
		w.live.Do(loop.CommandHold)
		time.Sleep(time.Minute)
		if n := len(w.live.Latest().Iterations); n != 0 || !w.live.Latest().Held {
			t.Errorf("%d changes while it was held", n)
		}
		w.live.Do(loop.CommandHold)
		must(t, <-w.done)
		s := w.live.Latest()
		if f := s.Finished; f == nil || f.ExitCode != 0 || !f.GainKnown || f.Gain.V < 0.5 || s.Iterations[0].End != loop.IterationKept {
			t.Errorf("%+v", f)
		}
		if s.Iterations[0].Downtime < 3*time.Second || s.Limits.UsedStarts < 1 {
			t.Errorf("down for %v, %d starts", s.Iterations[0].Downtime, s.Limits.UsedStarts)
		}
		w.replays()
	})
}

// TestASignalDuringATrial checks that the kept configuration is restored before the session ends.
func TestASignalDuringATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startAutopilot(t, func(*loop.Plan) {})
		before := w.host.Command()
		w.until("measuring", 8*time.Minute, measuring(1))
		w.cancel()
		must(t, <-w.done)
		if got := w.host.Command(); got != before {
			t.Errorf("left with %s", got)
		}
		if f := w.live.Latest().Finished; f == nil || !strings.Contains(f.Reason, "the original configuration runs again") {
			t.Errorf("%+v", f)
		}
		if _, err := w.host.Page(t.Context(), nil); err != nil {
			t.Errorf("the server does not answer: %v", err)
		}
		w.replays()
	})
}
