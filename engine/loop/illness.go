package loop

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// exitUnhealthy is the exit code of a run that ends with an ill server.
const exitUnhealthy = 6

// examine updates the condition of the server at the end of a window. While the server is ill,
// windows are not passed to the phases: nothing is measured, judged, recommended or applied.
func (c *connection) examine(w *engine.Window) {
	if w.Polls == 0 {
		return // whether the server is down shows in the samples
	}
	was, is := c.current.condition, engine.ConditionOf(w, &c.server.facts)
	if was.State == "" {
		c.current.conditionSince = max(0, c.now-is.Lasted)
		c.current.illSince = c.current.conditionSince
	} else if !was.Ill() {
		c.current.illSince = c.now // it was in doubt until now
	}
	switch {
	case is.Ill() && (!was.Ill() || is.State != was.State):
		c.auto.cancelPending()
		text := is.String()
		if then := c.auto.unlessRecovers(); then != "" {
			text += "; " + then + " unless it recovers"
		}
		c.addMark(MarkDown, string(is.State))
		c.emit(LevelBad, Event{Kind: EventUnhealthy, Iteration: c.iteration(), Condition: is, Text: text})
	case was.Ill() && !is.Ill():
		c.reportRecovery("the server works again")
		c.current.startPhase() // what was measured until now is not continued
		c.baseline.startRenewal()
	}
	if c.current.condition = is; was.Ill() && !is.Ill() {
		c.auto.proceed() // what was about to be done was canceled
	}
}

// reportRecovery reports the end of an illness; text says what ended it.
func (c *connection) reportRecovery(text string) {
	was, took := c.current.condition, c.now-c.current.illSince
	if !was.Ill() {
		return
	}
	c.addMark(MarkUp, "recovered")
	c.emit(LevelGood, Event{Kind: EventRecovered, Iteration: c.iteration(), Condition: was, Took: took,
		Text: text + ": it was " + was.State.Word() + " for " + figure.Elapsed(took)})
}

// condition returns what is wrong with the server now, the zero condition if nothing is, or if it
// does not answer: a restart in progress is not an illness.
func (l *Loop) condition() engine.Condition {
	switch c := l.current.condition; {
	case l.phase == PhaseAttach, l.phase == PhaseApplying, l.phase == PhaseDown, !c.Ill():
		return engine.Condition{}
	default:
		return c
	}
}

// silence returns a remark on a server that may be hung, or "".
func (l *Loop) silence() string {
	n := len(l.current.windows)
	if n == 0 || l.phase == PhaseAttach || l.phase == PhaseApplying || l.phase == PhaseDown || l.phase == PhaseDone {
		return ""
	}
	return engine.Silence(&l.current.windows[n-1], &l.server.facts)
}

// recentWindows returns the windows that show the server as it is: those of one measurement, or
// those since the engine stopped stepping.
func (l *incarnation) recentWindows(length time.Duration) []engine.Window {
	n := len(l.windows)
	if n == 0 || !hangs(&l.windows[n-1]) {
		return latestWindows(l.windows, length)
	}
	first := n - 1
	for first > 0 && l.windows[first-1].Evaluable && !l.windows[first-1].Progress {
		first--
	}
	return l.windows[first:]
}

// remedy is what an automatic run does about an ill server that does not recover.
type remedy struct {
	after time.Duration // since the illness began
	text  string        // what it does, as a clause
	do    func(why string)
}

// canRevertTrial reports whether a change on trial is in place that rooftop can revert.
func (p *autopilot) canRevertTrial() bool {
	return p.server.CanApply && p.changeInPlace() && p.trials.open
}

// remedy returns the remedy of the present state.
func (p *autopilot) remedy() remedy {
	switch {
	case p.canRevertTrial():
		return remedy{autoHang, "the change is reverted", p.changeFailed}
	case p.server.CanApply && p.changeInPlace():
		return remedy{autoHang, "the change is reverted", func(why string) {
			p.writeEntry(LevelBad, EventError, why+": reverting to "+p.keptName())
			p.trials.revert()
		}}
	case p.server.CanApply && len(p.previous) > 0 && p.budget.restartLeft():
		return remedy{autoDown, "the latest kept change is reverted", func(why string) {
			p.revertToPrevious("after the change was kept " + why)
		}}
	}
	return remedy{autoDown, "the run ends", func(why string) { p.ending.finish(exitUnhealthy, why) }}
}

// unlessRecovers returns what the run does, and when, unless an ill server recovers; "" if it waits.
func (p *autopilot) unlessRecovers() string {
	if !p.plan.Auto || p.held || p.phase == PhaseReverting {
		return ""
	}
	r := p.remedy()
	return r.text + " after " + figure.Elapsed(r.after)
}

// checkIll does for a server that answers but is ill what checkDown does for one that does not
// answer. It reports whether the server is ill. A change on trial gets no benefit of the doubt.
func (p *autopilot) checkIll() bool {
	c := p.current.condition
	if p.phase == PhaseDown || p.phase == PhaseApplying || p.phase == PhaseReverting || !c.Ill() && !(c.State != "" && p.canRevertTrial()) {
		return false
	}
	since := p.current.illSince
	if p.canRevertTrial() {
		since = p.current.conditionSince
	}
	if r := p.remedy(); p.now-since > r.after {
		r.do(c.String())
	}
	return true
}
