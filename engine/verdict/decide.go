package verdict

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// decision derives the conclusion of a comparison.
type decision struct{ *comparison }

// conclusion is a direction with its reason.
type conclusion struct {
	direction Direction
	cause     Cause
	settled   bool
	need      string
	reason    string
	effect    bool // reason states the effect on the goal
}

// decide sets the conclusion.
func (c *decision) decide() {
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
	r.Direction, r.Cause, r.Settled, r.Need, r.Reason, r.NamesEffect = v.direction, v.cause, v.settled || c.p.Last, v.need, v.reason, v.effect
}

// explained returns how much of an effect traffic and neighbours explain at most, as a
// logarithm in the direction of sign.
func (c *decision) explained(sign float64) float64 {
	if sign < 0 {
		return c.low + c.hosts.low
	}
	return c.high + c.hosts.high
}

// overall returns the call on the goal, subject to the objectives.
func (c *decision) overall() conclusion {
	if v, done := c.unusable(); done {
		return v
	}
	goal := c.judged(&c.effects, c.effectText(&c.effects))
	if len(c.r.Objectives) > 0 {
		return c.withObjectives(goal)
	}
	if goal.direction == Better && c.p.Goal == Throughput {
		c.veto(&goal)
	}
	return goal
}

// unusable returns why nothing can be judged; ok is false if the sides can be.
func (c *decision) unusable() (conclusion, bool) {
	v := conclusion{direction: Inconclusive, cause: ByNoise, need: "a longer measurement"}
	for i, s := range c.side {
		when := [...]string{"before", "after"}[i]
		switch {
		case len(s.starts) == 0 && c.p.Paired:
			v.reason = "nothing was measured with and without the change at the same time"
			return v, true
		case len(s.starts) == 0:
			v.reason = "nothing was measured " + when
			return v, true
		case s.isEmpty():
			v.direction, v.cause, v.need = NotComparable, ByTraffic, "requests"
			v.reason = "there were no requests " + when
			return v, true
		}
	}
	if c.effects.known {
		return v, false
	}
	v.reason = c.noun() + " was not measured on both sides"
	if c.p.Goal == Cost && c.side[0].cost.OK != c.side[1].cost.OK {
		v.reason = "the cost of one side is not known"
	}
	v.need = "the metrics it is measured by"
	return v, true
}

// isEmpty reports whether the server had no requests.
func (s *sample) isEmpty() bool {
	if len(s.columns) == 0 {
		return false
	}
	in, made := s.columns[s.load.inside].value, s.columns[s.load.arrivals].value
	return in.OK && in.V <= 0 && made.V <= 0
}

// judged returns the call on one effect by itself. what names the effect.
func (c *decision) judged(e *effect, what string) conclusion {
	low, high := e.low(), e.high()
	v := conclusion{reason: what, effect: e == &c.effects}
	up, down := c.explained(1), c.explained(-1)
	switch {
	case low >= -c.precision && high <= c.precision:
		if up > c.precision || down < -c.precision {
			return c.confounded(v, "may hide a difference")
		}
		v.direction, v.settled, v.cause = Plateau, true, ByNoise
		v.reason += ", within " + figure.PercentSign(c.p.Precision)
	case low > 0 && e.mid >= c.precision:
		if low <= up {
			return c.confounded(v, "may explain all of it")
		}
		if c.shorterThanBurst(e) || !c.isLasting(e) {
			return c.transient(v, e)
		}
		v.direction, v.settled, v.cause = Better, true, ByFlag
		if c.r.LowerBound && e == &c.effects {
			v.reason += ", and the queue is now empty, so the true gain may be higher"
		}
	case high < 0 && e.mid <= -c.precision:
		if high >= down {
			return c.confounded(v, "may explain all of it")
		}
		if c.shorterThanBurst(e) || !c.isLasting(e) {
			return c.transient(v, e)
		}
		v.direction, v.settled, v.cause = Worse, true, ByFlag
	default:
		return c.undecided(v, e)
	}
	return v
}

// transient returns the call on an effect that may be a neighbour's burst: only a part of the
// trial shows it, or a side was measured for no longer than such a burst may last.
func (c *decision) transient(v conclusion, e *effect) conclusion {
	v.direction, v.cause, v.need = Inconclusive, ByNoise, "the effect to last"
	if c.hosts.bursts || c.hosts.busy {
		v.cause = ByHost
	}
	if !c.isLasting(e) {
		v.reason += ", but only a part of the trial shows it"
		return v
	}
	when, change := " "+[...]string{"before", "after"}[c.slower(e)], " the change"
	if c.p.Paired {
		when, change = "", ""
	}
	// The side before the change gets no further measurements.
	v.settled = !c.p.Paired && c.slower(e) == 0 && math.Abs(e.mid) <= c.burst(e)
	v.need = fmt.Sprintf("at least %s of measurement%s%s", figure.Value(LongestBurst.Seconds(), "s"), when, change)
	v.reason += fmt.Sprintf(", but only %s were measured%s: a burst of another workload may last as long", figure.Value(c.side[c.slower(e)].lasted, "s"), when)
	return v
}

