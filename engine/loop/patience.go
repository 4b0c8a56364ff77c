package loop

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Time limits of an unattended run.
const (
	autoDown      = 2 * time.Minute  // no answer from a kept configuration, or an ill server
	autoDead      = 10 * time.Second // no answer from a configuration on trial
	autoHang      = 20 * time.Second // an ill server in a configuration on trial
	autoIdle      = 2 * time.Minute  // nothing to judge, as clients take time to start and to return
	idleAnnounced = 10 * time.Second // the same, before it is announced
)

// checkPatience ends waits that exceeded their time limit. While the autopilot is paused, nothing ends: actions
// that become due are done when it is resumed.
func (p *autopilot) checkPatience() {
	if !p.plan.Auto || p.paused || p.held {
		return
	}
	if p.checkIll() {
		return
	}
	p.wake()
	waited := p.now - p.since
	switch p.phase {
	case PhaseDown:
		p.checkDown(waited)
	case PhaseReverting:
		if p.server.CanApply {
			p.ending.finish(exitError, "the change is unknown, so it cannot be reverted")
		}
	case PhaseWorse: // it was paused at the verdict, and resumed while the server did not answer
		p.trials.revert()
	case PhaseBaseline, PhaseSettling, PhaseMeasuring:
		p.checkIdle()
	}
}

// checkDown is called while the server does not answer. A restart by hand may take any time, but
// a server whose process exited does not come back by itself.
func (p *autopilot) checkDown(waited time.Duration) {
	switch {
	case !p.server.CanApply || p.conn.watch.attaching && waited <= autoDead:
	case p.conn.wayCut && waited <= autoDown:
	case p.applying.made && p.applying.failed && !p.applying.revert:
		if waited > autoDead {
			p.changeFailed("the server stopped answering after it had started with the change" + p.problems())
		}
	case p.trials.open && p.changeInPlace() && waited > autoDead:
		p.changeFailed("the server exited or stopped answering under load" + p.problems())
	case p.changeInPlace() && waited > autoDead:
		p.writeEntry(LevelBad, EventError, "the server stopped answering with a change that was not kept: reverting to "+p.keptName())
		p.trials.revert()
	case waited <= autoDown && !(p.conn.watch.processEnded && waited > autoDead && len(p.previous) > 0):
	case len(p.previous) > 0 && p.budget.restartLeft():
		p.revertToPrevious("the server exited or stopped answering after the change was kept" + p.problems())
	default:
		p.ending.finish(p.ending.goneCode(), doesNotAnswer)
	}
}

// problems returns what is known about a server that does not answer: how its processes exited, or why it cannot be
// reached.
func (p *autopilot) problems() string {
	why := p.conn.attachWhy
	if len(p.conn.problems) > 0 && !p.conn.wayCut {
		why = strings.Join(p.conn.problems, "; ")
	}
	if why != "" {
		why = ": " + why
	}
	return why
}

// changeFailed ends a change whose server failed, and reverts to the kept configuration.
func (p *autopilot) changeFailed(why string) {
	p.alterLatest(func(it *Iteration) { it.Failure = why })
	p.trials.endIteration(IterationBroken)
	p.advisor.rememberTried()
	p.failure = cmp.Or(p.failure, why)
	p.emit(LevelBad, Event{Kind: EventError, Iteration: p.iteration(), Text: why + ": reverting"})
	p.trials.revert()
}

// noteFailure records why the applier could not make a change.
func (p *autopilot) noteFailure(in *Applied) {
	if in.Late {
		p.cutShort = append(p.cutShort, p.iteration())
		return
	}
	p.failure = cmp.Or(p.failure, in.Err)
}

// checkIdle ends a run that had nothing to judge for too long. Shorter pauses of the load are
// tolerated.
func (p *autopilot) checkIdle() {
	switch why := p.current.waitingFor; {
	case why == "":
		p.idle = idlePeriod{}
		return
	case !p.idle.set:
		p.idle = idlePeriod{set: true, since: p.now}
	}
	waited := p.now - p.idle.since
	if !p.idle.said && waited >= idleAnnounced {
		p.idle.said = true
		p.emit(LevelInfo, Event{Kind: EventWaiting, Iteration: p.iteration(), Took: autoIdle - waited,
			Text: p.current.waitingFor + "; the run ends at " + figure.Clock(p.idle.since+autoIdle) + " unless that changes"})
	}
	if waited < autoIdle {
		return
	}
	p.ending.endNow(exitNothing, cmp.Or(p.advisor.quiet, "nothing could be judged: "+p.current.waitingFor))
}

// previousConfiguration is a configuration that was kept, with its measurements.
type previousConfiguration struct {
	configuration configuration
	baseline      *engine.Diagnosis
	measured      baselineData
	iteration     int
}

// mostPrevious bounds the number of configurations that a run can go back.
const mostPrevious = 8

// rememberPrevious stores the kept configuration before another one replaces it.
func (p *autopilot) rememberPrevious() {
	if !p.plan.Auto || p.baseline.diagnosis == nil {
		return
	}
	p.previous = append(p.previous, previousConfiguration{p.kept, p.trials.before, p.baseline.measured, p.keptIteration})
	p.previous = p.previous[max(0, len(p.previous)-mostPrevious):]
	p.stable = false
}

// revertToPrevious reverts to the configuration kept before the current one, which did not last.
func (p *autopilot) revertToPrevious(why string) {
	if p.canaries.exists { // it goes first
		p.canaries.fail(why)
		return
	}
	p.unasked = 0
	f := p.previous[len(p.previous)-1]
	p.previous = p.previous[:len(p.previous)-1]
	if i := slices.IndexFunc(p.iterations, func(it Iteration) bool { return it.N == p.keptIteration }); i >= 0 {
		p.iterations = slices.Clone(p.iterations)
		p.iterations[i].End, p.iterations[i].Failure = IterationBroken, why
		p.lostChange = engine.JoinChanges(p.iterations[i].Changes) + " was better but is left out, because the server exited with it: try it again if something else caused the exit"
		p.failure = cmp.Or(p.failure, why)
	}
	broken := p.keptIteration
	changes := changesFrom(p.kept, f.configuration)
	if p.trials.open {
		p.trials.endIteration(IterationBroken)
	}
	p.emit(LevelBad, Event{Kind: EventError, Iteration: broken, Text: why + ": reverting to the previously kept configuration"})
	p.kept, p.keptIteration = f.configuration, f.iteration
	p.baseline.restore(f.baseline, f.measured)
	p.trials.trial = trial{lost: broken, before: f.baseline}
	p.notKept, p.ownInPlace = true, nil
	if len(changes) == 0 {
		reason, code := p.ending.currentReason()
		p.ending.finish(code, reason)
		return
	}
	p.emit(LevelInfo, Event{Kind: EventApplying, Iteration: broken, Change: firstOf(changes), Command: p.kept.command, Text: "reverting: " + engine.JoinChanges(changes)})
	p.applying.apply(Apply{Changes: changes, Iteration: broken})
}
