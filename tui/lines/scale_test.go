package lines_test

import (
	"math"
	"testing"

	"github.com/rooftop-dev/rooftop/tui/lines"
)

func TestNice(t *testing.T) {
	for _, c := range []struct{ v, want float64 }{
		{1, 1}, {1.01, 2}, {2, 2}, {2.1, 5}, {5, 5}, {5.5, 10}, {10, 10}, {0.3, 0.5}, {0.5, 0.5}, {0.02, 0.02}, {0.021, 0.05},
		{1234, 2000}, {9999, 10_000}, {1e-9, 1e-9}, {3e15, 5e15},
		{0, 1}, {-4, 1}, {math.NaN(), 1}, {math.Inf(1), 1},
	} {
		if got := lines.Nice(c.v); got != c.want {
			t.Errorf("Nice(%v) = %v, want %v", c.v, got, c.want)
		}
	}
}
