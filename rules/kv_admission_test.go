package rules

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestAdmissionUsesTheLongestPrompts checks that a long queue does not count as waiting for the
// pool if the longest prompts fit into its free part at its peak; mean prompts cannot show that.
func TestAdmissionUsesTheLongestPrompts(t *testing.T) {
	bounds := []float64{500, 1000, 2000, 5000, 10000, 20000, 50000, math.Inf(1)}
	for _, c := range []struct {
		name    string
		prompts stat.Delta
		want    engine.State
		why     string
	}{
		{"all short", observed(bounds, map[float64]float64{1300: 200}), engine.Suppressed, "at its fullest it had room for"},
		{"some of 40,000 tokens", observed(bounds, map[float64]float64{600: 196, 40000: 4}), engine.Fired, "requests queued"},
		{"only the mean known", stat.Delta{Sum: 200 * 1300, Count: 200, OK: true}, engine.Fired, "requests queued"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, f := quietWindow(), knownFacts()
			f.MaxNumSeqs, f.KVCapacityTokens = know(1024), know(400000.0)
			setRunning(&w, 128)
			setWaiting(&w, 650)
			w.KV, w.KVPeak = stat.Some(0.33), stat.Some(0.35)
			w.Ranks[0].KVPeak = w.KVPeak
			w.Hist[engine.HistPromptTokens] = c.prompts
			var windows []engine.Window
			for range 6 {
				windows = append(windows, w.Clone())
			}
			d := engine.Diagnose(engine.Request{Facts: f, Windows: windows, Rules: All()})
			for _, got := range d.Findings {
				if got.ID == engine.KVAdmission && (got.State != c.want || !strings.Contains(got.Reason, c.why)) {
					t.Errorf("%s: %s, want %s: %s", got.State, got.Reason, c.want, c.why)
				}
			}
		})
	}
}
