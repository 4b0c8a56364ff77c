package engine

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// advice is what is remembered of recommendations.
type advice struct {
	tried    []attempt
	skipped  []attempt
	pending  string // another recommendation that one stretch showed
	told     string // key of the one that was told last
	command  string // launch command that the one that stands was written from
	why      string // why the last search found nothing, "" where it did or says nothing
	hindered bool   // what a rule proposes may not be changed
}

// attempt is a change that was tried without a gain, or passed over, and the load
// at that time.
type attempt struct {
	key    string
	demand stat.Opt // requests in
	prompt stat.Opt // tokens
	output stat.Opt // tokens
	// unjudged says that no verdict was reached: it speaks against the change only
	// as long as that one runs.
	unjudged bool
}

// muchOther is the factor from which a load is another one than that of a trial.
const muchOther = 2.0

// key names the change of a fix.
func key(id FindingID, f *Fix) string {
	if f.Kind != KindFlag || f.Flag == "" {
		return string(id)
	}
	text := f.Flag + "=" + f.To
	for _, c := range f.Also {
		text += " " + c.Flag + "=" + c.To
	}
	return text
}

func attempted(key string, d *Diagnosis) attempt {
	a := attempt{key: key}
	if d != nil {
		a.demand = d.demand()
		a.prompt, a.output = d.Quantity("prompt_tokens_mean").Value, d.Quantity("output_tokens_mean").Value
	}
	return a
}

// holds says whether an attempt still speaks against a change under the load of a
// diagnosis.
func (a attempt) holds(key string, d *Diagnosis) bool { return a.key == key && a.near(d, muchOther) }

// near says that the load of a diagnosis lies within a factor of that of the attempt.
func (a attempt) near(d *Diagnosis, factor float64) bool {
	other := func(then, now stat.Opt) bool {
		return then.OK && now.OK && then.V > 0 && now.V > 0 && math.Abs(math.Log(now.V/then.V)) > math.Log(factor)
	}
	return !other(a.demand, d.demand()) &&
		!other(a.prompt, d.Quantity("prompt_tokens_mean").Value) && !other(a.output, d.Quantity("output_tokens_mean").Value)
}

// against says whether a change was tried without a gain or passed over. What an
// automatic run tried is in its iterations, with what came of it.
func (a *advice) against(key string, d *Diagnosis, auto bool) bool {
	holds := func(past attempt) bool { return past.holds(key, d) }
	return !auto && slices.ContainsFunc(a.tried, holds) || slices.ContainsFunc(a.skipped, holds)
}

// forget lets go of attempts without a verdict: what was tried no longer runs.
func (a *advice) forget() {
	a.tried = slices.DeleteFunc(a.tried, func(past attempt) bool { return past.unjudged })
}

// choose picks the change to try next; nil where none is worth it. Why that is so is
// kept for those who ask.
func (l *Loop) choose(d *Diagnosis) *Recommendation {
	s := l.searching(d)
	r, why := s.next()
	l.advice.why, l.advice.hindered = why, s.hindered
	if r == nil {
		return nil
	}
	out := l.complete(*r)
	if missed := s.aim.missed(d); missed != "" {
		out.Why = strings.TrimSpace(out.Why + " Objectives " + missed + ".")
	}
	return out
}

// searching is the search with what is known now.
func (l *Loop) searching(d *Diagnosis) *search {
	return &search{
		d: d, aim: l.plan.aim(), trials: history(l.iterations), records: l.foretold(),
		auto: l.plan.Auto, allow: l.plan.Limits.Allow, left: l.restartsLeft(),
		against: func(key string) bool { return l.advice.against(key, d, l.plan.Auto) || l.kept.has(key) },
		restart: spreadHalf(slices.Concat(l.plan.Repeats, l.noise.view())),
	}
}

// spreadHalf is half the 95 % interval, as a logarithm, that restarts alone put about
// one start of a configuration.
func spreadHalf(repeats []float64) float64 {
	s := verdict.Widen(repeats)
	if !(s.SD > 0) || !(s.DoF > 0) {
		return 0
	}
	return s.SD * stat.StudentQuantile(0.975, s.DoF)
}

// restartsLeft is how many restarts the limits leave; negative where there is none.
func (l *Loop) restartsLeft() int {
	m := l.plan.Limits
	if m.Restarts <= 0 {
		return -1
	}
	return max(0, m.Restarts-max(m.UsedStarts, l.seen.Limits.UsedStarts))
}

