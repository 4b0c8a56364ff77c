package engine

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// ran is a run with what a delta looks at.
func ran(output, ttft, efficiency stat.Opt) *Diagnosis {
	return &Diagnosis{
		Measured: []NamedQuantity{
			{Name: "generation_tokens_per_s", Quantity: Quantity{Value: output}},
			{Name: "ttft_p99_s", Quantity: Quantity{Value: ttft}},
		},
		Ceiling: Ceiling{Classic: &roofline.Classic{Efficiency: efficiency}},
	}
}

func TestDirection(t *testing.T) {
	some, none := stat.Some, stat.None
	for _, c := range []struct {
		name          string
		before, after *Diagnosis
		want, classic Direction
	}{
		{"more of both", ran(some(100), some(1), some(0.1)), ran(some(120), some(1), some(0.13)), Better, Better},
		// physics.md section 8: 16 to 64 seats, +83 % tokens.
		{"more tokens from more requests", ran(some(100), some(1), some(0.5)), ran(some(183), some(0.5), some(0.25)), Better, Worse},
		{"the veto needs more than a fifth", ran(some(100), some(1), some(0.1)), ran(some(150), some(1.2), some(0.2)), Better, Better},
		{"the veto", ran(some(100), some(1), some(0.1)), ran(some(150), some(1.21), some(0.2)), Plateau, Plateau},
		{"the veto downgrades only better", ran(some(100), some(1), some(0.5)), ran(some(80), some(9), some(0.4)), Worse, Worse},
		{"just within", ran(some(100), none, some(0.10)), ran(some(110), none, some(0.12)), Plateau, Plateau},
		{"five points down is no fall yet", ran(some(100), none, some(0.25)), ran(some(90), none, some(0.20)), Plateau, Plateau},
		{"classic falls back to throughput, without the veto", ran(some(100), some(1), none), ran(some(150), some(2), none), Plateau, Better},
		{"fallback, down", ran(some(100), some(1), none), ran(some(50), some(2), some(0.3)), Worse, Worse},
		{"nothing known", ran(none, none, none), ran(some(50), none, none), Inconclusive, Plateau},
		{"from nothing there is no ratio", ran(some(0), none, none), ran(some(50), none, none), Inconclusive, Plateau},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Compare(c.before, c.after)
			if d.Direction != c.want || d.Classic != c.classic {
				t.Errorf("%v (%s), classic %v (%s); want %v, classic %v", d.Direction, d.Reason, d.Classic, d.ClassicReason, c.want, c.classic)
			}
		})
	}
}
