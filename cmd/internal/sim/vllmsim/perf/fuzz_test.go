package perf_test

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// FuzzDeviceFile checks that for any device file a machine that starts has finite steps, and a meter that moves
// forward.
func FuzzDeviceFile(f *testing.F) {

	f.Add([]byte("constants: {step_seconds: 10, noise: 0.2, gemm_mfu: 0.001}"))
	f.Add([]byte("gpu: {name: X, vendor: cpu, vram_gib: 24, mem_bandwidth_gb_s: 1e-6, fp32_tflops: 1e-6}"))
	f.Add([]byte("constants: {power_limit_w: 0.001, idle_power: 1, tensor_power: 2, activation_copies: 0, load_bytes_per_second: 1}"))

	mixed := prompt(700, 90)
	mixed.Work = append(mixed.Work, batch(20, 500).Work...)
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := settings.Parse([]string{"Qwen/Qwen3-0.6B", "--max-model-len", "2048", "--sim-perf-file", "d.yaml"},
			func(path string) ([]byte, error) {
				if path != "d.yaml" {
					return nil, os.ErrNotExist
				}
				return file, nil
			})
		if err != nil {
			return
		}
		m, err := perf.New(s)
		if err != nil {
			return
		}
		z, err := m.Size()
		if err != nil {
			return
		}
		d := m.Step(&mixed)
		if !(d.Total > 0) || math.IsInf(d.Total, 0) || !(d.Busy >= 0) || !(d.Clock > 0) {
			t.Fatalf("a step is %+v", d)
		}
		took := m.NewNoise(0).Apply(d.Total)
		if took < 1 || m.Startup() < 0 || z.NumBlocks < 2 {
			t.Fatalf("a step takes %v, starting %v, %d blocks", took, m.Startup(), z.NumBlocks)
		}
		meter := m.NewMeter(0, z)
		meter.Step(0, min(took, time.Minute), d, 1)
		for _, r := range meter.Read(min(took, time.Minute) + time.Second) {
			if !(r.Util >= 0 && r.Util <= 1 && r.PowerW >= 0 && r.EnergyJ >= 0) || math.IsNaN(r.TemperatureC) {
				t.Fatalf("a GPU reads %+v", r)
			}
		}
	})
}
