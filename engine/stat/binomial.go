package stat

import "math"

// AtMost is the probability of at most k successes in n trials that succeed with
// probability p, by the incomplete beta function (Abramowitz & Stegun 26.5.24),
// which also takes k and n that are not whole. It is NaN for counts or a p that
// cannot be.
func AtMost(k, n, p float64) float64 {
	switch {
	case !(k >= 0 && k <= n) || math.IsInf(n, 1) || !(p >= 0 && p <= 1):
		return math.NaN()
	case k == n:
		return 1
	}
	return incompleteBeta(n-k, k+1, 1-p)
}

// AtLeast is the probability of at least k successes, as AtMost is of at most k.
func AtLeast(k, n, p float64) float64 {
	switch {
	case !(k >= 0 && k <= n) || math.IsInf(n, 1) || !(p >= 0 && p <= 1):
		return math.NaN()
	case k == 0:
		return 1
	}
	return incompleteBeta(k, n-k+1, p)
}
