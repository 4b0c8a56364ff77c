package effect

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// ran returns a run with the quantities that a delta compares.
func ran(output, ttft, efficiency stat.Opt) *engine.Diagnosis {
	return &engine.Diagnosis{
		Measured: []engine.NamedQuantity{
			{Name: "generation_tokens_per_s", Quantity: engine.Quantity{Value: output}},
			{Name: "ttft_p99_s", Quantity: engine.Quantity{Value: ttft}},
		},
		Ceiling: engine.Ceiling{Classic: &roofline.Classic{Efficiency: efficiency}},
	}
}

func TestDirection(t *testing.T) {
	some, none := stat.Some, stat.None
	for _, c := range []struct {
		name          string
		before, after *engine.Diagnosis
		want, classic verdict.Direction
	}{
		{"more of both", ran(some(100), some(1), some(0.1)), ran(some(120), some(1), some(0.13)), verdict.Better, verdict.Better},
		// docs/physics.md section 8: 16 to 64 slots, +83 % tokens.
		{"more tokens from more requests", ran(some(100), some(1), some(0.5)), ran(some(183), some(0.5), some(0.25)), verdict.Better, verdict.Worse},
		{"the veto needs more than a fifth", ran(some(100), some(1), some(0.1)), ran(some(150), some(1.2), some(0.2)), verdict.Better, verdict.Better},
		{"the veto", ran(some(100), some(1), some(0.1)), ran(some(150), some(1.21), some(0.2)), verdict.Plateau, verdict.Plateau},
		{"the veto downgrades only better", ran(some(100), some(1), some(0.5)), ran(some(80), some(9), some(0.4)), verdict.Worse, verdict.Worse},
		{"just within", ran(some(100), none, some(0.10)), ran(some(110), none, some(0.12)), verdict.Plateau, verdict.Plateau},
		{"five points down is not a fall yet", ran(some(100), none, some(0.25)), ran(some(90), none, some(0.20)), verdict.Plateau, verdict.Plateau},
		{"classic falls back to throughput, without the veto", ran(some(100), some(1), none), ran(some(150), some(2), none), verdict.Plateau, verdict.Better},
		{"fallback, down", ran(some(100), some(1), none), ran(some(50), some(2), some(0.3)), verdict.Worse, verdict.Worse},
		{"nothing known", ran(none, none, none), ran(some(50), none, none), verdict.Inconclusive, verdict.Plateau},
		{"from nothing there is no ratio", ran(some(0), none, none), ran(some(50), none, none), verdict.Inconclusive, verdict.Plateau},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Compare(c.before, c.after)
			if d.Direction != c.want || d.Classic != c.classic {
				t.Errorf("%v (%s), classic %v (%s); want %v, classic %v", d.Direction, d.Reason, d.Classic, d.ClassicReason, c.want, c.classic)
			}
		})
	}
}
