package verdict

import (
	"fmt"
	"math"
)

// call is a direction with what there is to say of it.
type call struct {
	direction Direction
	cause     Cause
	settled   bool
	need      string
	reason    string
}

// decide draws the conclusion.
func (c *comparison) decide() {
	r := &c.r
	e := &c.effects
	if e.known {
		r.Effect = interval(e.low(), e.mid, e.high())
		r.Known = true
		if e.mid < 0 {
			r.Bias = -math.Expm1(c.explained(-1))
		} else {
			r.Bias = math.Expm1(c.explained(1))
		}
		r.LowerBound = c.p.Goal != Latency && e.mid > 0 && c.side[0].limit == ByCapacity && c.side[1].limit == ByDemand
	}
	v := c.overall()
	if v.direction == Inconclusive && !v.settled && c.p.Last {
		v.settled = true
	}
	r.Direction, r.Cause, r.Settled, r.Need, r.Reason = v.direction, v.cause, v.settled || c.p.Last, v.need, v.reason
}

// explained is what traffic and neighbours explain of an effect at most, in the
// direction of its sign, as a logarithm of that sign.
func (c *comparison) explained(sign float64) float64 {
	if sign < 0 {
		return c.low + c.hosts.low
	}
	return c.high + c.hosts.high
}

// overall is the goal's call under the objectives.
func (c *comparison) overall() call {
	if v, done := c.unusable(); done {
		return v
	}
	goal := c.judged(&c.effects, c.say(&c.effects))
	if len(c.r.Objectives) > 0 {
		return c.under(goal)
	}
	if goal.direction == Better && c.p.Goal == Throughput {
		c.veto(&goal)
	}
	return goal
}

// unusable says why nothing can be judged, if so.
func (c *comparison) unusable() (call, bool) {
	v := call{direction: Inconclusive, cause: ByNoise, need: "more of the trial"}
	for i, s := range c.side {
		when := [...]string{"before", "after"}[i]
		in := stateOf(s)
		switch {
		case len(s.lives) == 0:
			v.reason = "nothing was measured " + when
			return v, true
		case in == empty:
			v.direction, v.cause, v.need = NotComparable, ByTraffic, "requests"
			v.reason = "no requests were in " + when
			return v, true
		}
	}
	if c.effects.known {
		return v, false
	}
	v.reason = c.noun() + " is not known on both sides"
	if c.p.Goal == Cost && c.side[0].cost.OK != c.side[1].cost.OK {
		v.reason = "the price of one side is not known"
	}
	v.need = "what it is measured by"
	return v, true
}

type state int

const (
	unread state = iota
	empty
	loaded
)

// stateOf says whether requests were in at all.
func stateOf(s *sample) state {
	if len(s.columns) == 0 {
		return unread
	}
	in := s.columns[s.load.inside].value
	made := s.columns[s.load.arrivals].value
	switch {
	case !in.OK:
		return unread
	case in.V <= 0 && made.V <= 0:
		return empty
	}
	return loaded
}

// judged is the call on one effect by itself; what says what it is of.
func (c *comparison) judged(e *effect, what string) call {
	low, high := e.low(), e.high()
	v := call{reason: what}
	up, down := c.explained(1), c.explained(-1)
	switch {
	case low >= -c.precision && high <= c.precision:
		if up > c.precision || down < -c.precision {
			return c.swayed(v, "it may hide a difference")
		}
		v.direction, v.settled, v.cause = Plateau, true, ByNoise
		v.reason += ", within " + unsigned(c.p.Precision)
	case low > 0 && e.mid >= c.precision:
		if low <= up {
			return c.swayed(v, "that may be all")
		}
		if c.short(e) || !c.lasting(e) {
			return c.passing(v, e)
		}
		v.direction, v.settled, v.cause = Better, true, ByFlag
		if c.r.LowerBound && e == &c.effects {
			v.reason += ", and no queue is left: it may be more"
		}
	case high < 0 && e.mid <= -c.precision:
		if high >= down {
			return c.swayed(v, "that may be all")
		}
		if c.short(e) || !c.lasting(e) {
			return c.passing(v, e)
		}
		v.direction, v.settled, v.cause = Worse, true, ByFlag
	default:
		return c.open(v, e)
	}
	return v
}

