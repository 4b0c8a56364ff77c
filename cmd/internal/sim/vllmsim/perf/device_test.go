package perf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

func TestConstantsRefuseTypos(t *testing.T) {
	tests := []struct{ file, want string }{
		{"constants:\n  gemm_mfuu: 0.5", `d.yaml: constants: unknown name "gemm_mfuu"`},
		{"constants: {gemm_mfu: 1.5}", "d.yaml: constants: gemm_mfu: 1.5 is out of range: 0.001 to 1 (1) is expected"},
		{"constants: {gemm_mfu: .nan}", "d.yaml: constants: gemm_mfu: NaN is out of range"},
	}
	for _, tt := range tests {
		s, err := settings.Parse(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if s.Device, err = settings.ParseDevice([]byte(tt.file), "d.yaml"); err != nil {
			t.Fatal(err)
		}
		s.PerfFile = "d.yaml"
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
