package perf_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// withDevice is machine with a device file.
func withDevice(t testing.TB, argv, file string) *perf.Machine {
	t.Helper()
	s, err := settings.Parse(append(strings.Fields(argv), "--sim-perf-file", "device.yaml"), func(path string) ([]byte, error) {
		if path != "device.yaml" {
			return nil, fmt.Errorf("no file %s", path)
		}
		return []byte(file), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := perf.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func prompt(tokens, context int) core.Batch {
	return core.Batch{Work: []core.Work{{ID: 1, Context: context, New: tokens, Samples: true}}, Tokens: tokens}
}

// TestCausesHaveEffects compares a step of two servers that differ in one cause.
func TestCausesHaveEffects(t *testing.T) {
	const (
		llama = "meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 "
		h100  = "--sim-gpu H100-SXM5-80GB "
		a100  = "--sim-gpu A100-SXM4-80GB "
	)
	decode, chunk := batch(64, 2000), prompt(4096, 0)
	total := func(b perf.Breakdown) float64 { return b.Total }
	linear := func(b perf.Breakdown) float64 { return b.Linear }
	tests := []struct {
		name      string
		base      string
		change    string
		b         core.Batch
		of        func(perf.Breakdown) float64
		low, high float64 // the changed server over the base
	}{
		{"fp8 KV halves what decode attention reads", llama + h100, "--kv-cache-dtype fp8", decode, func(b perf.Breakdown) float64 { return b.DecodeAttn }, 0.45, 0.55},
		{"fp8 KV leaves the GEMMs alone", llama + h100, "--kv-cache-dtype fp8", decode, linear, 1, 1},
		{"fp8 weights halve the bytes of small batches", llama + h100, "--quantization fp8", batch(1, 10), linear, 0.5, 0.62},
		{"fp8 units speed up prompts", llama + h100, "--quantization fp8", chunk, linear, 0.5, 0.75},
		{"without fp8 units prompts gain nothing", llama + a100, "--quantization fp8", chunk, linear, 1, 1.25},
		{"without fp8 units small batches do", llama + a100, "--quantization fp8", batch(1, 10), linear, 0.5, 0.62},
		{"int8 weights alone save bytes, not operations", llama + h100, "--quantization int8_per_channel_weight_only", chunk, linear, 1, 1.25},
		{"two ranks halve the GEMMs", llama + h100, "-tp 2", decode, linear, 0.48, 0.62},
		{"two ranks share the KV heads", llama + h100, "-tp 2", decode, func(b perf.Breakdown) float64 { return b.DecodeAttn }, 0.45, 0.55},
		{"eight ranks of latent attention read the same latents", "deepseek-ai/DeepSeek-V2-Lite " + h100, "-tp 4", decode,
			func(b perf.Breakdown) float64 { return b.DecodeAttn }, 0.95, 1},
		{"eager small models wait for launches", "Qwen/Qwen3-0.6B " + h100, "--enforce-eager", batch(8, 100), total, 1.7, 4},
		{"eager long prompts hide them", llama + h100, "--enforce-eager", chunk, total, 1, 1.001},
		{"a batch above the largest graph pays them too", "Qwen/Qwen3-0.6B " + h100, "--max-cudagraph-capture-size 32", batch(64, 100), total, 1.5, 4},
		{"a batch below it does not", "Qwen/Qwen3-0.6B " + h100, "--max-cudagraph-capture-size 64", batch(64, 100), total, 1, 1},
		{"async scheduling hides the host", llama + h100 + "--no-async-scheduling", "--async-scheduling", batch(64, 100), total, 0.7, 0.9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base, _ := machine(t, tt.base)
			changed, _ := machine(t, tt.base+" "+tt.change)
			got := tt.of(changed.Step(&tt.b)) / tt.of(base.Step(&tt.b))
			if got < tt.low || got > tt.high {
				t.Errorf("%s: %.3f times, want %v to %v", tt.change, got, tt.low, tt.high)
			}
		})
	}
}

var machines = []string{
	"meta-llama/Llama-3.1-8B-Instruct --sim-gpu L4 --max-model-len 8192",
	"meta-llama/Llama-3.3-70B-Instruct --sim-gpu H100-SXM5-80GB -tp 4",
	"Qwen/Qwen3-235B-A22B-Instruct-2507-FP8 --sim-gpu H200-SXM -tp 4",
	"deepseek-ai/DeepSeek-V3 --sim-gpu B200 -tp 8 --kv-cache-dtype fp8",
	"facebook/opt-125m --sim-gpu T4 --dtype half --enforce-eager",
}

// TestMoreWorkIsNeverFaster makes random batches larger, one property at a time.
func TestMoreWorkIsNeverFaster(t *testing.T) {
	for _, argv := range machines {
		m, _ := machine(t, argv)
		r := rand.New(rand.NewPCG(7, 7))
		for range 2000 {
			var b core.Batch
			for range 1 + r.IntN(100) {
				w := core.Work{Context: r.IntN(8000), New: 1, Samples: true}
				if r.IntN(8) == 0 {
					w.New, w.Samples = 1+r.IntN(2000), r.IntN(2) == 0
				}
				b.Work = append(b.Work, w)
			}
			before := m.Step(&b)
			checkParts(t, before)
			at := r.IntN(len(b.Work))
			what := "a request more"
			switch r.IntN(3) {
			case 0:
				b.Work = append(b.Work, core.Work{Context: r.IntN(8000), New: 1, Samples: true})
			case 1:
				what = "more context"
				b.Work[at].Context += 1 + r.IntN(500)
			case 2:
				if b.Work[at].New == 1 {
					continue // from a decode to a chunk: other kernels
				}
				what = "more new tokens"
				b.Work[at].New += 1 + r.IntN(500)
			}
			if after := m.Step(&b); after.Total < before.Total*(1-1e-12) {
				t.Fatalf("%s: %s makes a step of %d requests faster: %.9f s, %.9f s", argv, what, len(b.Work), before.Total, after.Total)
			}
		}
	}
}

func checkParts(t *testing.T, d perf.Breakdown) {
	t.Helper()
	sum := d.Linear + d.DecodeAttn + d.PrefillAttn + d.Communication + d.Fixed
	if math.Abs(sum-d.Total) > 1e-9*d.Total || d.Fixed < 0 || d.Busy > d.Total || d.Busy <= 0 || !(d.Clock > 0 && d.Clock <= 1) {
		t.Fatalf("parts do not add up: %+v", d)
	}
}

// TestWeightsMatchTheCatalog adds up the products of every model that can be
// simulated and compares with its published count.
func TestWeightsMatchTheCatalog(t *testing.T) {
	checked := 0
	for _, model := range catalog.Default().Models() {
		s, err := settings.Parse([]string{model.ID, "--sim-gpu", "B200", "--max-model-len", "1024", "--gpu-memory-utilization", "0.9"}, nil)
		if err != nil || s.WeightDType != s.ComputeDType {
			continue
		}
		m, err := perf.New(s)
		if err != nil {
			t.Fatal(err)
		}
		z, _ := m.Size() // large ones do not fit; the weights are still reported
		checked++
		if params := z.WeightBytes / 2; math.Abs(params/model.TotalParams-1) > 0.02 {
			t.Errorf("%s: %.4g parameters are read from its shape, %.4g are published", model.ID, params, model.TotalParams)
		}
	}
	if checked < 40 {
		t.Errorf("only %d models could be checked", checked)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	for _, argv := range machines {
		m, _ := machine(t, argv)
		b := batch(256, 1000)
		if n := testing.AllocsPerRun(100, func() { m.Step(&b) }); n != 0 {
			t.Errorf("%s: %v allocations a step", argv, n)
		}
	}
}

// TestPowerLimit halves the power: compute-bound steps get slower, memory-bound ones do not.
func TestPowerLimit(t *testing.T) {
	const argv = "meta-llama/Llama-3.1-8B-Instruct --sim-gpu H100-SXM5-80GB"
	free, _ := machine(t, argv)
	capped := withDevice(t, argv, "constants: {power_limit_w: 350}")
	chunk, one := prompt(8192, 0), batch(1, 100)
	if a, b := free.Step(&chunk), capped.Step(&chunk); a.Clock != 1 || b.Clock > 0.85 || b.Total < 1.15*a.Total {
		t.Errorf("a prompt takes %.4f s at clock %.2f, at half the power %.4f s at %.2f", a.Total, a.Clock, b.Total, b.Clock)
	}
	if a, b := free.Step(&one), capped.Step(&one); b.Total > 1.001*a.Total {
		t.Errorf("a decode step takes %.5f s, at half the power %.5f s: memory has a clock of its own", a.Total, b.Total)
	}
}

func TestNoise(t *testing.T) {
	m, _ := machine(t, "--sim-seed 5")
	a, b, other := m.NewNoise(0), m.NewNoise(0), m.NewNoise(1)
	const n = 20000
	var sum, squares float64
	same := true
	for range n {
		x := a.Apply(0.01)
		if x != b.Apply(0.01) {
			t.Fatal("the same stream differs from itself")
		}
		same = same && x == other.Apply(0.01)
		f := x.Seconds()/0.01 - 1
		if math.Abs(f) > 0.07 {
			t.Fatalf("a step is %.1f %% off: the deviate ends at 3.47 standard deviations", 100*f)
		}
		sum += f
		squares += f * f
	}
	if same {
		t.Error("two ranks have the same noise")
	}
	mean, sd := sum/n, math.Sqrt(squares/n)
	if math.Abs(mean) > 0.0006 || math.Abs(sd-0.02) > 0.0006 {
		t.Errorf("mean %.5f and standard deviation %.5f; want 0 and 0.02", mean, sd)
	}
}
