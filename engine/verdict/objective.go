package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// objectives fills in what became of each objective.
func (c *comparison) objectives() {
	for _, o := range c.p.Objectives {
		h := Held{Objective: o}
		b, a := c.kept(&o, 0), c.kept(&o, 1)
		h.Before, h.After, h.Low, h.High = b.value, a.value, a.low, a.high
		h.OK, h.Broken, h.Was = a.keeps, a.breaks, b.keeps
		c.r.Objectives = append(c.r.Objectives, h)
		c.was = append(c.was, b)
	}
}

// standing is one side's value of an objective, and on which side of its limit it
// is beyond doubt.
type standing struct {
	value, low, high stat.Opt
	keeps, breaks    bool
}

func (c *comparison) kept(o *Objective, side int) standing {
	for i := range c.meters {
		m := &c.meters[i]
		if m.metric != o.Metric || m.quantile != o.Quantile || (m.hist != nil) != (o.Quantile > 0) {
			continue
		}
		e := &c.side[side].estimates[m.at[side]]
		if !e.value.OK || !(e.count > 0) {
			break
		}
		s := standing{value: e.value}
		off := math.Sqrt(e.variance) * stat.StudentQuantile(1-c.error/2, e.dof)
		low, high := e.value.V*math.Exp(-off), e.value.V*math.Exp(off)
		if m.hist != nil {
			low, high = m.exact[side].reach(off)
		}
		s.low, s.high = stat.Some(low), stat.Some(high)
		if math.IsInf(high, 1) {
			s.high = stat.None
		}
		s.keeps, s.breaks = high <= o.Limit, low >= o.Limit
		return s
	}
	return standing{}
}

// worst returns the difference of the worst ratio of an objective's value to its
// limit, as logarithms, less is better; false where it cannot be known.
func (c *comparison) worst() (effect, bool) {
	var e effect
	at, ratio := -1, 0.0
	for i := range c.r.Objectives {
		h := &c.r.Objectives[i]
		if !h.Before.OK || !h.After.OK || h.Before.V <= 0 || h.After.V <= 0 || !(h.Limit > 0) {
			return e, false
		}
		if r := max(h.Before.V, h.After.V) / h.Limit; r > ratio {
			at, ratio = i, r
		}
	}
	if at < 0 {
		return e, false
	}
	h := &c.r.Objectives[at]
	for i := range c.r.Measures {
		if m := &c.r.Measures[i]; m.Metric == h.Metric && m.Quantile == h.Quantile && m.Known {
			e.mid = -math.Log1p(m.Change.Mid)
			e.measured = max(math.Log1p(m.Change.High)-math.Log1p(m.Change.Mid), math.Log1p(m.Change.Mid)-math.Log1p(m.Change.Low))
			e.known = true
			return e, !math.IsNaN(e.measured)
		}
	}
	return e, false
}
