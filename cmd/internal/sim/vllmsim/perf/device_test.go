package perf_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

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
		s.PerfFile, s.Device = "d.yaml", []byte(tt.file)
		_, err = perf.New(s)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", tt.file, err, tt.want)
		}
	}
}

// TestEveryConstantActs changes each constant in turn: none may be accepted and ignored.
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
		return fmt.Sprintf("%+v", all)
	}
	others := []string{
		"Qwen/Qwen3-0.6B --sim-gpu H100-SXM5-80GB --enforce-eager --no-async-scheduling",
		"moonshotai/Kimi-K2-Instruct --sim-gpu H200-SXM -tp 8", // latent attention
		"Qwen/Qwen3-8B --sim-gpu L40S -tp 2",                   // over PCIe,
		"Qwen/Qwen3-8B --sim-gpu A100-SXM4-80GB --quantization fp8",
		"Qwen/Qwen3-8B --sim-gpu H100-SXM5-80GB --quantization fp8",
	}
	for name, usual := range base.Constants() {
		value := usual * 0.7
		switch {
		case name == "attn_decode_mfu":
			value = 0.02 // bytes bind otherwise
		case name == "power_limit_w":
			value = 100
		case usual == 0:
			value = 0.01
		}
		file := fmt.Sprintf("constants: {%s: %v}", name, value)
		acts := figures(withDevice(t, argv, file)) != figures(base)
		for _, other := range others {
			if !acts {
				m, _ := machine(t, other)
				acts = figures(withDevice(t, other, file)) != figures(m)
			}
		}
		if !acts {
			t.Errorf("%s changes nothing", name)
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
