package chart_test

import (
	"math"
	"testing"

	"github.com/rooftop-dev/rooftop/tui/chart"
)

func TestNice(t *testing.T) {
	for _, c := range []struct{ v, want float64 }{
		{1, 1}, {1.01, 2}, {2, 2}, {2.1, 5}, {5, 5}, {5.5, 10}, {10, 10}, {0.3, 0.5}, {0.5, 0.5}, {0.02, 0.02}, {0.021, 0.05},
		{1234, 2000}, {9999, 10_000}, {1e-9, 1e-9}, {3e15, 5e15},
		{0, 1}, {-4, 1}, {math.NaN(), 1}, {math.Inf(1), 1},
	} {
		if got := chart.Nice(c.v); got != c.want {
			t.Errorf("Nice(%v) = %v, want %v", c.v, got, c.want)
		}
	}
}

func TestScaleKeeps(t *testing.T) {
	for _, c := range []struct {
		name string
		most []float64
		want float64
	}{
		{"the first value makes it", []float64{30}, 50},
		{"it grows at once", []float64{30, 51}, 100},
		{"it stays while the top is above 40 %", []float64{90, 41}, 100},
		{"it shrinks below", []float64{90, 39}, 50},
		{"it shrinks to what fits", []float64{90, 1.5}, 2},
		{"nothing is no reason to shrink", []float64{90, 0}, 100},
		{"what is no number neither", []float64{90, math.NaN(), math.Inf(1)}, 100},
		{"zeros alone", []float64{0}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s chart.Scale
			for _, m := range c.most {
				s = s.Fit(m)
			}
			if s != (chart.Scale{Hi: c.want}) {
				t.Errorf("got %v, want 0 to %v", s, c.want)
			}
		})
	}
}
