package rules

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Bucket bounds of inter-token latency and of tokens per step (vLLM, v1/metrics/loggers.py).
var (
	boundsITL   = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, math.Inf(1)}
	boundsSteps = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, math.Inf(1)}
)

// observed returns the increase of a histogram from values and their numbers of observations.
func observed(bounds []float64, values map[float64]float64) stat.Delta {
	d := stat.Delta{Bounds: bounds, Counts: make([]float64, len(bounds)), OK: true}
	for v, n := range values {
		i := 0
		for bounds[i] < v {
			i++
		}
		d.Counts[i] += n
		d.Sum += n * v
		d.Count += n
	}
	return d
}

// interrupted returns a window of a server with 40 streams that receive a token every 20 ms and
// pause once for 0.7 s, while a step computes a prompt of 6,000 tokens.
func interrupted() (engine.Window, engine.Facts) {
	w, f := quietWindow(), knownFacts()
	f.MaxNumBatchedTokens, f.ChunkedPrefill = know(16384), know(true)
	w.Hist[engine.HistITL] = observed(boundsITL, map[float64]float64{0.02: 40 * 65, 0.7: 40})
	w.Hist[engine.HistIterationTokens] = observed(boundsSteps, map[float64]float64{60: 65, 6000: 1})
	w.Hist[engine.HistPromptTokens] = stat.Delta{Sum: 16 * 1000, Count: 16, OK: true}
	return w, f
}

func TestPrefillInterferenceConditions(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(w *engine.Window, f *engine.Facts)
		want engine.State
		why  string
	}{
		{"each stream pauses for a prompt", func(*engine.Window, *engine.Facts) {}, engine.Fired, "noticeable pauses"},
		{"half of the streams pause", func(w *engine.Window, _ *engine.Facts) {
			w.Hist[engine.HistITL] = observed(boundsITL, map[float64]float64{0.02: 40 * 65, 0.7: 20})
		}, engine.Fired, "noticeable pauses"},
		{"fewer do", func(w *engine.Window, _ *engine.Facts) {
			w.Hist[engine.HistITL] = observed(boundsITL, map[float64]float64{0.02: 40 * 65, 0.7: 19})
		}, engine.NotFired, "0.237/s < 0.250/s"},
		{"pauses that no one notices", func(w *engine.Window, _ *engine.Facts) {
			w.Hist[engine.HistITL] = observed(boundsITL, map[float64]float64{0.02: 40 * 65, 0.39: 400})
		}, engine.NotFired, "noticeable pauses"},
		{"every step is long", func(w *engine.Window, _ *engine.Facts) {
			w.Hist[engine.HistITL] = observed(boundsITL, map[float64]float64{0.7: 40 * 3})
		}, engine.NotFired, "noticeable pauses"},
		{"no step carries a prompt: the host pauses", func(w *engine.Window, _ *engine.Facts) {
			w.Hist[engine.HistIterationTokens] = observed(boundsSteps, map[float64]float64{40: 65, 120: 1})
		}, engine.NotFired, "but not for a prompt"},
		{"the steps of a long prompt are not counted", func(w *engine.Window, f *engine.Facts) {
			w.Hist[engine.HistIterationTokens] = observed(boundsSteps, map[float64]float64{40: 65, 120: 1})
			f.LongPrompt = stat.Some(80000)
		}, engine.NotEvaluable, inputParts},
		{"requests wait: smaller steps would make the queue longer", func(w *engine.Window, _ *engine.Facts) { setWaiting(w, 1) }, engine.NotFired, "requests queued"},
		{"preempted streams pause", func(w *engine.Window, _ *engine.Facts) { setCounter(w, engine.CounterPreemptions, 1) }, engine.NotFired, "preempted"},
		{"budget unknown", func(_ *engine.Window, f *engine.Facts) { f.MaxNumBatchedTokens = engine.Fact[int]{} }, engine.NotEvaluable, inputBudget},
		{"V0", func(_ *engine.Window, f *engine.Facts) { f.V0 = know(true) }, engine.NotEvaluable, inputV1},
		{"no chunked prefill: vLLM wants a budget of max_model_len", func(_ *engine.Window, f *engine.Facts) { f.ChunkedPrefill = know(false) }, engine.NotEvaluable, inputChunked},
		{"chunked prefill not known", func(_ *engine.Window, f *engine.Facts) { f.ChunkedPrefill = engine.Fact[bool]{} }, engine.NotEvaluable, inputChunked},
		{"no inter-token latency on the page", func(w *engine.Window, _ *engine.Facts) { w.Hist[engine.HistITL].Reset() }, engine.NotEvaluable, inputITL},
		{"no tokens of steps on the page", func(w *engine.Window, _ *engine.Facts) { w.Hist[engine.HistIterationTokens].Reset() }, engine.NotEvaluable, inputIterations},
		{"idle", func(w *engine.Window, _ *engine.Facts) {
			setRunning(w, 0)
			setCounter(w, engine.CounterGenerationTokens, 0)
			setCounter(w, engine.CounterPromptTokens, 0)
		}, engine.NotFired, "no request ran"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, f := interrupted()
			c.edit(&w, &f)
			got := checkPrefillInterference(&w, &f)
			if got.State != c.want || !strings.Contains(got.Sentence(), c.why) {
				t.Errorf("%s: %q, want %s: %q", got.State, got.Sentence(), c.want, c.why)
			}
		})
	}
}

