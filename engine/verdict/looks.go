package verdict

import (
	"math"
	"time"
)

const (
	// errorRate is how often repeats of one configuration may be told apart, over
	// all looks together.
	errorRate = 0.05
	// lookGrowth is how much longer each look is than the one before.
	lookGrowth = 1.5
	// spending is the power of the time measured that the rate is spent with: early
	// looks, whose scatter is known least, get little of it.
	spending = 1.5
)

// Looks returns the times, since the measurement began, at which a trial is
// judged: from the first on, each half as long again as the one before, up to the
// last. They are fixed before the trial begins.
func Looks(first, last time.Duration) []time.Duration {
	var out []time.Duration
	if first > 0 {
		for t := first; t < last*4/5; t = t * 3 / 2 {
			out = append(out, t)
		}
	}
	return append(out, max(first, last))
}

// spend is the part of the error rate that one look may use. Looking at every
// point of time with the whole rate would raise it severalfold (Armitage,
// McPherson & Rowe, J. R. Stat. Soc. A 132, 1969). The rate is spent with a
// power of the time measured (Lan & DeMets, Biometrika 70, 1983, with the family of
// Kim & DeMets, Biometrika 74, 1987), and a look uses what was
// added since the look before. The sum of these parts bounds the rate of all looks
// (Bonferroni) however they depend on each other, which the usual recursion would
// have to assume and which estimated variances break.
func spend(p *Plan) float64 {
	if p.Looks <= 1 {
		return errorRate
	}
	look := min(max(p.Look, 0), p.Looks-1)
	spent := func(i int) float64 {
		if i < 0 {
			return 0
		}
		return math.Pow(lookGrowth, spending*float64(i-(p.Looks-1)))
	}
	return errorRate * (spent(look) - spent(look-1))
}
