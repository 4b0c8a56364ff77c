package engine

import (
	"cmp"
	"fmt"
	"time"
)

// pilot is what an automatic run is about to do, or waits for.
type pilot struct {
	deed  *deed
	next  time.Duration // when to think again, 0 only when something happens
	waits string        // what it waits for, in words, "" nothing of its own
	until time.Duration // when that is over at the latest
	told  string        // the last of these that was told
	// leave is how the run ends once the kept configuration runs.
	leave leave
	// formers are the configurations that were kept before the present one, oldest
	// first, each with what was measured of it.
	formers []former
	lost    string // what was kept and did not last, in a sentence; "" nothing
	proved  bool   // the kept configuration has run for long enough
	falls   int    // times the kept configuration ended by itself and came back
	up      time.Duration
	used    Limits        // what is used up
	longest time.Duration // of the outages about restarts that rooftop made
	cut     []int         // iterations whose start was cut short by a limit
	lull    lull
	// wide is since when the baseline has been too uncertain for what is predicted, 0
	// where it is not.
	wide time.Duration
}

// lull is since when there has been nothing to judge, and whether that was said.
type lull struct {
	set, said bool
	since     time.Duration
}

// deed is something that is about to be done.
type deed struct {
	key string
	at  time.Duration
	do  func(*Loop)
}

// leave is an end that is still to come.
type leave struct {
	set    bool
	now    bool // without measuring what is put back
	code   int
	reason string
}

// autoProve is how long a configuration that was kept has to run, from its start,
// before another change is made or the run ends: what crashes under load does so
// within a minute or two.
const autoProve = 75 * time.Second

// proceed is the next step of an automatic run.
func (l *Loop) proceed() {
	if !l.plan.Auto || l.seen.Phase != PhaseWaiting {
		return
	}
	l.pilot.waits, l.pilot.next = "", 0
	if l.pilot.leave.set {
		l.leaving()
		return
	}
	r := l.seen.Advice
	switch {
	case r == nil:
		l.nothingLeft()
	case !r.Changeable():
		l.conclude(exitDone, "what is left is no flag of this server")
	case l.wide(r):
		l.measureOn()
	case l.plan.DryRun:
		l.finish(exitOpen, "dry run: nothing was changed; the first change would be "+listed(r.changes()))
	case !l.server.hands:
		l.calledOff() // it waits for somebody to make the change
	case l.plan.Rounds > 0 && l.rounds >= l.plan.Rounds:
		l.conclude(exitOpen, fmt.Sprintf("stopped after %s, the most asked for", changesCounted(l.plan.Rounds)))
	case l.exhausted() != "":
		l.conclude(exitOpen, l.exhausted())
	case l.tooShort() != "":
		l.conclude(exitOpen, l.tooShort())
	case !l.proven():
		l.watchKept()
	case !l.hoursHold():
		l.awaitHours()
	default:
		l.pend(key(r.Finding, &r.Fix), listed(r.changes()), (*Loop).applyAdvice)
	}
}

// wide says that the baseline is still too uncertain for what is predicted, and notes
// since when.
func (l *Loop) wide(r *Recommendation) bool {
	p := &l.pilot
	switch {
	case l.narrow(r):
		p.wide = 0
	case p.wide == 0:
		p.wide = max(1, l.now)
	}
	return p.wide > 0
}

// measureOn has the kept configuration measured for longer. A load that does not last
// ends the run.
func (l *Loop) measureOn() {
	until := l.pilot.wide + overdue*l.plan.Longest
	if l.now >= until {
		l.conclude(exitNothing, "the load did not last: the kept configuration could not be measured for long enough to tell the predicted gain from noise")
		return
	}
	l.hesitate(until, l.remains(), "measuring the kept configuration on, until the gain that is hoped for can be told from noise")
}

// remains is how much longer the kept configuration is measured at most, under load.
func (l *Loop) remains() time.Duration {
	return max(0, l.plan.Longest-l.plan.Measure-lengthOf(l.base.live))
}

// nothingLeft ends a run in which nothing is recommended any more.
func (l *Loop) nothingLeft() {
	switch outcome := l.seen.Baseline.Outcome; {
	case outcome == OutcomeNoLoad:
		l.conclude(exitNothing, "no request ran, so there was nothing to judge")
	case outcome == OutcomeNotEvaluable:
		l.conclude(exitNothing, l.seen.Quiet)
	case l.advice.hindered:
		l.conclude(exitOpen, l.seen.Quiet)
	case l.openButFor():
		l.conclude(exitOpen, cmp.Or(l.seen.Quiet, l.exhausted()))
	case l.failure != "" && l.keptCount() == 0:
		l.conclude(exitError, nothingHeld+l.failure)
	case l.undecided() != "":
		l.conclude(exitOpen, l.undecided())
	case l.pilot.lost != "":
		l.conclude(exitOpen, l.pilot.lost)
	default:
		l.conclude(exitDone, cmp.Or(l.seen.Quiet, "nothing is left to recommend"))
	}
}

// nothingHeld is said where changes failed and none was kept.
const nothingHeld = "nothing was kept, and nothing else is left; the server runs as before. What was tried failed: "

