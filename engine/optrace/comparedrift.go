package optrace

import "math"

const (
	// stretches are what the calls of a phase are divided into, one after another.
	stretches = 10
	// fewestInStretch are the calls that the mean of a stretch needs.
	fewestInStretch = 2
	// studentNine is how many standard errors hold 95 % of what ten means give: the
	// quantile of Student's distribution with nine degrees of freedom.
	studentNine = 2.262
)

// drift is the relative standard error of the mean time of a phase's calls by the means
// of stretches of them (batch means: Law & Kelton, Simulation Modeling and Analysis,
// ch. 9), 0 of too few. Another program that runs for a second slows hundreds of calls
// one after another: their scatter one by one takes them for as many witnesses. It is
// of the last calls alone, those of the line of time.
func (v *view) drift(phase string) float64 {
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
	return cv.V / math.Sqrt(stretches-1) * studentNine / twoSided
}

// unsteady is the relative standard error of a phase's figures: of its calls, or of its
// graphs, one by one, and of stretches of them.
func (v *view) unsteady(phase string, d *Distribution) float64 {
	one := d.scatter(0)
	if math.IsNaN(one) {
		return one
	}
	return max(one, v.drift(phase))
}
