package verdict

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestAllLooksTogetherHaveTheErrorRate follows differences of nothing from look to look, with a part of
// their variance that no time reduces, and counts those beyond the limit of any look.
func TestAllLooksTogetherHaveTheErrorRate(t *testing.T) {
	const looks, many = 8, 20_000
	for _, c := range []struct {
		fixed float64
		again int
		rate  float64
	}{{0, 0, errorRate}, {1, 0, errorRate}, {4, 0, errorRate}, {100, 0, errorRate}, {1, 1, errorRate / 2}} {
		fixed, limits := c.fixed, make([]float64, looks)
		for i := range limits {
			p := Plan{Look: i, Looks: looks, Again: c.again}
			limits[i] = stat.StudentQuantile(1-p.level(fixed, math.Pow(lookGrowth, float64(looks-1-i)))/2, math.Inf(1))
		}
		if c.again == 0 && limits[looks-1] > 2.25 {
			t.Errorf("fixed %v: the last look has a limit of %.2f standard errors", fixed, limits[looks-1])
		}
		r, wrong := rand.New(rand.NewPCG(1, 1)), 0
		for range many {
			common, sum, time := math.Sqrt(fixed)*r.NormFloat64(), 0.0, 0.0
			for i, limit := range limits {
				now := math.Pow(lookGrowth, float64(i-(looks-1)))
				sum += math.Sqrt(now-time) * r.NormFloat64()
				time = now
				if math.Abs(common+sum/time) > limit*math.Sqrt(fixed+1/time) {
					wrong++
					break
				}
			}
		}
		if share := float64(wrong) / many; share < 0.8*c.rate || share > 1.1*c.rate {
			t.Errorf("fixed %v: %.1f %% are called different, of %.1f %%", fixed, 100*share, 100*c.rate)
		}
	}
}

func TestNothingMeasuredIsInconclusive(t *testing.T) {
	for _, sides := range [][2]*Side{{nil, nil}, {{}, {}}, {{Incarnations: []Incarnation{{}}}, {Incarnations: []Incarnation{{{}}}}}} {
		r := Judge(sides[0], sides[1], Plan{Last: true})
		if r.Direction != Inconclusive || !r.Settled || r.Known || r.Reason == "" {
			t.Errorf("got %+v", r)
		}
	}
}