// passing is the call where the effect may be a burst of a neighbour: where only a
// part of the trial shows it, or a side lasted no longer than such a burst may.
func (c *comparison) passing(v call, e *effect) call {
	v.direction, v.cause, v.need = Inconclusive, ByNoise, "the effect to last"
	if c.hosts.bursts || c.hosts.busy {
		v.cause = ByHost
	}
	if !c.lasting(e) {
		v.reason += ", but only a part of the trial shows it"
		return v
	}
	when := [...]string{"before", "after"}[c.slower(e)]
	// What was measured before the change grows no more.
	v.settled = c.slower(e) == 0 && math.Abs(e.mid) <= c.burst(e)
	v.need = fmt.Sprintf("at least %.0f s of the server %s the change", brief, when)
	v.reason += fmt.Sprintf(", but only %.0f s were measured %s: a neighbour's burst may have lasted as long", c.side[c.slower(e)].time, when)
	return v
}

// open is the call where the interval decides nothing.
func (c *comparison) open(v call, e *effect) call {
	v.direction, v.cause = Inconclusive, ByNoise
	if (c.hosts.bursts || c.hosts.busy) && e.measured >= e.restart {
		v.cause = ByHost
	}
	if (e.low() > 0 || e.high() < 0) && c.p.Last {
		v.direction, v.settled = Plateau, true
		v.reason += ", less than the " + unsigned(c.p.Precision) + " that matter"
		return v
	}
	// However long it is measured, the effect stays within what was seen so far,
	// and restarts differ by more.
	if e.restart > c.precision && math.Abs(e.mid)+e.measured < e.restart {
		v.settled = true
		v.need = "more starts of both"
		v.reason += "; starts of one configuration differ by as much"
		return v
	}
	v.need = "an interval narrower than ±" + unsigned(math.Expm1(e.half()))
	if e.half() > math.Ln2 {
		v.need = "a steadier load, or far more of it"
	}
	if e.restart > e.measured {
		v.need = "more starts of both"
	}
	v.reason += ", which noise may be"
	return v
}

// swayed is the call where traffic or a neighbour explains the effect.
func (c *comparison) swayed(v call, what string) call {
	traffic, hosts := max(c.high, -c.low), max(c.hosts.high, -c.hosts.low)
	if hosts > traffic {
		v.direction, v.cause, v.need = Inconclusive, ByHost, "a quiet host"
		if c.hosts.busy {
			v.reason += ", but the server's threads waited for a core for another share of the time: " + what
		} else {
			v.reason += ", but in bursts, as of a neighbour: " + what
		}
		return v
	}
	for i, when := range [...]string{"before", "after"} {
		if c.filling[i] {
			v.direction, v.cause, v.need = NotComparable, ByTraffic, "a full prefix cache"
			v.reason += ", but the prefix cache still filled " + when + " the change: " + what
			return v
		}
	}
	v.direction, v.cause, v.need = NotComparable, ByTraffic, "the load of before"
	if name := c.mostMoved(); name != "" {
		v.reason += ", but the load differs (" + name + "): " + what
	} else {
		v.reason += ", but the load differs: " + what
	}
	return v
}

// latencyVeto is the change of the TTFT p99 from which a gain of throughput is
// none (the product documentation of PROFILE, which calls it provisional).
const latencyVeto = 0.20

// veto makes a gain none where the time to first token grew too much, beyond noise
// and the width of its buckets. Where too few requests were seen for its p99, the
// largest quantile that is known stands for it, and the mean, which what lies beyond
// that quantile moves.
func (c *comparison) veto(goal *call) {
	grew := func(m *Measure) bool { return m.Known && m.Moved && m.Change.Mid > latencyVeto }
	var most, mean Measure
	for i := range c.meters {
		m := &c.meters[i]
		if m.metric != MetricTTFT {
			continue
		}
		switch one := c.compared(m); {
		case m.hist == nil:
			mean = one
		case one.Known && one.Quantile > most.Quantile:
			most = one
		}
	}
	known := most.Quantile >= vetoed
	if !grew(&most) {
		if known || !grew(&mean) {
			return
		}
		most = mean
	}
	goal.direction = Plateau
	goal.reason += ", but the " + ordinal(most.Quantile) + " of the time to first token is " + c.longer(&most)
	if known {
		return
	}
	b, a := c.both(c.meter(MetricTTFT, vetoed))
	if b.value.OK && a.value.OK {
		goal.reason += "; its " + ordinal(vetoed) + " lies beyond the last bucket"
		return
	}
	goal.reason += "; its " + ordinal(vetoed) + " is not known from so few requests"
	if b.value.OK {
		goal.settled, goal.need = false, "more requests, for the "+ordinal(vetoed)+" of the time to first token"
	}
}

// vetoed is the quantile that the veto is by.
const vetoed = 0.99
