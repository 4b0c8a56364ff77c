package verdict

import (
	"math"
	"time"
)

const (
	// errorRate is the rate at which repeats of one configuration may be called different, over
	// all looks together.
	errorRate = 0.05
	// lookGrowth is the ratio of the times of successive looks.
	lookGrowth = 1.5
	// The rate is spent by the square of the information and the root of the time measured: early looks,
	// whose scatter is known least, get little of it, also where restarts make all looks the same.
	informationSpending, timeSpending = 2.0, 0.5
	// pathPoints is the number of points at which the distribution of a difference is followed from
	// look to look; even.
	pathPoints = 64
)

// Looks returns the times of a trial's looks, since the measurement began: from first to last,
// each half as long again as the previous one. They are fixed before the trial begins.
func Looks(first, last time.Duration) []time.Duration {
	var out []time.Duration
	if first > 0 {
		for t := first; t < last*4/5; t = t * 3 / 2 {
			out = append(out, t)
		}
	}
	return append(out, max(first, last))
}

// rate returns the error rate of all looks together.
func (p *Plan) rate() float64 { return math.Ldexp(errorRate, -max(p.Again, 0)) }

// level returns the error rate that the interval of this look may have, so that the intervals of all
// looks have that of the plan together. fixed is the part of the difference's variance that is the same at
// each look (restarts and the side before), shrinking the part that falls with the time measured.
// Using the whole rate at every look would raise it severalfold (Armitage, McPherson & Rowe, J. R.
// Stat. Soc. A 132, 1969). It is spent by powers of the information, which is the inverse of the
// variance, and of the time (Lan & DeMets, Biometrika 70, 1983, with the family of Kim & DeMets,
// Biometrika 74, 1987).
func (p *Plan) level(fixed, shrinking float64) float64 {
	if p.Looks <= 1 || !(shrinking > 0) {
		return p.rate()
	}
	look := min(max(p.Look, 0), p.Looks-1)
	variance := func(i int) float64 { return fixed + shrinking*math.Pow(lookGrowth, float64(look-i)) }
	information := make([]float64, look+1)
	for i := range information {
		information[i] = variance(p.Looks-1) / variance(i)
	}
	return nominalLevel(p.rate(), information, p.Looks)
}

// nominalLevel returns the error rate of the last of several looks, of as many as planned, that have a rate
// together, given the share of the information that each of them has. Differences measured longer and longer times root of the
// information are a random walk with independent steps, whatever part of their variance is common to
// them; its distribution below the limits of all earlier looks gives each limit (Jennison & Turnbull,
// Group Sequential Methods, 2000, chapters 7 and 19). A look that adds too little information to
// matter has the limit of the previous one.
func nominalLevel(rate float64, information []float64, looks int) float64 {
	before := 0.0
	tail := func(x float64) float64 { return math.Erfc(x/math.Sqrt2) / 2 }
	points, weights, spacing, known, limit := []float64{0}, []float64{1}, 0.0, 0.0, 0.0
	for i, now := range information {
		spent := math.Pow(now, informationSpending) * math.Pow(lookGrowth, timeSpending*float64(i-(looks-1)))
		step := math.Sqrt(now - known)
		if step <= spacing {
			continue
		}
		allowed := rate * (spent - before)
		low, high := 0.0, 10.0
		for range 30 {
			limit = (low + high) / 2
			crossed, end := 0.0, limit*math.Sqrt(now)
			for i, x := range points {
				crossed += 2 * weights[i] * tail((end-x)/step) // as many cross the other limit
			}
			if crossed > allowed {
				low = limit
			} else {
				high = limit
			}
		}
		end := limit * math.Sqrt(now)
		spacing = 2 * end / pathPoints
		next, density := make([]float64, pathPoints), make([]float64, pathPoints)
		for j := range pathPoints / 2 { // the distribution is symmetric
			next[j] = (float64(j)+0.5)*spacing - end
			for i, x := range points {
				d := (next[j] - x) / step
				density[j] += weights[i] * math.Exp(-d*d/2)
			}
			density[j] *= spacing / (step * math.Sqrt(2*math.Pi))
			next[pathPoints-1-j], density[pathPoints-1-j] = -next[j], density[j]
		}
		points, weights, known, before = next, density, now, spent
	}
	return 2 * tail(limit)
}
