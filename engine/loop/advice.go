package loop

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// advisor chooses the recommendation and remembers the changes that were passed over.
type advisor struct {
	*shared
	baseline *baselines
	trials   *trials
	budget   *budget

	judgement   // the current one; the zero judgement while a change is measured
	tried       []attempt
	skipped     []attempt
	pending     string // key of another recommendation, shown by one stretch so far
	announced   string // key of the last announced recommendation
	preliminary string // why the announced recommendation is preliminary, "" if it is final
	command     string // launch command from which the current recommendation was written
}

// judgement is what follows from one diagnosis: advice, the reason for none, and the end of the run are
// always those of the same one.
type judgement struct {
	of      *engine.Diagnosis
	advice  *engine.Recommendation // nil if there is none
	quiet   string                 // why there is none
	blocked bool                   // a rule proposes a change that is not allowed
}

// attempt is a change that was skipped, or tried without a gain, and the load at that time.
type attempt struct {
	key  string
	load search.Load
	// unjudged marks a change without a verdict. It is excluded only while it runs.
	unjudged bool
	need     string // what a verdict on it still requires, or ""
}

// excludes reports whether the attempt still excludes a change under the load of a diagnosis.
func (a attempt) excludes(key string, d *engine.Diagnosis) bool {
	return a.key == key && a.load.Near(d, search.OtherLoad)
}

func attempted(key string, d *engine.Diagnosis) attempt {
	return attempt{key: key, load: search.LoadOf(d)}
}

// passedOver reports whether a change was tried without a gain, or skipped. An automatic run
// keeps its own trials in its iterations instead.
func (a *advisor) passedOver(key string, d *engine.Diagnosis, auto bool) bool {
	holds := func(past attempt) bool { return past.excludes(key, d) }
	return !auto && slices.ContainsFunc(a.tried, holds) || slices.ContainsFunc(a.skipped, holds)
}

// forget drops the attempts without a verdict, because their changes no longer run.
func (a *advisor) forget() {
	a.tried = slices.DeleteFunc(a.tried, func(past attempt) bool { return past.unjudged })
}

// judge returns what follows from a diagnosis: the change to try next, or why there is none.
func (a *advisor) judge(d *engine.Diagnosis) judgement {
	s := a.newSearch(d)
	r, why := s.Next()
	if r != nil && r.Kind == engine.KindFlag && d.Quantity("generation_tokens_per_s").Value == stat.Some(0) {
		r, why = nil, "no request generates a token, so output does not show the effect of a change"
	}
	j := judgement{of: d, blocked: s.Blocked}
	missed := s.Goal.Missed(d)
	if r == nil {
		j.quiet = a.whyNoAdvice(d, why)
		if missed != "" {
			j.quiet += "; objectives " + missed
		}
		return j
	}
	j.advice = a.complete(*r)
	if j.advice.Finding == engine.SearchStep {
		j.advice.Why = strings.TrimSpace(proposedBySearch(d, &j.advice.Fix) + " " + j.advice.Why)
	}
	if missed != "" {
		j.advice.Why = strings.TrimSpace(j.advice.Why + " Objectives " + missed + ".")
	}
	return j
}

// atEnd returns the judgement that an end of the run follows from: the current one, or that of the baseline
// while something else is measured.
func (a *advisor) atEnd() judgement {
	if a.of == nil {
		return a.judge(a.baseline.diagnosis)
	}
	return a.judgement
}

// proposedBySearch returns the label of a recommendation that no rule made: it names the findings whose own
// remedies set the same flags to other values.
func proposedBySearch(d *engine.Diagnosis, fix *engine.Fix) string {
	var found []string
	for i := range d.Findings {
		f := &d.Findings[i]
		sets := func(c engine.Change) bool { return f.Fix != nil && c.Flag == f.Fix.Flag }
		if f.State == engine.Fired && f.Significant && slices.ContainsFunc(fix.Changes(), sets) {
			found = append(found, f.Title)
		}
	}
	if len(found) == 0 {
		return "Proposed by the search; no rule found it."
	}
	return "Proposed by the search for " + figure.List(found...) + "."
}

