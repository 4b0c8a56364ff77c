package lines

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		name string
		axis Axis
		most int
		want []float64
	}{
		{"whole steps", Axis{Hi: 14_000}, 5, []float64{0, 5000, 10_000}},
		{"more of them where there is room", Axis{Hi: 14_000}, 8, []float64{0, 2000, 4000, 6000, 8000, 10_000, 12_000, 14_000}},
		{"fractions", Axis{Hi: 1}, 5, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		{"small fractions", Axis{Hi: 0.03}, 3, []float64{0, 0.01, 0.02, 0.03}},
		{"not from zero", Axis{Lo: 95, Hi: 118}, 5, []float64{95, 100, 105, 110, 115}},
		{"what is counted", Axis{Hi: 4.2, MinStep: 1}, 9, []float64{0, 1, 2, 3, 4}},
		{"below zero", Axis{Lo: -3, Hi: 3}, 3, []float64{-2, 0, 2}},
		{"decades and their parts", Axis{Lo: 2, Hi: 250, Log: true}, 9, []float64{2, 5, 10, 20, 50, 100, 200}},
		{"decades", Axis{Lo: 100, Hi: 20_000, Log: true}, 4, []float64{100, 1000, 10_000}},
		{"every so many decades", Axis{Lo: 1, Hi: 1e9, Log: true}, 4, []float64{1, 1000, 1e6, 1e9}},
		{"no room", Axis{Hi: 1}, 0, nil},
		{"nothing between the ends", Axis{Lo: 5, Hi: 5}, 5, nil},
		{"no number", Axis{Hi: math.NaN()}, 5, nil},
		{"infinite", Axis{Hi: math.Inf(1)}, 5, nil},
		{"the logarithm of zero", Axis{Hi: 10, Log: true}, 5, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.axis.Ticks(c.most)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
