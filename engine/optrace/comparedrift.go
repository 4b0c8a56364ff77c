package optrace

import (
	"math"
	"time"
)

const (
	// stretches are what the calls of a phase are divided into, one after another.
	stretches = 10
	// fewestInStretch are the calls that the mean of a stretch needs.
	fewestInStretch = 2
)

// drift is the relative standard error of the mean time of a phase's calls by the means
// of stretches of them (batch means: Law & Kelton, Simulation Modeling and Analysis,
// ch. 9), 0 of too few. Another program that runs for a second slows hundreds of calls
// one after another: their scatter one by one takes them for as many witnesses. It is
// of the last calls alone, those of the line of time.
func (c *comparing) drift(v *view, phase string) float64 {
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
	cv := variation(means)
	if !cv.OK {
		return 0
	}
	// variation divides by the number of means, a standard error by one less.
	return cv.V / math.Sqrt(stretches-1) * student(c.wide, stretches-1) / c.wide
}

// student is the quantile of Student's distribution at that of the normal one, to 1 % for
// nine degrees of freedom and more (Abramowitz & Stegun, 26.7.5).
func student(z, freedom float64) float64 {
	z3, z5, z7 := z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
	return z + (z3+z)/(4*freedom) + (5*z5+16*z3+3*z)/(96*freedom*freedom) + (3*z7+19*z5+17*z3-15*z)/(384*freedom*freedom*freedom)
}

// unsteady is the relative standard error of a phase's figures: of its calls, or of its
// graphs, one by one, and of stretches of them.
func (c *comparing) unsteady(v *view, phase string, d *Distribution) float64 {
	one := d.scatter(0)
	if math.IsNaN(one) {
		return one
	}
	return max(one, c.drift(v, phase))
}

// unsteadyPart is that of a part of the graphs of a phase of which the sum alone is known.
// What made the slowest graphs slow may all have hit this part.
func (c *comparing) unsteadyPart(v *view, of *PhaseRow, sum time.Duration) float64 {
	d := &of.Graph
	one := c.unsteady(v, of.Phase, d)
	if math.IsNaN(one) || sum <= 0 {
		return one
	}
	return math.Hypot(one, d.tail()*float64(d.Count)/sum.Seconds())
}
