package document_test

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// withoutGPU is a probe on a machine without a GPU, with everything that such a run lacks.
func withoutGPU() *capture.Record {
	p := oneOnCPU()
	p.Summary.Derived = nil
	for _, name := range [...]string{
		capture.JoulesPerToken, capture.MillijoulesPer, capture.TokensPerJoule, capture.DollarsPerMillion, capture.PowerShare, capture.BandwidthShare,
		capture.VRAMShare, capture.CeilingAchievable, capture.CeilingIdeal, capture.CeilingEfficiency,
	} {
		p.Summary.Derived = append(p.Summary.Derived, engine.NamedQuantity{Name: name, Quantity: engine.Quantity{Reason: "no GPU is readable"}})
	}
	p.Summary.Derived = append(p.Summary.Derived, engine.NamedQuantity{Name: capture.DecodeRate, Quantity: engine.Quantity{Value: some(98), Unit: "tokens/s", Source: engine.Derived}})
	p.Capture.Missing = []engine.Missing{{What: "GPU", Reason: "NVML: no library; nvidia-smi: not found; AMD: no device", Effect: "switches off GPU utilization"}}
	return p
}

// TestWithoutAGPUOneLineSaysSo checks that a page does not end with a long list of unknown figures, and that -v has all of
// them.
func TestWithoutAGPUOneLineSaysSo(t *testing.T) {
	page := probeText(t, withoutGPU(), render.Options{Width: 120})
	want := "\nNot known  energy, cost, shares of the hardware, ceiling, sizing (no GPU was read; -v gives the reasons)\n"
	if !strings.Contains(page, want) || !strings.Contains(page, "decode tokens per s") {
		t.Errorf("no line %q, or what is known is gone:\n%s", want, page)
	}
	full := probeText(t, withoutGPU(), render.Options{Width: 120, Verbose: true})
	for _, s := range []string{"\nGPUs", "\nSizing", "\nNot read", "nvidia-smi", "joules per token"} {
		if strings.Contains(page, s) {
			t.Errorf("the page says %q:\n%s", s, page)
		}
		if !strings.Contains(full, s) {
			t.Errorf("-v does not say %q:\n%s", s, full)
		}
	}
	if strings.Contains(full, "Not known") {
		t.Errorf("-v folds:\n%s", full)
	}
}

// TestWhatIsKnownWithoutAGPUStays checks that a size derived from a GPU's name is shown, that other missing sources are
// listed, and that a part of a topic is named.
func TestWhatIsKnownWithoutAGPUStays(t *testing.T) {
	p := withoutGPU()
	p.Summary.Sizing = manyOnGPU().Summary.Sizing
	p.Summary.Derived[8].Value, p.Summary.Derived[8].Unit = some(4000), "tokens/s"
	p.Capture.Missing = append(p.Capture.Missing, engine.Missing{What: "processes", Reason: "hidden"})
	page := probeText(t, p, render.Options{Width: 120})
	for _, s := range []string{
		"Sizing  over-provisioned", "processes: hidden", "ceiling ideal tokens per s",
		"Not known  energy, cost, shares of the hardware, ceiling achievable tokens per s, ceiling efficiency (",
	} {
		if !strings.Contains(page, s) {
			t.Errorf("the page does not say %q:\n%s", s, page)
		}
	}
}

// TestGapsOfGPUsStay checks that gaps are listed individually if a GPU was read.
func TestGapsOfGPUsStay(t *testing.T) {
	p := manyOnGPU()
	p.Summary.Derived = append(p.Summary.Derived, engine.NamedQuantity{Name: capture.CeilingIdeal, Quantity: engine.Quantity{Reason: "the model is not known"}})
	page := probeText(t, p, render.Options{Width: 120})
	if !strings.Contains(page, "the model is not known") || strings.Contains(page, "Not known") {
		t.Error(page)
	}
}

// TestAnInterruptIsNotAFailure checks that a Ctrl-C is not counted as a failure, unlike errors before it.
func TestAnInterruptIsNotAFailure(t *testing.T) {
	p := interruptedProbe()
	page := probeText(t, p, render.Options{Width: 120})
	for _, s := range []string{"64 of 128 chat requests", "interrupted by you after 0 of 128 requests, 1.50 s", "cut off 64 × such as: interrupted after the 62nd chunk"} {
		if !strings.Contains(page, s) {
			t.Errorf("the page does not say %q:\n%s", s, page)
		}
	}
	if strings.Contains(page, "failed") {
		t.Errorf("an interrupt is called a failure:\n%s", page)
	}
	p.Summary.Requests.Failures[0].Count = 61
	p.Summary.Requests.Failures = append(p.Summary.Requests.Failures, capture.Failure{Error: "the connection broke after the 122nd chunk", Count: 3, Example: true})
	page = probeText(t, p, render.Options{Width: 120})
	for _, s := range []string{"failed: 3 of 64 requests, such as: the connection broke after the 122nd chunk", "failed 3 × such as: the connection broke"} {
		if !strings.Contains(page, s) {
			t.Errorf("the page does not say %q:\n%s", s, page)
		}
	}
}

// TestAnInterruptBeforeTheFirstRequest checks that a run without requests is drawn, too.
func TestAnInterruptBeforeTheFirstRequest(t *testing.T) {
	p := interruptedProbe()
	p.Capture.Requests, p.Summary.Requests = nil, nil
	if page := probeText(t, p, render.Options{Width: 120}); !strings.Contains(page, "interrupted by you after 0 of 128 requests") {
		t.Error(page)
	}
}
