package roofline

import (
	"math"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tol*math.Abs(want) {
		t.Errorf("%s = %g, want %g within %g", what, got, want, tol)
	}
}

// A worked example: Llama-3.1-8B on an H100, eight
// sequences of 21,000 tokens.
func TestStepWorkedExample(t *testing.T) {
	c := bf16(h100sxm(), llama8b(), 1)
	s := c.Step(Point{Batch: 8, Context: 21000, Tokens: 8})
	near(t, "ideal weights", s.Ideal.Weights, 4.48e-3, 0.01)
	near(t, "ideal kv", s.Ideal.KV, 6.57e-3, 0.01)
	near(t, "ideal", s.Ideal.Total(), 11.05e-3, 0.01)
	if s.Ideal.Fixed != 0 || s.Ideal.Collectives != 0 {
		t.Errorf("ideal step has fixed costs: %+v", s.Ideal)
	}
	near(t, "achievable", s.Achievable.Total(), 14.0e-3, 0.02)
	if got := s.Achievable.Binding(); got != "kv" {
		t.Errorf("binding = %s, want kv", got)
	}
	if len(s.Assumptions) != 0 {
		t.Errorf("assumptions on a measured device: %q", s.Assumptions)
	}
}

func TestRidge(t *testing.T) {
	near(t, "H100 bf16", bf16(h100sxm(), llama8b(), 1).RidgeTokens(), 295, 0.01)
	near(t, "A100 bf16", bf16(a100sxm(), llama8b(), 1).RidgeTokens(), 153, 0.01)
	near(t, "H100 bf16 TP8", bf16(h100sxm(), llama8b(), 8).RidgeTokens(), 295, 0.01)
	c := bf16(h100sxm(), llama8b(), 1)
	c.GPU = catalog.GPU{Name: "x", MemBandwidthGBs: 100}
	if got := c.RidgeTokens(); got != 0 {
		t.Errorf("ridge without a compute peak = %g, want 0", got)
	}
}
