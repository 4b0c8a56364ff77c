package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
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

// TestReadProbeOfAnotherSchema checks that a document of another version is reported as such, whatever its content.
func TestReadProbeOfAnotherSchema(t *testing.T) {
	for _, doc := range []string{
		`{"schema":"rooftop.probe/v2","kind":"probe","capture":[1,2]}`,
		`{"schema":"rooftop.probe/v2","figures":{"tree":{"total":{"cpu_s":"3 s"}}}}`,
		`{"schema":"rooftop.run/v1","target":"http://x"}`,
	} {
		_, err := document.ReadProbe(strings.NewReader(doc))
		if err == nil || !strings.Contains(err.Error(), `is of schema "rooftop.`) {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// TestReadProbeIsBounded checks that a small file cannot request unbounded memory.
func TestReadProbeIsBounded(t *testing.T) {
	const samples, processes = 100_000, 1000
	zeros := strings.TrimSuffix(strings.Repeat("0,", samples), ",")
	process := fmt.Sprintf(`{"present":[[0,%d]]}`, samples-1)
	doc := `{"schema":"rooftop.probe/v1","kind":"probe","capture":{"tree":{"at_s":[` + zeros + `],"took_s":[` + zeros + `],"processes":[` +
		strings.TrimSuffix(strings.Repeat(process+",", processes), ",") + `]}}}`
	if _, err := document.ReadProbe(strings.NewReader(doc)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%d bytes: %v", len(doc), err)
	}
}
