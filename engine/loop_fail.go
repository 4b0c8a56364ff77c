package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Patience of an automatic run, which nobody watches.
const (
	autoDown = 2 * time.Minute  // without an answer of a server that was kept
	autoDead = 10 * time.Second // without one of a server that is being tried
	autoHang = 20 * time.Second // of a server that is being tried, with requests in and nothing moving
	autoIdle = 2 * time.Minute  // with nothing to judge: clients take their time to come, and to come back
	autoSay  = 10 * time.Second // likewise, before it is said
	hangs5   = 5                // longest steps that a hang is longer than
)

// patience ends what an automatic run waits for in vain.
func (l *Loop) patience() {
	if !l.plan.Auto || l.seen.Paused {
		return
	}
	if l.overtaken() {
		l.tooLate()
		return
	}
	l.flown()
	waited := l.now - l.seen.Since
	switch l.seen.Phase {
	case PhaseDown:
		l.downFor(waited)
	case PhaseReverting:
		if l.server.hands {
			l.finish(exitError, "what changed is not known, so it cannot be put back")
		}
	case PhaseBaseline:
		l.idled()
	case PhaseSettling, PhaseMeasuring:
		if why := l.hung(); why != "" {
			l.broke(why)
			return
		}
		l.idled()
	}
}

// downFor is called while the server does not answer. Whoever restarts it by hand
// takes the time that it takes; one whose process is known to have ended does not
// come back by itself.
func (l *Loop) downFor(waited time.Duration) {
	switch {
	case !l.server.hands || l.watch.attaching && waited <= autoDead:
	case l.trial.open && l.off() && waited > autoDead:
		l.broke("the server ended, or no longer answers, under load" + l.problems())
	case l.off() && waited > autoDead:
		l.write(LevelBad, EventError, "the server no longer answers with what was not kept: the kept configuration is put back")
		l.goBack()
	case waited <= autoDown && !(l.watch.ended && waited > autoDead && len(l.pilot.formers) > 0):
	case len(l.pilot.formers) > 0 && l.restartLeft():
		l.toFormer("it did not last: the server ended, or no longer answers, after it was kept" + l.problems())
	default:
		l.finish(exitError, "the server does not answer")
	}
}

// problems are what the server's processes last told of their end.
func (l *Loop) problems() string {
	if len(l.seen.Problems) == 0 {
		return ""
	}
	return ": " + strings.Join(l.seen.Problems, "; ")
}

// restartLeft says that an automatic run may restart the server once more.
func (l *Loop) restartLeft() bool {
	most := l.plan.Limits.Restarts
	return !l.plan.Auto || most == 0 || l.pilot.used.UsedStarts < most
}

// hung says why a server that is being tried is taken for hanging: requests are in,
// and nothing moves for longer than any step explains.
func (l *Loop) hung() string {
	n := len(l.life.windows)
	if n == 0 || !l.server.hands || !l.trial.open || !l.off() {
		return ""
	}
	w := &l.life.windows[n-1]
	if !w.Evaluable || w.Stall <= max(autoHang, hangs5*w.LongestStep) {
		return ""
	}
	return "the server hangs: requests are in, and nothing moved for " + seconds(w.Stall)
}

// broke ends a change that did not live, and puts back what is kept.
func (l *Loop) broke(why string) {
	l.change(func(it *Iteration) { it.Failure = why })
	l.end(IterationBroken)
	l.remember()
	l.failure = cmp.Or(l.failure, why)
	l.tell(LevelBad, Event{Kind: EventError, Iteration: l.iteration(), Text: why + ": put back"})
	l.goBack()
}

// idled ends a run that has had nothing to judge for longer than patience lasts. A
// load that pauses for a while in between is no reason.
func (l *Loop) idled() {
	p := &l.pilot
	switch why := l.life.waits; {
	case why == "":
		p.lull = lull{}
		return
	case !p.lull.set:
		p.lull = lull{set: true, since: l.now}
	}
	waited := l.now - p.lull.since
	if !p.lull.said && waited >= autoSay {
		p.lull.said = true
		l.tell(LevelInfo, Event{Kind: EventWaiting, Iteration: l.iteration(), Took: autoIdle - waited,
			Text: l.life.waits + "; the run ends if that lasts for " + seconds(autoIdle)})
	}
	if waited < autoIdle {
		return
	}
	l.endNow(exitNothing, cmp.Or(l.seen.Quiet, "nothing could be judged: "+l.life.waits))
}

// former is a configuration that was kept, with what was measured of it.
type former struct {
	configuration configuration
	baseline      *Diagnosis
	base          base
	iteration     int
}

// formersMost bounds how far back an automatic run can go.
const formersMost = 8

// succeed remembers the kept configuration: another one takes its place.
func (l *Loop) succeed() {
	if !l.plan.Auto || l.seen.Baseline == nil {
		return
	}
	p := &l.pilot
	p.formers = append(p.formers, former{l.kept, l.trial.before, l.base, l.returns})
	p.formers = p.formers[max(0, len(p.formers)-formersMost):]
	p.proved, p.falls = false, 0
}

// toFormer goes back to the configuration that was kept before the present one,
// which did not last.
func (l *Loop) toFormer(why string) {
	p := &l.pilot
	f := p.formers[len(p.formers)-1]
	p.formers = p.formers[:len(p.formers)-1]
	if i := slices.IndexFunc(l.iterations, func(it Iteration) bool { return it.N == l.returns }); i >= 0 {
		l.iterations = slices.Clone(l.iterations)
		l.iterations[i].End, l.iterations[i].Failure = IterationBroken, why
		p.lost = listed(l.iterations[i].Changes) + " was better and is left out, since the server ended under it: if something else ended it, try it again"
		l.failure = cmp.Or(l.failure, why)
	}
	if !p.leave.now {
		p.leave = leave{} // it was the end of a run whose change lasted
	}
	broken := l.returns
	changes := changesFrom(l.kept, f.configuration)
	if l.trial.open {
		l.end(IterationBroken)
	}
	l.tell(LevelBad, Event{Kind: EventError, Iteration: broken, Text: why + ": what was kept before is put back"})
	l.kept, l.returns, l.base = f.configuration, f.iteration, f.base
	l.seen.Baseline = f.baseline
	l.trial = trial{off: true, former: true, before: f.baseline}
	if len(changes) == 0 {
		l.finish(exitError, "the server does not answer")
		return
	}
	l.tell(LevelInfo, Event{Kind: EventApplying, Iteration: broken, Change: firstOf(changes), Command: l.kept.command, Text: "putting back: " + listed(changes)})
	l.apply(Apply{Changes: changes, Iteration: broken})
	l.trial.revert = true
}
