package verdict

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// transition is the effect of a change on an objective.
type transition int

const (
	stayed    transition = iota // met now, and not known to have been missed
	lost                        // met before, missed now
	won                         // missed before, met now
	still                       // missed before and now
	nearer                      // missed before, uncertain now
	missed                      // missed now, uncertain before
	uncertain                   // uncertain now, and not known to have been missed
)

// objectiveOutcome is the result for one objective.
type objectiveOutcome struct {
	transition
	name  string     // including its limit
	moved effect     // difference of its latency, smaller is better
	call  conclusion // on moved, for an objective missed before and now
}

// objectives sets the result for each objective.
func (c *comparison) objectives() {
	for i := range c.p.Objectives {
		o := &c.p.Objectives[i]
		b, a := c.standing(i, 0), c.standing(i, 1)
		h := ObjectiveResult{
			Objective: *o, Before: b.value, After: a.value, Low: a.low, High: a.high, Width: a.width,
			Met: a.keeps, Broken: a.breaks, WasMet: b.keeps, WasBroken: b.breaks,
		}
		c.r.Objectives = append(c.r.Objectives, h)
		c.outcomes = append(c.outcomes, objectiveOutcome{transition: transitionOf(&h), name: limitOf(&h), moved: c.moved(o, &b, &a)})
	}
}

func transitionOf(h *ObjectiveResult) transition {
	switch {
	case h.Met && h.WasBroken:
		return won
	case h.Met:
		return stayed
	case h.Broken && h.WasMet:
		return lost
	case h.Broken && h.WasBroken:
		return still
	case h.Broken:
		return missed
	case h.WasBroken:
		return nearer
	}
	return uncertain
}

// standing is one side's value of an objective, and on which side of its limit it certainly is.
// The value is absent with too few observations; guess is then the value of those.
type standing struct {
	value, low, high stat.Opt
	guess            stat.Opt
	width            float64 // of the histogram bucket of value, 0 if it comes from none
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
			low, high = m.exact[side].bounds(off)
			s.width = m.exact[side].bucket.Width()
		}
	case m.hist != nil && observed(&m.exact[side].all) > 0:
		q, t, all := &m.exact[side], &c.tails[objective][side], c.side[side]
		s.guess = q.all.Quantile(q.q)
		low, high = q.boundsFromFew(all.effectiveShare(t.near, c.error), all.effectiveShare(t.all, c.error), c.error)
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

// moved returns the difference of the latency of an objective, smaller is better. Its error is
// the distance to the end nearer to zero, which decides; the other end may lie beyond the last
// bucket. With too few observations the difference is the gap between both sides' intervals.
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
