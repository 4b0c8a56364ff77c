package engine

import (
	"cmp"
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Exit codes of a finished run, as interfaces.md section 2 settles them.
const (
	exitDone    = 0
	exitError   = 1
	exitOpen    = 3
	exitNothing = 4 // no load, or nothing could be judged
	exitGone    = 5 // no server answers
)

// applied takes in what became of a change that rooftop made.
func (l *Loop) applied(in Applied) {
	if l.seen.Phase != PhaseApplying || l.trial.applied {
		return
	}
	if in.Canary != nil && !l.trial.revert {
		l.change(func(it *Iteration) { it.Canary = in.Canary })
	}
	if in.Ended != "" && l.trial.revert {
		l.ended(in.Ended)
	}
	switch {
	case in.Err != "":
		l.notApplied(in)
	case l.pilot.leave.now && l.trial.revert:
		l.keptRuns()
		l.finish(l.pilot.leave.code, l.pilot.leave.reason)
	case l.pilot.leave.now:
		l.goBack()
	default:
		l.trial.applied = true
		l.running.made = overlaid(l.kept.made, l.trial.makes)
		if l.trial.revert {
			l.running.made = l.kept.made
		}
		if l.watch.attaching {
			l.watch.again = true
		}
		l.attach(0)
	}
}

// ended adds to the latest failure what the log of the server says of it.
func (l *Loop) ended(why string) {
	l.write(LevelBad, EventError, "its log says: "+why)
	l.change(func(it *Iteration) {
		if it.Failure != "" {
			it.Failure += ": " + why
		}
	})
}

// keptRuns notes that what is kept runs again.
func (l *Loop) keptRuns() {
	if n := len(l.iterations); n > 0 && l.iterations[n-1].End != IterationBroken && l.trial.off {
		l.end(IterationReverted)
	}
	l.trial.off, l.trial.open, l.running = false, false, l.kept
	l.seen.Launch = l.kept.command
}

// notApplied takes in that a change, or a way back, could not be made.
func (l *Loop) notApplied(in Applied) {
	l.tell(LevelBad, Event{Kind: EventError, Iteration: l.iteration(), Text: in.Err})
	revert := l.trial.revert
	if !revert {
		l.change(func(it *Iteration) { it.Failure = in.Err })
		l.end(IterationBroken)
		l.remember()
	}
	l.trial.fell = !revert && !in.Untouched
	if in.Late {
		l.pilot.cut = append(l.pilot.cut, l.iteration())
	} else {
		l.failure = cmp.Or(l.failure, in.Err)
	}
	switch {
	case l.plan.Auto && revert:
		l.finish(exitError, "what is kept could not be put back: "+in.Err)
	case in.Untouched && !l.pilot.leave.now:
		l.spared()
	case in.Back:
		l.backByHands()
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

// spared goes on after a change that was refused before the server was touched: it
// runs on as it did, and no restart was made.
func (l *Loop) spared() {
	l.trial.failed, l.trial.open, l.trial.applied = false, false, false
	l.pilot.used.UsedStarts = max(0, l.pilot.used.UsedStarts-1)
	if l.plan.Auto && l.off() {
		l.goBack()
		return
	}
	l.toWaiting()
}

// backByHands goes on after hands that could not make a change have put back what
// was: the server that is to be attached to is the kept one.
func (l *Loop) backByHands() {
	if !l.trial.revert {
		l.pilot.used.UsedStarts++ // that way back was one
	}
	l.trial.failed, l.trial.open = false, false
	if l.pilot.leave.now {
		l.keptRuns()
		l.finish(l.pilot.leave.code, l.pilot.leave.reason)
		return
	}
	l.trial.revert, l.trial.applied = true, true
	l.running.made = l.kept.made
	if l.watch.attaching {
		l.watch.again = true
	}
	l.attach(0)
}

// quit ends the run at somebody's wish. An automatic one puts back what is kept
// first; the second wish ends it at once.
func (l *Loop) quit() {
	if l.pilot.leave.now {
		l.finish(exitError, "ended at once, while the kept configuration was being put back: 'rooftop recover' finishes that")
		return
	}
	reason, code := l.left()
	l.endNow(code, reason)
}

// endNow ends the run; an automatic one puts back what is kept first.
func (l *Loop) endNow(code int, reason string) {
	applying := l.seen.Phase == PhaseApplying
	if !l.plan.Auto || !l.server.hands || !applying && !l.off() {
		l.finish(code, reason)
		return
	}
	l.seen.Paused = false
	if l.trial.open && !applying {
		l.end(IterationReverted)
	}
	l.pilot.leave = leave{set: true, now: true, code: code, reason: reason + "; what is kept was put back"}
	if applying {
		l.write(LevelWarn, "", "the restart under way is finished first, and what is kept put back; once more ends at once")
		return
	}
	l.write(LevelWarn, "", "what is kept is put back first; once more ends at once")
	l.goBack()
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
	case l.plan.Auto && l.openButFor():
		return cmp.Or(l.seen.Quiet, l.exhausted()), exitOpen
	case l.plan.Auto && l.failure != "" && l.keptCount() == 0:
		return nothingHeld + l.failure, exitError
	case l.plan.Auto && l.undecided() != "":
		return l.undecided(), exitOpen
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

// gain is what the kept changes brought together, of output tokens per second, with
// the interval that their own leave. Absent where one of them is not known.
func gain(list []Iteration) (total verdict.Interval, known bool) {
	log, square := 0.0, 0.0
	for i := range list {
		it := &list[i]
		if it.End != IterationKept && it.End != IterationContinued {
			continue
		}
		e, ok := tokensEffect(it.Delta)
		if !ok {
			return verdict.Interval{}, false
		}
		half := (math.Log1p(e.High) - math.Log1p(e.Low)) / 2
		log, square, known = log+math.Log1p(e.Mid), square+half*half, true
	}
	half := math.Sqrt(square)
	return verdict.Interval{Low: math.Expm1(log - half), Mid: math.Expm1(log), High: math.Expm1(log + half)}, known
}

// tokensEffect is what a change did to the output; not known where the load
// explains it.
func tokensEffect(d *Delta) (verdict.Interval, bool) {
	if d == nil || d.Verdict == nil || d.Direction == NotComparable {
		return verdict.Interval{}, false
	}
	r := d.Verdict
	if r.Goal == verdict.Throughput || r.Goal == "" {
		return r.Effect, r.Known && r.Effect.Low > -1
	}
	for i := range r.Measures {
		if m := &r.Measures[i]; m.Metric == verdict.MetricTokens {
			return m.Change, m.Known && m.Change.Low > -1
		}
	}
	return verdict.Interval{}, false
}

// inPlace says which settings run that are not kept, as the end of a sentence; "" where
// there are none, or none is known.
func (l *Loop) inPlace() string {
	changes := changesFrom(l.kept, l.running)
	if !l.off() || l.trial.failed || len(changes) == 0 {
		return ""
	}
	return "; " + listed(changes) + " is in place, and not kept"
}

// finish ends the run; nothing is done after it.
func (l *Loop) finish(code int, reason string) {
	if l.seen.Phase == PhaseDone {
		return
	}
	if l.plan.Auto && l.seen.Phase != PhaseApplying && !strings.Contains(reason, "in place") {
		reason += l.inPlace()
	}
	if l.seen.Phase == PhaseApplying {
		l.pilot.used.UsedOutages += l.watch.outage(l.now) // of which no page has told the end
	}
	f := Finished{ExitCode: code, Reason: reason, Command: l.kept.command, Restarts: l.restarts, Downtime: l.pilot.used.UsedOutages, Score: score(l.iterations), Limits: l.limits()}
	f.GainWithin, f.GainKnown = gain(l.iterations)
	if f.GainKnown {
		f.Gain = stat.Some(f.GainWithin.Mid)
	}
	if best := l.seen.Baseline; best != nil {
		for i := range best.Findings {
			if g := &best.Findings[i]; g.State == Fired && g.Significant {
				f.Remains = append(f.Remains, g.ID)
			}
		}
	}
	l.calledOff()
	l.enter(PhaseDone)
	l.seen.Paused = false
	l.seen.Finished = &f
	l.tell(LevelInfo, Event{Kind: EventFinished, Iteration: l.iteration(), Text: reason, Command: f.Command, Finished: &f})
	l.do(Finish{Finish: f})
}
