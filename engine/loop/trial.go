package loop

import (
	"cmp"
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// trials starts and ends changes.
type trials struct {
	*shared
	conn     *connection
	baseline *baselines
	settling *settling
	applying *applying
	canaries *canaries
	advisor  *advisor
	budget   *budget
	auto     *autopilot
	ending   *ending

	trial
}

// trial is the change in progress. Applying and the commands open and close it, too.
type trial struct {
	open          bool                  // the latest iteration has no verdict yet
	before        *engine.Diagnosis     // baseline of the comparison
	side          verdict.Side          // all measurements of that baseline
	earlierStarts []verdict.Incarnation // earlier starts with the same change, without a verdict
	lastMeasured  *engine.Diagnosis     // last measurement of the running configuration
	lastSlices    verdict.Incarnation   // slices of that measurement
	lost          int                   // number of a kept change that did not last and is reverted, 0 if none
	again         int                   // how often this start was measured again after its verdict
	spreadNoted   bool                  // the effect of its restart was recorded
	inPlace       *trial                // the change that this one replaces, which stays in place if this one is refused
	// advice is the recommendation at the time of the restart. Further restarts are still
	// compared with it.
	advice *engine.Recommendation
}

// announceAdopted notifies the applier that changes now apply to a launch that others
// started.
func (t *trials) announceAdopted() {
	if t.server.CanApply {
		t.emit(LevelInfo, Event{Kind: EventKept, Iteration: t.iteration(), Command: t.kept.command, Text: "the next change starts from the running configuration"})
	}
}

// toWaiting enters the waiting phase with the recommendation of the baseline.
func (t *trials) toWaiting() {
	t.open, t.advice = false, nil
	t.enterPhase(PhaseWaiting)
	t.baseline.startRenewal()
	t.advisor.advise(t.advisor.judge(t.baseline.diagnosis))
	t.auto.proceed()
}

// endIteration closes the latest iteration.
func (t *trials) endIteration(how IterationEnd) {
	t.open = false
	t.alterLatest(func(it *Iteration) { it.End = how })
}

// applyAdvice makes the recommended change to the kept configuration, first on a canary if the plan says so.
// It also reverts a change without a gain.
func (t *trials) applyAdvice() {
	r := t.advisor.advice
	changes, inPlace := r.Changes(), t.trial
	inPlace.inPlace = nil
	it := Iteration{At: t.now, Noticed: AsRecommended, Changes: changes, Command: r.Launch,
		Predicted: r.Predicted, Before: t.baseline.diagnosis}
	t.trial = trial{open: true, before: t.baseline.diagnosis, side: t.baseline.measured.side(), earlierStarts: t.baseline.earlierStarts(changes), lastMeasured: t.lastMeasured, lastSlices: t.lastSlices, advice: r, inPlace: &inPlace}
	n := t.add(it)
	t.budget.rounds++
	within := t.budget.startAllowance()
	request := Apply{Changes: changes, Iteration: n, Predicted: r.Predicted, Within: within}
	if t.plan.Canary && !t.changeInPlace() {
		t.canaries.try(request)
		return
	}
	t.restart(request)
}

// restart restarts the server with the changes of the latest iteration.
func (t *trials) restart(request Apply) {
	t.alterLatest(func(it *Iteration) { it.Text = engine.JoinChanges(it.Changes) + ", applied by rooftop" })
	it, changes, within := t.lastIteration(), request.Changes, request.Within
	t.runningIteration = it.N
	t.addMark(MarkChange, it.Text)
	text := "applying " + engine.JoinChanges(changes) + ": restarting the server with it"
	if len(t.earlierStarts) > 0 {
		text = "applying " + engine.JoinChanges(changes) + " again, as its effect is unresolved and another start narrows the interval: restarting the server with it"
	}
	if within > 0 {
		text += "; it may take " + figure.Elapsed(within) + ", the rest of the allowed downtime is reserved for a revert"
	}
	t.emit(LevelInfo, Event{Kind: EventApplying, Iteration: it.N, Advice: t.trial.advice, Change: changes[0], Command: it.Command, Text: text})
	t.applying.apply(request)
}

// revert restores the kept configuration, or asks the user to do it.
func (t *trials) revert() {
	changes := changesFrom(t.running, t.kept)
	if t.applying.failed || len(changes) == 0 {
		changes = t.revertingChanges()
	}
	if !t.server.CanApply || len(changes) == 0 { // an unknown change cannot be undone by a flag
		t.enterPhase(PhaseReverting)
		t.writeEntry(LevelInfo, "", t.waitsForRevert())
		return
	}
	if !t.budget.restartLeft() {
		t.ending.finish(exitError, "no restart is left to revert to "+t.keptName()+": "+engine.JoinChanges(inverses(changes))+" is in place")
		return
	}
	t.open = false
	t.emit(LevelInfo, Event{Kind: EventApplying, Iteration: t.iteration(), Change: firstOf(changes), Command: t.kept.command, Text: "reverting: " + engine.JoinChanges(changes)})
	t.applying.apply(Apply{Changes: changes, Revert: true, Iteration: t.iteration()})
}

// reverted returns the number of the change that is being reverted.
func (t *trials) reverted() int { return cmp.Or(t.lost, t.iteration()) }

func firstOf(changes []engine.Change) engine.Change {
	if len(changes) == 0 {
		return engine.Change{}
	}
	return changes[0]
}

func (t *trials) waitsForRevert() string {
	if t.kept.command == "" {
		return "restart the server as it was started before"
	}
	return "restart the server as before: " + t.kept.command
}

func (t *trials) keep(after *engine.Diagnosis, windows []engine.Window) {
	t.endIteration(IterationKept)
	t.accept(after, windows)
	t.emit(LevelGood, Event{Kind: EventKept, Iteration: t.iteration(), Change: t.latestChange(), Command: t.kept.command, Text: "kept as the new baseline"})
	t.toWaiting()
}

// accept makes the running configuration the kept one, with a diagnosis as its measurement.
func (t *trials) accept(after *engine.Diagnosis, windows []engine.Window) {
	t.auto.rememberPrevious()
	t.baseline.setBaseline(after, windows)
	t.baseline.setBase(t.lastSlices, t.earlierStarts)
	t.notKept, t.ownInPlace, t.baseline.inconclusive = false, nil, nil
	t.advisor.forget()
}

// noteMeasurement keeps the complete measurement of the running configuration.
func (t *trials) noteMeasurement(d *engine.Diagnosis, start verdict.Incarnation) {
	t.open, t.lastMeasured, t.lastSlices = false, d, start
}

// noGain leaves a change without a gain running until the next change, which reverts it. If the
// change cannot be reverted, because it is unreadable and not made by rooftop, the running
// configuration becomes the baseline.
func (t *trials) noGain(after *engine.Diagnosis, windows []engine.Window) {
	t.endIteration(IterationNoGain)
	t.advisor.rememberTried()
	it := t.lastIteration()
	t.baseline.keepInconclusive(it)
	switch {
	case it.Noticed == Unreadable && len(t.ownInPlace) == 0:
		t.baseline.setBaseline(after, windows)
		t.baseline.setBase(t.lastSlices, nil)
		t.notKept = false
		t.announceAdopted()
	case it.Delta.Direction == verdict.Plateau:
		t.writeEntry(LevelInfo, "", "not kept: the next change reverts it")
	case it.Delta.Direction == verdict.Inconclusive:
		t.writeEntry(LevelInfo, "", "not kept: its effect is unresolved; the next change reverts it")
	default:
		t.writeEntry(LevelInfo, "", "not judged: measure it again under the same load; the next change reverts it")
	}
	t.toWaiting()
}

// onWorse waits for the user to decide; an automatic run reverts.
func (t *trials) onWorse() {
	t.advisor.rememberTried()
	if t.plan.Auto && !t.auto.held {
		t.revert()
		return
	}
	t.ask()
}

func (t *trials) ask() {
	t.enterPhase(PhaseWorse)
	t.asked = t.question()
	t.addAction(Emit{Event{T: t.now, Kind: EventPaused, Iteration: t.iteration(), Text: t.asked}})
}

// question returns the question to ask about a change that made things worse.
func (t *trials) question() string {
	it := t.lastIteration()
	if it == nil || it.Delta == nil {
		return "The change made it worse. Revert, or continue with it as the new baseline?"
	}
	return fmt.Sprintf("Worse: %s. Revert, or continue with it as the new baseline?", it.Delta.Reason)
}
