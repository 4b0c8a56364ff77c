package optrace

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// windows returns n windows, alternately on and off, with a drift over the run, noise per
// window, and a slowdown where on.
func windows(n int, slow, noise, drift float64, seed uint64) []Window {
	source := rand.New(rand.NewPCG(seed, 1))
	out := make([]Window, n)
	for i := range out {
		rate := 100 * (1 + drift*math.Sin(6*float64(i)/float64(n))) * (1 + noise*source.NormFloat64())
		out[i] = Window{On: i%2 == 1, Rate: rate}
		if out[i].On {
			out[i].Rate /= 1 + slow
		}
	}
	return out
}

func TestToggledFindsTheSlowdown(t *testing.T) {
	for _, slow := range []float64{0, 0.01, 0.036, 0.15, 1.06, -0.02} {
		s, ok := Toggled(windows(161, slow, 0.01, 0.2, 3), 1)
		if !ok || s.Pairs != 80 {
			t.Fatalf("%v: %+v %v", slow, s, ok)
		}
		if s.Low > slow || s.High < slow || s.High-s.Low > 0.02*(1+slow) {
			t.Errorf("a slowdown of %v: %v (%v to %v)", slow, s.Median, s.Low, s.High)
		}
		if s.Median < s.Low || s.Median > s.High {
			t.Errorf("%+v: the median is out of its interval", s)
		}
	}
}

// TestToggledOfNothing is an A/A control, repeated: the interval includes no slowdown in about
// 95 of 100 runs, and not in all of them, which would mean that it is too wide.
func TestToggledOfNothing(t *testing.T) {
	if !longtest.Tests {
		t.Skip("NOT CHECKED without -tags long: the coverage of intervals of nothing")
	}
	const runs = 200
	held, width := 0, 0.0
	for seed := range uint64(runs) {
		s, ok := Toggled(windows(81, 0, 0.01, 0.2, seed), seed)
		if !ok {
			t.Fatal("no interval")
		}
		if s.Low <= 0 && s.High >= 0 {
			held++
		}
		width += s.High - s.Low
	}
	// Binomial: 95 % of 200 is 190 ± 6 at two standard deviations; percentile intervals of
	// medians run a little wide, and neighbours share an off window.
	if held < 177 || held == runs {
		t.Errorf("%d of %d intervals hold no slowdown", held, runs)
	}
	if mean := width / runs; mean > 0.012 {
		t.Errorf("intervals are %v wide: 40 pairs of windows with 1 %% noise allow 0.008", mean)
	}
}

// TestToggledUnderLopsidedNoise has a host that slows single windows, or several in a row: that
// is not attributed to probes, and a real slowdown is found.
func TestToggledUnderLopsidedNoise(t *testing.T) {
	if !longtest.Tests {
		t.Skip("NOT CHECKED without -tags long: intervals under lopsided noise")
	}
	const runs, effect = 120, 0.03
	for _, lasts := range []float64{1, 3} { // windows
		held, sum := 0, 0.0
		for seed := range uint64(runs) {
			source := rand.New(rand.NewPCG(seed, 5))
			w := windows(161, effect, 0.005, 0.1, seed)
			slowed := 0.0
			for i := range w {
				if source.Float64() < 1/lasts {
					slowed = 0
					if source.Float64() < 0.25 {
						slowed = 0.1 * source.Float64()
					}
				}
				w[i].Rate /= 1 + slowed
			}
			s, ok := Toggled(w, seed)
			if !ok {
				t.Fatal("no interval")
			}
			if s.Low <= effect && s.High >= effect {
				held++
			}
			sum += s.Median
		}
		if held < 104 { // 95 % of 120 is 114 ± 5 at two standard deviations
			t.Errorf("lasting %v: %d of %d intervals hold the slowdown", lasts, held, runs)
		}
		// One run's median scatters by 0.15 %, that of 120 by 0.014 %.
		if bias := sum/runs - effect; math.Abs(bias) > 0.0005 {
			t.Errorf("lasting %v: %+.3f %% off in the mean", lasts, 100*bias)
		} else {
			t.Logf("lasting %v: %d of %d intervals hold the slowdown; %+.3f %% off in the mean", lasts, held, runs, 100*bias)
		}
	}
}

func TestToggledLeavesOutWhatIsNoPair(t *testing.T) {
	w := windows(41, 0.05, 0, 0, 1)
	w[5].Rate, w[11].Rate, w[20].Rate = 0, math.NaN(), math.Inf(1)
	s, ok := Toggled(w, 1)
	if !ok || s.Pairs != 16 || math.Abs(s.Median-0.05) > 1e-9 {
		t.Errorf("%+v, want 16 pairs and 0.05", s)
	}
	for i := range w {
		w[i].On = true
	}
	if s, ok = Toggled(w, 1); ok || s.Pairs != 0 {
		t.Errorf("windows that are never off: %+v", s)
	}
	if _, ok = Toggled(nil, 1); ok {
		t.Error("no windows")
	}
	if s, ok = Toggled(windows(11, 0.05, 0, 0, 1), 1); ok || s.Pairs != 5 {
		t.Errorf("five pairs have no interval: %+v", s)
	}
}
