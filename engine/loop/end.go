package loop

import (
	"cmp"
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Exit codes of a finished run (docs/interfaces.md section 2).
const (
	exitDone    = 0
	exitError   = 1
	exitOpen    = 3
	exitNothing = 4 // no load, or nothing could be judged
	exitGone    = 5 // no server was found, or it no longer answers
)

// ending ends the run.
type ending struct {
	*shared
	conn     *connection
	baseline *baselines
	trials   *trials
	applying *applying
	advisor  *advisor
	budget   *budget
	auto     *autopilot

	finished *Finished // nil until then
}

// quit ends the run at the user's request. An automatic run reverts to the kept configuration
// first; a second quit does not abandon that.
func (e *ending) quit() {
	if e.auto.exit.set {
		return
	}
	reason, code := e.currentReason()
	e.endNow(code, reason)
}

// endNow ends the run, after reverting to the kept configuration if need be.
func (e *ending) endNow(code int, reason string) {
	applying := e.phase == PhaseApplying
	if !e.revertsFirst() {
		e.finish(code, reason)
		return
	}
	e.paused, e.auto.held = false, false
	if e.trials.open && !applying {
		e.trials.endIteration(IterationReverted)
	}
	e.auto.exit = exit{set: true, code: code, reason: reason + "; " + e.keptName() + " runs again"}
	e.writeEntry(LevelWarn, "", "reverting to "+e.keptName()+" first")
	if !applying { // the result of the change comes first
		e.trials.revert()
	}
}

// revertsFirst reports whether a run that ends now runs the kept configuration again first: no one
// watches a change that rooftop made and did not keep. An automatic run also reverts changes by
// others.
func (e *ending) revertsFirst() bool {
	switch {
	case !e.server.CanApply, e.phase == PhaseDone:
		return false
	case e.phase == PhaseApplying:
		return true
	}
	return e.changeInPlace() && (e.plan.Auto || len(e.trials.ownInPlace) > 0)
}

// currentReason returns the reason and exit code of a run that is ended now.
func (e *ending) currentReason() (reason string, code int) {
	switch {
	case !e.server.found:
		return "no server was found", exitGone
	case e.current.condition.Ill() && e.phase != PhaseApplying && e.phase != PhaseDown:
		return "ended while " + e.current.condition.String(), exitUnhealthy
	case e.phase == PhaseApplying:
		return "ended while the server was being restarted", exitNothing
	case e.phase == PhaseDown && !e.revertsFirst():
		return "ended while the server did not answer", e.goneCode()
	case !e.baseline.firm && e.current.live != nil && e.current.live.Outcome == engine.OutcomeRecommendation:
		return "ended before the baseline was complete", exitNothing
	case !e.baseline.firm:
		return cmp.Or(e.advisor.quiet, "ended before anything could be judged"), exitNothing
	case e.trials.open:
		return "ended before the change was judged", exitNothing
	case e.phase == PhaseWorse, e.phase == PhaseReverting:
		return "ended with a change in place that made performance worse", exitOpen
	}
	switch r := e.advisor.atEnd().advice; {
	case r == nil:
		return e.withoutAdvice()
	case r.Kind == engine.KindFlag:
		return "ended with a recommendation open: " + r.Command, exitOpen
	}
	return noFlagHelps, exitDone
}

// goneCode returns the exit code of a run whose server does not answer. If it did not come up with a change
// or a revert by rooftop, it does not run as intended.
func (e *ending) goneCode() int {
	if e.applying.failed {
		return exitError
	}
	return exitGone
}

// withoutAdvice returns the reason and exit code of a run that ends without a further recommendation.
func (e *ending) withoutAdvice() (reason string, code int) {
	switch j, auto := e.advisor.atEnd(), e.plan.Auto; {
	case j.of.Outcome == engine.OutcomeNoLoad, j.of.Outcome == engine.OutcomeNotEvaluable:
		return j.quiet, exitNothing
	case j.blocked:
		return j.quiet, exitOpen
	case auto && e.auto.openWithoutRestart(j.of.Recommendation):
		return j.quiet, exitOpen
	case auto && e.auto.failure != "" && e.keptCount() == 0:
		return nothingKept + e.auto.failure, exitError
	case auto && e.auto.undecided(j.of.Recommendation) != "":
		return e.auto.undecided(j.of.Recommendation), exitOpen
	case e.auto.lostChange != "":
		return e.auto.lostChange, exitOpen
	default:
		return j.quiet, exitDone
	}
}

// Gained returns the measurement before the first kept change and the one after the last, nil
// if there is none. Comparing the two leaves out what the load did before and since.
func Gained(list []Iteration) (before, after *engine.Diagnosis) {
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

// gain returns the combined change of output tokens per second by the kept changes, with its
// interval. known is false if one of them is unknown.
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

// tokensEffect returns the effect of a change on the output; false if the load explains it.
func tokensEffect(d *effect.Delta) (verdict.Interval, bool) {
	if d == nil || d.Verdict == nil || d.Direction == verdict.NotComparable {
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

// inPlace returns the end of a sentence naming the running settings that are not kept; "" if
// there are none or they are unknown.
func (e *ending) inPlace() string {
	changes := changesFrom(e.kept, e.running)
	if !e.changeInPlace() || e.applying.failed || len(changes) == 0 {
		return ""
	}
	return "; " + engine.JoinChanges(changes) + " is in place but not kept"
}

// finish ends the run; no action follows it.
func (e *ending) finish(code int, reason string) {
	if e.phase == PhaseDone {
		return
	}
	if e.plan.Auto && e.phase != PhaseApplying && !strings.Contains(reason, "in place") {
		reason += e.inPlace()
	}
	if e.phase == PhaseApplying {
		e.budget.used.UsedOutages += e.conn.watch.outage(e.now) // no page has ended the outage
	}
	f := Finished{ExitCode: code, Reason: reason, Command: e.kept.command, Restarts: e.budget.restarts, Downtime: e.budget.used.UsedOutages, Score: score(e.iterations), Limits: e.budget.limits()}
	f.GainWithin, f.GainKnown = gain(e.iterations)
	if f.GainKnown {
		f.Gain = stat.Some(f.GainWithin.Mid)
	}
	if best := e.baseline.diagnosis; best != nil {
		for i := range best.Findings {
			if g := &best.Findings[i]; g.State == engine.Fired && g.Significant {
				f.Remains = append(f.Remains, g.ID)
			}
		}
	}
	e.auto.cancelPending()
	e.enterPhase(PhaseDone)
	e.paused = false
	e.finished = &f
	e.emit(LevelInfo, Event{Kind: EventFinished, Iteration: e.iteration(), Text: reason, Command: f.Command, Finished: &f})
	e.addAction(Finish{Finish: f})
}