// newSearch returns the search for the current state.
func (a *advisor) newSearch(d *engine.Diagnosis) *search.Search {
	return &search.Search{
		Baseline: d, Goal: a.plan.goal(), Trials: a.pastTrials(),
		Auto: a.plan.Auto, Allow: a.plan.Limits.Allow, RestartsLeft: a.budget.restartsLeft(),
		PassedOver:    func(key string) bool { return a.passedOver(key, d, a.plan.Auto) || a.kept.includes(key) },
		RestartSpread: spreadHalf(slices.Concat(a.plan.Repeats, a.baseline.noise.view())),
		Detectable:    a.detectable(),
	}
}

// detectable returns the least gain, as a logarithm, that a whole trial would distinguish from noise; 0 if unknown.
func (a *advisor) detectable() float64 {
	if least := a.baseline.detectable([]time.Duration{a.plan.Longest}); len(least) > 0 {
		return math.Log1p(least[0])
	}
	return 0
}

// spreadHalf returns half the 95 % interval, as a logarithm, that restarts alone cause for one
// start of a configuration.
func spreadHalf(repeats []float64) float64 {
	s := verdict.Widen(repeats)
	if !(s.SD > 0) || !(s.DoF > 0) {
		return 0
	}
	return s.SD * stat.StudentQuantile(0.975, s.DoF)
}

// complete adds the launch command: the kept configuration's with the change, so that a
// change without a gain is reverted by it.
func (a *advisor) complete(r engine.Recommendation) *engine.Recommendation {
	if r.Kind == engine.KindFlag {
		command := a.kept.command
		if a.baseline.diagnosis == nil {
			command = a.running.command
		}
		last := a.advice
		if last != nil && last.Launch != "" && search.Key(last.Finding, &last.Fix) == search.Key(r.Finding, &r.Fix) && a.command == command {
			r.Launch = last.Launch
		} else {
			r.Launch = CommandWithChanges(command, r.Changes()...)
			a.command = command
		}
	}
	return &r
}

// openAdvice returns the recommendation to compare a restart with: the current one, or that of
// the trial in progress.
func (a *advisor) openAdvice() *engine.Recommendation {
	if a.advice != nil && a.baseline.firm {
		return a.advice
	}
	return a.trials.advice
}

// advise makes a judgement the current one and announces it, so that its prediction is
// recorded before anything changes.
func (a *advisor) advise(j judgement) {
	before, r := a.advice, j.advice
	a.judgement, a.pending = j, ""
	if r == nil {
		a.emit(LevelInfo, Event{Kind: EventRecommendation, Iteration: a.nextIteration(), Text: a.quiet})
		return
	}
	if before == nil || a.announced != search.Key(r.Finding, &r.Fix) {
		a.announce(r)
	}
}

// announce emits the current recommendation, marked if it is preliminary.
func (a *advisor) announce(r *engine.Recommendation) {
	a.announced, a.preliminary = search.Key(r.Finding, &r.Fix), a.baseline.preliminary()
	text := "recommended: " + r.Command
	if a.preliminary != "" {
		text = "preliminary " + a.preliminary + ": " + r.Command
	}
	a.emit(LevelInfo, Event{Kind: EventRecommendation, Iteration: a.nextIteration(), Advice: r, Preliminary: a.preliminary, Text: text})
	if text := a.baseline.outlook(r); text != "" {
		a.writeEntry(LevelInfo, "", text)
	}
}

// advisePreliminarily follows the latest windows while the baseline is measured: it neither
// announces a recommendation nor makes one while the load is rising.
func (a *advisor) advisePreliminarily(live *engine.Diagnosis, rising bool) {
	a.judgement = judgement{}
	if !rising {
		a.judgement = a.judge(live)
	}
	a.quiet = ""
	if live.Outcome == engine.OutcomeNoLoad || live.Outcome == engine.OutcomeNotEvaluable {
		a.quiet = quietReason(live)
	}
}

