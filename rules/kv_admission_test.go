package rules

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// A queue far longer than the pool is not one for the pool where the longest
// prompts find room at its fullest; the mean of the prompts cannot tell that.
func TestAdmissionRoomIsOfTheLongestPrompts(t *testing.T) {
	bounds := []float64{500, 1000, 2000, 5000, 10000, 20000, 50000, math.Inf(1)}
	for _, c := range []struct {
		name    string
		prompts stat.Delta
		want    engine.State
		why     string
	}{
		{"all short", observed(bounds, map[float64]float64{1300: 200}), engine.Suppressed, "of the longest prompts at its fullest"},
		{"some of 40,000 tokens", observed(bounds, map[float64]float64{600: 196, 40000: 4}), engine.Fired, "queue ratio"},
		{"only the mean known", stat.Delta{Sum: 200 * 1300, Count: 200, OK: true}, engine.Fired, "queue ratio"},
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
