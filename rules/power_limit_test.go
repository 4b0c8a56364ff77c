package rules

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestPowerLimitThatWasNotRead checks that a limit that was not read is absent from the evidence,
// not 0 W, and that no share of it is shown.
func TestPowerLimitThatWasNotRead(t *testing.T) {
	for _, c := range []struct {
		limit, want stat.Opt
		share       bool
		text        string
	}{
		{stat.Some(700), stat.Some(700 * powerAtLimit), true, "GPU 0 draws 690\u00a0W of 700\u00a0W"},
		{stat.None, stat.None, false, "GPU 0 draws 690\u00a0W; its power limit was not read"},
	} {
		w, f := quietWindow(), knownFacts()
		g := &w.GPUs[0]
		g.Throttle, g.ThrottleOK = catalog.PowerCap, true
		g.Mean[engine.GPUPowerW], g.Last[engine.GPUPowerLimitW] = stat.Some(690), c.limit
		windows := []engine.Window{w, w.Clone()}
		var found engine.Finding
		concludePowerLimit(&engine.Run{Windows: windows, Facts: &f, Agg: engine.Combine(windows, &f)}, engine.Tally{}, &found)
		if len(found.Evidence) == 0 || found.Evidence[0].Limit != c.want || found.Evidence[0].Text != c.text || strings.Contains(found.Reason, "of its power limit") != c.share {
			t.Errorf("limit %v: reason %q, evidence %+v", c.limit, found.Reason, found.Evidence)
		}
	}
}
