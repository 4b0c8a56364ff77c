package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// trial is the change that is under way.
type trial struct {
	open    bool           // the latest iteration waits for its verdict
	before  *Diagnosis     // what it is judged against
	side    verdict.Side   // and all that was measured of it
	earlier []verdict.Life // runs of the same change before, without a verdict
	applied bool           // rooftop has made it
	revert  bool           // it takes a change back
	makes   []Change       // what rooftop makes, or made, for it
	loaded  time.Duration  // when tokens first moved after the restart, 0 not yet
	off     bool           // another configuration runs than the one that is kept
	made    []Change       // of rooftop's own, that are in place; none where others, or nobody, made it
	ran     *Diagnosis     // the last measurement of the one that runs
	ranLife verdict.Life   // and its slices

	looks    []time.Duration // when it is looked at, since its measurement began
	look     int             // number of the next one
	results  []verdict.Result
	measured time.Duration // by now
	// unsteady is what was still waited for when it was measured anyhow, "" nothing.
	unsteady string
	failed   bool // the last change that rooftop made did not come up
	fell     bool // and the server was down for it
	former   bool // what is put back was kept before the configuration that was
	// advice is what was recommended when the server was restarted: it still is
	// what a further restart is held against.
	advice *Recommendation
}

// returnedInBaseline goes on after a restart before there was a baseline: with
// what was measured by then, where that is enough.
func (l *Loop) returnedInBaseline(next configuration, t turn) {
	if l.seen.Baseline != nil {
		l.seen.Firm = true
		l.returnedInWaiting(next, t)
		return
	}
	text := "restarted before the baseline was measured: it is measured anew"
	if len(t.changes) > 0 {
		text += "; changed " + listed(t.changes)
	}
	l.write(LevelInfo, EventServerUp, text)
	l.running, l.kept = next, next
	l.seen.Advice = nil
	if len(t.changes) > 0 || t.Noticed == Unreadable {
		l.adopted()
	}
	l.startBaseline()
}

// adopted tells the hands that what somebody else started is what changes are made
// to from here on.
func (l *Loop) adopted() {
	if l.server.hands {
		l.tell(LevelInfo, Event{Kind: EventKept, Iteration: l.iteration(), Command: l.kept.command, Text: "what runs is what the next change is made to"})
	}
}

func (l *Loop) returnedInWaiting(next configuration, t turn) {
	if t.Noticed == Undone {
		l.write(LevelInfo, EventReverted, "the settings before the change are back")
		l.putBack()
		l.undone(next)
		return
	}
	l.beginTrial(next, t)
}

// putBack notes that the change that gained nothing no longer runs: the latest one
// but for restarts that changed nothing.
func (l *Loop) putBack() {
	for i := len(l.iterations) - 1; i >= 0; i-- {
		switch l.iterations[i].End {
		case IterationNoise:
		case IterationNoGain:
			l.iterations = slices.Clone(l.iterations)
			l.iterations[i].End = IterationReverted
			return
		default:
			return
		}
	}
}

// returnedInTrial goes on after a restart before the verdict: that trial is
// broken, whatever comes is another one against the same baseline.
func (l *Loop) returnedInTrial(next configuration, t turn) {
	open := l.trial.open
	if t.Noticed == Undone {
		if open {
			l.end(IterationReverted)
			l.tell(LevelInfo, Event{Kind: EventReverted, Iteration: l.iteration(), Command: next.command, Text: "the settings before the change are back; it was not judged"})
		}
		l.undone(next)
		return
	}
	if open {
		l.end(IterationBroken)
		l.write(LevelWarn, EventError, fmt.Sprintf("change %d was not judged: the server was restarted before", l.iteration()))
		l.trial.ran, l.trial.ranLife = nil, nil // what ran has no measurement of its own
		if l.plan.Auto && l.server.hands && t.same && l.off() {
			l.running = next
			l.broke("the server ended under load, and was started again by somebody else")
			return
		}
		l.beginTrial(next, t)
		return
	}
	if t.Noticed == SameSettings {
		// A kept configuration that settles after a way back: there is no verdict.
		l.undone(next)
		return
	}
	l.beginTrial(next, t)
}

