package page

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// TestLargeChangeRanges checks that an interval that reaches large changes is one of multiples.
func TestLargeChangeRanges(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{-0.02, 0.05, "−2 to +5 %"},
		{0.5, 10, "+50 to +1,000 %"},
		{0.5, 11, "+50 % to ×12.0"},
		{72.97, 507.75, "×74.0 to ×509"},
		{20, 20, "×21.0"},
	} {
		if got := strings.ReplaceAll(ChangeRange(c.low, c.high), figure.NBSP, " "); got != c.want {
			t.Errorf("%v to %v: got %q, want %q", c.low, c.high, got, c.want)
		}
	}
}
