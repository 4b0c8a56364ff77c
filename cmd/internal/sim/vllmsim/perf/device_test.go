package perf_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

func TestConstantsAreListed(t *testing.T) {
	m := withDevice(t, "--sim-gpu L4", "constants:\n  gemm_mfu: 0.5\n")
	seen := map[string]bool{}
	for _, c := range m.Constants() {
		if c.Name == "" || c.Unit == "" || c.Note == "" || seen[c.Name] {
			t.Errorf("constant %+v lacks something or is there twice", c)
		}
		seen[c.Name] = true
		want := c.Origin == perf.Published || c.Origin == perf.Fitted || c.Origin == perf.Assumed
		if c.Name == "gemm_mfu" {
			want = c.Origin == perf.DeviceFile && c.Value == 0.5
		}
		if !want {
			t.Errorf("constant %+v has no such origin", c)
		}
	}
}

func TestConstantsRefuseTypos(t *testing.T) {
	tests := []struct{ file, want string }{
		{"constants:\n  gemm_mfuu: 0.5", `d.yaml:2: constants: unknown name "gemm_mfuu"; known: gemm_mfu, gemm_mfu_low, gemm_mbu`},
		{"constants: {quux: 1}", "known: gemm_mfu, gemm_mfu_low, wave_loss"},
		{"constants: {gemm_mfu: 1.5}", "d.yaml:1: constants: gemm_mfu: 1.5 is out of range: 0.001 to 1 (1) is expected"},
		{"constant: {gemm_mfu: 0.5}", "d.yaml:1: unknown field constant"},
	}
	for _, tt := range tests {
		s, err := settings.Parse(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.PerfFile = "d.yaml"
		_, err = perf.New(s, []byte(tt.file))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", tt.file, err, tt.want)
		}
	}
}

// TestEveryConstantActs changes each in turn: none may be accepted and ignored.
func TestEveryConstantActs(t *testing.T) {
	const argv = "Qwen/Qwen3-30B-A3B --sim-gpu H100-SXM5-80GB -tp 2"
	base, _ := machine(t, argv)
	figures := func(m *perf.Machine) string {
		var all []any
		one, chunk, four := batch(1, 5000), prompt(3000, 50), batch(600, 10)
		z, err := m.Size()
		noise := m.NewNoise(0)
		meter := m.NewMeter(0, z)
		d := m.Step(&chunk)
		meter.Step(0, 1e9, d, 1)
		mixed := prompt(3000, 50)
		mixed.Work = append(mixed.Work, one.Work...)
		all = append(all, m.Step(&one), d, m.Step(&four), m.Step(&mixed), z, err, noise.Apply(1), m.Startup(), meter.Read(9e8), m.FrontEnd())
		return sprint(all)
	}
	others := []string{
		"Qwen/Qwen3-0.6B --sim-gpu H100-SXM5-80GB --enforce-eager --no-async-scheduling",
		"moonshotai/Kimi-K2-Instruct --sim-gpu H200-SXM -tp 8", // latent attention
		"Qwen/Qwen3-8B --sim-gpu L40S -tp 2",                   // over PCIe,
		"Qwen/Qwen3-8B --sim-gpu A100-SXM4-80GB --quantization fp8",
		"Qwen/Qwen3-8B --sim-gpu H100-SXM5-80GB --quantization fp8",
	}
	for _, c := range base.Constants() {
		value := c.Value * 0.7
		switch {
		case c.Name == "attn_decode_mfu":
			value = 0.02 // bytes bind otherwise
		case c.Name == "power_limit_w":
			value = 100
		case c.Value == 0:
			value = 0.01
		}
		file := "constants: {" + c.Name + ": " + number(value) + "}"
		acts := figures(withDevice(t, argv, file)) != figures(base)
		for _, other := range others {
			if !acts {
				m, _ := machine(t, other)
				acts = figures(withDevice(t, other, file)) != figures(m)
			}
		}
		if !acts {
			t.Errorf("%s changes nothing", c.Name)
		}
	}
}

// TestCPUIsDescribed: a device file can describe a CPU with every term of a step.
func TestCPUIsDescribed(t *testing.T) {
	const file = `
gpu: {name: Two cores with AVX-512, vendor: cpu, vram_gib: 24, mem_bandwidth_gb_s: 20, bf16_tflops: 0.2, fp32_tflops: 0.2}
constants:
  step_seconds: 0.004
  layer_seconds: 100e-6
  sequence_seconds: 200e-6
  prefill_token_seconds: 5e-6
  gemm_mfu: 0.4
  gemm_mbu: 0.5
  noise: 0.04
`
	m := withDevice(t, "Qwen/Qwen3-0.6B --max-model-len 4096 --num-gpu-blocks-override 64 --max-num-seqs 32", file)
	one, four, chunk := batch(1, 10), batch(4, 10), prompt(100, 0)
	a, b := m.Step(&one), m.Step(&four)
	if a.Total < 0.004+28*100e-6+200e-6 || b.Total-a.Total < 3*200e-6 {
		t.Errorf("steps of 1 and 4 take %.5f and %.5f s", a.Total, b.Total)
	}
	without := withDevice(t, "Qwen/Qwen3-0.6B --max-model-len 4096 --num-gpu-blocks-override 64 --max-num-seqs 32", strings.Replace(file, "5e-6", "0", 1))
	if d := m.Step(&chunk).Total - without.Step(&chunk).Total; math.Abs(d-100*5e-6) > 1e-9 {
		t.Errorf("100 tokens of a prompt add %.6f s, want %.6f", d, 100*5e-6)
	}
	z, err := m.Size()
	if err != nil || z.NumBlocks != 64 {
		t.Errorf("pool %+v, %v; want 64 blocks", z, err)
	}
}

// TestMeasuredTable: decode steps are those of the table, prompts add to them what
// the model says.
func TestMeasuredTable(t *testing.T) {
	const argv = "--sim-gpu L4"
	const file = `
table:
  - {context: 100, batch: 1, ms: 50}
  - {context: 100, batch: 11, ms: 70}
  - {context: 1100, batch: 1, ms: 60}
  - {context: 1100, batch: 11, ms: 120}
`
	m := withDevice(t, argv, file)
	plain, _ := machine(t, argv)
	tests := []struct {
		name           string
		batch, context int
		ms             float64
	}{
		{"a measured point", 1, 100, 50},
		{"between batches", 6, 100, 60},
		{"between both", 6, 600, 75},
		{"below the table", 1, 10, 50},
		{"above it", 21, 1100, 180},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := batch(tt.batch, 0)
			for i := range b.Work {
				b.Work[i].Context = tt.context - 1
			}
			d := m.Step(&b)
			if math.Abs(d.Total*1e3-tt.ms) > 1e-6 {
				t.Errorf("%.4f ms, want %v", d.Total*1e3, tt.ms)
			}
			checkParts(t, d)
		})
	}
	alone, both := batch(1, 99), batch(1, 99)
	both.Work = append(both.Work, prompt(1000, 0).Work...)
	added, modelled := m.Step(&both).Total-m.Step(&alone).Total, plain.Step(&both).Total-plain.Step(&alone).Total
	if math.Abs(added-modelled) > 1e-9 {
		t.Errorf("a prompt of 1000 tokens adds %.5f s to a measured step, %.5f s to a modelled one", added, modelled)
	}
	chunk := prompt(1000, 0)
	if got, want := m.Step(&chunk), plain.Step(&chunk); got != want {
		t.Errorf("a prompt alone takes %+v, want the model's %+v", got, want)
	}
}
