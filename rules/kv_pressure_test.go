package rules

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
)

// TestRequestsThatFillTheirSlot checks that a pool that is divided among slots is judged by the length at which
// requests end: slots that fill one after the other never fill the whole.
func TestRequestsThatFillTheirSlot(t *testing.T) {
	for _, c := range []struct {
		name             string
		capacity, output float64
		want             engine.State
	}{
		{"each answer is cut off", 2048, 428, engine.Fired},
		{"answers end before", 2048, 350, engine.NotFired},
		{"the slots share the pool", 512, 428, engine.NotFired},
	} {
		w, f := quietWindow(), knownFacts()
		f.Engine, f.Launch = know(catalog.LlamaCPP), "llama-server -np 4 -c 2048"
		f.MaxNumSeqs, f.MaxModelLen, f.KVCapacityTokens, f.NumGPUBlocksOverride = know(4), know(512), know(c.capacity), know(2048)
		setRunning(&w, 4)
		setKV(&w, 0.6, 0.74)
		setMean(&w, engine.HistPromptTokens, 84)
		setMean(&w, engine.HistGenerationTokens, c.output)
		var windows []engine.Window
		for range 6 {
			windows = append(windows, w.Clone())
		}
		d := engine.Diagnose(engine.Request{Facts: f, Windows: windows, Rules: All()})
		got := d.Finding(engine.KVPressure)
		if got.State != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, got.State, got.Reason, c.want)
		}
		if c.want == engine.Fired && (!strings.Contains(got.Reason, "end at the 512") || d.Recommendation == nil || d.Recommendation.Flag != "--ctx-size") {
			t.Errorf("%s: %s, recommended %+v", c.name, got.Reason, d.Recommendation)
		}
	}
}
