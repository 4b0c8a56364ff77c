package engine

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Exit codes of a finished run, as interfaces.md section 2 settles them.
const (
	exitDone    = 0
	exitError   = 1
	exitOpen    = 3
	exitNothing = 4 // no load, or nothing could be judged
	exitGone    = 5 // no server answers
)

// Limits of an automatic run, which nobody watches.
const (
	autoDown = 2 * time.Minute  // without an answer of the server
	autoIdle = 30 * time.Second // without load before anything was changed, beside the measurement
	autoBack = 2 * time.Minute  // likewise after a restart: clients take their time to come back
)

// applied takes in what became of a change that rooftop made.
func (l *Loop) applied(err string) {
	if l.seen.Phase != PhaseApplying || l.trial.applied {
		return
	}
	if err == "" {
		l.trial.applied = true
		if l.watch.attaching {
			l.watch.again = true
		}
		l.attach(0)
		return
	}
	l.tell(LevelBad, Event{Kind: EventError, Iteration: l.iteration(), Text: err})
	revert := l.trial.revert
	if !revert {
		l.end(IterationBroken)
		l.remember()
	}
	l.failure = cmp.Or(l.failure, err)
	switch {
	case l.plan.Auto && revert:
		l.finish(exitError, "the change could not be tried, and the server does not start as before: "+err)
	case l.plan.Auto:
		l.trial.failed = true
		l.goBack()
	default:
		// Whether it runs, and with what, is found out by looking.
		l.was, l.wasSince = PhaseWaiting, l.now
		if revert {
			l.was = PhaseReverting
		}
		l.trial.failed, l.trial.open = true, false
		l.enter(PhaseDown)
		l.attach(0)
	}
}

// proceed is the next step of an automatic run.
func (l *Loop) proceed() {
	if !l.plan.Auto {
		return
	}
	r := l.seen.Advice
	switch {
	case l.failure != "":
		l.finish(exitError, "the change could not be tried; the server runs as before")
	case r == nil && l.seen.Baseline.Outcome == OutcomeNoLoad:
		l.finish(exitNothing, "no request ran, so there was nothing to judge")
	case r == nil && l.seen.Baseline.Outcome == OutcomeNotEvaluable:
		l.finish(exitNothing, l.seen.Quiet)
	case r == nil && l.rounds > 0:
		l.finish(exitDone, "nothing is left to recommend")
	case r == nil:
		l.finish(exitDone, cmp.Or(l.seen.Quiet, "nothing is left to recommend"))
	case r.Kind != KindFlag || r.Flag == "" || r.To == "":
		l.finish(exitDone, "what is left is no flag of this server")
	case !l.server.hands:
		l.finish(exitOpen, cmp.Or(l.server.noHands, "rooftop cannot restart this server"))
	case l.plan.Rounds > 0 && l.rounds >= l.plan.Rounds:
		l.finish(exitOpen, fmt.Sprintf("stopped after %s, the most asked for", changesCounted(l.plan.Rounds)))
	default:
		l.applyAdvice()
	}
}

func changesCounted(n int) string {
	if n == 1 {
		return "one change"
	}
	return fmt.Sprintf("%d changes", n)
}

// patience ends an automatic run that waits for what does not come.
func (l *Loop) patience() {
	if !l.plan.Auto || l.seen.Paused {
		return
	}
	waited := l.now - l.seen.Since
	switch l.seen.Phase {
	case PhaseDown:
		if waited > autoDown {
			l.finish(exitError, "the server does not answer")
		}
	case PhaseReverting:
		l.finish(exitError, "what changed is not known, so it cannot be put back")
	case PhaseBaseline:
		l.idled(waited, autoIdle)
	case PhaseSettling, PhaseMeasuring:
		l.idled(waited, autoBack)
	}
}

// idled ends a run that could judge nothing for longer than a measurement and
// some patience.
func (l *Loop) idled(waited, patience time.Duration) {
	if waited > patience+l.plan.Measure && l.life.waits != "" {
		l.finish(exitNothing, cmp.Or(l.seen.Quiet, "nothing could be judged: "+l.life.waits))
	}
}

// quit ends the run at somebody's wish.
func (l *Loop) quit() {
	reason, code := l.left()
	l.finish(code, reason)
}

// left says how a run stands that is ended now.
func (l *Loop) left() (reason string, code int) {
	r := l.seen.Advice
	switch {
	case !l.seen.Attached:
		return "no server was found", exitGone
	case l.seen.Phase == PhaseApplying:
		return "ended while the server was being restarted", exitNothing
	case l.seen.Phase == PhaseDown && l.seen.Baseline != nil:
		return "ended while the server did not answer", exitGone
	case l.seen.Baseline == nil && l.seen.Live != nil && l.seen.Live.Outcome == OutcomeRecommendation:
		return "ended before the baseline was complete", exitNothing
	case l.seen.Baseline == nil:
		return cmp.Or(l.seen.Quiet, "ended before anything could be judged"), exitNothing
	case l.trial.open:
		return "ended before the change was judged", exitNothing
	case l.seen.Phase == PhaseWorse, l.seen.Phase == PhaseReverting:
		return "ended with a change in place that made it worse", exitOpen
	case l.openCode(r) == exitOpen:
		return "ended with a recommendation open: " + r.Command, exitOpen
	case r != nil:
		return "what is left is no flag of this server", exitDone
	case l.seen.Baseline.Outcome == OutcomeNoLoad || l.seen.Baseline.Outcome == OutcomeNotEvaluable:
		return l.seen.Quiet, exitNothing
	}
	return cmp.Or(l.seen.Quiet, "nothing is left to recommend"), exitDone
}

// openCode is the exit code with or without a flag left to change.
func (l *Loop) openCode(r *Recommendation) int {
	if r != nil && r.Kind == KindFlag && l.seen.Firm {
		return exitOpen
	}
	return exitDone
}

// Gained returns what was measured before the first change that became the
// baseline, and after the last; nil where none did. A gain is that of one over the
// other: what the load did before and since is not in it.
func Gained(list []Iteration) (before, after *Diagnosis) {
	for i := range list {
		it := &list[i]
		if it.End != IterationKept && it.End != IterationContinued {
			continue
		}
		if before == nil {
			before = it.Before
		}
		after = it.After
	}
	return before, after
}

// finish ends the run; nothing is done after it.
func (l *Loop) finish(code int, reason string) {
	if l.seen.Phase == PhaseDone {
		return
	}
	f := Finished{ExitCode: code, Reason: reason, Command: l.kept.command, Restarts: l.restarts, Gain: stat.None}
	best := l.seen.Baseline
	if before, after := Gained(l.iterations); before != nil && after != nil {
		if gain := Compare(before, after).Throughput; swayed(before, after, gain) == "" {
			f.Gain = gain
		}
	}
	if best != nil {
		for i := range best.Findings {
			if g := &best.Findings[i]; g.State == Fired && g.Significant {
				f.Remains = append(f.Remains, g.ID)
			}
		}
	}
	l.enter(PhaseDone)
	l.seen.Paused = false
	l.seen.Finished = &f
	l.tell(LevelInfo, Event{Kind: EventFinished, Iteration: l.iteration(), Text: reason, Command: f.Command, Finished: &f})
	l.do(Finish{Finish: f})
}
