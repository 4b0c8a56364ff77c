package stat

import (
	"math"
	"testing"
)

// TestBinomialTails compares both tails with sums of the binomial distribution.
func TestBinomialTails(t *testing.T) {
	for _, c := range []struct {
		n int
		p float64
	}{{1, 0.5}, {10, 0.01}, {36, 0.01}, {300, 0.01}, {300, 0.99}, {5, 0}, {5, 1}} {
		below, n := 0.0, float64(c.n)
		for k := range c.n + 1 {
			if got := AtLeast(float64(k), n, c.p); math.Abs(got-(1-below)) > 1e-9 {
				t.Errorf("at least %d of %d at %v: got %v, want %v", k, c.n, c.p, got, 1-below)
			}
			ln, _ := math.Lgamma(n + 1)
			lk, _ := math.Lgamma(float64(k) + 1)
			lr, _ := math.Lgamma(n - float64(k) + 1)
			below += math.Exp(ln-lk-lr) * math.Pow(c.p, float64(k)) * math.Pow(1-c.p, n-float64(k))
			if got := AtMost(float64(k), n, c.p); math.Abs(got-below) > 1e-9 {
				t.Errorf("at most %d of %d at %v: got %v, want %v", k, c.n, c.p, got, below)
			}
		}
	}
	if a, b, c := AtMost(3, 200, 0.01), AtMost(3.4, 200, 0.01), AtMost(4, 200, 0.01); !(a < b && b < c) {
		t.Errorf("between 3 and 4 of 200: %v, %v, %v", a, b, c)
	}
	for _, c := range [][3]float64{{-1, 5, 0.1}, {6, 5, 0.1}, {1, 5, 2}, {1, math.Inf(1), 0.1}, {math.NaN(), 5, 0.1}, {1, 5, math.NaN()}} {
		if a, b := AtMost(c[0], c[1], c[2]), AtLeast(c[0], c[1], c[2]); !math.IsNaN(a) || !math.IsNaN(b) {
			t.Errorf("%v: got %v and %v, want NaN", c, a, b)
		}
	}
}
