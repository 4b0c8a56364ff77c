package loop

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
)

// applying restarts the server by the applier.
type applying struct {
	*shared
	conn    *connection
	trials  *trials
	advisor *advisor
	budget  *budget
	auto    *autopilot
	ending  *ending

	changes  []engine.Change // that rooftop makes, or made
	revert   bool            // they are a revert
	made     bool            // the applier has made them
	failed   bool            // the last change by rooftop did not start
	wentDown bool            // the server was down for it
}

// reset forgets the last change by rooftop.
func (a *applying) reset() {
	a.changes, a.revert, a.made, a.failed, a.wentDown = nil, false, false, false, false
}

// apply requests a change of the server. Every restart by rooftop goes through here.
func (a *applying) apply(request Apply) {
	a.budget.used.UsedStarts++
	if a.server.Inputs.Launch == nil {
		request.Changes = withoutAssumedOrigin(&a.server.facts, request.Changes)
	}
	if !request.Revert {
		a.reset()
	}
	a.made, a.revert, a.changes = false, request.Revert || a.trials.lost > 0, request.Changes
	a.conn.downAt = a.now
	a.auto.cancelPending()
	a.enterPhase(PhaseApplying)
	request.Answers = !request.Revert && effect.ChangesAnswers(request.Changes)
	a.addAction(request)
}

// applied handles the reply to Apply.
func (a *applying) applied(in Applied) {
	if a.phase != PhaseApplying || a.made {
		return
	}
	if in.AnswerCheck != nil && !a.revert {
		a.alterLatest(func(it *Iteration) { it.AnswerCheck = in.AnswerCheck })
	}
	if in.Ended != "" && a.revert {
		a.noteCauseOfEnd(in.Ended)
	}
	switch {
	case in.Err != "":
		a.notApplied(in)
	case a.auto.exit.set:
		a.endsHere()
	default:
		a.made = true
		a.running.ownChanges = addOwnChanges(a.kept.ownChanges, a.changes)
		if a.revert {
			a.running.ownChanges = a.kept.ownChanges
		}
		a.conn.reattach()
	}
}

// endsHere ends a run that was to end while the change or the revert was made. A change is reverted first.
func (a *applying) endsHere() {
	if !a.revert {
		a.trials.revert()
		return
	}
	if a.trials.lost > 0 {
		a.trials.keepPrevious(a.kept.command)
	}
	a.noteKeptRuns()
	a.ending.finish(a.auto.exit.code, a.auto.exit.reason)
}

// noteCauseOfEnd adds the cause found in the server's log to the latest failure.
func (a *applying) noteCauseOfEnd(why string) {
	a.writeEntry(LevelBad, EventError, "its log says: "+why)
	a.alter(a.trials.reverted(), func(it *Iteration) {
		if it.Failure != "" {
			it.Failure += ": " + why
		}
	})
}

// noteKeptRuns records that the kept configuration runs again.
func (a *applying) noteKeptRuns() {
	if it := a.lastIteration(); it != nil && it.End != IterationBroken && (a.notKept || it.End == IterationOpen) {
		a.trials.endIteration(IterationReverted)
	}
	a.notKept, a.trials.open, a.running = false, false, a.kept
	a.server.launch = a.kept.command
}

// notApplied handles a change or a revert that failed.
func (a *applying) notApplied(in Applied) {
	a.emit(LevelBad, Event{Kind: EventError, Iteration: a.iteration(), Text: in.Err})
	revert := a.revert
	if !revert {
		a.alterLatest(func(it *Iteration) { it.Failure = in.Err })
		a.trials.endIteration(IterationBroken)
		a.advisor.rememberTried()
	}
	a.wentDown = !revert && !in.Untouched
	a.auto.noteFailure(&in)
	switch {
	case a.plan.Auto && revert && in.Back:
		if !a.auto.exit.set {
			a.auto.exit = exit{set: true, code: exitError, reason: a.keptName() + " runs again, but its revert went wrong at first: " + in.Err}
		}
		a.endsHere()
	case a.plan.Auto && revert:
		a.alterLatest(func(it *Iteration) {
			if it.End != IterationBroken {
				it.End, it.Failure = IterationBroken, "it was not reverted: "+in.Err
			}
		})
		a.ending.finish(exitError, "the revert to "+a.keptName()+" failed: "+in.Err)
	case in.Untouched && !a.auto.exit.set:
		a.resumeUntouched()
	case in.Back:
		a.revertedByApplier()
	case a.plan.Auto:
		a.failed = true
		a.trials.revert()
	default:
		// Attaching shows whether it runs, and with which settings.
		a.failed, a.trials.open = true, false
		if revert {
			a.conn.awaitReturn(PhaseReverting)
		} else {
			a.conn.awaitReturn(PhaseWaiting)
		}
	}
}

// resumeUntouched continues after a change was refused before the server was touched, so it
// was not restarted.
func (a *applying) resumeUntouched() {
	a.failed, a.trials.open, a.made = false, false, false
	a.budget.used.UsedStarts = max(0, a.budget.used.UsedStarts-1)
	if a.plan.Auto && a.changeInPlace() {
		a.trials.revert()
		return
	}
	if !a.revert {
		a.budget.rounds = max(0, a.budget.rounds-1)
		a.runningIteration = a.keptIteration
	}
	if a.changeInPlace() && !a.revert { // what is measured, judged and shown is still that change
		a.dropLatest()
		a.trials.trial, a.runningIteration = *a.trials.inPlace, a.iteration()
	}
	a.trials.toWaiting()
}

// revertedByApplier continues after the applier failed to make a change and reverted it: the
// server to attach to has the kept configuration.
func (a *applying) revertedByApplier() {
	if !a.revert {
		a.budget.used.UsedStarts++ // the revert was a start, too
	}
	a.failed, a.trials.open = false, false
	if a.auto.exit.set {
		a.noteKeptRuns()
		a.ending.finish(a.auto.exit.code, a.auto.exit.reason)
		return
	}
	a.revert, a.made = true, true
	a.running.ownChanges = a.kept.ownChanges
	a.conn.reattach()
}

func (a *applying) waitsForApply() string {
	if a.revert {
		return "restarting the server with the previous settings"
	}
	return "restarting the server with the change"
}
