package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// turn is what became of an objective.
type turn int

const (
	stayed  turn = iota // kept now, and not known to have been missed
	lost                // kept before, missed now
	won                 // missed before, kept now
	still               // missed before and now
	nearer              // missed before, doubtful now
	amiss               // missed now, doubtful before
	doubted             // doubtful now, and not known to have been missed
)

// fate is an objective with what became of it.
type fate struct {
	turn
	name  string // with its limit
	moved effect // of its latency, less is better
	call  call   // on moved, of one that is missed before and now
}

// objectives fills in what became of each objective.
func (c *comparison) objectives() {
	for i := range c.p.Objectives {
		o := &c.p.Objectives[i]
		b, a := c.standing(o, 0), c.standing(o, 1)
		h := Held{
			Objective: *o, Before: b.value, After: a.value, Low: a.low, High: a.high,
			OK: a.keeps, Broken: a.breaks, Was: b.keeps, WasBroken: b.breaks,
		}
		c.r.Objectives = append(c.r.Objectives, h)
		c.fates = append(c.fates, fate{turn: turned(&h), name: limitOf(&h), moved: c.moved(o)})
	}
}

func turned(h *Held) turn {
	switch {
	case h.OK && h.WasBroken:
		return won
	case h.OK:
		return stayed
	case h.Broken && h.Was:
		return lost
	case h.Broken && h.WasBroken:
		return still
	case h.Broken:
		return amiss
	case h.WasBroken:
		return nearer
	}
	return doubted
}

// standing is one side's value of an objective, and on which side of its limit it
// is beyond doubt.
type standing struct {
	value, low, high stat.Opt
	keeps, breaks    bool
}

func (c *comparison) standing(o *Objective, side int) standing {
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

// moved is the difference of the latency of an objective, less is better. What it
// may be off by is what it may be off towards none: that decides, and the other end
// may lie beyond the last bucket.
func (c *comparison) moved(o *Objective) (e effect) {
	for i := range c.r.Measures {
		m := &c.r.Measures[i]
		if m.Metric != o.Metric || m.Quantile != o.Quantile || !m.Known {
			continue
		}
		mid := math.Log1p(m.Change.Mid)
		e.mid, e.known = -mid, true
		e.measured = math.Log1p(m.Change.High) - mid
		if mid > 0 {
			e.measured = mid - math.Log1p(m.Change.Low)
		}
	}
	return e
}
