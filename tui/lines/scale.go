package lines

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Top returns the upper end of a scale from zero for values, a 1-2-5 step: 0 if there are none. While a run grows, so
// does its scale, so that successive frames can be compared.
func Top(values []stat.Opt) float64 {
	most := stat.None
	for _, v := range values {
		if v.Finite().OK {
			most = most.Max(v)
		}
	}
	if !most.OK {
		return 0
	}
	return Nice(most.V)
}

// share returns the position of v between zero and the top of a scale, limited to 0..1.
func share(v, top float64) float64 {
	if !(top > 0) || math.IsNaN(v) {
		return 0
	}
	return min(1, max(0, v/top))
}

// Nice returns the smallest of 1, 2 and 5 times a power of ten that is at least v. It returns 1 if
// v is not positive and finite.
func Nice(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	e := math.Floor(math.Log10(v))
	for _, f := range [...]float64{0.1, 0.2, 0.5, 1, 2, 5, 10} {
		if n := decimal(f, e); n >= v*(1-1e-9) {
			return n
		}
	}
	return v
}

// decimal returns f·10^e, rounded to the nearest float of that decimal number.
func decimal(f, e float64) float64 {
	if e < 0 {
		return f / math.Pow(10, -e)
	}
	return f * math.Pow(10, e)
}
