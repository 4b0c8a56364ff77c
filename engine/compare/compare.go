// Package compare holds the common parts of comparisons of two recordings: the differences in their
// setup, and each figure on both sides with the interval of its ratio and a verdict.
package compare

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Verdict is the direction of a change from the first side to the second.
type Verdict string

// Verdicts. The empty verdict means that none is possible.
const (
	Faster     Verdict = "faster"                         // the whole interval is on the faster side of 1
	Slower     Verdict = "slower"                         // the whole interval is on the slower side of 1
	Equal      Verdict = "no difference beyond the noise" // the interval contains 1 and lies within EqualWithin of it
	Unresolved Verdict = "unresolved"                     // the interval contains 1 and relevant changes
)

// EqualWithin is the largest relative change that counts as equal.
const EqualWithin = 0.1

// Judge returns the verdict for the interval low to high of a ratio. moreIsFaster is true
// for rates and false for durations.
func Judge(low, high float64, moreIsFaster bool) Verdict {
	switch {
	case low <= 1 && high >= 1 && low >= 1-EqualWithin && high <= 1+EqualWithin:
		return Equal
	case low <= 1 && high >= 1:
		return Unresolved
	case low > 1 == moreIsFaster:
		return Faster
	}
	return Slower
}

// Difference is a setting or circumstance that differs between two recordings.
type Difference struct {
	What string `json:"what"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Differing returns the elements of list whose sides differ, in order.
func Differing(list []Difference) []Difference {
	return slices.DeleteFunc(list, func(d Difference) bool { return d.A == d.B })
}

// Change is a figure on both sides.
type Change struct {
	A       stat.Opt `json:"a"`
	B       stat.Opt `json:"b"`
	Ratio   stat.Opt `json:"ratio"` // B over A
	Low     stat.Opt `json:"ratio_low"`
	High    stat.Opt `json:"ratio_high"` // Low to High is the 95 % interval of Ratio
	Verdict Verdict  `json:"verdict"`
	Reason  string   `json:"reason"` // why a value or the verdict is absent
}

// New returns the change from a to b. Its ratio is absent, with a reason, unless both are known and
// positive.
func New(a, b stat.Opt) Change {
	c := Change{A: a, B: b}
	switch {
	case !a.OK || !b.OK:
		c.Reason = "one side has no value"
	case !(a.V > 0) || !(b.V > 0):
		c.Reason = "one side is not positive"
	default:
		c.Ratio = b.Div(a)
	}
	return c
}

// SetInterval sets the interval of the change and the verdict that follows from it.
func (c *Change) SetInterval(low, high float64, moreIsFaster bool) {
	c.Low, c.High = stat.Some(low), stat.Some(high)
	c.Verdict = Judge(low, high, moreIsFaster)
}

// Withhold removes interval and verdict and records the reason.
func (c *Change) Withhold(reason string) {
	c.Low, c.High, c.Verdict, c.Reason = stat.None, stat.None, "", reason
}
