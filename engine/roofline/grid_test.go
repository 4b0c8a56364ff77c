package roofline

import (
	"math"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

var (
	gridWeights = []catalog.DType{catalog.FP32, catalog.BF16, catalog.FP8, catalog.INT8, catalog.INT4, catalog.MXFP4, catalog.NVFP4}
	gridKV      = []catalog.DType{catalog.BF16, catalog.FP8}
)

// grid calls f for every device and model of the catalog, the dtypes rotating
// over the pairs, with a spread of parallelism.
func grid(t *testing.T, f func(t *testing.T, c Config)) {
	t.Helper()
	n := 0
	for _, g := range catalog.Default().GPUs() {
		for _, m := range catalog.Default().Models() {
			n++
			c := Config{
				GPU: g, Model: m, TP: 1, PP: 1, Compute: catalog.BF16,
				Weight: gridWeights[n%len(gridWeights)], KV: gridKV[n/len(gridWeights)%len(gridKV)],
			}
			if c.Check() != nil {
				continue
			}
			f(t, c)
			c.TP, c.Eager = 4, true
			f(t, c)
			c.TP, c.PP, c.Eager = 8, 2, false
			f(t, c)
			if m.Experts > 0 {
				c.TP, c.PP, c.DP, c.ExpertParallel = 2, 1, 4, true
				f(t, c)
			}
		}
	}
}

func sound(v float64) bool { return v >= 0 && !math.IsInf(v, 0) && !math.IsNaN(v) }

func soundTerms(t Terms) bool {
	return sound(t.Weights) && sound(t.Compute) && sound(t.KV) && sound(t.Attention) && sound(t.Collectives) && sound(t.Fixed)
}

// For every combination of the catalog, times are positive, the ideal is never above the achievable, and more work never
// takes less time.
func TestStepProperties(t *testing.T) {
	points := []Point{
		{Batch: 1, Context: 0, Tokens: 1},
		{Batch: 0.3, Context: 50, Tokens: 0.3},
		{Batch: 7.5, Context: 900, Tokens: 40, PrefillContext: 500},
		{Batch: 64, Context: 5000, Tokens: 64, PerSequence: 2.4},
		{Batch: 700, Context: 40000, Tokens: 3000, PrefillContext: 9000, Chunk: 8192},
		{Tokens: 4096, PrefillContext: 2048},
	}
	grid(t, func(t *testing.T, c Config) {
		pl := c.plan()
		for _, p := range points {
			ideal, achievable := pl.terms(p)
			if !soundTerms(ideal) || !soundTerms(achievable) || ideal.Total() <= 0 {
				t.Fatalf("%s %s %s %s TP %d at %+v: unsound %+v %+v", c.GPU.Name, c.Model.ID, c.Weight, c.KV, c.TP, p, ideal, achievable)
			}
			if ideal.Total() > achievable.Total()*(1+1e-9) {
				t.Fatalf("%s %s %s %s TP %d at %+v: ideal %+v above achievable %+v", c.GPU.Name, c.Model.ID, c.Weight, c.KV, c.TP, p, ideal, achievable)
			}
			if p.Batch == 0 {
				continue
			}
			more := []struct {
				what string
				p    Point
			}{{"batch", p}, {"context", p}, {"tokens", p}}
			more[0].p.Batch *= 1.7
			more[0].p.Tokens += 0.7 * p.Batch * max(1, p.PerSequence)
			more[1].p.Context = p.Context*1.3 + 100
			more[2].p.Tokens += 123
			for _, m := range more {
				i, a := pl.terms(m.p)
				if i.Total() < ideal.Total()*(1-1e-9) || a.Total() < achievable.Total()*(1-1e-9) {
					t.Fatalf("%s %s %s TP %d PP %d DP %d: more %s takes less: %+v %g %g, then %+v %g %g", c.GPU.Name, c.Model.ID, c.Weight, c.TP, c.PP, c.DP,
						m.what, p, ideal.Total(), achievable.Total(), m.p, i.Total(), a.Total())
				}
			}
		}
		if ideal, achievable := c.Prefill(3000, 1000, 2048); !sound(ideal) || !sound(achievable) || ideal > achievable*(1+1e-9) {
			t.Fatalf("%s %s %s: prefill %g %g", c.GPU.Name, c.Model.ID, c.Weight, ideal, achievable)
		}
		if n := c.RidgeTokens(); !sound(n) {
			t.Fatalf("%s %s %s: ridge %g", c.GPU.Name, c.Model.ID, c.Weight, n)
		}
		tokens, low, high := c.Capacity(0.9)
		if !sound(tokens) || !sound(low) || !sound(high) || low > tokens || tokens > high {
			t.Fatalf("%s %s %s: capacity %g %g %g", c.GPU.Name, c.Model.ID, c.Weight, low, tokens, high)
		}
	})
}

// Splitting a model never loses parameters, and never adds experts beyond the total.
func TestShapeKeepsTotals(t *testing.T) {
	for _, m := range catalog.Default().Models() {
		s := shapeOf(&m)
		if s.stored() > m.TotalParams*(1+1e-9) {
			t.Errorf("%s: parts hold %g of %g parameters", m.ID, s.stored(), m.TotalParams)
		}
		if s.dense < 0 || s.stored() < 0.8*m.TotalParams {
			t.Errorf("%s: parts hold only %g of %g parameters", m.ID, s.stored(), m.TotalParams)
		}
		if m.ActiveParams > 0 && m.Experts > 0 {
			active := s.dense + s.head + s.moeLayers*s.perToken*s.expert
			if active > 1.35*m.ActiveParams || active < 0.6*m.ActiveParams {
				t.Errorf("%s: dimensions give %.2fe9 active parameters, published %.2fe9", m.ID, active/1e9, m.ActiveParams/1e9)
			}
		}
	}
}

// All operating points give numbers, and ordered gains.
func TestGainProperties(t *testing.T) {
	measured := []Measured{
		{Point: Point{Batch: 16, Context: 1000}, StepSeconds: stat.Some(0.02)},
		{
			Point: Point{Batch: 16, Context: 1000}, StepSeconds: stat.Some(0.02), OutputPerS: stat.Some(700), PrefillPerS: stat.Some(5000),
			Waiting: stat.Some(40), KVCapacity: stat.Some(40000), MaxNumSeqs: stat.Some(16), TTFTSeconds: stat.Some(2), QueueSeconds: stat.Some(1.5),
			PreemptsPerS: stat.Some(0.5), Workload: Workload{Prompt: 900, Computed: 700, Output: 200}, WorkloadKnown: true,
		},
		{
			Point: Point{Batch: 0.4, Context: 10}, StepSeconds: stat.Some(3), OutputPerS: stat.Some(0.2), PrefillPerS: stat.Some(0),
			Waiting: stat.Some(0), TTFTSeconds: stat.Some(0.1), Workload: Workload{Prompt: 1, Computed: 1, Output: 1}, WorkloadKnown: true,
		},
	}
	grid(t, func(t *testing.T, c Config) {
		if c.GPU.VRAMGiB < 70 {
			return // fewer devices: the arithmetic of gains does not depend on them
		}
		for i, m := range measured {
			o, p, err := c.Operate(m, 2)
			if err != nil {
				t.Fatalf("%s %s: %v", c.GPU.Name, c.Model.ID, err)
			}
			if o.AchievableTokensPerS.V > o.IdealTokensPerS.V*(1+1e-9) || o.AchievableLower.V > o.AchievableUpper.V || !sound(o.BestTokensPerS.V) {
				t.Fatalf("%s %s point %d: %+v", c.GPU.Name, c.Model.ID, i, o)
			}
			for name, g := range map[string]Gain{
				"raise slots": p.RaiseSlots(64), "lower slots": p.LowerSlots(8), "more kv": p.MoreKV(200000), "fp8 kv": p.FP8KV(),
				"concurrency": p.MoreConcurrency(64), "budget": p.TokenBudget(8192), "tp": p.TensorParallel(8),
				"no eager": p.NoEager(),
			} {
				for kind, r := range map[string]Range{"throughput": g.Throughput, "ttft": g.TTFT, "itl": g.ITL} {
					previous := math.Inf(-1)
					for _, end := range []stat.Opt{r.Low, r.Mid, r.High} {
						if !end.OK {
							continue
						}
						if math.IsNaN(end.V) || math.IsInf(end.V, 0) || end.V < -1-1e-9 || end.V < previous-1e-9 {
							t.Fatalf("%s %s point %d: %s of %s is %+v", c.GPU.Name, c.Model.ID, i, kind, name, r)
						}
						previous = end.V
					}
				}
			}
		}
	})
}