// keptCount is how many changes were kept.
func (l *Loop) keptCount() int {
	n := 0
	for i := range l.iterations {
		if e := l.iterations[i].End; e == IterationKept || e == IterationContinued {
			n++
		}
	}
	return n
}

// hesitate looks again at a time at the latest, or when something happens before. What
// it waits for, and how long that takes at most, is said once.
func (l *Loop) hesitate(until, most time.Duration, text string) {
	p := &l.pilot
	l.calledOff()
	p.next, p.waits, p.until = until, text, l.now+most
	if p.told != text {
		p.told = text
		l.tell(LevelInfo, Event{Kind: EventWaiting, Iteration: l.iteration(), Took: most, Text: text + " (" + SpellTime(most) + " at most)"})
	}
}

// watchKept waits until the kept configuration has run for long enough to be built on.
func (l *Loop) watchKept() {
	until := l.pilot.up + autoProve
	l.hesitate(until, until-l.now, "watching what was kept for a while: what crashes under load does so late")
}

// pend does something after the countdown, in which somebody may hold it.
func (l *Loop) pend(key, text string, do func(*Loop)) {
	p := &l.pilot
	if p.deed == nil || p.deed.key != key {
		p.deed = &deed{key: key, at: l.now + l.plan.Countdown, do: do}
		l.seen.Pending = Pending{Text: text, At: p.deed.at}
		if l.plan.Countdown > 0 {
			l.tell(LevelInfo, Event{Kind: EventPending, Iteration: l.iteration() + 1, Advice: l.seen.Advice, Took: l.plan.Countdown,
				Text: "in " + seconds(l.plan.Countdown) + ": " + text})
		}
	}
	l.act()
}

// act does what is due.
func (l *Loop) act() {
	d := l.pilot.deed
	if d == nil || l.seen.Held || l.seen.Paused || l.now < d.at || l.seen.Phase != PhaseWaiting {
		return
	}
	l.calledOff()
	d.do(l)
}

// calledOff forgets what was about to be done.
func (l *Loop) calledOff() {
	l.pilot.deed, l.seen.Pending = nil, Pending{}
}

// flown lets an automatic run do what has become due.
func (l *Loop) flown() {
	p := &l.pilot
	switch {
	case l.seen.Phase != PhaseWaiting || l.seen.Paused:
	case p.deed != nil && l.now >= p.deed.at && !l.seen.Held:
		l.proceed() // the hours may have ended since
	case p.deed == nil && p.next > 0 && l.now >= p.next:
		l.proceed()
	}
}

// conclude ends an automatic run: with the kept configuration running, measured
// once more where it was put back, and watched for a while where it is new.
func (l *Loop) conclude(code int, reason string) {
	l.pilot.leave = leave{set: true, code: code, reason: reason}
	l.leaving()
}

func (l *Loop) leaving() {
	p := &l.pilot
	switch {
	case l.off() && l.server.hands:
		l.pend("back", "putting back what is kept", (*Loop).goBack)
	case l.off():
		l.goBack() // by asking for it
	case l.base.again && l.now-l.seen.Since < overdue*l.plan.Longest:
		l.hesitate(l.seen.Since+overdue*l.plan.Longest, l.remains(), "measuring what was put back once more: its difference is what a restart changes by chance")
	case !l.proven():
		l.watchKept()
	default:
		l.finish(p.leave.code, p.leave.reason)
	}
}

// proven says that the kept configuration has run for long enough to be built on.
func (l *Loop) proven() bool {
	p := &l.pilot
	if len(p.formers) == 0 || l.off() || l.now-p.up >= autoProve {
		p.proved = p.proved || !l.off()
	}
	return p.proved || l.off()
}

// cannotHold says why there is nothing to hold.
func (l *Loop) cannotHold() string {
	if !l.plan.Auto {
		return "Nothing is done without a key: there is no autopilot to hold."
	}
	return ""
}

// hold stops an automatic run before its next act, or lets it go on.
func (l *Loop) hold() {
	l.seen.Held = !l.seen.Held
	if l.seen.Held {
		l.tell(LevelInfo, Event{Kind: EventPaused, Iteration: l.iteration(), Text: "autopilot is held: nothing is changed until it may go on"})
		return
	}
	l.tell(LevelInfo, Event{Kind: EventPaused, Iteration: l.iteration(), Text: "autopilot goes on"})
	if l.seen.Phase == PhaseWorse {
		l.goBack()
		return
	}
	l.calledOff()
	l.proceed()
}

// apply has the server changed. Every restart that rooftop makes goes through here.
func (l *Loop) apply(a Apply) {
	l.pilot.used.UsedStarts++
	if l.server.Inputs.Launch == nil {
		a.Changes = l.seen.Facts.sure(a.Changes)
	}
	l.trial.applied, l.trial.revert, l.trial.makes = false, a.Revert, a.Changes
	l.downAt = l.now
	l.calledOff()
	l.enter(PhaseApplying)
	a.Answers = !a.Revert && alters(a.Changes)
	l.do(a)
}

func changesCounted(n int) string {
	if n == 1 {
		return "one change"
	}
	return fmt.Sprintf("%d changes", n)
}
