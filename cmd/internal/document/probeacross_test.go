package document_test

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// TestAcrossGPUs checks that a missing value of one GPU is not counted as zero, and that GPUs of several kinds are not all
// given the name of the first.
func TestAcrossGPUs(t *testing.T) {
	row := func(mean, peak float64) capture.Row { return capture.Row{Mean: some(mean), Peak: some(peak)} }
	p := manyOnGPU()
	first, second := p.Summary.GPUs[0], p.Summary.GPUs[0]
	first.Name, second.Name = "NVIDIA H100", "NVIDIA L4"
	first.Fields[engine.GPUUtil], first.Fields[engine.GPUPowerW] = row(.9, 1), row(400, 500)
	second.Fields[engine.GPUUtil] = capture.Row{Peak: some(1), Reason: "readings cover 50 % of the run"}
	second.Fields[engine.GPUPowerW] = second.Fields[engine.GPUUtil]
	p.Summary.GPUs = []capture.GPUUsage{first, second}
	page := probeText(t, p, render.Options{Width: 200})
	var line string
	for l := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(l), "GPU ") && strings.Contains(l, "·") {
			line = l
			break
		}
	}
	for _, wrong := range []string{"45", "400 W", "2 × NVIDIA H100"} {
		if strings.Contains(line, wrong) {
			t.Errorf("%q says %q", line, wrong)
		}
	}
	if !strings.Contains(line, "NVIDIA L4") {
		t.Errorf("%q does not name the second", line)
	}
}
