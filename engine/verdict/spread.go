package verdict

import (
	"fmt"
	"math"
)

const (
	// assumedSD and assumedDoF describe how starts of servers differ: a scaled inverse chi-square
	// distribution of their variance, with nine of ten servers between 1.9 and 7.1 %, half of them
	// below 3.3 %. Six starts of a real one with 16 slots had 3.8 %.
	assumedSD  = 0.03
	assumedDoF = 4
)

// Widen returns the spread of restarts from differences of log throughput between pairs of starts of
// one configuration; without any, an assumption. Differences that are not finite are ignored.
//
// A difference of two starts has twice the variance of one. The result is the scale of the posterior
// of the variance with the assumption as prior, and its degrees of freedom (Gelman et al., Bayesian
// Data Analysis, 3rd ed., section 2.6). Student's quantile with these makes an interval that is wrong
// at its rate on average over servers as the assumption describes them, with any number of repeats.
func Widen(differences []float64) Spread {
	sum, n := 0.0, 0
	for _, d := range differences {
		if plausible(d*d) && !math.IsNaN(d) {
			sum += d * d / 2
			n++
		}
	}
	s := Spread{
		SD:  math.Sqrt((assumedDoF*assumedSD*assumedSD + sum) / (assumedDoF + float64(n))),
		DoF: assumedDoF + float64(n), Repeats: n,
	}
	switch n {
	case 0:
		s.From = "assumed: starts of one configuration mostly differ by 2 to 6 %"
	case 1:
		s.From = "one repeat of one configuration, and an assumption of 3 %"
	default:
		s.From = fmt.Sprintf("%d repeats of one configuration, and an assumption of 3 %%", n)
	}
	return s
}

// sd returns the standard deviation, or 0 if it is implausible.
func (s *Spread) sd() float64 {
	if !(s.SD > 0) || !plausible(s.SD) {
		return 0
	}
	return s.SD
}

// dof returns the degrees of freedom; of a spread that is known for certain they are infinite.
func (s *Spread) dof() float64 {
	if !(s.DoF > 0) {
		return math.Inf(1)
	}
	return s.DoF
}