// diagnoseInterrupted runs all rules over ten windows of an interrupted server.
func diagnoseInterrupted(t *testing.T, edit func(w *engine.Window, f *engine.Facts)) engine.Finding {
	t.Helper()
	w, f := interrupted()
	edit(&w, &f)
	var windows []engine.Window
	for range 10 {
		windows = append(windows, w.Clone())
	}
	d := engine.Diagnose(engine.Request{Facts: f, Windows: windows, Rules: All()})
	for _, finding := range d.Findings {
		if finding.ID == engine.PrefillInterference {
			return finding
		}
	}
	t.Fatal("no such finding")
	return engine.Finding{}
}

// costOfWait returns the increase of time to first token that a fix lists as its cost, in percent.
func costOfWait(t *testing.T, f *engine.Finding) float64 {
	t.Helper()
	var wait float64
	var tokens string
	for _, p := range f.Fix.Costs {
		_, figures, ok := strings.Cut(p, "which take more steps: about ")
		if !ok {
			continue
		}
		if _, err := fmt.Sscanf(strings.ReplaceAll(figures, figure.NBSP, " "), "%f %% for a prompt of %s tokens", &wait, &tokens); err != nil || tokens == "" {
			t.Fatalf("%q: %v", p, err)
		}
		return wait
	}
	t.Fatalf("no cost in time to first token: %q", f.Fix.Costs)
	return 0
}

