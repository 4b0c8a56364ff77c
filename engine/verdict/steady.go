package verdict

import (
	"math"
	"slices"
)

const (
	// doubt is how many standard errors a warm-up or a drift must differ by to be
	// called one.
	doubt = 3
	// leastCut is the relative difference below which a warm-up is left in.
	leastCut = 0.02
	// leastSlices is how many slices a course can be read from.
	leastSlices = 8
)

// settle cuts the warm-up off a life and reads what the rest shows.
func (l *life) settle() {
	pace := l.pace()
	l.steady.Cut = warmup(pace)
	l.slices, pace = l.slices[l.steady.Cut:], pace[l.steady.Cut:]
	l.steady.Used = len(l.slices)
	l.steady.Drift = drift(pace)
	l.steady.Period = period(detrended(pace))
	if l.steady.Period == 0 {
		l.steady.Period = period(detrended(l.series(func(s *Slice) (float64, bool) { return s.Finished.V / s.Length.Seconds(), s.Finished.OK })))
	}
	l.steady.Block = block(detrended(pace), l.steady.Period)
}

// pace is the throughput of each slice, or what stands for it where there are no
// output tokens.
func (l *life) pace() []float64 {
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

// series is one number of each slice; what was not read is as the mean of the
// rest. Nil where nothing was.
func (l *life) series(pick func(*Slice) (float64, bool)) []float64 {
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

// warmup returns how many slices at the beginning are not of the steady state:
// those without which the standard error of the mean is least (MSER: White,
// Simulation 69, 1997; on means of several, MSER-5: White, Cobb & Spratt, Winter
// Simulation Conference 2000), never more than half, and none unless their mean
// differs beyond scatter: always cutting where it looks best would make
// the rest look steadier than it is.
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

// drift returns the change of the fitted line over all values, relative to their
// mean, where it is beyond their scatter.
func drift(values []float64) float64 {
	n := float64(len(values))
	middle, slope := line(values)
	if len(values) < leastSlices || middle <= 0 {
		return 0
	}
	rest := detrended(values)
	// The slope's standard error with residuals that depend on each other as an
	// autoregression of the first order.
	sxx := n * (n*n - 1) / 12
	se := math.Sqrt(variance(rest) * inflation(rest) / sxx)
	change := slope * (n - 1)
	if math.Abs(slope) <= doubt*se || math.Abs(change) <= 0.01*middle {
		return 0
	}
	return change / middle
}

// period returns the distance in slices after which values repeat, 0 where they do
// not: the first peak of their autocorrelation beyond its scatter, behind a trough
// as deep. Closed-loop clients of equal lengths begin and end together.
func period(values []float64) int {
	n := len(values)
	if n < leastSlices {
		return 0
	}
	limit := 2 / math.Sqrt(float64(n))
	r := autocorrelation(values, n/2)
	trough := false
	for lag := 1; lag+1 < len(r); lag++ {
		if r[lag] < -limit {
			trough = true
		}
		if trough && r[lag] > limit && r[lag] >= r[lag-1] && r[lag] >= r[lag+1] {
			return lag
		}
	}
	return 0
}

// block returns how many slices are resampled together: the length that is best
// for the stationary bootstrap (Politis & White, Econometric Reviews 23, 2004,
// corrected by Patton, Politis & White, Econometric Reviews 28, 2009), at least a
// whole oscillation and the cube root of their number, the order that the best
// length has whatever the dependence, and never so many that fewer than three are
// left.
func block(values []float64, wave int) int {
	n := len(values)
	if n < 4 {
		return 1
	}
	reach := max(5, int(math.Ceil(math.Sqrt(math.Log10(float64(n))))))
	r := autocorrelation(values, min(n-1, int(math.Ceil(math.Sqrt(float64(n))))+reach))
	limit := 2 * math.Sqrt(math.Log10(float64(n))/float64(n))
	// The smallest lag after which reach lags in a row are within their scatter.
	last := 0
	for lag := 1; lag < len(r); lag++ {
		if math.Abs(r[lag]) >= limit {
			last = lag
		} else if lag-last >= reach {
			break
		}
	}
	width := min(2*max(last, 1), len(r)-1)
	g, spectrum := 0.0, r[0]
	for lag := 1; lag <= width; lag++ {
		taper := min(1, 2*(1-float64(lag)/float64(width))) // flat top: 1 up to half the width
		g += 2 * taper * float64(lag) * r[lag]
		spectrum += 2 * taper * r[lag]
	}
	b := math.Cbrt(float64(n))
	if spectrum > 0 && g != 0 {
		b *= max(1, math.Cbrt(2*g*g/(2*spectrum*spectrum)))
	}
	longest := min(3*math.Sqrt(float64(n)), float64(n)/3)
	return int(max(1, math.Ceil(min(max(b, float64(wave)), longest))))
}

// autocorrelation returns the autocorrelations of values about their mean, from
// lag 0 to last; zeros where they do not vary.
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

// inflation is the factor by which the variance of the mean of values exceeds that
// of independent ones, at least 1, if they are an autoregression of the first
// order. Short series show too little of their dependence (Kendall, Biometrika 41,
// 1954), and of their variance, whose part that moves the mean they cannot show:
// both are added.
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

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

// variance is of one value, unbiased where they are independent.
func variance(values []float64) float64 {
	m, sum := average(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return sum / float64(max(len(values)-1, 1))
}

// line returns the mean and the slope of the least-squares line.
func line(values []float64) (middle, slope float64) {
	middle = average(values)
	half := float64(len(values)-1) / 2
	sxy, sxx := 0.0, 0.0
	for i, v := range values {
		x := float64(i) - half
		sxy += x * (v - middle)
		sxx += x * x
	}
	if sxx == 0 {
		return middle, 0
	}
	return middle, sxy / sxx
}

// detrended returns the values less their line.
func detrended(values []float64) []float64 {
	middle, slope := line(values)
	half := float64(len(values)-1) / 2
	out := slices.Clone(values)
	for i := range out {
		out[i] -= middle + slope*(float64(i)-half)
	}
	return out
}
