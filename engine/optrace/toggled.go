package optrace

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Window is the rate of tokens during a short time with the probes on or off.
type Window struct {
	On   bool
	Rate float64 // tokens per second; 0 or less if nothing was decoded
}

// Slowdown is how much longer a token takes with probes than without.
type Slowdown struct {
	Median    float64 // 0.02 is 2 % longer
	Low, High float64 // 95 % interval of the median
	Pairs     int     // windows with probes, each between two without
}

const (
	// fewestPairs is the number of pairs below which a median has no 95 % interval: all of five
	// values lie on one side of the true median once in sixteen runs.
	fewestPairs = 6
	// redraws is the number of bootstrap resamples: the ends of an interval hold to about a
	// tenth of its width.
	redraws = 4000
)

// Toggled estimates the slowdown from windows in time order, alternately on and off. It
// compares the logarithm of the rate of each window with probes with that of either neighbour
// without, and takes the median of all these differences. Influences that drift more slowly
// than a window (clocks, a neighbour's load, a growing context) affects the two differences of
// a window with opposite signs. A difference of two equal windows is as often positive as
// negative, however skewed their noise is. Comparing with the mean of the neighbours is not
// symmetric: an occasional slow window is in two means more often than in one, and that median
// was 0.1 to 0.8 % low on a shared host. The interval is the percentile bootstrap (Efron &
// Tibshirani 1993, ch. 13) over blocks of neighbouring windows (Künsch 1989; circular, the cube
// root of their number long), since noise persists; it is the same for the same seed. It
// returns false if fewer than six windows with probes have both neighbours. Independent runs
// differ by 8 %; this resolves about 1 %.
func Toggled(windows []Window, seed uint64) (Slowdown, bool) {
	var pairs [][2]float64
	for i := 1; i+1 < len(windows); i++ {
		before, on, after := windows[i-1], windows[i], windows[i+1]
		if on.On && !before.On && !after.On && usable(before.Rate) && usable(on.Rate) && usable(after.Rate) {
			pairs = append(pairs, [2]float64{math.Log(before.Rate / on.Rate), math.Log(after.Rate / on.Rate)})
		}
	}
	n := len(pairs)
	if n < fewestPairs {
		return Slowdown{Pairs: n}, false
	}
	all := make([]float64, 0, 2*n)
	for _, p := range pairs {
		all = append(all, p[0], p[1])
	}
	whole := stat.Median(all).V
	block := int(math.Cbrt(float64(n)))
	source := rand.New(rand.NewPCG(seed, uint64(n)))
	medians := make([]float64, redraws)
	for i := range medians {
		drawn := all[:0]
		for len(drawn) < 2*n {
			from := source.IntN(n)
			for j := 0; j < block && len(drawn) < 2*n; j++ {
				p := pairs[(from+j)%n]
				drawn = append(drawn, p[0], p[1])
			}
		}
		medians[i] = stat.Median(drawn).V
	}
	slices.Sort(medians)
	return Slowdown{
		Median: math.Expm1(whole),
		Low:    math.Expm1(medians[int(0.025*redraws)]),
		High:   math.Expm1(medians[int(math.Ceil(0.975*redraws))-1]),
		Pairs:  n,
	}, true
}

func usable(rate float64) bool { return rate > 0 && !math.IsInf(rate, 1) }

// WriteTo stores the measured slowdown in o, as the share of its speed that the target loses.
func (s Slowdown) WriteTo(o *Observer) {
	o.Measured, o.MeasuredLow, o.MeasuredHigh, o.Windows = SpeedLost(s.Median), SpeedLost(s.Low), SpeedLost(s.High), s.Pairs
}
