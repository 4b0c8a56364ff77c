package loop

import (
	"cmp"
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

func (t *trials) returnedInWaiting(next configuration, kind restartKind) {
	if kind.Noticed == Undone {
		t.writeEntry(LevelInfo, EventReverted, "the previous settings are back")
		t.markReverted()
		t.resumeKept(next)
		return
	}
	t.beginTrial(next, kind)
}

// mostUnasked is the number of restarts by others, such as a supervisor, none of which ran until it was measured,
// after which an automatic run assumes that the server does not keep running.
const mostUnasked = 3

// exitsAgain acts on a restart by others that changed nothing, as far as is known. An automatic run takes it for
// an exit if the kept configuration is new or there were several such restarts: it goes back to the configuration before,
// or ends. It reports whether it does.
func (t *trials) exitsAgain(next configuration, kind restartKind) bool {
	same := kind.Noticed == SameSettings || kind.Noticed == Unreadable && t.server.CanApply && len(kind.changes) == 0
	if !t.plan.Auto || t.auto.held || !same || t.auto.exit.set {
		return false
	}
	t.auto.unasked++
	isNew := kind.Noticed == SameSettings && !t.changeInPlace() && len(t.auto.previous) > 0 && !t.auto.stable
	switch often := t.auto.unasked >= mostUnasked; {
	case !isNew && !often:
		return false
	case !t.changeInPlace() && len(t.auto.previous) > 0 && t.server.CanApply && t.budget.restartLeft():
		t.running = next
		t.auto.revertToPrevious("the server exited after the change was kept, and something other than rooftop started it again")
	case often:
		t.running = next
		t.ending.endNow(exitGone, fmt.Sprintf("the server was restarted %d times before it could be measured, but not by rooftop: it does not keep running", t.auto.unasked))
	default:
		return false
	}
	return true
}

// returnedInTrial continues after a restart before the verdict: the trial is broken, and the
// restart starts another one against the same baseline.
func (t *trials) returnedInTrial(next configuration, kind restartKind) {
	open := t.open
	if kind.Noticed == Undone {
		if open {
			t.endIteration(IterationReverted)
			t.emit(LevelInfo, Event{Kind: EventReverted, Iteration: t.iteration(), Command: next.command, Text: "the previous settings are back; the change was not judged"})
		}
		t.resumeKept(next)
		return
	}
	if open {
		t.endIteration(IterationBroken)
		t.writeEntry(LevelWarn, EventError, fmt.Sprintf("change %d was not judged: the server was restarted first", t.iteration()))
		t.lastMeasured, t.lastSlices = nil, nil // the running configuration was not measured
		if t.plan.Auto && !t.auto.held && t.server.CanApply && kind.same && t.changeInPlace() {
			t.running = next
			t.auto.changeFailed("the server exited under load, and something other than rooftop started it again")
			return
		}
		t.beginTrial(next, kind)
		return
	}
	if kind.Noticed == SameSettings {
		// The kept configuration settles after a revert: there is no verdict.
		t.resumeKept(next)
		return
	}
	t.beginTrial(next, kind)
}

func (t *trials) returnedInWorse(next configuration, kind restartKind) {
	switch {
	case kind.Noticed == Undone:
		t.finishRevert(next)
	case kind.same && kind.Noticed != Unreadable:
		t.running = next
		t.writeEntry(LevelInfo, EventServerUp, "restarted with the same settings: still waiting for your answer")
		t.current.startPhase()
		t.ask()
	default:
		t.endIteration(IterationNoGain)
		t.beginTrial(next, kind)
	}
}

func (t *trials) returnedInReverting(next configuration, kind restartKind) {
	switch {
	case kind.Noticed == Undone, kind.Noticed == SameSettings: // equal to the kept settings
		t.finishRevert(next)
	case kind.Noticed == Unreadable:
		t.writeEntry(LevelInfo, EventServerUp, "restarted; its launch command cannot be read here, so this is taken as the requested revert")
		t.finishRevert(next)
	case kind.same:
		t.running = next
		t.writeEntry(LevelWarn, EventServerUp, "restarted with the same settings: "+engine.JoinChanges(changesFrom(t.kept, next))+" is still in place")
		t.current.startPhase()
		t.enterPhase(PhaseReverting)
	default:
		t.endIteration(IterationNoGain)
		t.beginTrial(next, kind)
	}
}

// returnedFromApply continues after rooftop restarted the server.
func (t *trials) returnedFromApply(next configuration, kind restartKind) {
	if t.applying.revert && t.applying.wentDown {
		t.alterLatest(func(it *Iteration) { it.Downtime = t.conn.outage })
	}
	switch {
	case t.applying.revert && kind.Noticed != Undone && kind.Noticed != SameSettings && kind.Noticed != Unreadable:
		t.notReverted(next, kind)
		return
	case t.applying.revert && t.auto.exit.set:
		t.applying.endsHere()
		return
	case t.applying.revert:
		t.finishRevert(next)
		return
	}
	t.running = next
	t.notKept, t.applying.failed = true, false
	t.ownInPlace = t.lastIteration().Changes
	if t.auto.exit.set {
		t.applying.endsHere()
		return
	}
	t.alterLatest(func(it *Iteration) {
		it.Up, it.Command, it.Downtime = t.now, next.command, t.conn.outage
		if kind.Noticed == AsRecommended || kind.Noticed == Unreadable {
			return
		}
		// The settings differ from the requested ones: judge those that run.
		it.Noticed, it.Changes, it.Predicted = SomethingElse, kind.changes, nil
		it.Text = "applied by rooftop, but the server runs with " + cmp.Or(engine.JoinChanges(kind.changes), "the previous settings")
	})
	if len(kind.changes) == 0 && kind.Noticed != Unreadable {
		t.notKept, t.ownInPlace = false, nil
		t.alterLatest(func(it *Iteration) { it.Noticed = SameSettings })
	}
	t.settling.startSettling()
}

// notReverted continues after a revert that the server does not show: what runs is not the kept configuration.
func (t *trials) notReverted(next configuration, kind restartKind) {
	t.running, t.notKept, t.applying.failed = next, true, true
	if !kind.same {
		t.lastMeasured, t.lastSlices = nil, nil // what runs was not measured
	}
	why := "the server was restarted, but it does not run " + t.keptName() + ": " + engine.JoinChanges(kind.changes) + " is in place"
	t.emit(LevelBad, Event{Kind: EventError, Iteration: t.reverted(), Text: why})
	t.alter(t.reverted(), func(it *Iteration) {
		if it.End != IterationBroken {
			it.End, it.Failure = IterationBroken, "it was not reverted: "+why
		}
	})
	t.open = false
	if t.plan.Auto {
		t.ending.finish(exitError, "the revert to "+t.keptName()+" failed: "+why)
		return
	}
	t.enterPhase(PhaseReverting)
}

// beginTrial starts an iteration for a change that was noticed.
func (t *trials) beginTrial(next configuration, kind restartKind) {
	made := t.ownInPlace
	it := Iteration{
		Downtime: t.conn.outage,
		At:       t.conn.downAt, Up: t.now, Noticed: kind.Noticed, Changes: kind.changes, Command: next.command,
		Before: t.baseline.diagnosis, Text: t.describeRestart(kind),
	}
	t.trial = trial{open: true, before: t.baseline.diagnosis, side: t.baseline.measured.side(), lastMeasured: t.lastMeasured, lastSlices: t.lastSlices, advice: t.advisor.openAdvice()}
	t.applying.reset()
	t.notKept, t.ownInPlace = kind.Noticed != SameSettings, nil
	if kind.same || kind.Noticed == Unreadable {
		t.ownInPlace = made
	}
	switch {
	case kind.Noticed == Unreadable && len(made) > 0 && len(reportedChanges(t.running.reported, next.reported)) == 0:
		// It is probably the same change, which the applier can revert.
		it.Changes = made
		it.Text = "restarted; its launch command cannot be read here, so the change is taken as " + engine.JoinChanges(made) + ", which rooftop made"
	case kind.Noticed == AsRecommended:
		it.Predicted = t.advice.Predicted
	case kind.Noticed == SomethingElse && kind.same && t.lastMeasured != nil:
		// The change without a gain was started again: compare with its own measurement.
		it.Noticed, it.Before = SameSettings, t.lastMeasured
		it.Text = measuresNoise
		t.before, t.side = t.lastMeasured, verdict.Side{Incarnations: []verdict.Incarnation{t.lastSlices}}
	}
	t.running = next
	t.addMark(MarkChange, it.Text)
	t.writeEntry(LevelInfo, EventServerUp, it.Text)
	if it.Noticed != SameSettings && it.Noticed != Unreadable {
		t.earlierStarts = t.baseline.earlierStarts(it.Changes)
	}
	if n := t.add(it); it.Noticed != SameSettings {
		t.runningIteration = n
	}
	t.settling.startSettling()
}

// describeRestart returns the classification of a restart as text.
func (t *trials) describeRestart(kind restartKind) string {
	again := kind.same && len(kind.changes) > 0
	switch kind.Noticed {
	case AsRecommended:
		if again {
			return "restarted once more with " + engine.JoinChanges(kind.changes) + " as recommended"
		}
		return "you changed " + engine.JoinChanges(kind.changes) + " as recommended"
	case SameSettings:
		return measuresNoise
	case Unreadable:
		text := "restarted; its launch command cannot be read here, so the change is unknown"
		if len(kind.changes) > 0 {
			return text + ": the metrics page shows " + engine.JoinChanges(kind.changes)
		}
		return text + ": the metrics page shows no difference"
	}
	want := t.advisor.recommendedChanges()
	if again {
		return "restarted once more with " + engine.JoinChanges(kind.changes)
	}
	if want == nil {
		return "you changed " + engine.JoinChanges(kind.changes)
	}
	return "you changed something else: " + engine.JoinChanges(kind.changes) + " (recommended: " + engine.JoinChanges(want) + ")"
}

// resumeKept continues with the kept configuration, which runs again.
func (t *trials) resumeKept(next configuration) {
	t.running, t.runningIteration = next, t.keptIteration
	if !t.plan.Auto { // an automatic run would try it forever
		t.advisor.forget()
	}
	t.trial = trial{before: t.baseline.diagnosis, advice: t.advisor.judge(t.baseline.diagnosis).advice}
	t.applying.reset()
	t.notKept, t.ownInPlace = false, nil
	t.baseline.measured.beginNextStart()
	t.settling.startSettling()
}

// finishRevert ends a change that was reverted.
func (t *trials) finishRevert(next configuration) {
	if it := t.lastIteration(); it != nil && it.End != IterationBroken && t.lost == 0 {
		t.endIteration(IterationReverted)
	}
	t.open = false
	changes := t.revertingChanges()
	if t.lost > 0 {
		changes = t.applying.changes
	}
	t.emit(LevelInfo, Event{Kind: EventReverted, Iteration: t.reverted(), Command: next.command, Text: "reverted: " + cmp.Or(engine.JoinChanges(changes), "what was kept")})
	if t.lost > 0 {
		t.keepPrevious(next.command)
	}
	t.resumeKept(next)
}

// keepPrevious reports that the configuration before the kept one is the kept one again.
func (t *trials) keepPrevious(command string) {
	t.emit(LevelInfo, Event{Kind: EventKept, Iteration: t.keptIteration, Command: command, Text: "the previously kept configuration is kept again"})
}
