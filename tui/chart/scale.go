package chart

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Scale is what a chart shows, from its foot to its top. The zero Scale shows
// nothing yet: Fit makes it one.
type Scale struct{ Lo, Hi float64 }

// Ratio returns the scale of shares, 0 to 1.
func Ratio() Scale { return Scale{0, 1} }

// shrinkBelow is the part of a scale under which its highest value must have
// fallen before the scale shrinks. It is the least part that a 1-2-5 step leaves
// of the step above it, so that growing never calls for shrinking.
const shrinkBelow = 0.4

// Fit returns the scale from zero that shows values up to most: it grows at once
// to the next 1-2-5 step, shrinks only when most fell below 40 % of its top, and
// otherwise stays, so that what is drawn on it can be compared with what was.
func (s Scale) Fit(most float64) Scale {
	if !finite(most) || s.Hi > 0 && most <= s.Hi && most >= shrinkBelow*s.Hi {
		return s
	}
	if most <= 0 && s.Hi > 0 { // nothing to see is no reason to look closer
		return s
	}
	return Scale{0, Nice(most)}
}

// Follow returns the scale that Fit arrives at when it follows a chart of width
// columns over all values, oldest first: the same history gives the same scale,
// whoever draws it and however often.
func Follow(values []stat.Opt, width int) Scale {
	var s Scale
	var falling []int // indices in the chart whose values only fall
	for i, v := range values {
		if present(v) {
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

// At returns where v lies between foot and top, 0..1, cut at both.
func (s Scale) At(v float64) float64 {
	if s.Hi <= s.Lo || math.IsNaN(v) {
		return 0
	}
	return min(1, max(0, (v-s.Lo)/(s.Hi-s.Lo)))
}

// Nice returns the smallest of 1, 2 and 5 times a power of ten that is not below
// v; 1 where v is not a positive number.
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

// decimal is f·10^e, rounded as it would be written.
func decimal(f, e float64) float64 {
	if e < 0 {
		return f / math.Pow(10, -e)
	}
	return f * math.Pow(10, e)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// present says that there is a number to draw.
func present(o stat.Opt) bool { return o.OK && finite(o.V) }
