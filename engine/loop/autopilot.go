package loop

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// autopilot decides the next action of an automatic run.
type autopilot struct {
	*shared
	conn     *connection
	baseline *baselines
	trials   *trials
	applying *applying
	canaries *canaries
	advisor  *advisor
	budget   *budget
	ending   *ending

	held          bool // paused by CommandHold
	pendingAction *pendingAction
	wakeAt        time.Duration // time of the next decision; 0 waits for an input
	waitingFor    string        // what it waits for, in words, or ""
	until         time.Duration // latest end of the wait
	announced     string        // the last announced wait
	// exit is the end of the run that was requested, once the kept configuration runs. An end that the
	// autopilot decides is not stored: it follows from the judgement at that time.
	exit exit
	// previous are the configurations kept before the current one, oldest first, with their
	// measurements.
	previous   []previousConfiguration
	failure    string // why a change could not be made, the first such reason, or ""
	lostChange string // a sentence on a kept change that did not last, or ""
	stable     bool   // the kept configuration has run long enough
	upSince    time.Duration
	unasked    int   // restarts by others that changed nothing, since a measurement was complete
	cutShort   []int // iterations whose start a limit cut short
	idle       idlePeriod
	// uncertainSince is the time since which the baseline has been too uncertain for the
	// predicted gain; 0 if it is not.
	uncertainSince time.Duration
}

// idlePeriod is the time since which there was nothing to judge, and whether it was announced.
type idlePeriod struct {
	set, said bool
	since     time.Duration
}

// pendingAction is an action that is about to be performed.
type pendingAction struct {
	Pending
	key string
	do  func()
}

// announced returns the action as snapshots show it.
func (a *pendingAction) announced() Pending {
	if a == nil {
		return Pending{}
	}
	return a.Pending
}

// exit is a requested end of a run.
type exit struct {
	set    bool
	code   int
	reason string
}

// proceed takes the next step of an automatic run.
func (p *autopilot) proceed() {
	if !p.plan.Auto || p.phase != PhaseWaiting || p.current.condition.Ill() {
		return
	}
	p.waitingFor, p.wakeAt = "", 0
	r := p.advisor.advice
	switch {
	case p.exit.set:
		p.conclude(p.exit.reason, p.exit.code)
	case r == nil:
		p.conclude(p.ending.withoutAdvice())
	case !r.Changeable():
		p.conclude(noFlagHelps, exitDone)
	case p.limitReached() != "":
		p.conclude(p.limitReached(), exitOpen)
	case p.baselineTooUncertain(r):
		p.extendBaseline(r)
	case p.plan.DryRun:
		p.ending.finish(exitOpen, "dry run: nothing was changed; the first change would be "+engine.JoinChanges(r.Changes()))
	case !p.server.CanApply:
		p.cancelPending() // the pending action expected the user to make the change
	case !p.keptIsStable():
		p.watchKept()
	default:
		p.schedule(search.Key(r.Finding, &r.Fix), engine.JoinChanges(r.Changes()), p.trials.applyAdvice)
	}
}

// limitReached returns which limit of the run ends it before another change, or "".
func (p *autopilot) limitReached() string {
	switch {
	case p.plan.DryRun, !p.server.CanApply:
		return ""
	case p.plan.Rounds > 0 && p.budget.rounds >= p.plan.Rounds:
		return fmt.Sprintf("stopped after %s, the requested maximum", figure.Counted(p.plan.Rounds, "change"))
	}
	return p.budget.exhaustedLimit()
}

// baselineTooUncertain reports whether the baseline is too uncertain for the predicted gain or, if r
// is nil, to end with its conclusion, and records since when.
func (p *autopilot) baselineTooUncertain(r *engine.Recommendation) bool {
	switch why, _ := p.baseline.lacking(r); {
	case p.changeInPlace(), why == "":
		p.uncertainSince = 0
	case p.uncertainSince == 0:
		p.uncertainSince = max(1, p.now)
	}
	return p.uncertainSince > 0
}

// extendBaseline measures the kept configuration for longer. The run ends if the load does not
// last, or is never the same for long enough.
func (p *autopilot) extendBaseline(r *engine.Recommendation) {
	until := p.uncertainSince + overdue*p.plan.Longest
	if p.now >= until {
		reason := "the load ended before " + p.keptName() + " was measured for long enough"
		switch why := missingToJudge(latestWindows(p.baseline.current.windows, p.plan.Measure)); why {
		case "":
			reason = "the load changes too much from one stretch to the next: " + p.keptName() + " could not be measured for long enough"
		case waitsForLoad:
		default:
			reason = p.keptName() + " was not measured for long enough: " + why
		}
		p.conclude(reason, exitNothing)
		return
	}
	p.measureLonger(r, until)
}

// measureLonger waits until the kept configuration is measured well enough, or the time is over.
func (p *autopilot) measureLonger(r *engine.Recommendation, until time.Duration) {
	why, most := p.baseline.lacking(r)
	p.waitFor(until, most, "measuring "+p.keptName()+" for longer, "+why)
}

// Sentences shared by several ends and events.
const (
	noFlagHelps   = "no server flag helps; the remaining fixes are outside the server's flags"
	doesNotAnswer = "the server does not answer"
	measuresNoise = "restarted with the same settings: the difference measures restart noise"
)

