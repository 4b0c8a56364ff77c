package session_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// TestASignalDuringATrial checks that the kept configuration is restored before the session ends, and that the
// recording of an automatic run shows the same.
func TestASignalDuringATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWalk(t, "slot-capped/8b-a100")
		must(t, w.host.Start(""))
		w.run(loop.Plan{CanApply: true, Auto: true, Countdown: 10 * time.Second, Limits: loop.Limits{Restarts: 5, Downtime: 2 * time.Minute}, Start: 12 * time.Second}, w.host.Attach)
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
