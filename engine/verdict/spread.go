package verdict

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// assumedSD is the spread of restarts where nothing is known of a server: six
	// starts of a real one with 16 seats had 3.8 %. Servers with a GPU mostly differ
	// less, so that it is on the safe side.
	assumedSD = 0.04
	// assumedDoF is what the assumption is worth as long as nothing speaks against
	// it: a quantile of 2.13 and not 1.96, so that a server that does have this
	// spread is told apart from itself in less than five of a hundred pairs.
	assumedDoF = 15
	// priorDoF is how many measured differences the assumption weighs as much as:
	// two, so that a few repeats of a server without spread do not pass for proof,
	// and a dozen do.
	priorDoF = 2
)

// Widen returns the spread of restarts that differences of log throughput between
// pairs of starts of one configuration show; without any, an assumption.
//
// A difference of two starts has twice the variance of one. The variance is the
// mean of its scaled inverse chi-square posterior with the assumption as prior
// (Gelman et al., Bayesian Data Analysis, 3rd ed., section 2.6), and its
// uncertainty is left to Student's t with the prior's and the differences' degrees
// of freedom. Where few differences leave that wider than the assumption, and
// agree with it, the assumption stands: knowing little must not be worse than
// knowing nothing. Differences that are not finite are not counted.
func Widen(differences []float64) Spread {
	sum, n := 0.0, 0
	for _, d := range differences {
		if sane(d*d) && !math.IsNaN(d) {
			sum += d * d / 2
			n++
		}
	}
	assumed := Spread{SD: assumedSD, Repeats: n, DoF: assumedDoF, From: "assumed: starts of one configuration have differed by 4 %"}
	if n == 0 {
		return assumed
	}
	k := float64(n)
	s := Spread{
		SD:  math.Sqrt((priorDoF*assumedSD*assumedSD + sum) / (priorDoF + k)),
		DoF: priorDoF + k, Repeats: n,
		From: fmt.Sprintf("%d repeats of one configuration, and an assumption of 4 %%", n),
	}
	if n == 1 {
		s.From = "one repeat of one configuration, and an assumption of 4 %"
	}
	if sum/k <= assumedSD*assumedSD && s.half() > assumed.half() {
		return assumed
	}
	return s
}

// half is what the spread adds to half the interval about one start.
func (s *Spread) half() float64 {
	if !(s.SD > 0) || !sane(s.SD) {
		return 0
	}
	dof := s.DoF
	if !(dof > 0) {
		dof = math.Inf(1)
	}
	return s.SD * stat.StudentQuantile(1-errorRate/2, dof)
}
