package chart

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Scale is the value range of a chart, from bottom to top. The zero Scale is empty; Fit gives it a
// range.
type Scale struct{ Lo, Hi float64 }

// Ratio returns the scale of shares, 0 to 1.
func Ratio() Scale { return Scale{0, 1} }

// shrinkBelow is the fraction of the scale that the highest value must fall below before the scale
// shrinks. It equals the smallest ratio of neighbouring 1-2-5 steps, so that growing never causes
// shrinking.
const shrinkBelow = 0.4

// Fit returns the scale from zero for values up to highest. It grows at once to the next 1-2-5 step
// and shrinks only when highest is below 40 % of its top. Otherwise it stays the same, so that
// successive frames can be compared.
func (s Scale) Fit(highest float64) Scale {
	if !stat.IsFinite(highest) || s.Hi > 0 && highest <= s.Hi && highest >= shrinkBelow*s.Hi {
		return s
	}
	if highest <= 0 && s.Hi > 0 { // do not zoom in when there is nothing to see
		return s
	}
	return Scale{0, Nice(highest)}
}

// Follow returns the scale that results from calling Fit for a chart of width columns as it moves
// over all values, oldest first. The same history always gives the same scale, however often it was
// drawn.
func Follow(values []stat.Opt, width int) Scale {
	var s Scale
	var falling []int // indices in the current window, with falling values
	for i, v := range values {
		if v.Finite().OK {
			for len(falling) > 0 && values[falling[len(falling)-1]].V <= v.V {
				falling = falling[:len(falling)-1]
			}
			falling = append(falling, i)
		}
		if len(falling) > 0 && falling[0] <= i-max(1, width) {
			falling = falling[1:]
		}
		if len(falling) > 0 {
			s = s.Fit(values[falling[0]].V)
		}
	}
	return s
}

// At returns the position of v between bottom and top, limited to 0..1.
func (s Scale) At(v float64) float64 {
	if s.Hi <= s.Lo || math.IsNaN(v) {
		return 0
	}
	return min(1, max(0, (v-s.Lo)/(s.Hi-s.Lo)))
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
