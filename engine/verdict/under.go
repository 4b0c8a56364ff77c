package verdict

import (
	"math"
	"strings"
)

// withObjectives returns the call on the goal, subject to the objectives, each of which is certainly on one
// side of its limit or uncertain:
//
//   - If one was met and is now missed, or was missed and is now missed by more, the call is Worse,
//     even if another one is now met: limits are not weighed against each other. The user may
//     still keep the change.
//   - Else, if one is newly met, or missed by less, the call is Better.
//   - Else the call on the goal decides, and mentions objectives that are still missed.
//   - A change that is Better is not kept if an objective that may have been met is now uncertain or
//     missed.
func (c *decision) withObjectives(goal conclusion) conclusion {
	for i := range c.outcomes {
		f := &c.outcomes[i]
		if f.transition != still || !f.moved.known {
			continue
		}
		by := ", but by less"
		if f.moved.mid < 0 {
			by = ", and by more"
		}
		f.call = c.judged(&f.moved, f.text()+by)
	}
	if v, ok := c.objection(goal); ok {
		return v
	}
	v := c.withoutObjection(goal)
	if v.direction != Better {
		return v
	}
	if what := c.objectivesText(missed, uncertain); what != "" {
		v.reason += ", but " + what
	}
	switch {
	case c.objectivesText(missed) != "":
		v.direction, v.settled, v.cause, v.need = Plateau, true, ByFlag, ""
	case c.objectivesText(uncertain) != "":
		v.direction, v.settled, v.cause, v.need = Inconclusive, false, ByNoise, tellable
	}
	return v
}

// tellable is what an uncertain objective requires.
const tellable = "more requests, or an objective that the histogram's buckets can resolve"

// objection returns the call if an objective speaks against the change; ok is false otherwise. A loss
// that may have another cause leaves the verdict open.
func (c *decision) objection(goal conclusion) (v conclusion, ok bool) {
	v, open := c.decidedBy(lost, Worse)
	switch {
	case v.direction == Worse:
		v.reason = c.objectivesText(lost, still, won, nearer, missed, uncertain)
		if c.objectivesText(lost) == "" {
			v.reason, v.effect = v.reason+"; "+goal.reason, goal.effect
		}
		return v, true
	case open == nil:
		return v, false
	case goal.direction == Worse:
		goal.reason += "; " + c.objectivesText(lost, still)
		return goal, true
	}
	return *open, true
}

// decidedBy returns the first call in a direction: on an objective that crossed its limit that way, or
// that is still missed and moved. Otherwise open is the first call that such an objective leaves
// open, or nil.
func (c *decision) decidedBy(crossing transition, direction Direction) (v conclusion, open *conclusion) {
	for i := range c.outcomes {
		f := &c.outcomes[i]
		var one conclusion
		switch {
		case f.transition == crossing:
			one = c.crossed(f, direction)
		case f.transition == still && c.matters(&f.moved) && (direction == Better || f.moved.mid < 0):
			one = f.call
		default:
			continue
		}
		if one.direction == direction {
			return one, nil
		}
		if open == nil {
			open = &one
		}
	}
	return v, open
}

// withoutObjection returns the call if no objective speaks against the change: on the objectives that speak for
// it, else on the goal.
func (c *decision) withoutObjection(goal conclusion) conclusion {
	v, open := c.decidedBy(won, Better)
	if v.direction == Better {
		v.reason = c.objectivesText(won, still, nearer)
		if c.objectivesText(won) == "" {
			v.reason, v.effect = v.reason+"; "+goal.reason, goal.effect
		}
		return v
	}
	if open != nil && goal.direction != Better {
		return *open
	}
	if what := c.objectivesText(won, still, nearer); what != "" {
		goal.reason += "; " + what
	}
	if c.mayBeOverruled(goal.direction) {
		goal.settled, goal.need = false, tellable
	}
	return goal
}

// mayBeOverruled reports whether further measuring may overrule the call on the goal: an objective may be
// missed by more or, if the goal gains nothing, may be newly met.
func (c *decision) mayBeOverruled(goal Direction) bool {
	for i := range c.outcomes {
		switch f := &c.outcomes[i]; {
		case goal != Better && f.transition == nearer:
			return true
		case goal == Better && f.transition == still && f.moved.known && f.moved.mid <= -c.precision && !f.call.settled:
			return true
		}
	}
	return false
}

// matters reports whether a latency differs beyond noise and by at least the precision.
func (c *decision) matters(e *effect) bool {
	return e.known && math.Abs(e.mid) >= c.precision && (e.low() > 0 || e.high() < 0)
}

// crossed returns the call on an objective that crossed its limit: its latency must differ by more than
// restarts, traffic and neighbours explain.
func (c *decision) crossed(f *objectiveOutcome, direction Direction) conclusion {
	v := conclusion{direction: direction, cause: ByFlag, settled: true, reason: f.text()}
	e := &f.moved
	switch bias := max(c.high, -c.low); {
	case c.loadMoved, e.known && bias > 0 && math.Abs(e.mid)-e.halfWidth() <= bias:
		v.settled = false
		return c.confounded(v, "may be the reason")
	case !e.known, direction == Better && e.low() <= 0, direction == Worse && e.high() >= 0:
		v.direction, v.cause, v.settled = Inconclusive, ByNoise, false
		v.reason += "; restarts or noise may be the reason"
		v.need = "more starts of both configurations"
	case c.shorterThanBurst(e):
		return c.transient(v, e)
	}
	return v
}

// objectivesText returns the results for the objectives in words, in the order of turns; "" if there are none.
func (c *decision) objectivesText(turns ...transition) string {
	var list []string
	for _, t := range turns {
		for i := range c.outcomes {
			if f := &c.outcomes[i]; f.transition == t {
				list = append(list, f.text())
			}
		}
	}
	return strings.Join(list, "; ")
}

// text returns the result for an objective in words.
func (f *objectiveOutcome) text() string {
	switch f.transition {
	case lost:
		return f.name + " was met before, and is missed now"
	case won:
		return f.name + " is met now, and was missed before"
	case nearer:
		return f.name + " was missed before, and whether it is met now is unresolved"
	case missed:
		return f.name + " is missed"
	case uncertain:
		return "whether " + f.name + " is met is unresolved"
	case still:
		text := f.name + " is missed before and after"
		switch f.call.direction {
		case Better:
			text += ", but by less"
		case Worse:
			text += ", and by more"
		}
		return text
	}
	return f.name + " is kept"
}
