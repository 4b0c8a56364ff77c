package verdict

import (
	"math"
	"strings"
)

// under is the goal's call with the objectives that stand above it, each beyond
// doubt on one side of its limit or doubtful:
//
//   - One that was kept and is broken, or that was missed and is missed by more, is
//     Worse, also where another that was missed is kept now: limits are not weighed
//     against each other. Who reads that may still keep the change by hand.
//   - Else one that is kept now and was not, or is missed by less, is Better.
//   - Else the goal's call decides. An objective that is missed as before is said.
//   - What is Better is not kept where it is doubtful whether an objective is kept
//     that may have been, nor where such a one is broken.
func (c *comparison) under(goal call) call {
	for i := range c.fates {
		f := &c.fates[i]
		if f.turn != still || !f.moved.known {
			continue
		}
		by := ", but is missed by less"
		if f.moved.mid < 0 {
			by = ", and is missed by more"
		}
		f.call = c.judged(&f.moved, f.said()+by)
	}
	if v, ok := c.against(goal); ok {
		return v
	}
	v := c.forward(goal)
	if v.direction != Better {
		return v
	}
	if what := c.words(amiss, doubted); what != "" {
		v.reason += ", but " + what
	}
	switch {
	case c.words(amiss) != "":
		v.direction, v.settled, v.cause, v.need = Plateau, true, ByFlag, ""
	case c.words(doubted) != "":
		v.direction, v.settled, v.cause, v.need = Inconclusive, false, ByNoise, tellable
	}
	return v
}

// tellable is what a doubtful objective waits for.
const tellable = "more requests, or an objective that the histogram's buckets can tell"

// against is the call where an objective speaks against the change; ok is false
// where none does. One whose loss may have another cause leaves it open.
func (c *comparison) against(goal call) (v call, ok bool) {
	var open *call
	for i := range c.fates {
		f := &c.fates[i]
		var one call
		switch {
		case f.turn == lost:
			one = c.crossed(f, Worse)
		case f.turn == still && c.matters(&f.moved) && f.moved.mid < 0:
			one = f.call
		default:
			continue
		}
		if one.direction == Worse {
			one.reason = c.words(lost, still, won, nearer, amiss, doubted)
			if c.words(lost) == "" {
				one.reason += "; " + goal.reason
			}
			return one, true
		}
		if open == nil {
			open = &one
		}
	}
	switch {
	case open == nil:
		return v, false
	case goal.direction == Worse:
		goal.reason += "; " + c.words(lost, still)
		return goal, true
	}
	return *open, true
}

// forward is the call where no objective speaks against the change: on those that
// speak for it, else on the goal.
func (c *comparison) forward(goal call) call {
	var open *call
	for i := range c.fates {
		f := &c.fates[i]
		var v call
		switch {
		case f.turn == won:
			v = c.crossed(f, Better)
		case f.turn == still && c.matters(&f.moved):
			v = f.call
		default:
			continue
		}
		if v.direction == Better {
			v.reason = c.words(won, still, nearer)
			if c.words(won) == "" {
				v.reason += "; " + goal.reason
			}
			return v
		}
		if open == nil {
			open = &v
		}
	}
	if open != nil && goal.direction != Better {
		return *open
	}
	if what := c.words(won, still, nearer); what != "" {
		goal.reason += "; " + what
	}
	if c.pending(goal.direction) {
		goal.settled, goal.need = false, tellable
	}
	return goal
}

// pending says that measuring on may overrule the goal's call: one that is missed by
// more as far as can be told, or, where the goal gains nothing, one that may be kept
// now and was not.
func (c *comparison) pending(goal Direction) bool {
	for i := range c.fates {
		switch f := &c.fates[i]; {
		case goal != Better && f.turn == nearer:
			return true
		case goal == Better && f.turn == still && f.moved.known && f.moved.mid <= -c.precision && !f.call.settled:
			return true
		}
	}
	return false
}

// matters says that a latency differs beyond noise, and by as much as matters.
func (c *comparison) matters(e *effect) bool {
	return e.known && math.Abs(e.mid) >= c.precision && (e.low() > 0 || e.high() < 0)
}

// crossed is the call on an objective that is on the other side of its limit now:
// its latency has to differ by more than restarts, traffic and neighbours explain.
func (c *comparison) crossed(f *fate, direction Direction) call {
	v := call{direction: direction, cause: ByFlag, settled: true, reason: f.said()}
	e := &f.moved
	switch bias := max(c.high, -c.low); {
	case c.loadMoved, e.known && bias > 0 && math.Abs(e.mid)-e.half() <= bias:
		v.settled = false
		return c.swayed(v, "that may be why")
	case !e.known, direction == Better && e.low() <= 0, direction == Worse && e.high() >= 0:
		v.direction, v.cause, v.settled = Inconclusive, ByNoise, false
		v.reason += "; restarts or noise may be why"
		v.need = "more starts of both"
	case c.short(e):
		return c.passing(v, e)
	}
	return v
}

// words says what became of the objectives, those of each turn in its place; "" of
// none.
func (c *comparison) words(turns ...turn) string {
	var list []string
	for _, t := range turns {
		for i := range c.fates {
			if f := &c.fates[i]; f.turn == t {
				list = append(list, f.said())
			}
		}
	}
	return strings.Join(list, "; ")
}

// said is what became of an objective, in words.
func (f *fate) said() string {
	switch f.turn {
	case lost:
		return f.name + " was kept, and is not"
	case won:
		return f.name + " is kept now, and was not"
	case nearer:
		return f.name + " was not kept, and it is not clear whether it is now"
	case amiss:
		return f.name + " is not kept"
	case doubted:
		return "it is not clear whether " + f.name + " is kept"
	case still:
		text := f.name + " is not kept, before nor after"
		switch f.call.direction {
		case Better:
			text += ", but is missed by less"
		case Worse:
			text += ", and is missed by more"
		}
		return text
	}
	return f.name + " is kept"
}