// standardError is one standard error as a share of half an interval, about.
const standardError = 0.5

// undecided returns the call if the interval allows no decision.
func (c *decision) undecided(v conclusion, e *effect) conclusion {
	v.direction, v.cause = Inconclusive, ByNoise
	if (c.hosts.bursts || c.hosts.busy) && e.measured >= e.restart {
		v.cause = ByHost
	}
	if (e.low() > 0 || e.high() < 0) && c.p.Last {
		v.direction, v.settled = Plateau, true
		v.reason += ", less than the " + figure.PercentSign(c.p.Precision) + " that matters"
		return v
	}
	// Measuring this start for longer hardly helps, and another start does: the effect would have to move by more
	// than its own error to lie beyond what restarts differ by. A server beside siblings is started only once.
	within := e.measured
	if !c.p.Paired {
		within *= standardError
	}
	v.settled = e.restart > c.precision && math.Abs(e.mid)+within < e.restart
	if v.cause != ByHost && c.loadDiffers(e) {
		v.cause, v.need = ByTraffic, "the same load as before"
		v.reason += c.otherLoad("may hide a difference")
		return v
	}
	if v.settled {
		v.need = "more starts of both configurations"
		v.reason += "; restarts of one configuration differ by as much"
		return v
	}
	v.need = "an interval narrower than ±" + figure.PercentSign(math.Expm1(e.halfWidth()))
	if e.halfWidth() > math.Ln2 {
		v.need = "a steadier load, or a much longer measurement"
	}
	if e.restart > e.measured {
		v.need = "more starts of both configurations"
	}
	v.reason += ", which may be noise"
	return v
}

// loadDiffers reports whether the traffic explains more than noise does, and more than a neighbour.
func (c *decision) loadDiffers(e *effect) bool {
	return max(c.high, -c.low) > max(c.precision, e.halfWidth(), c.hosts.high, -c.hosts.low)
}

// otherLoad says that the load differs, and what follows.
func (c *decision) otherLoad(what string) string {
	if name := c.mostMoved(); name != "" {
		return ", but the load differs (" + name + "), which " + what
	}
	return ", but the load differs, which " + what
}

// confounded returns the call if traffic or a neighbour explains the effect.
func (c *decision) confounded(v conclusion, what string) conclusion {
	traffic, hosts := max(c.high, -c.low), max(c.hosts.high, -c.hosts.low)
	if hosts > traffic {
		v.direction, v.cause, v.need = Inconclusive, ByHost, "a quiet host"
		if c.hosts.busy {
			v.reason += ", but the server's threads waited for a CPU core for a different share of the time, which " + what
		} else {
			v.reason += ", but in bursts, as another workload on the host causes them, which " + what
		}
		return v
	}
	for i, when := range [...]string{"before", "after"} {
		if c.filling[i] {
			v.direction, v.cause, v.need = NotComparable, ByTraffic, "a full prefix cache"
			v.reason += ", but the prefix cache was still filling " + when + " the change, which " + what
			return v
		}
	}
	v.direction, v.cause, v.need = NotComparable, ByTraffic, "the same load as before"
	v.reason += c.otherLoad(what)
	return v
}

// latencyVeto is the increase of the TTFT p99 that cancels a gain of throughput (the
// documented threshold of PROFILE, which calls it provisional).
const latencyVeto = 0.20

// veto cancels a gain if the time to first token grew too much, beyond noise and the width of
// its buckets. With too few requests for its p99, the largest known quantile stands in, and
// the mean, which observations beyond that quantile affect.
func (c *decision) veto(goal *conclusion) {
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
	goal.reason += ", but the " + quantileName(most.Quantile) + " of the time to first token is " + c.longer(&most)
	if known {
		return
	}
	b, a := c.estimatesOf(c.meter(MetricTTFT, vetoed))
	if b.value.OK && a.value.OK {
		goal.reason += "; its " + quantileName(vetoed) + " lies beyond the last bucket"
		return
	}
	goal.reason += "; its " + quantileName(vetoed) + " is not known from so few requests"
	if b.value.OK {
		goal.settled, goal.need = false, "more requests, for the "+quantileName(vetoed)+" of the time to first token"
	}
}

// vetoed is the quantile that the veto applies to.
const vetoed = 0.99
