package capture

import (
	"math"
	"strings"
	"testing"
	"time"
)

// TestARareCounterSaysHowWellItIsKnown checks that an energy from a rarely updated counter includes
// the uncertainty before its first and after its last step, or does not come from the counter.
func TestARareCounterSaysHowWellItIsKnown(t *testing.T) {
	const s = time.Second
	// A prefill of a second at 700 W, then decoding at 300 W.
	watts := func(at time.Duration) float64 {
		if at < 2*s {
			return 700
		}
		return 300
	}
	joules := func(at time.Duration) float64 {
		in := max(0, at-s).Seconds()
		return 700*min(in, 1) + 300*max(0, in-1)
	}
	for _, c := range []struct {
		span    time.Duration
		counter bool
	}{{5 * s, false}, {30 * s, true}} {
		e := run(c.span, meter(1700*ms, watts, joules)).gpuUsage()[0].Energy
		if (e.How == fromCounter) != c.counter || e.Reason == "" {
			t.Errorf("%s: %+v", c.span, e)
		}
		truth := joules(s + c.span)
		if off := math.Abs(e.Joules.V/truth - 1); c.counter && (off > .035 || !strings.Contains(e.Reason, "± 3 %")) {
			t.Errorf("%s: %v J, %v were drawn: %s", c.span, e.Joules.V, truth, e.Reason)
		}
	}
}