func (l *Loop) returnedInWorse(next configuration, t turn) {
	switch {
	case t.Noticed == Undone:
		l.reverted(next)
	case t.same && t.Noticed != Unreadable:
		l.running = next
		l.write(LevelInfo, EventServerUp, "restarted with the same settings: the answer is still waited for")
		l.life.look()
		l.ask()
	default:
		l.end(IterationNoGain)
		l.beginTrial(next, t)
	}
}

func (l *Loop) returnedInReverting(next configuration, t turn) {
	switch {
	case t.Noticed == Undone, t.Noticed == SameSettings: // as those that are kept
		l.reverted(next)
	case t.Noticed == Unreadable:
		l.write(LevelInfo, EventServerUp, "restarted; its launch command cannot be read here: it is taken as the way back that was asked for")
		l.reverted(next)
	case t.same:
		l.running = next
		l.write(LevelWarn, EventServerUp, "restarted with the same settings: "+listed(changesFrom(l.kept, next))+" is still in place")
		l.life.look()
		l.enter(PhaseReverting)
	default:
		l.end(IterationNoGain)
		l.beginTrial(next, t)
	}
}

// returnedFromApply goes on after rooftop restarted the server.
func (l *Loop) returnedFromApply(next configuration, t turn) {
	if l.trial.revert {
		if l.trial.fell {
			l.change(func(it *Iteration) { it.Downtime = l.outage })
		}
		l.reverted(next)
		return
	}
	l.running = next
	l.trial.off, l.trial.failed = true, false
	l.trial.made = l.iterations[len(l.iterations)-1].Changes
	l.change(func(it *Iteration) {
		it.Up, it.Command, it.Downtime = l.now, next.command, l.outage
		if t.Noticed == AsRecommended || t.Noticed == Unreadable {
			return
		}
		// It does not run as it was told to: what runs is what is judged.
		it.Noticed, it.Changes, it.Predicted = SomethingElse, t.changes, nil
		it.Text = "applied by rooftop, but it runs with " + cmp.Or(listed(t.changes), "the settings of before")
	})
	if len(t.changes) == 0 && t.Noticed != Unreadable {
		l.trial.off, l.trial.made = false, nil
		l.change(func(it *Iteration) { it.Noticed = SameSettings })
	}
	l.settle()
}

// beginTrial opens an iteration for a change that was noticed.
func (l *Loop) beginTrial(next configuration, t turn) {
	l.pilot.leave = leave{}
	made := l.trial.made
	it := Iteration{
		Downtime: l.outage,
		At:       l.downAt, Up: l.now, Noticed: t.Noticed, Changes: t.changes, Command: next.command,
		Before: l.seen.Baseline, Text: l.describe(t),
	}
	l.trial = trial{open: true, before: l.seen.Baseline, side: l.base.side(), off: t.Noticed != SameSettings, ran: l.trial.ran, ranLife: l.trial.ranLife, advice: l.standing()}
	if t.same || t.Noticed == Unreadable {
		l.trial.made = made
	}
	switch {
	case t.Noticed == Unreadable && len(made) > 0 && len(toldChanges(l.running.told, next.told)) == 0:
		// As far as can be told it is the same change, which the hands can take back.
		it.Changes = made
		it.Text = "restarted; its launch command cannot be read here, so it is taken for " + listed(made) + ", which rooftop made"
	case t.Noticed == AsRecommended:
		it.Predicted = l.trial.advice.Predicted
	case t.Noticed == SomethingElse && t.same && l.trial.ran != nil:
		// What gained nothing was started again: its own measurement is the one
		// before.
		it.Noticed, it.Before = SameSettings, l.trial.ran
		it.Text = "restarted with the same settings: the difference is noise, measured"
		l.trial.before, l.trial.side = l.trial.ran, verdict.Side{Lives: []verdict.Life{l.trial.ranLife}}
	}
	l.running = next
	l.mark(MarkChange, it.Text)
	l.write(LevelInfo, EventServerUp, it.Text)
	if it.Noticed != SameSettings && it.Noticed != Unreadable {
		l.trial.earlier = l.earlier(it.Changes)
	}
	l.shown = l.add(it)
	l.settle()
}

// wanted are the changes that are recommended; none where that is no flag of the
// server.
func (l *Loop) wanted() []Change {
	r := l.standing()
	if r == nil || r.Kind != KindFlag || r.Flag == "" {
		return nil
	}
	return r.changes()
}

