package page

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestIntervalBounds checks that an uninformative end of an interval has no digits.
func TestIntervalBounds(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{.99, 1.05, "−1 to +5 %"},
		{.0001, 285.83, "−100 to >+1,000 %"},
		{1.5, 11, "+50 to +1,000 %"},
		{12, 40, ">+1,000 to >+1,000 %"},
	} {
		got := strings.ReplaceAll(Interval(&compare.Change{Low: stat.Some(c.low), High: stat.Some(c.high)}).Text, figure.NBSP, " ")
		if got != c.want {
			t.Errorf("%v to %v: got %q, want %q", c.low, c.high, got, c.want)
		}
	}
}

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