// nothingKept introduces the failures of a run that kept no change.
const nothingKept = "no change was kept and none is left to try; the server runs as before. These changes failed: "

// waitFor schedules the next decision for a time at the latest; an input may come first. It
// announces once what it waits for, and for how long at most.
func (p *autopilot) waitFor(until, most time.Duration, text string) {
	p.cancelPending()
	p.wakeAt, p.waitingFor, p.until = until, text, p.now+most
	if p.announced != text {
		p.announced = text
		p.emit(LevelInfo, Event{Kind: EventWaiting, Iteration: p.iteration(), Took: most, Text: text + " (" + figure.Elapsed(most) + " at most)"})
	}
}

// watchKept waits until the kept configuration has run long enough to build on.
func (p *autopilot) watchKept() {
	until := p.upSince + p.plan.Stable
	p.waitFor(until, until-p.now, "watching the kept change for a while: crashes under load come late")
}

// schedule performs do after the countdown, during which the user may pause it.
func (p *autopilot) schedule(key, text string, do func()) {
	if p.pendingAction == nil || p.pendingAction.key != key {
		p.pendingAction = &pendingAction{Pending{Text: text, At: p.now + p.plan.Countdown}, key, do}
		if p.plan.Countdown > 0 {
			p.emit(LevelInfo, Event{Kind: EventPending, Iteration: p.nextIteration(), Advice: p.advisor.advice, Took: p.plan.Countdown,
				Text: "in " + figure.Elapsed(p.plan.Countdown) + ": " + text})
		}
	}
	p.runDue()
}

// runDue performs the pending action if it is due.
func (p *autopilot) runDue() {
	d := p.pendingAction
	if d == nil || p.held || p.paused || p.now < d.At || p.phase != PhaseWaiting {
		return
	}
	p.cancelPending()
	d.do()
}

// cancelPending drops the pending action.
func (p *autopilot) cancelPending() { p.pendingAction = nil }

// wake performs what has become due.
func (p *autopilot) wake() {
	switch {
	case p.phase != PhaseWaiting || p.paused:
	case p.pendingAction != nil && p.now >= p.pendingAction.At:
		p.proceed()
	case p.pendingAction == nil && p.wakeAt > 0 && p.now >= p.wakeAt:
		p.proceed()
	}
}

// conclude ends an automatic run once the kept configuration runs: measured again after a
// revert, and observed for a while if it is new. It is called again until then, as long as the end still
// follows.
func (p *autopilot) conclude(reason string, code int) {
	switch {
	case p.changeInPlace() && p.server.CanApply:
		p.schedule("back", "revert to "+p.keptName(), p.trials.revert)
	case p.changeInPlace():
		p.trials.revert() // asks for it
	case p.baseline.measured.spreadUnknown && p.now-p.since < overdue*p.plan.Longest:
		p.waitFor(p.since+overdue*p.plan.Longest, p.baseline.inStretches(p.baseline.measuringLeft()), "measuring "+p.keptName()+" again after its restart: the difference is restart noise")
	case !p.keptIsStable():
		p.watchKept()
	case code == exitDone && p.keptCount() == 0 && p.baselineTooUncertain(nil) && p.now < p.uncertainSince+overdue*verdict.LongestBurst:
		p.measureLonger(nil, p.uncertainSince+overdue*verdict.LongestBurst)
	default:
		p.ending.finish(code, reason)
	}
}

// keptIsStable reports whether the kept configuration has run long enough to build on.
func (p *autopilot) keptIsStable() bool {
	if len(p.previous) == 0 || p.changeInPlace() || p.now-p.upSince >= p.plan.Stable {
		p.stable = p.stable || !p.changeInPlace()
	}
	return p.stable || p.changeInPlace()
}

// cannotHold returns why there is no autopilot to pause, or "".
func (p *autopilot) cannotHold() string {
	if !p.plan.Auto {
		return "The autopilot is off: nothing is done without a key."
	}
	return ""
}

// toggleHold pauses an automatic run before its next action, or resumes it.
func (p *autopilot) toggleHold() {
	p.held = !p.held
	if p.held {
		p.emit(LevelInfo, Event{Kind: EventPaused, Iteration: p.iteration(), Text: "autopilot paused: nothing is changed until it is resumed"})
		return
	}
	p.idle = idlePeriod{}
	p.emit(LevelInfo, Event{Kind: EventPaused, Iteration: p.iteration(), Text: "autopilot resumed"})
	if p.phase == PhaseWorse {
		p.trials.revert()
		return
	}
	p.cancelPending()
	p.proceed()
}

func (p *autopilot) waitsForChange() string {
	r := p.advisor.advice
	switch {
	case p.held && p.pendingAction != nil:
		return "autopilot paused: " + p.pendingAction.Text + " waits until it is resumed"
	case p.pendingAction != nil:
		return "next: " + p.pendingAction.Text
	case p.waitingFor != "":
		return p.waitingFor + " (" + figure.Elapsed(p.until-p.now) + " at most)"
	case r == nil:
		return "watching"
	case r.Kind == engine.KindFlag:
		return "waiting for your restart with the recommended change"
	}
	return "watching; the recommended fix is not a server flag"
}