func TestPrefillInterferenceBudget(t *testing.T) {
	model := func(_ *engine.Window, f *engine.Facts) { addModel(t, f) }
	t.Run("without a model in proportion to the pause", func(t *testing.T) {
		// 0.5 s and more for 4,096 tokens and more: 1,024 take about 0.15 s, 2,048 too long.
		f := diagnoseInterrupted(t, func(*engine.Window, *engine.Facts) {})
		if f.State != engine.Fired || !f.Significant || f.Fix.To != "1024" || !strings.Contains(f.Fix.Withheld, "a latency fix") || f.Confidence != pauseLessConfidence {
			t.Errorf("%s, confidence %v, fix %+v; want a budget of 1024 listed: what it costs is not known", f.State, f.Confidence, f.Fix)
		}
		if f.Impact != 1 {
			t.Errorf("impact %v: it must rank below every change that gains throughput", f.Impact)
		}
	})
	t.Run("with a model", func(t *testing.T) {
		f := diagnoseInterrupted(t, func(w *engine.Window, facts *engine.Facts) {
			model(w, facts)
			w.Hist[engine.HistITL] = observed(boundsITL, map[float64]float64{0.012: 40 * 125, 0.45: 40})
			w.Hist[engine.HistIterationTokens] = observed(boundsSteps, map[float64]float64{60: 125, 15000: 1})
			setCounter(w, engine.CounterGenerationTokens, 2500)
		})
		if f.State != engine.Fired || f.Confidence != pauseConfidence {
			t.Fatalf("%s (%s), confidence %v, fix %+v", f.State, f.Reason, f.Confidence, f.Fix)
		}
		if p := f.Fix.Predicted[0]; p.Metric != metricThroughput || p.Mid.V > 0 || f.Impact != 1 {
			t.Errorf("predicts %+v at impact %v: smaller steps gain no throughput", p, f.Impact)
		}
		if f.Fix.To != "2048" && f.Fix.To != "4096" {
			t.Errorf("budget %s, want what an H100 computes in about 0.2 s at most", f.Fix.To)
		}
		// These steps are compute bound: a split prompt takes only a little longer than a whole one.
		if wait := costOfWait(t, &f); wait < 0 || wait > 10 || !strings.Contains(f.Fix.Withheld, "a latency fix") {
			t.Errorf("%v %% longer, withheld %q", wait, f.Fix.Withheld)
		}
	})
	t.Run("long prompts that take many more steps", func(t *testing.T) {
		f := diagnoseInterrupted(t, func(w *engine.Window, facts *engine.Facts) {
			model(w, facts)
			facts.MaxNumSeqs = know(256)
			w.Hist[engine.HistITL] = observed(boundsITL, map[float64]float64{0.012: 40 * 125, 2: 40})
			w.Hist[engine.HistIterationTokens] = observed(boundsSteps, map[float64]float64{60: 125, 15000: 1})
			w.Hist[engine.HistPromptTokens] = observed([]float64{1000, 50000, 100000, math.Inf(1)}, map[float64]float64{1000: 15, 90000: 1})
			setCounter(w, engine.CounterGenerationTokens, 2500)
		})
		if f.State != engine.Fired || !f.Significant || f.Fix.To == f.Fix.From ||
			!strings.Contains(f.Fix.Withheld, "a latency fix: --max-num-batched-tokens "+f.Fix.To+" costs time to first token (about +") {
			t.Fatalf("%s, fix %+v; want it listed with value and costs", f.State, f.Fix)
		}
		if wait := costOfWait(t, &f); wait <= 10 || wait > 100 {
			t.Errorf("%v %% longer to the first token", wait)
		}
	})
	t.Run("a pause far longer than its largest step has another cause", func(t *testing.T) {
		f := diagnoseInterrupted(t, func(w *engine.Window, facts *engine.Facts) {
			model(w, facts)
			w.Hist[engine.HistITL] = observed(boundsITL, map[float64]float64{0.006: 40 * 200, 4: 40})
			w.Hist[engine.HistIterationTokens] = observed(boundsSteps, map[float64]float64{60: 65, 600: 1})
		})
		if f.State != engine.NotFired || !strings.Contains(f.Reason, "prompts are not the cause") {
			t.Errorf("%s: %s", f.State, f.Reason)
		}
	})
	t.Run("the largest step may not be counted where a prompt takes several", func(t *testing.T) {
		f := diagnoseInterrupted(t, func(w *engine.Window, facts *engine.Facts) {
			model(w, facts)
			facts.LongPrompt = stat.Some(80000)
			w.Hist[engine.HistITL] = observed(boundsITL, map[float64]float64{0.006: 40 * 200, 4: 40})
			w.Hist[engine.HistIterationTokens] = observed(boundsSteps, map[float64]float64{60: 65, 600: 1})
		})
		if f.State != engine.NotEvaluable || !strings.Contains(f.Reason, "80,000 tokens counts in the step of its last part alone") {
			t.Errorf("%s: %s", f.State, f.Reason)
		}
	})
	t.Run("slots bound the budget from below", func(t *testing.T) {
		f := diagnoseInterrupted(t, func(_ *engine.Window, f *engine.Facts) { f.MaxNumSeqs = know(16384) })
		if f.State != engine.Fired || !strings.Contains(f.Fix.Withheld, "lack a token for every slot") {
			t.Errorf("%s, fix %+v; want it withheld: vLLM refuses a budget below the slots", f.State, f.Fix)
		}
	})
	t.Run("slots not known", func(t *testing.T) {
		for _, c := range []struct {
			name     string
			device   string
			memory   float64 // GiB
			running  float64
			to       string
			withheld string
			costs    string
		}{
			{"nor hardware", "", 0, 40, "", "max_num_seqs, which is unknown", ""},
			{"a small GPU's default lies below", "cuda", 24, 40, "1024", "a latency fix", "(assumed: 256)"},
			{"a large GPU's default", "cuda", 80, 40, "1024", "a latency fix", "(assumed: 1,024)"},
			{"more ran at once: more slots pause as long", "cuda", 24, 1500, "2048", "saves too little", "(assumed: 1,500)"},
		} {
			f := diagnoseInterrupted(t, func(w *engine.Window, f *engine.Facts) {
				f.MaxNumSeqs, f.Device, f.GPUName = engine.Fact[int]{}, engine.Fact[string]{}, know("NVIDIA of some kind")
				if f.GPU.VRAMGiB = c.memory; c.device != "" {
					f.Device = know(c.device)
				}
				w.RunningPeak = stat.Some(c.running)
			})
			if f.State != engine.Fired || c.to != "" && f.Fix.To != c.to || !strings.Contains(f.Fix.Withheld, c.withheld) || !strings.Contains(strings.Join(f.Fix.Costs, "; "), c.costs) {
				t.Errorf("%s: %s, fix %+v; want %q, withheld %q, costs %q", c.name, f.State, f.Fix, c.to, c.withheld, c.costs)
			}
		}
	})
	t.Run("prompts that come fill smaller steps", func(t *testing.T) {
		f := diagnoseInterrupted(t, func(w *engine.Window, _ *engine.Facts) {
			setCounter(w, engine.CounterPromptTokens, 11000)
			setCounter(w, engine.CounterPromptTokensCached, 0)
		})
		if f.State != engine.Fired || f.Fix.Withheld == "" {
			t.Errorf("%s, fix %+v; want it withheld: 11,000 tokens a second need all the time that there is", f.State, f.Fix)
		}
	})
}
