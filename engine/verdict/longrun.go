package verdict

import "math"

const (
	// frequencyShare sets the number of frequencies behind a long-run variance: this share of the
	// number of slices to the power of two thirds. More of them make the variance more accurate, fewer
	// show slower disturbances. The authors of the method take 0.4; a shared host drifts for a minute
	// and more, which shows in the lowest frequencies only.
	frequencyShare = 0.2
	// leastFrequencies is their least number.
	leastFrequencies = 4
	// steepest is the largest factor by which a variance that rises towards the lowest frequencies is
	// taken to rise further below them.
	steepest = 3.0
)

// frequencies returns the number of frequencies for a long-run variance of n values: its degrees of
// freedom.
func frequencies(n int) int {
	return min(max(leastFrequencies, int(math.Round(frequencyShare*math.Cbrt(float64(n*n))))), n-1)
}

// longRunVariance returns the variance of the sum of dependent values of mean zero: their number times
// the mean square of their lowest cosine frequencies, which is as variable as a chi-square with as many
// degrees of freedom (the equal-weighted cosine estimate of Lazarus, Lewis, Stock & Watson, J. Bus.
// Econ. Stat. 36, 2018). A wave shorter than a few parts of the values lies above these frequencies and
// cancels in a sum; a trend lies in the first of them. A drift so slow that even the lowest
// frequency shows only a part of it appears as a rise from the frequencies above: the variance is
// taken to rise once more by the root of that. There must be two values at least.
func longRunVariance(values []float64) float64 {
	n := len(values)
	most := frequencies(n)
	waves := make([]float64, min(3*most, n-1))
	for i, v := range values {
		turn := math.Cos(math.Pi * (float64(i) + 0.5) / float64(n))
		this, next := turn, 2*turn*turn-1 // cosines of multiples of one angle, by their recurrence
		for j := range waves {
			waves[j] += v * this
			this, next = next, 2*turn*next-this
		}
	}
	low, above := meanSquare(waves[:most]), meanSquare(waves[most:])
	rise := 1.0
	if above > 0 {
		rise = min(max(1, math.Sqrt(low/above)), steepest)
	}
	return 2 * low * rise
}

// meanSquare returns the mean of squares, or 0 without values.
func meanSquare(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v * v
	}
	return sum / float64(max(1, len(values)))
}

// estimate sets the estimates of all columns. Each start has a variance by itself, because a restart
// ends every dependence; starts measured at the same time depend on the same load and have one together.
func (s *sample) estimate() {
	s.estimates = make([]estimate, len(s.columns))
	for i := range s.columns {
		s.estimates[i] = estimate{value: s.columns[i].value, count: s.columns[i].count, dof: 1}
	}
	for j := range s.columns {
		e, worth := &s.estimates[j], 0.0 // for Satterthwaite's formula: sum of variance²/dof
		if s.moments > 0 {
			e.variance, e.dof = seriesVariance(s.atMoments(j), 1)
			continue
		}
		for i := range s.columns[j].influence {
			v, dof := seriesVariance(s.columns[j].influence[i], s.starts[i].weight)
			e.variance += v
			worth += v * v / dof
		}
		if worth > 0 {
			e.dof = e.variance * e.variance / worth
		}
	}
}

// seriesVariance returns the variance that a part of a side, of this weight, adds to an estimate by the
// influence of its slices, and its degrees of freedom.
func seriesVariance(influence []float64, weight float64) (v, dof float64) {
	if len(influence) < 2 { // one slice has no scatter
		return weight * weight, 1
	}
	return longRunVariance(influence), float64(frequencies(len(influence)))
}
