package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// decided is the check that represents all windows of a run with its reason: the one whose figure is nearest to its
// limit.
type decided struct {
	Check
	far     Check // the one farthest from it
	windows int
}

// decisions are the reasons of a rule's checks in a run, in order of appearance.
type decisions []decided

func (d *decisions) add(c Check) {
	i := slices.IndexFunc(*d, func(x decided) bool { return x.Why == c.Why })
	if i < 0 {
		*d = append(*d, decided{c, c, 1})
		return
	}
	x := &(*d)[i]
	x.windows++
	if short := c.short(); short <= x.short() {
		x.Check = c
	} else if short > x.far.short() {
		x.far = c
	}
}

// short returns how far the figure is from its limit, infinity without either.
func (c *Check) short() float64 {
	if !c.Figure.OK || !c.Limit.OK {
		return math.Inf(1)
	}
	return math.Abs(c.Figure.V - c.Limit.V)
}

// reason returns the reason of most windows, those with load before all others, in a sentence that names the
// window of its figure. It is "" without a check.
func (d decisions) reason() string {
	if len(d) == 0 {
		return ""
	}
	loaded := func(x decided) int {
		if x.NoLoad {
			return 0
		}
		return x.windows
	}
	most := slices.MaxFunc(d, func(a, b decided) int { return cmp.Compare(loaded(a), loaded(b)) })
	if !most.Limit.OK || most.Sentence() == most.far.Sentence() {
		return most.Sentence()
	}
	which := "highest"
	if most.Figure.V >= most.Limit.V {
		which = "lowest"
	}
	return most.Sentence() + " in the " + which + " of " + figure.Counted(most.windows, "window")
}
