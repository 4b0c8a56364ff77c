package verdict

import (
	"math"
	"slices"

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
		b, a := c.standing(i, 0), c.standing(i, 1)
		h := Held{
			Objective: *o, Before: b.value, After: a.value, Low: a.low, High: a.high,
			OK: a.keeps, Broken: a.breaks, Was: b.keeps, WasBroken: b.breaks,
		}
		c.r.Objectives = append(c.r.Objectives, h)
		c.fates = append(c.fates, fate{turn: turned(&h), name: limitOf(&h), moved: c.moved(o, &b, &a)})
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
// is beyond doubt. The value of too few observations is absent; what they have for
// one is the guess.
type standing struct {
	value, low, high stat.Opt
	guess            stat.Opt
	keeps, breaks    bool
}

func (c *comparison) standing(objective, side int) standing {
	o := &c.p.Objectives[objective]
	m := c.meter(o.Metric, o.Quantile)
	if m == nil || (m.hist != nil) != (o.Quantile > 0) {
		return standing{}
	}
	e := &c.side[side].estimates[m.at[side]]
	s := standing{value: e.value, guess: e.value}
	var low, high float64
	switch {
	case e.value.OK && e.count > 0:
		off := math.Sqrt(e.variance) * stat.StudentQuantile(1-c.error/2, e.dof)
		low, high = e.value.V*math.Exp(-off), e.value.V*math.Exp(off)
		if m.hist != nil {
			low, high = m.exact[side].reach(off)
		}
	case m.hist != nil && observed(&m.exact[side].all) > 0:
		q, t, all := &m.exact[side], &c.tails[objective][side], c.side[side]
		s.guess = q.all.Quantile(q.q)
		low, high = q.few(all.worth(t.near, c.error), all.worth(t.all, c.error), c.error)
	default:
		return standing{}
	}
	s.low, s.high = stat.Some(low), stat.Some(high)
	if math.IsInf(high, 1) {
		s.high = stat.None
	}
	s.keeps, s.breaks = high <= o.Limit, low >= o.Limit
	return s
}

// moved is the difference of the latency of an objective, less is better. What it
// may be off by is what it may be off towards none: that decides, and the other end
// may lie beyond the last bucket. Of too few observations it is what lies between the
// intervals of both sides.
func (c *comparison) moved(o *Objective, b, a *standing) (e effect) {
	var low, mid, high float64
	at := slices.IndexFunc(c.r.Measures, func(m Measure) bool { return m.Metric == o.Metric && m.Quantile == o.Quantile && m.Known })
	switch {
	case at >= 0:
		i := &c.r.Measures[at].Change
		low, mid, high = math.Log1p(i.Low), math.Log1p(i.Mid), math.Log1p(i.High)
	case b.guess.V > 0 && a.guess.V > 0:
		mid = math.Log(a.guess.V / b.guess.V)
		low, high = math.Log(a.low.V/b.high.Or(math.Inf(1))), math.Log(a.high.Or(math.Inf(1))/b.low.V)
		low, high = mid-math.Hypot(mid-low, c.restart), mid+math.Hypot(high-mid, c.restart)
	default:
		return e
	}
	e.mid, e.measured, e.known = -mid, high-mid, true
	if mid > 0 {
		e.measured = mid - low
	}
	return e
}
