package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// effect fills in the difference on the goal, with its interval.
func (c *comparison) effect() {
	columns, sign, ok := c.goal()
	if !ok {
		return
	}
	variance, dof := c.errors(columns)
	b, a := c.side[0].estimates[columns[0]].value.V, c.side[1].estimates[columns[1]].value.V
	e := &c.effects
	e.mid = sign * math.Log(a/b)
	if c.p.Goal == Cost && c.side[0].cost.OK {
		e.mid -= math.Log(c.side[1].cost.V / c.side[0].cost.V)
	}
	e.se, e.dof, e.known = math.Sqrt(variance), dof, true
	e.measured = e.se * stat.StudentQuantile(1-c.error/2, dof)
	e.restart = c.restart
	c.r.Known = true
	c.r.Measured = e.measured
}

// half is half the interval's width: scatter and restarts are independent.
func (e *effect) half() float64 { return math.Hypot(e.measured, e.restart) }

// goal returns the column of each side that the goal is read from, and whether
// more of it is better. Of the time of a request there may be no histogram: then
// its first token and as many further ones as an answer has stand for it.
func (c *comparison) goal() (columns [2]int, sign float64, ok bool) {
	usable := func(m *meter) bool {
		b, a := c.both(m)
		return b.value.OK && a.value.OK && b.value.V > 0 && a.value.V > 0
	}
	find := func(metric Metric) *meter {
		for i := range c.meters {
			if m := &c.meters[i]; m.metric == metric && m.hist == nil {
				return m
			}
		}
		return nil
	}
	switch c.p.Goal {
	case Latency:
		for _, metric := range [...]Metric{MetricE2E, MetricITL} {
			if m := find(metric); usable(m) {
				return m.at, -1, true
			}
		}
	case Cost:
		before, after := c.side[0].cost, c.side[1].cost
		if before.OK != after.OK || before.OK && (before.V <= 0 || after.V <= 0) {
			return columns, 1, false
		}
		fallthrough
	default:
		if m := find(MetricTokens); usable(m) {
			return m.at, 1, true
		}
	}
	return columns, 1, false
}

// errors returns the variance of the difference on the goal and its degrees of
// freedom. Few slices show too little of how they depend on each other, and a
// short trial may fall between two bursts that a longer one shows. A life's
// variance is therefore the largest of the bootstrap's, of that of an
// autoregression, and of what both sides show together for its length. A life that
// still drifts adds the variance of a mean that lies anywhere on its course.
func (c *comparison) errors(columns [2]int) (variance, dof float64) {
	type part struct{ own, weight, time, dof, course float64 }
	var parts []part
	pool, worth := 0.0, 0.0
	for i, s := range c.side {
		for j := range s.lives {
			l := &s.lives[j]
			p := part{weight: l.weight, time: l.time, dof: s.dofs[j], course: l.steady.Drift * l.steady.Drift / 12}
			p.own = max(s.parts[j][columns[i]], autoregressive(s.columns[columns[i]].influence[j])) / (l.weight * l.weight)
			pool += p.dof * p.own * p.time
			worth += p.dof
			parts = append(parts, p)
		}
	}
	if worth == 0 {
		return 1, 1
	}
	pool /= worth
	squares := 0.0
	for _, p := range parts {
		v, d := p.own, p.dof
		if shared := pool / p.time; shared > v {
			v, d = shared, worth
		}
		v = p.weight * p.weight * (v + p.course)
		variance += v
		squares += v * v / d
	}
	if squares <= 0 {
		return variance, 1
	}
	return variance, variance * variance / squares
}

// autoregressive is the variance of a sum of values that depend on each other as
// an autoregression of the first order.
func autoregressive(influence []float64) float64 {
	return float64(len(influence)) * variance(influence) * inflation(influence)
}
