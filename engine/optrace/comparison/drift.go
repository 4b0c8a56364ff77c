package comparison

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// stretches is the number of consecutive parts that the calls of a phase are divided into.
	stretches = 10
	// fewestInStretch is the number of calls that the mean of a stretch needs.
	fewestInStretch = 2
)

// drift returns the relative standard error of the mean time of a phase's calls from the means
// of stretches of them (batch means: Law & Kelton, Simulation Modeling and Analysis, ch. 9), 0
// if there are too few. Another program that runs for a second slows hundreds of consecutive
// calls, which are not independent samples. Only the last calls count, those of the timeline.
func (c *comparing) drift(v *evidence.View, phase string) float64 {
	var times []float64
	for i := range v.Tokens {
		if t := &v.Tokens[i]; t.Phase == phase && t.Time > 0 {
			times = append(times, t.Time.Seconds()/float64(max(t.Tokens, 1)))
		}
	}
	each := len(times) / stretches
	if each < fewestInStretch {
		return 0
	}
	means := make([]float64, stretches)
	for i, t := range times[len(times)-stretches*each:] {
		means[i/each] += t / float64(each)
	}
	cv := stat.Variation(means)
	if !cv.OK {
		return 0
	}
	// stat.Variation divides by the number of means, a standard error by one less.
	return cv.V / math.Sqrt(stretches-1) * studentQuantile(c.width, stretches-1) / c.width
}

// studentQuantile returns the quantile of Student's distribution at that of the normal one, to 1 % for
// nine degrees of freedom and more (Abramowitz & Stegun, 26.7.5).
func studentQuantile(z, freedom float64) float64 {
	z3, z5, z7 := z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
	return z + (z3+z)/(4*freedom) + (5*z5+16*z3+3*z)/(96*freedom*freedom) + (3*z7+19*z5+17*z3-15*z)/(384*freedom*freedom*freedom)
}

// phaseError returns the relative standard error of a phase's figures: the larger of that of
// single calls (or graphs) and that of stretches of them. It is NaN with too few samples.
func (c *comparing) phaseError(v *evidence.View, phase string, d *stat.Distribution) float64 {
	one := relativeError(d, 0)
	if math.IsNaN(one) {
		return one
	}
	return max(one, c.drift(v, phase))
}

// partError is like phaseError for a part of the graphs of a phase whose sum alone is known.
// Everything that slowed the slowest graphs may have hit this part.
func (c *comparing) partError(v *evidence.View, of *optrace.PhaseRow, sum time.Duration) float64 {
	d := &of.Graph
	one := c.phaseError(v, of.Phase, d)
	if math.IsNaN(one) || sum <= 0 {
		return one
	}
	return math.Hypot(one, tailError(d)*float64(d.Count)/sum.Seconds())
}
