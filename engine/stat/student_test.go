package stat

import (
	"math"
	"testing"
)

// TestStudentQuantile compares quantiles with printed tables (Abramowitz & Stegun 26.10) and, for one and two degrees of
// freedom, with their closed forms.
func TestStudentQuantile(t *testing.T) {
	for _, c := range []struct{ p, dof, want float64 }{
		{0.975, 1, 12.706}, {0.975, 2, 4.303}, {0.975, 5, 2.571}, {0.995, 10, 3.169}, {0.9995, 30, 3.646}, {0.95, 120, 1.658},
		{0.975, math.Inf(1), 1.960}, {0.025, 5, -2.571}, {0.5, 3, 0},
		{0.999, 1, math.Tan(math.Pi * 0.499)},
		{0.99, 2, 0.98 / math.Sqrt(2*0.99*0.01)},
	} {
		if got := StudentQuantile(c.p, c.dof); math.Abs(got-c.want) > 6e-4*max(1, math.Abs(c.want)) {
			t.Errorf("p %v, %v degrees: got %v, want %v", c.p, c.dof, got, c.want)
		}
	}
	if a, b, c := StudentQuantile(0.99, 3), StudentQuantile(0.99, 3.5), StudentQuantile(0.99, 4); !(a > b && b > c) {
		t.Errorf("between 3 and 4 degrees: %v, %v, %v", a, b, c)
	}
	for _, c := range [][2]float64{{-1, 3}, {2, 3}, {0.5, 0}, {math.NaN(), 3}, {0.5, math.NaN()}} {
		if got := StudentQuantile(c[0], c[1]); !math.IsNaN(got) {
			t.Errorf("%v: got %v, want NaN", c, got)
		}
	}
}
