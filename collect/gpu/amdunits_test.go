package gpu

import (
	"testing"
	"testing/fstest"

	"github.com/rooftop-dev/rooftop/engine"
)

// TestAMDMarksOfAbsence checks that what the firmware writes where it
// has no value (the largest number of a type) is not read as one.
func TestAMDMarksOfAbsence(t *testing.T) {
	card := amdCard{dir: "d", hwmon: "d/m", temperature: "temp1_input", sclk: "freq1_input", mclk: "freq2_input"}
	out := card.read(fstest.MapFS{
		"d/gpu_busy_percent":   {Data: []byte("65535\n")},
		"d/mem_busy_percent":   {Data: []byte("100\n")},
		"d/m/power1_average":   {Data: []byte("95000000\n")},
		"d/mem_info_vram_used": {Data: []byte("4294967295\n")}, // 4 GiB less a byte: bytes are no 32-bit number
	})
	got := presentFields(out.gpu)
	if len(got) != 3 || got[engine.GPUMemUtil] != 1 || got[engine.GPUPowerW] != 95 || got[engine.GPUVRAMUsed] != 4294967295 {
		t.Errorf("got %v", got)
	}
	if out.why[engine.GPUUtil] == "" {
		t.Error("utilization is absent without a reason")
	}
}