// describe says what a restart turned out to be.
func (l *Loop) describe(t turn) string {
	again := t.same && len(t.changes) > 0
	switch t.Noticed {
	case AsRecommended:
		if again {
			return "restarted once more with " + listed(t.changes) + " as recommended"
		}
		return "you changed " + listed(t.changes) + " as recommended"
	case SameSettings:
		return "restarted with the same settings: the difference is noise, measured"
	case Unreadable:
		text := "restarted; its launch command cannot be read here, so what changed is not known"
		if len(t.changes) > 0 {
			return text + ": the page tells " + listed(t.changes)
		}
		return text + ": the page tells the same as before"
	}
	want := l.wanted()
	if again {
		return "restarted once more with " + listed(t.changes)
	}
	if want == nil {
		return "you changed " + listed(t.changes)
	}
	return "you changed something else: " + listed(t.changes) + " (recommended was " + listed(want) + ")"
}

// settle waits until the server that was restarted is steady.
func (l *Loop) settle() {
	l.seen.Advice, l.seen.Quiet = nil, ""
	l.trial.loaded = 0
	l.enter(PhaseSettling)
	l.life.look()
	var opened *Iteration
	if n := len(l.iterations); l.trial.open && n > 0 {
		it := l.iterations[n-1]
		opened = &it
	}
	l.tell(LevelInfo, Event{Kind: EventSettling, Iteration: l.iteration(), Opened: opened, Text: "settling: it is measured once the load is steady"})
}

func (l *Loop) settlingWindow() {
	windows := l.life.since(l.life.from)
	ok, why := steady(windows, l.trial.before)
	recent := latest(windows, settleMost)
	switch {
	case len(recent) == 0 || firstMoving(recent) < 0:
		l.trial.loaded = 0
	case l.trial.loaded == 0:
		l.trial.loaded = l.now
	}
	l.life.waits = why
	switch {
	case ok:
		l.settled("steady after " + seconds(l.now-l.seen.Since))
	case l.trial.loaded == 0:
	case l.now-l.trial.loaded < settleMost-WindowLength:
	case barelyLoaded(recent, l.trial.before):
		l.life.waits = "waiting for the load to come back: most clients are still missing"
	default:
		l.trial.unsteady = why
		l.settled("not steady after " + seconds(l.now-l.seen.Since) + " (" + why + "): measured as it is")
	}
}

// settled ends the settling: what is to be judged is measured, what was put back
// is waited on.
func (l *Loop) settled(text string) {
	l.write(LevelInfo, EventSettling, text)
	l.starved = busyShare{}
	if !l.trial.open {
		l.toWaiting()
		return
	}
	l.change(func(it *Iteration) { it.Settled = l.now })
	l.measureTrial()
}

// toWaiting stands by with the recommendation of the baseline.
func (l *Loop) toWaiting() {
	l.trial.open, l.trial.advice = false, nil
	l.enter(PhaseWaiting)
	l.renewal.from = l.life.next()
	if l.base.again && len(l.base.live) == 0 {
		l.renewal.since = l.life.next()
	}
	l.advise(l.choose(l.seen.Baseline))
	l.proceed()
}

// undone goes on with the kept configuration, which runs again.
func (l *Loop) undone(next configuration) {
	l.running, l.shown = next, l.returns
	if !l.plan.Auto { // which would try it for ever
		l.advice.forget()
	}
	l.trial = trial{before: l.seen.Baseline, advice: l.choose(l.seen.Baseline)}
	l.base.further()
	l.settle()
}

// reverted ends a change that was put back.
func (l *Loop) reverted(next configuration) {
	if n := len(l.iterations); n > 0 && l.iterations[n-1].End != IterationBroken && !l.trial.former {
		l.end(IterationReverted)
	}
	l.trial.open = false
	l.tell(LevelInfo, Event{Kind: EventReverted, Iteration: l.iteration(), Command: next.command, Text: "put back: " + cmp.Or(listed(l.lastChanges()), "what was kept")})
	if l.trial.former {
		l.tell(LevelInfo, Event{Kind: EventKept, Iteration: l.returns, Command: next.command, Text: "what was kept before is kept again"})
	}
	l.undone(next)
}

func (l *Loop) lastChanges() []Change {
	if n := len(l.iterations); n > 0 {
		return inverses(l.iterations[n-1].Changes)
	}
	return nil
}

// end closes the latest iteration.
func (l *Loop) end(how IterationEnd) {
	l.trial.open = false
	l.change(func(it *Iteration) { it.End = how })
}
