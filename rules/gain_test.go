package rules

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// stepRun is a run of a real vLLM with four slots: 1,988 steps in 40 s, of which 124 had a prompt of 100
// tokens and took 36 ms.
func stepRun() *engine.Run {
	r := &engine.Run{Facts: &engine.Facts{MaxNumBatchedTokens: know(2048)}}
	a := &r.Agg
	a.Ranks = 1
	a.Running, a.Waiting = stat.Some(3.9), stat.Some(28)
	a.CountedStep = stat.Some(40.0 / 1988)
	a.PromptLen, a.OutputLen = stat.Some(100), stat.Some(64)
	a.Hist[engine.HistPrefill] = stat.Delta{Count: 124, Sum: 4.52, OK: true}
	a.Hist[engine.HistIterationTokens] = stat.Delta{
		Bounds: []float64{1, 8, 16, 32, 64, 128}, Counts: []float64{0, 1864, 0, 0, 0, 124}, Count: 1988, Sum: 20352, OK: true,
	}
	return r
}

func TestStepPrefill(t *testing.T) {
	if got := stepPrefill(stepRun()); math.Abs(got.V-0.054) > 0.001 {
		t.Errorf("prompts take %v of the engine's time, want 5.4 %%", got)
	}
	for _, tc := range []struct {
		name  string
		alter func(r *engine.Run)
	}{
		{"steps not counted", func(r *engine.Run) { r.Agg.Hist[engine.HistIterationTokens].OK = false }},
		{"prompts as short as a batch", func(r *engine.Run) { r.Agg.PromptLen = stat.Some(6) }},
		{"prompts from the cache", func(r *engine.Run) { r.Agg.HitRate = stat.Some(0.97) }},
		{"no step without a prompt", func(r *engine.Run) { r.Agg.Hist[engine.HistIterationTokens].Counts = make([]float64, 6) }},
	} {
		r := stepRun()
		if tc.alter(r); stepPrefill(r).OK {
			t.Errorf("%s: prompts take %v", tc.name, stepPrefill(r))
		}
	}
	waited := stepRun() // for blocks before the first token: 20 of 31 tokens are prompts'
	waited.Agg.Hist[engine.HistPrefill].Sum, waited.Agg.PrefillMost = 124*2.8, stat.Some(0.65)
	if got := stepPrefill(waited); got.V != 0.65 {
		t.Errorf("prompts take %v of the engine's time, want no more than they can", got)
	}
	long := stepRun()
	long.Agg.PromptLen = stat.Some(8192) // four steps each
	if got, one := stepPrefill(long), stepPrefill(stepRun()); got.V >= one.V {
		t.Errorf("%v of prompts cut into steps, %v of whole ones", got, one)
	}
}

// A share of prefill bounds the gain of reuse only where nothing waits and the engine has a GPU: on a real
// CPU server turning caching on brought +115 % where at most +45 % had been said.
func TestPrefillBoundsReuse(t *testing.T) {
	idle := func() *engine.Run {
		r := stepRun()
		r.Agg.Waiting, r.Agg.PrefillMost = stat.Some(0), stat.Some(0.31)
		return r
	}
	if most, _ := reuseMost(idle()); most.V != 0.31 {
		t.Errorf("at most %v, want the measured share", most)
	}
	for _, tc := range []struct {
		name, why string
		alter     func(r *engine.Run)
	}{
		{"a queue", "requests wait", func(r *engine.Run) { r.Agg.Waiting = stat.Some(20) }},
		{"a queue that is not known", "requests wait", func(r *engine.Run) { r.Agg.Waiting = stat.None }},
		{"a CPU", "on a CPU", func(r *engine.Run) { r.Facts.Device = know("cpu") }},
		{"prefill at every moment", "almost all", func(r *engine.Run) { r.Agg.PrefillMost = stat.Some(1) }},
	} {
		r := idle()
		tc.alter(r)
		if most, why := reuseMost(r); most.OK || !strings.Contains(why, tc.why) {
			t.Errorf("%s: at most %v, %q", tc.name, most, why)
		}
		if p := reuseBound(r); p[0].High.OK {
			t.Errorf("%s: predicted %+v", tc.name, p)
		}
	}
}

// TestBestOfUnevenRanks checks that two ranks, of which one runs everything, have twice the best output of that one alone:
// its steps are as long as with its own batch, not with the mean of both.
func TestBestOfUnevenRanks(t *testing.T) {
	run := func(w *engine.Window) *engine.Diagnosis {
		f := knownFacts()
		addModel(t, &f)
		windows := make([]engine.Window, 10)
		for i := range windows {
			windows[i] = w.Clone()
		}
		d := engine.Diagnose(engine.Request{Facts: f, Windows: windows, Rules: All()})
		if d.Ceiling.Physical == nil || !d.Ceiling.Physical.BestTokensPerS.OK {
			t.Fatalf("no best output: %s", d.Ceiling.PhysicalReason)
		}
		return &d
	}
	alone := quietWindow()
	both := alone.Clone()
	idle := both.Ranks[0]
	idle.Name, idle.Running, idle.Waiting = "1", stat.Some(0), stat.Some(0)
	both.Ranks = append(both.Ranks, idle)
	both.KV, both.KVLast = both.KV.Times(0.5), both.KVLast.Times(0.5) // the mean of both pools
	one, two := run(&alone), run(&both)
	if got, want := two.Ceiling.Physical.BestTokensPerS.V, 2*one.Ceiling.Physical.BestTokensPerS.V; math.Abs(got-want) > 1e-6*want {
		t.Errorf("best output %v, want %v", got, want)
	}
	highest := 0.0
	for _, p := range two.Curve.Points {
		if p.Running <= two.Ceiling.Physical.BestBatch.V {
			highest = max(highest, p.Expected)
		}
	}
	if want := two.Ceiling.Physical.BestTokensPerS.V; math.Abs(highest-want) > 0.05*want {
		t.Errorf("the highest point of the curve within slots and pool is %v, the best output %v", highest, want)
	}
}
