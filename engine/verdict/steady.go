package verdict

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// doubt is the number of standard errors from which a warm-up or a drift is significant.
	doubt = 3
	// leastCut is the relative difference below which a warm-up is not cut off.
	leastCut = 0.02
	// leastSlices is the least number of slices that show a course.
	leastSlices = 8
)

// cutWarmUp cuts off the warm-up of a start and describes the remaining course.
func (l *start) cutWarmUp() {
	pace := l.pace()
	l.steady.Cut = warmup(pace)
	l.slices, pace = l.slices[l.steady.Cut:], pace[l.steady.Cut:]
	l.steady.Drift = drift(pace)
}

// pace returns the throughput of each slice, without what the other starts did at the same moment.
func (l *start) pace() []float64 {
	if l.others == nil {
		return l.rates()
	}
	out := relative(l.rates())
	for i := range out {
		out[i] += 1 - l.others[i]
	}
	return out
}

// rates returns the throughput of each slice, or a substitute without output tokens.
func (l *start) rates() []float64 {
	for _, pick := range [...]func(*Slice) (float64, bool){
		func(s *Slice) (float64, bool) { return s.Tokens.V / s.Length.Seconds(), s.Tokens.OK },
		func(s *Slice) (float64, bool) { return s.Finished.V / s.Length.Seconds(), s.Finished.OK },
	} {
		if v := l.series(pick); v != nil {
			return v
		}
	}
	return make([]float64, len(l.slices))
}

// series returns one number for each slice, with the mean of the others for those that were not
// read; nil if none was.
func (l *start) series(pick func(*Slice) (float64, bool)) []float64 {
	out := make([]float64, len(l.slices))
	sum, n := 0.0, 0
	for i := range l.slices {
		if v, ok := pick(&l.slices[i]); ok {
			out[i] = v
			sum += v
			n++
		}
	}
	if n == 0 {
		return nil
	}
	for i := range l.slices {
		if _, ok := pick(&l.slices[i]); !ok {
			out[i] = sum / float64(n)
		}
	}
	return out
}

// warmup returns the number of slices at the beginning that do not belong to the steady state: those
// without which the standard error of the mean is least (MSER: White, Simulation 69, 1997; on means
// of several, MSER-5: White, Cobb & Spratt, Winter Simulation Conference 2000). It is at most half,
// and 0 unless their mean differs beyond scatter, because always cutting at the best place would
// make the remaining slices look steadier than they are.
func warmup(pace []float64) int {
	n := len(pace)
	if n < leastSlices {
		return 0
	}
	group := min(5, max(1, n/leastSlices))
	batches := make([]float64, n/group)
	for i := range batches {
		batches[i] = average(pace[i*group : (i+1)*group])
	}
	best, cut := math.Inf(1), 0
	for d := 0; d <= len(batches)/2; d++ {
		rest := batches[d:]
		if se := variance(rest) / float64(len(rest)); se < best {
			best, cut = se, d
		}
	}
	cut *= group
	if cut == 0 {
		return 0
	}
	head, rest := pace[:cut], pace[cut:]
	difference := math.Abs(average(head) - average(rest))
	se := math.Sqrt(variance(rest) * inflation(rest) * (1/float64(len(head)) + 1/float64(len(rest))))
	if difference <= doubt*se || difference <= leastCut*average(rest) {
		return 0
	}
	return cut
}

// drift returns the change of the fitted line over all values, relative to their mean, if it exceeds
// their scatter; else 0.
func drift(values []float64) float64 {
	n := float64(len(values))
	middle, slope := stat.Line(values)
	if len(values) < leastSlices || middle <= 0 {
		return 0
	}
	rest := detrended(values)
	// The slope's standard error assumes residuals of a first-order autoregression.
	sxx := n * (n*n - 1) / 12
	se := math.Sqrt(variance(rest) * inflation(rest) / sxx)
	change := slope * (n - 1)
	if math.Abs(slope) <= doubt*se || math.Abs(change) <= 0.01*middle {
		return 0
	}
	return change / middle
}

// autocorrelation returns the autocorrelations of values about their mean, from lag 0 to last; zeros
// if they do not vary.
func autocorrelation(values []float64, last int) []float64 {
	r := make([]float64, min(last, len(values)-1)+1)
	m := average(values)
	for lag := range r {
		for i := lag; i < len(values); i++ {
			r[lag] += (values[i] - m) * (values[i-lag] - m)
		}
	}
	if r[0] <= 0 {
		clear(r)
		return r
	}
	for i := len(r) - 1; i >= 0; i-- {
		r[i] /= r[0]
	}
	return r
}

// inflation returns the factor, at least 1, by which the variance of the mean of values exceeds that
// of independent ones, assuming a first-order autoregression. Short series underestimate their
// dependence (Kendall, Biometrika 41, 1954) and their variance, because they cannot show the part
// that moves the mean; both are corrected.
func inflation(values []float64) float64 {
	n := float64(len(values))
	if n < 4 {
		return 1
	}
	phi := autocorrelation(values, 1)[1]
	if phi <= 1/math.Sqrt(n) {
		return 1
	}
	phi = min(phi+(1+3*phi)/n, 0.98)
	f := (1 + phi) / (1 - phi)
	return f / max(1-f/n, 1.0/3)
}

// average returns the mean, or 0 without values.
func average(values []float64) float64 { return stat.Mean(values).Or(0) }

// variance returns the variance of one value, unbiased for independent values.
func variance(values []float64) float64 {
	m, sum := average(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return sum / float64(max(len(values)-1, 1))
}

// detrended returns the values minus their fitted line.
func detrended(values []float64) []float64 {
	middle, slope := stat.Line(values)
	half := float64(len(values)-1) / 2
	out := slices.Clone(values)
	for i := range out {
		out[i] -= middle + slope*(float64(i)-half)
	}
	return out
}
