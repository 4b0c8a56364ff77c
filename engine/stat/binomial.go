package stat

import "math"

// AtMost returns the probability of at most k successes in n trials with success probability p, by the
// incomplete beta function (Abramowitz & Stegun 26.5.24), which also accepts k and n that are not
// integers. It is NaN for invalid counts or p.
func AtMost(k, n, p float64) float64 {
	switch {
	case !(k >= 0 && k <= n) || math.IsInf(n, 1) || !(p >= 0 && p <= 1):
		return math.NaN()
	case k == n:
		return 1
	}
	return incompleteBeta(n-k, k+1, 1-p)
}

// AtLeast returns the probability of at least k successes; see [AtMost].
func AtLeast(k, n, p float64) float64 {
	switch {
	case !(k >= 0 && k <= n) || math.IsInf(n, 1) || !(p >= 0 && p <= 1):
		return math.NaN()
	case k == 0:
		return 1
	}
	return incompleteBeta(k, n-k+1, p)
}
