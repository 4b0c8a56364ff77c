package optrace

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Window is the rate of tokens over a short time in which the probes were on or off.
type Window struct {
	On   bool
	Rate float64 // tokens a second; 0 and less where nothing was decoded
}

// Slowdown is how much longer a token takes with probes than without.
type Slowdown struct {
	Median    float64 // 0.02 is 2 % longer
	Low, High float64 // 95 % interval of the median
	Pairs     int     // windows with probes, each beside two without
}

const (
	// fewestPairs are the pairs below which a median has no 95 % interval at all: all of
	// five values lie on one side of the true median once in sixteen runs.
	fewestPairs = 6
	// redraws are the resamples of the bootstrap: ends of an interval hold to about a
	// tenth of its width.
	redraws = 4000
)

// Toggled tells the slowdown from windows in the order of time, on and off in turn:
// each window with probes is held against the mean of its two neighbours without, so
// that what drifts more slowly than a window (clocks, a neighbour's load, a growing
// context) falls out. The interval is the percentile bootstrap over pairs (Efron &
// Tibshirani 1993, ch. 13) and the same for the same seed. False where there are fewer
// than six such pairs. Independent runs differ by 8 %; this resolves about 1 %.
func Toggled(windows []Window, seed uint64) (Slowdown, bool) {
	var ratios []float64
	for i := 1; i+1 < len(windows); i++ {
		before, on, after := windows[i-1], windows[i], windows[i+1]
		if on.On && !before.On && !after.On && usable(before.Rate) && usable(on.Rate) && usable(after.Rate) {
			ratios = append(ratios, (before.Rate+after.Rate)/2/on.Rate-1)
		}
	}
	if len(ratios) < fewestPairs {
		return Slowdown{Pairs: len(ratios)}, false
	}
	source := rand.New(rand.NewPCG(seed, uint64(len(ratios))))
	medians := make([]float64, redraws)
	drawn := make([]float64, len(ratios))
	for i := range medians {
		for j := range drawn {
			drawn[j] = ratios[source.IntN(len(ratios))]
		}
		medians[i] = median(drawn)
	}
	slices.Sort(medians)
	return Slowdown{
		Median: median(ratios),
		Low:    medians[int(0.025*redraws)],
		High:   medians[int(math.Ceil(0.975*redraws))-1],
		Pairs:  len(ratios),
	}, true
}

func usable(rate float64) bool { return rate > 0 && !math.IsInf(rate, 1) }

// median sorts values and returns the middle one, the mean of two.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// Into writes a slowdown that was measured beside what was expected.
func (s Slowdown) Into(o *Observer) {
	o.Measured, o.MeasuredLow, o.MeasuredHigh, o.Windows = s.Median, s.Low, s.High, s.Pairs
}
