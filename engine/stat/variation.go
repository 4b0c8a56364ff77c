package stat

import "math"

// Variation returns the coefficient of variation of values: their population standard deviation over
// their mean. It is absent unless the mean is above zero.
func Variation(values []float64) Opt {
	mean, squares := 0.0, 0.0
	for i, v := range values { // Welford, Technometrics 4(3), 1962
		d := v - mean
		mean += d / float64(i+1)
		squares += d * (v - mean)
	}
	if mean <= 0 {
		return None
	}
	return Finite(math.Sqrt(squares/float64(len(values))) / mean)
}