// complete adds the launch command with the change: that of the kept
// configuration, so that a change that gained nothing is taken back with it.
func (l *Loop) complete(r Recommendation) *Recommendation {
	if r.Kind == KindFlag {
		command := l.kept.command
		if l.seen.Baseline == nil {
			command = l.running.command
		}
		last := l.seen.Advice
		if last != nil && last.Launch != "" && key(last.Finding, &last.Fix) == key(r.Finding, &r.Fix) && l.advice.command == command {
			r.Launch = last.Launch
		} else {
			r.Launch = ChangedLaunch(command, r.changes()...)
			l.advice.command = command
		}
	}
	return &r
}

// standing is the recommendation that a restart is held against: that which
// stands, or stood when a trial began that is not over.
func (l *Loop) standing() *Recommendation {
	if l.seen.Advice != nil && l.seen.Firm {
		return l.seen.Advice
	}
	return l.trial.advice
}

// advise makes a recommendation the one that stands, and tells of it: what it
// predicts is written down before anything changes.
func (l *Loop) advise(r *Recommendation) {
	before := l.seen.Advice
	l.seen.Advice, l.advice.pending = r, ""
	l.seen.Quiet = ""
	if r == nil {
		l.seen.Quiet = l.quiet()
		l.tell(LevelInfo, Event{Kind: EventRecommendation, Iteration: l.iteration() + 1, Text: l.seen.Quiet})
		return
	}
	if before != nil && l.advice.told == key(r.Finding, &r.Fix) {
		return
	}
	l.advice.told = key(r.Finding, &r.Fix)
	l.tell(LevelInfo, Event{Kind: EventRecommendation, Iteration: l.iteration() + 1, Advice: r, Text: "recommended: " + r.Command})
}

// reconsider looks at what a renewed baseline recommends. Another recommendation
// replaces one that stands when two stretches in a row show it.
func (l *Loop) reconsider(d *Diagnosis) {
	r := l.choose(d)
	was, is := "", ""
	if l.seen.Advice != nil {
		was = key(l.seen.Advice.Finding, &l.seen.Advice.Fix)
	}
	if r != nil {
		is = key(r.Finding, &r.Fix)
	}
	switch {
	case was == is:
		l.seen.Advice, l.advice.pending = r, "" // with the figures of now
		if r == nil {
			l.seen.Quiet = l.quiet()
		}
	case was == "" || l.advice.pending == "="+is:
		l.advise(r)
	default:
		l.advice.pending = "=" + is
	}
}

// quiet says why the baseline leads to no advice, and which objectives are missed all
// the same.
func (l *Loop) quiet() string {
	text := l.still()
	if a := l.plan.aim(); l.seen.Baseline != nil {
		if missed := a.missed(l.seen.Baseline); missed != "" {
			text += "; objectives " + missed
		}
	}
	return text
}

func (l *Loop) still() string {
	d := l.seen.Baseline
	switch {
	case d == nil:
		return ""
	case l.advice.why != "" && (l.plan.Auto || d.Recommendation == nil):
		return l.advice.why
	case d.Recommendation != nil && slices.ContainsFunc(l.advice.tried, func(a attempt) bool { return a.unjudged }):
		return "what is recommended runs and could not be judged: measure it again once the load is as before"
	case d.Recommendation != nil && len(l.advice.tried) > 0:
		return "what is recommended was tried and gained nothing, and nothing else is left"
	case d.Recommendation != nil:
		return "what is recommended was skipped, and nothing else is left"
	}
	return quiet(d)
}

// quiet says why a diagnosis recommends nothing.
func quiet(d *Diagnosis) string {
	switch d.Outcome {
	case OutcomeNoLoad:
		return cmp.Or(d.Doubt, "no request is in: there is nothing to judge without load")
	case OutcomeNotEvaluable:
		why := d.Doubt
		if why == "" && d.LastRaw != nil {
			why = d.LastRaw.Why
		}
		return "nothing can be judged: " + cmp.Or(why, "no window is evaluable")
	case OutcomeRecommendation:
		return ""
	}
	text := "no bottleneck was found that a change would move"
	if d.Doubt != "" {
		text += "; " + d.Doubt
	}
	return text
}
