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
		slots            int
		capacity, output float64
		peak             float64
		want             engine.State
		reason           string
	}{
		{"each answer is cut off", 4, 2048, 428, 0.74, engine.Fired, "end at the 512"},
		{"answers end before", 4, 2048, 350, 0.74, engine.NotFired, ""},
		{"the slots share the pool", 4, 512, 428, 0.74, engine.NotFired, ""},
		{"one slot has the whole pool", 1, 512, 428, 1, engine.Fired, "KV peak 100"},
	} {
		w, f := quietWindow(), knownFacts()
		f.Engine, f.Launch = know(catalog.LlamaCPP), "llama-server -np 4 -c 2048"
		f.MaxNumSeqs, f.MaxModelLen, f.KVCapacityTokens, f.NumGPUBlocksOverride = know(c.slots), know(512), know(c.capacity), know(int(c.capacity))
		setRunning(&w, float64(c.slots))
		setKV(&w, 0.6, c.peak)
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
		if c.want == engine.Fired && (!strings.Contains(got.Reason, c.reason) || d.Recommendation == nil || d.Recommendation.Flag != "--ctx-size") {
			t.Errorf("%s: %s, recommended %+v", c.name, got.Reason, d.Recommendation)
		}
	}
}

// TestPromptsAreNotOfTheRequestsThatEnd has a prompt counted as it begins, and its request as it ends: in every other
// window two prompts are counted for one end.
func TestPromptsAreNotOfTheRequestsThatEnd(t *testing.T) {
	f := knownFacts()
	f.Engine, f.Launch = know(catalog.LlamaCPP), "llama-server -np 4 -c 8192"
	f.MaxNumSeqs, f.MaxModelLen, f.KVCapacityTokens, f.NumGPUBlocksOverride = know(4), know(2048), know(8192.0), know(8192)
	var windows []engine.Window
	for i := range 8 {
		w := quietWindow()
		setRunning(&w, 4)
		setKV(&w, 0.6, 0.74)
		setMean(&w, engine.HistPromptTokens, []float64{2600, 0}[i%2])
		setMean(&w, engine.HistGenerationTokens, 100)
		windows = append(windows, w.Clone())
	}
	d := engine.Diagnose(engine.Request{Facts: f, Windows: windows, Rules: All()})
	if got := d.Finding(engine.KVPressure); got.State != engine.NotFired {
		t.Errorf("%s (%s): the requests have 1,400 of 2,048 tokens", got.State, got.Reason)
	}
}
