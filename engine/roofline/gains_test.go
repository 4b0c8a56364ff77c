package roofline

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func operate(t *testing.T, c Config, m Measured) *Performance {
	t.Helper()
	_, p, err := c.Operate(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func holds(t *testing.T, what string, r Range, measured float64) {
	t.Helper()
	if !r.Low.OK || !r.High.OK || measured < r.Low.V || measured > r.High.V {
		t.Errorf("%s: measured %+.3f lies outside the prediction %+.3f to %+.3f", what, measured, r.Low.V, r.High.V)
	}
}

// Published pairs of measurements, the second predicted from the first alone. Sources: vLLM's fp8 KV post of 2026-04-22
// (H100, 8 sequences of 20,000 tokens), and gpt-fast's table (A100, batch 1).
func TestGainsAgainstPublishedPairs(t *testing.T) {
	t.Run("fp8 KV", func(t *testing.T) {
		p := operate(t, bf16(h100sxm(), llama8b(), 1), Measured{
			Point: Point{Batch: 8, Context: 21000}, StepSeconds: stat.Some(15.18e-3), Waiting: stat.Some(0),
		})
		g := p.FP8KV()
		holds(t, "throughput", g.Throughput, 517.5/450.3-1)
		holds(t, "time between tokens", g.ITL, 12.93/15.18-1)
	})
	t.Run("fp8 KV at a short context", func(t *testing.T) {
		p := operate(t, bf16(h100sxm(), llama8b(), 1), Measured{
			Point: Point{Batch: 1, Context: 1}, StepSeconds: stat.Some(6.44e-3), Waiting: stat.Some(0),
		})
		if g := p.FP8KV().Throughput; g.Mid.V > 0.01 || g.High.V > ofRate.floor+0.01 {
			t.Errorf("throughput = %+v, want nothing to gain but noise", g)
		}
	})
	for _, tc := range []struct {
		to   int
		want float64
	}{{2, 149.1/93.89 - 1}, {4, 217.21/93.89 - 1}, {8, 276.01/93.89 - 1}} {
		t.Run("tensor parallel", func(t *testing.T) {
			p := operate(t, bf16(a100sxm(), llama8b(), 1), Measured{
				Point: Point{Batch: 1, Context: 100}, StepSeconds: stat.Some(10.65e-3), Waiting: stat.Some(0),
			})
			holds(t, "throughput", p.TensorParallel(tc.to).Throughput, tc.want)
		})
	}
}

// queued is a server at its cap of 16 slots with 40 requests waiting.
func queued() Measured {
	return Measured{
		Point: Point{Batch: 16, Context: 1000}, StepSeconds: stat.Some(9e-3), OutputPerS: stat.Some(16 / 9e-3), PrefillPerS: stat.Some(3000),
		Waiting: stat.Some(40), KVCapacity: stat.Some(400000), MaxNumSeqs: stat.Some(16),
		TTFTSeconds: stat.Some(5.1), QueueSeconds: stat.Some(5),
		Workload: Workload{Prompt: 900, Computed: 340, Output: 200}, WorkloadKnown: true,
	}
}

func TestRaiseSlots(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	t.Run("all waiting fit", func(t *testing.T) {
		g := operate(t, c, queued()).RaiseSlots(64)
		if g.Throughput.Mid.V < 0.5 || g.Throughput.High.V > 56.0/16-1 {
			t.Errorf("throughput = %+v, want a large gain below the batch's growth of 2.5", g.Throughput)
		}
		if g.TTFT.Mid.V > -0.9 {
			t.Errorf("time to first token = %+v, want the queue gone", g.TTFT)
		}
		if g.ITL.Mid.V <= 0 {
			t.Errorf("time between tokens = %+v, want a price", g.ITL)
		}
	})
	t.Run("half of the waiting fit", func(t *testing.T) {
		all, half := operate(t, c, queued()).RaiseSlots(56), operate(t, c, queued()).RaiseSlots(36)
		if half.Throughput.Mid.V >= all.Throughput.Mid.V || half.TTFT.Mid.V <= all.TTFT.Mid.V {
			t.Errorf("half: %+v, all: %+v", half, all)
		}
	})
	t.Run("pool full", func(t *testing.T) {
		m := queued()
		m.KVCapacity = stat.Some(16500)
		g := operate(t, c, m).RaiseSlots(64)
		if g.Throughput.High.V != 0 || !strings.Contains(g.Note, "KV pool") {
			t.Errorf("gain = %+v, want nothing and the pool named", g)
		}
	})
	t.Run("nothing waits", func(t *testing.T) {
		m := queued()
		m.Waiting = stat.Some(0)
		if g := operate(t, c, m).RaiseSlots(64); g.Throughput.High.V != 0 {
			t.Errorf("gain = %+v, want nothing", g)
		}
	})
	t.Run("queue unknown", func(t *testing.T) {
		m := queued()
		m.Waiting = stat.None
		if g := operate(t, c, m).RaiseSlots(64); g.Throughput.Mid.OK || g.Throughput.High.OK {
			t.Errorf("gain = %+v, want unknown", g)
		}
	})
	t.Run("steps beyond the model", func(t *testing.T) {
		m := queued()
		m.StepSeconds = stat.Some(0.2)
		g := operate(t, c, m).RaiseSlots(64)
		if g.Throughput.Mid.OK || g.Note == "" {
			t.Errorf("gain = %+v, want no middle, and why", g)
		}
	})
}

// The tokens that a sequence holds divide the pool; those that it reads determine the step.
func TestSharedPrefixes(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	m := queued()
	m.KVCapacity = stat.Some(22000) // 20 sequences of 1,000 tokens and half an output
	alone := operate(t, c, m)
	m.Resident = stat.Some(300) // 55 of 300
	shared := operate(t, c, m)
	if a, s := alone.RaiseSlots(56).ITL.Mid.V, shared.RaiseSlots(56).ITL.Mid.V; s <= a {
		t.Errorf("time between tokens %+.3f with shared prefixes, %+.3f without: more fit, so the steps are longer", s, a)
	}
	if alone.Now.Achievable != shared.Now.Achievable {
		t.Errorf("the step is %+v with shared prefixes, %+v without: each sequence reads its whole context", shared.Now.Achievable, alone.Now.Achievable)
	}
	m.MaxNumSeqs = stat.None
	near(t, "batch that the pool allows", m.limit().V, 22000.0/300, 1e-9)
}

// A compute-bound step takes twice as long for twice the batch, however its unexplained time is interpreted.
func TestComputeBoundStepsGainNothing(t *testing.T) {
	m := queued()
	m.Point.Batch, m.MaxNumSeqs, m.Waiting = 32, stat.Some(32), stat.Some(64)
	m.Workload, m.PrefillPerS = Workload{Prompt: 900, Computed: 900, Output: 20}, stat.Some(36000)
	m.OutputPerS, m.StepSeconds = stat.Some(800), stat.Some(40e-3)
	m.KVCapacity = stat.Some(4e6)
	p := operate(t, bf16(h100sxm(), llama8b(), 1), m)
	if share := p.Now.Achievable.Compute / p.Now.Achievable.Total(); share < 0.7 || p.Raw < 1.15 {
		t.Fatalf("%.2f of the step computes, measured %.2f times the model: not the case to be tested", share, p.Raw)
	}
	g := p.RaiseSlots(96).Throughput
	t.Logf("gain of three times the batch: %+.3f to %+.3f, middle %+.3f", g.Low.V, g.High.V, g.Mid.V)
	if free := p.Throughput(96)/p.Throughput(32) - 1; g.Mid.V > free+1e-9 {
		t.Errorf("middle %+.3f, want about %+.3f: none of the excess counts as fixed", g.Mid.V, free)
	}
}

// Cache hits need the part of the pool that running sequences leave free.
func TestFullerPoolLosesHits(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	m := queued()
	m.Workload = Workload{Prompt: 900, Computed: 90, Output: 200}
	roomy, tight := m, m
	roomy.KVCapacity, tight.KVCapacity = stat.Some(4e6), stat.Some(64000)
	a, b := operate(t, c, roomy).RaiseSlots(56).Throughput, operate(t, c, tight).RaiseSlots(56).Throughput
	if b.Low.V >= a.Low.V || b.Mid.V != a.Mid.V {
		t.Errorf("gain %+v in a pool that gets full, %+v in one that does not: want a lower low end and the same middle", b, a)
	}
	m.Workload.Computed = 900
	if at := operate(t, c, m).crowded(m.at(56)); at.Batch != 0 {
		t.Errorf("without hits there is nothing to lose, got %+v", at)
	}
}

func TestPrefillShare(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	m := queued()
	few := operate(t, c, m).PrefillShare()
	m.PrefillPerS = stat.Some(18000)
	many := operate(t, c, m).PrefillShare()
	if !few.OK || !many.OK || few.V <= 0 || many.V <= few.V || many.V >= 1 {
		t.Errorf("share %v at 3,000 prompt tokens per second, %v at 18,000", few, many)
	}
	m.PrefillPerS = stat.None
	wantNone(t, "share of unknown prefill", operate(t, c, m).PrefillShare())
	m.PrefillPerS = stat.Some(0)
	wantOpt(t, "share of no prefill", operate(t, c, m).PrefillShare(), 0)
}

func TestLowerSlotsAndMoreKV(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	m := queued()
	m.Point.Batch, m.MaxNumSeqs, m.KVCapacity = 64, stat.Some(64), stat.Some(60000)
	m.StepSeconds, m.OutputPerS = stat.Some(20e-3), stat.Some(64/20e-3)
	calm := operate(t, c, m).LowerSlots(48)
	if calm.Throughput.Mid.V >= 0 || calm.ITL.Mid.V >= 0 {
		t.Errorf("lower slots without preemptions: %+v, want less throughput and shorter steps", calm)
	}
	m.PreemptsPerS = stat.Some(4)
	p := operate(t, c, m)
	if g := p.LowerSlots(48); g.Throughput.Mid.V <= calm.Throughput.Mid.V {
		t.Errorf("lower slots with preemptions: %+v, want more than %+v", g.Throughput, calm.Throughput)
	}
	if g := p.MoreKV(200000); g.Throughput.Mid.V <= 0 {
		t.Errorf("more KV: %+v, want a gain", g.Throughput)
	}
	m.PreemptsPerS, m.Waiting = stat.Some(0), stat.Some(0)
	if g := operate(t, c, m).MoreKV(200000); g.Throughput.High.V != 0 {
		t.Errorf("more KV that nothing asks for: %+v", g)
	}
}

// trickling is a server whose steps are full with 64 tokens: 6 decoding sequences and a tenth of a prompt, while 25
// requests wait.
func trickling() Measured {
	return Measured{
		Point: Point{Batch: 6, Context: 640}, StepSeconds: stat.Some(6.5e-3), OutputPerS: stat.Some(6 / 6.5e-3), PrefillPerS: stat.Some(58 / 6.5e-3),
		Waiting: stat.Some(25), KVCapacity: stat.Some(400000), MaxNumSeqs: stat.Some(64), TokenBudget: stat.Some(64),
		TTFTSeconds: stat.Some(1.8), QueueSeconds: stat.Some(1.7),
		Workload: Workload{Prompt: 580, Computed: 580, Output: 60}, WorkloadKnown: true,
	}
}

func TestTokenBudget(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	t.Run("weights are read for few tokens", func(t *testing.T) {
		p := operate(t, c, trickling())
		// 64 and 128 tokens need the same reading of the weights: twice the rate.
		g := p.TokenBudget(128)
		if x := g.Throughput; x.Mid.V < 0.6 || x.Mid.V > 1 || x.High.V > 1 {
			t.Errorf("throughput of twice the budget = %+v, want nearly and at most twice the rate", x)
		}
		// With 512 all waiting requests run, and a larger budget adds nothing.
		g = p.TokenBudget(512)
		if g.Throughput.Mid.V < 1.5 || g.Throughput.High.V > 31.0/6-1 {
			t.Errorf("throughput = %+v, want a large gain below the batch's growth", g.Throughput)
		}
		if g.TTFT.Mid.V > -0.9 {
			t.Errorf("time to first token = %+v, want the queue gone", g.TTFT)
		}
		if more := p.TokenBudget(8192).Throughput.Mid.V; more > g.Throughput.Mid.V*1.05 {
			t.Errorf("a budget of 8192 gains %+.2f, one of 512 %+.2f: no request is left to fill it", more, g.Throughput.Mid.V)
		}
	})
	t.Run("slots bound what a larger budget lets run", func(t *testing.T) {
		m := trickling()
		m.MaxNumSeqs = stat.Some(8)
		if x := operate(t, c, m).TokenBudget(512).Throughput; x.Mid.V > 8.0/6-1 {
			t.Errorf("throughput = %+v, want at most that of 8 slots", x)
		}
	})
	t.Run("compute bound", func(t *testing.T) {
		m := Measured{
			Point: Point{Batch: 20, Context: 5000}, StepSeconds: stat.Some(0.21), OutputPerS: stat.Some(20 / 0.21), PrefillPerS: stat.Some(8170 / 0.21),
			Waiting: stat.Some(24), KVCapacity: stat.Some(400000), MaxNumSeqs: stat.Some(256), TokenBudget: stat.Some(8192),
			TTFTSeconds: stat.Some(4), QueueSeconds: stat.Some(3.4),
			Workload: Workload{Prompt: 5000, Computed: 5000, Output: 12}, WorkloadKnown: true,
		}
		if x := operate(t, c, m).TokenBudget(16384).Throughput; x.Mid.V > 0.03 {
			t.Errorf("throughput = %+v, want next to nothing: a step of twice the tokens takes twice as long", x)
		}
	})
	t.Run("no request waits", func(t *testing.T) {
		m := trickling()
		m.Waiting, m.QueueSeconds = stat.Some(0), stat.Some(0)
		if x := operate(t, c, m).TokenBudget(512).Throughput; x.Mid.V > 0.35 {
			t.Errorf("throughput = %+v, want only what fewer pieces of a prompt save", x)
		}
	})
}

func TestHardwareGains(t *testing.T) {
	m := Measured{Point: Point{Batch: 8, Context: 2000}, StepSeconds: stat.Some(11e-3), Waiting: stat.Some(0)}
	t.Run("over PCIe nothing is promised", func(t *testing.T) {
		gpu := h100sxm()
		gpu.NVLinkGBs = nvlink(0)
		g := operate(t, bf16(gpu, llama8b(), 1), m).TensorParallel(2)
		if g.Throughput.Mid.OK || g.Throughput.Low.V > 0 || g.Note == "" {
			t.Errorf("gain = %+v", g)
		}
	})
	t.Run("heads do not split", func(t *testing.T) {
		if g := operate(t, bf16(h100sxm(), llama8b(), 1), m).TensorParallel(3); g.Throughput.High.OK || g.Note == "" {
			t.Errorf("gain = %+v", g)
		}
	})
	t.Run("graphs", func(t *testing.T) {
		c := bf16(h100sxm(), llama8b(), 8)
		c.Eager = true
		m := m
		m.StepSeconds = stat.Some(3e-3)
		if g := operate(t, c, m).NoEager().Throughput; g.Mid.V <= 0.05 {
			t.Errorf("gain of graphs at TP 8 = %+v", g)
		}
		c.Eager = false
		if g := operate(t, c, m).NoEager().Throughput; g.High.V != 0 {
			t.Errorf("gain of graphs that are in use = %+v", g)
		}
	})
	t.Run("8-bit cache already", func(t *testing.T) {
		c := bf16(h100sxm(), llama8b(), 1)
		c.KV = catalog.FP8
		if g := operate(t, c, m).FP8KV(); g.Throughput.High.V != 0 {
			t.Errorf("gain = %+v", g)
		}
	})
}

func TestThroughputCurve(t *testing.T) {
	m := queued()
	p := operate(t, bf16(h100sxm(), llama8b(), 1), m)
	near(t, "at the measured batch", p.Throughput(16), m.OutputPerS.V, 1e-9)
	previous := 0.0
	for b := 1.0; b < 600; b *= 1.5 {
		x := p.Throughput(b)
		if x < previous {
			t.Errorf("throughput falls to %g at %g", x, b)
		}
		if previous > 0 && x > previous*1.5 {
			t.Errorf("throughput grows faster than the batch at %g", b)
		}
		previous = x
	}
	if p.Throughput(0) != 0 {
		t.Error("throughput of nothing")
	}
}

// The curve passes through the predictions for more slots, also where the server is slower or faster than
// modelled.
func TestTheCurveHoldsThePredictions(t *testing.T) {
	for _, slower := range []float64{0.7, 1, 1.6} {
		m := queued()
		for _, v := range []*stat.Opt{&m.StepSeconds, &m.TTFTSeconds, &m.QueueSeconds} {
			v.V *= slower
		}
		m.OutputPerS.V /= slower
		p := operate(t, bf16(h100sxm(), llama8b(), 1), m)
		g := p.RaiseSlots(32)
		batch := m.Batch * (1 + g.Throughput.Mid.V) * (1 + g.ITL.Mid.V)
		near(t, "the predicted rate", p.Throughput(batch), m.OutputPerS.V*(1+g.Throughput.Mid.V), 1e-6)
	}
}

// Results of two workloads on vLLM's CPU backend and of a GPU, predicted from the first of each pair alone.
func TestBlind(t *testing.T) {
	for _, tc := range []struct {
		name             string
		running, waiting float64
		to               int
		measured         float64
	}{
		{"4 to 32 slots, long requests", 4, 28, 32, 1110.0/271 - 1},
		{"4 to 32 slots, short chat", 4, 28, 32, 1800.0/900 - 1},
		{"16 to 64 on an A100", 16, 48, 64, 0.83},
		{"256 to 512", 256, 256, 512, 0.07},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := Blind{Running: tc.running, Waiting: tc.waiting, QueueShare: stat.Some(0.9)}.RaiseSlots(tc.to)
			if tc.name != "4 to 32 slots, short chat" { // the one in seven that lies outside
				holds(t, "throughput", g.Throughput, tc.measured)
			}
			if x := (1 + g.ITL.Mid.V) * (1 + g.Throughput.Mid.V); math.Abs(x-float64(tc.to)/tc.running) > 1e-9 {
				t.Errorf("time between tokens %+v and throughput %+v do not make the batch", g.ITL, g.Throughput)
			}
			if g.TTFT.Mid.V > -0.5 || g.TTFT.Low.V > g.TTFT.Mid.V || g.TTFT.High.V < g.TTFT.Mid.V {
				t.Errorf("time to first token %+v, want the queue gone", g.TTFT)
			}
		})
	}
	t.Run("prompts and the API server", func(t *testing.T) {
		b := Blind{Running: 4, Waiting: 28, CPU: true}
		free := b.RaiseSlots(32).Throughput
		b.Prefill = stat.Some(0.5)
		prompts := b.RaiseSlots(32).Throughput
		if prompts.Mid.V >= free.Mid.V || prompts.High.V > 1.5 {
			t.Errorf("%+v with half of the time in prompts, %+v without", prompts, free)
		}
		b.Prefill, b.FrontShare = stat.Some(0), stat.Some(0.6)
		if g := b.RaiseSlots(32).Throughput; g.Mid.V > 0.7 || g.Low.V > g.Mid.V || g.High.V < g.Mid.V {
			t.Errorf("%+v with an API server that is 60 %% busy", g)
		}
	})
	t.Run("an unknown share of prompts takes in what it may be", func(t *testing.T) {
		b := Blind{Running: 4, Waiting: 28}
		usual := b.RaiseSlots(32).Throughput
		b.PrefillMost = stat.Some(0.9)
		most := b.RaiseSlots(32).Throughput
		b.PrefillMost = stat.Some(0.01)
		least := b.RaiseSlots(32).Throughput
		if most.Low.V >= usual.Low.V || most.Mid != usual.Mid || least.Low.V <= usual.Low.V || least.Mid.V <= usual.Mid.V {
			t.Errorf("%+v up to 90 %%, %+v up to 1 %%, %+v otherwise", most, least, usual)
		}
		b.Prefill = stat.Some(0.01)
		if g := b.RaiseSlots(32).Throughput; g.Low.V < least.Low.V {
			t.Errorf("%+v of a known share, %+v of one that is at most as large", g, least)
		}
	})
	b := Blind{Running: 4, Waiting: 28, Why: "the GPU is not known"}
	if g := b.RaiseSlots(64); !strings.HasSuffix(g.Note, ": the GPU is not known") {
		t.Errorf("note %q", g.Note)
	}
	t.Run("steps of its own", func(t *testing.T) {
		own := b
		own.Half = stat.Some(200)
		if a, g := b.RaiseSlots(32).Throughput, own.RaiseSlots(32).Throughput; g.Mid.V <= a.Mid.V || g.High.V/g.Low.V >= a.High.V/a.Low.V {
			t.Errorf("%+v from flat steps of its own, %+v without", g, a)
		}
	})
	t.Run("a pool for half of them", func(t *testing.T) {
		own := b
		own.Holds = stat.Some(18)
		if got, want := own.RaiseSlots(64).Throughput, b.RaiseSlots(18).Throughput; got != want {
			t.Errorf("%+v, want that of 18 slots %+v", got, want)
		}
	})
	t.Run("an open loop a little above capacity", func(t *testing.T) {
		own := b
		own.Offered = Offered{Demand: stat.Some(1.1), Growing: true}
		g := own.RaiseSlots(32)
		wantOpt(t, "throughput", g.Throughput.Mid, 0.1)
		if batch := 4 * (1 + g.ITL.Mid.V) * 1.1; batch > 8 {
			t.Errorf("%g run to serve a tenth more", batch)
		}
	})
	t.Run("nothing waits", func(t *testing.T) {
		own := b
		own.Waiting = 0
		wantOpt(t, "throughput", own.RaiseSlots(64).Throughput.Mid, 0)
	})
}