// skip passes the current recommendation over and makes another.
func (a *advisor) skip() {
	a.skipped = append(a.skipped, attempted(search.Key(a.advice.Finding, &a.advice.Fix), a.baseline.diagnosis))
	a.writeEntry(LevelInfo, "", "skipped: "+a.advice.Command)
	a.advise(a.judge(a.baseline.diagnosis))
}

// unskip offers the change that was skipped last again.
func (a *advisor) unskip() {
	a.skipped = a.skipped[:len(a.skipped)-1]
	a.writeEntry(LevelInfo, "", "the skip was undone")
	a.advise(a.judge(a.baseline.diagnosis))
}

// rememberTried records the latest set of changes as tried, without a gain or without a verdict. It says
// nothing about a part of the set.
func (a *advisor) rememberTried() {
	it := a.lastIteration()
	if changes := material(it.Changes); len(changes) > 0 {
		past := attempted(search.ChangesKey(changes), it.Before)
		past.unjudged = it.Delta != nil && (it.Delta.Direction == verdict.NotComparable || it.Delta.Direction == verdict.Inconclusive)
		if past.unjudged && it.Delta.Verdict != nil {
			past.need = it.Delta.Verdict.Need
		}
		a.tried = append(a.tried, past)
	}
}

// reconsider evaluates the recommendation of a renewed baseline. It replaces a different
// current one only after two consecutive stretches.
func (a *advisor) reconsider(d *engine.Diagnosis) {
	j := a.judge(d)
	r, was, is := j.advice, "", ""
	if a.advice != nil {
		was = search.Key(a.advice.Finding, &a.advice.Fix)
	}
	if r != nil {
		is = search.Key(r.Finding, &r.Fix)
	}
	switch {
	case was == is:
		a.judgement, a.pending = j, "" // update the figures
		if r != nil && a.preliminary != "" && a.baseline.preliminary() == "" {
			a.announce(r) // it is final now
		}
	case was == "" || a.pending == "="+is || a.preliminary != "":
		a.advise(j)
	default:
		a.pending = "=" + is
	}
}

// whyNoAdvice returns why nothing is recommended for a diagnosis. searched is why the search found nothing,
// or "".
func (a *advisor) whyNoAdvice(d *engine.Diagnosis, searched string) string {
	unjudged := slices.IndexFunc(a.tried, func(past attempt) bool { return past.unjudged })
	switch {
	case d.Outcome == engine.OutcomeNoLoad, d.Outcome == engine.OutcomeNotEvaluable: // what cannot be judged comes first
		return quietReason(d)
	case d.Overload != "" && searched != "":
		return d.Overload + "; " + searched
	case searched != "" && (a.plan.Auto || d.Recommendation == nil):
		return searched
	case d.Recommendation != nil && unjudged >= 0:
		return "the recommended change is running and could not be judged: it needs " + cmp.Or(a.tried[unjudged].need, "another measurement under the same load")
	case d.Recommendation != nil && len(a.tried) > 0:
		return "the recommended change was tried without a gain, and nothing else is left"
	case d.Recommendation != nil:
		return "you skipped the only recommendation"
	}
	return quietReason(d)
}

// quietReason returns why a diagnosis recommends nothing.
func quietReason(d *engine.Diagnosis) string {
	switch d.Outcome {
	case engine.OutcomeNoLoad:
		return cmp.Or(d.Doubt, "no requests: there is nothing to judge without load")
	case engine.OutcomeNotEvaluable:
		why := d.Doubt
		if why == "" && d.LastRaw != nil {
			why = d.LastRaw.Why
		}
		return "nothing can be judged: " + cmp.Or(why, "no window is evaluable")
	case engine.OutcomeRecommendation:
		return ""
	}
	text := cmp.Or(d.Overload, "no bottleneck was found that a change would fix")
	if d.Doubt != "" {
		text += "; " + d.Doubt
	}
	return text
}

// recommendedChanges returns the recommended changes, or none if the recommendation is not a server flag.
func (a *advisor) recommendedChanges() []engine.Change {
	r := a.openAdvice()
	if r == nil || r.Kind != engine.KindFlag || r.Flag == "" {
		return nil
	}
	return r.Changes()
}
