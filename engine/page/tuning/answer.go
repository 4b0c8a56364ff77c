package tuning

import (
	"cmp"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// Answer returns the first section of a diagnosis: what limits the server, and the one change to
// make.
func Answer(d *engine.Diagnosis) page.Section {
	a := answer{d: d}
	switch rec := d.Recommendation; {
	case rec != nil:
		a.head(Severity(d.Finding(rec.Finding)), findingTitle(d, rec.Finding))
		a.recommendation(rec)
		a.addDoubt()
	case d.Condition.Ill():
		a.unhealthy()
	case d.Outcome == engine.OutcomeNoLoad:
		if d.Doubt != "" { // more requests would not help: the engine is not awake, or none reaches it
			a.lead(page.Mark(page.Muted, "no load"), "Nothing to judge")
			a.Add("why", page.Body, d.Doubt)
			break
		}
		a.lead(page.Mark(page.Muted, "no load"), "No requests: nothing to judge")
		a.Add("do", page.Accent, "send requests, then measure again; --duration 2m measures for longer")
	case d.Outcome == engine.OutcomeNotEvaluable:
		a.notEvaluable()
	case d.Ceiling.Impossible != "":
		a.head(page.Warn, "Nothing found to change, but the ceilings cannot be trusted")
		a.Add("do", page.Accent, "check --model, --gpu and --tensor-parallel-size; -v shows where each value came from")
	case d.Overload != "":
		a.head(page.Warn, "Overloaded: no flag helps")
		a.Add("why", page.Body, Sentence(d.Overload)+reached(d))
		a.Add("do", page.Accent, OverloadAction)
		a.addDoubt()
	default:
		a.head(page.OK, "Nothing to change")
		a.Add("why", page.Body, healthyWhy(d))
		a.addDoubt()
	}
	if d.Ceiling.Impossible != "" {
		a.warn("misread", d.Ceiling.Impossible)
	}
	for _, n := range d.Notes {
		a.Add("note", page.Warn, n)
	}
	sec := page.Section{ID: "answer", Nodes: []page.Node{a.title, a.before}}
	if a.launch != "" {
		sec.Add(page.Command(a.launch))
	}
	sec.Add(a.Facts)
	return sec
}

// unhealthy says what is wrong with the server, and what to do about it.
func (a *answer) unhealthy() {
	c := a.d.Condition
	a.head(page.Bad, c.Title())
	a.Add("why", page.Body, Sentence(c.String()))
	f := a.d.Finding(engine.Stuck)
	if f == nil || f.Fix == nil {
		return
	}
	a.Add("do", page.Accent, f.Fix.Command)
	a.Add("fix by", page.Body, FixBy(f.Fix.Kind))
	a.Add("costs", page.Body, strings.Join(f.Fix.Costs, "; "))
	if n := a.d.Windows.Active; n > 0 && n < a.d.Windows.Collected {
		a.Add("note", page.Warn, "the figures below are from the "+figure.Counted(n, "window")+" in which it worked")
	}
}

type answer struct {
	d      *engine.Diagnosis
	title  page.Prose
	before page.Facts // launch command
	launch string
	page.Facts
}

func (a *answer) lead(mark page.Text, title string) {
	a.title = page.Prose{Text: page.Join(mark, page.Toned(page.Strong, nbsp+" "+title)), Lead: true}
}

func (a *answer) head(t page.Tone, title string) { a.lead(page.Mark(t, t.Name()), title) }

func (a *answer) warn(word, text string) {
	a.Facts = append(a.Facts, page.Fact{Label: "but", Text: page.Join(page.Mark(page.Warn, word+":"), page.Toned(page.Body, " "+text))})
}

// addDoubt states what an answer does not cover.
func (a *answer) addDoubt() {
	if a.d.Doubt != "" {
		a.warn("open", a.d.Doubt)
	}
}

// recommendation adds the change, the predicted gain, the cause and the costs.
func (a *answer) recommendation(r *engine.Recommendation) {
	action := Action(r)
	a.Add("do", page.Accent, action)
	if !strings.HasPrefix(action, r.Command) {
		a.Add("how", page.Body, r.Command)
	}
	a.before, a.launch, a.Facts = a.Facts, r.Launch, nil
	a.Add("fix by", page.Body, FixBy(r.Kind))
	a.Facts = append(a.Facts, expectationFacts(Expectations(r.Predicted, a.d))...)
	a.Add("why", page.Body, r.Why)
	a.Add("costs", page.Body, strings.Join(Costs(r), "; "))
}

// expectationFacts returns predictions in columns.
func expectationFacts(list []Expectation) page.Facts {
	var names, values, changes []string
	for _, e := range list {
		names, values, changes = append(names, e.Metric), append(values, e.FromTo), append(changes, e.Change)
	}
	names, values, changes = columnOf(names, false), columnOf(values, true), columnOf(changes, true)
	var out page.Facts
	for i, e := range list {
		text := page.Join(page.Toned(page.Body, names[i], nbsp+nbsp, values[i], nbsp+nbsp), page.Toned(page.Accent, changes[i]),
			page.Toned(page.Muted, nbsp+" ", strings.TrimSpace(e.Range+" "+e.Mark)))
		out = append(out, page.Fact{Label: map[bool]string{true: "expect"}[i == 0], Text: text})
	}
	return out
}

// columnOf pads texts to the width of the widest.
func columnOf(list []string, right bool) []string {
	widest := 0
	for _, s := range list {
		widest = max(widest, len([]rune(s)))
	}
	out := make([]string, len(list))
	for i, s := range list {
		s = figure.Unbroken(s)
		pad := strings.Repeat(nbsp, widest-len([]rune(s)))
		if out[i] = s + pad; right {
			out[i] = pad + s
		}
	}
	return out
}

const (
	// longRun is the suggested duration of a run after one that saw too little.
	longRun = 2 * time.Minute
	// fewWindows is the number of windows, judged or with load, that the engine requires to call a
	// server healthy.
	fewWindows = 3
)

// notEvaluable says why nothing could be judged, and the one thing to do.
func (a *answer) notEvaluable() {
	d := a.d
	title, t, why := "Not evaluable", page.Warn, d.Doubt
	if d.Windows.Evaluable == 0 {
		title, t = "Not evaluable: no window had what a verdict needs", page.Bad
		if why == "" && d.LastRaw != nil {
			why = d.LastRaw.Why
		}
	}
	a.head(t, title)
	a.Add("why", page.Body, why)
	a.Add("do", page.Accent, nextStep(d))
}

// OverloadAction is what to do about an overloaded server that no change helps.
const OverloadAction = "add a replica or GPUs, or send fewer or shorter requests"

// DoctorHint says where to look when nothing can be judged.
const DoctorHint = "rooftop doctor lists what is readable here, and how to fix each gap"

// nextStep is what a run that could not be judged needs.
func nextStep(d *engine.Diagnosis) string {
	slots := d.Finding(engine.ConcurrencySaturation)
	switch {
	case d.Windows.Evaluable == 0:
		return DoctorHint
	case d.LastRaw != nil && d.LastRaw.Failed > 0:
		return "check that the server runs and answers, then measure again"
	case d.Windows.Active == 0:
		return "check the server's log, then measure again: --duration 2m"
	case min(d.Windows.Evaluable, d.Windows.Active) < fewWindows && d.Duration < longRun:
		return "measure longer: --duration 2m"
	case slots != nil && slots.State == engine.NotEvaluable && !d.Facts.MaxNumSeqs.Known:
		return "give -m N, the server's --max-num-seqs, and measure again"
	case d.Facts.SlotsInferred > 0 && d.Facts.SlotsInferred < d.Facts.MaxNumSeqs.Value && (d.Facts.MaxNumSeqs.Source == engine.FromFlag || d.Facts.MaxNumSeqs.Source == engine.FromEnv):
		return "leave -m out, or give what the server was started with, and measure again"
	}
	return "fix that, then measure again"
}

// healthyWhy says on what "nothing to change" rests.
func healthyWhy(d *engine.Diagnosis) string {
	load := figure.Counted(d.Windows.Active, "window") + " of load"
	s := "No rule fired persistently in " + load + "."
	var fired []string
	for i := range d.Findings {
		if f := &d.Findings[i]; f.State == engine.Fired && f.Significant {
			fired = append(fired, string(f.ID))
		}
	}
	if len(fired) > 0 {
		s = "In " + load + " " + figure.List(fired...) + " fired, and no change is known to gain anything here."
	}
	return s + reached(d)
}

// reached says how far the output is from what is achievable, "" if that is unknown.
func reached(d *engine.Diagnosis) string {
	if c := d.Ceiling.Physical; c != nil {
		if share, words := AchievableShare(Quantity(d, Output).Value, c); share != "" {
			return " Output is " + share + words + ", " + AchievableRange(c) + nbsp + "tok/s."
		}
	}
	return ""
}

// Target is the section of what was measured, for how long, and with which settings.
func Target(d *engine.Diagnosis) page.Section {
	t, f := d.Target, &d.Facts
	sec := page.Section{ID: "target"}
	dotted := func(tone page.Tone, parts ...string) {
		if text := figure.Joined(nbsp+"· ", parts...); text != "" {
			sec.Add(page.Paragraph(page.Toned(tone, text)))
		}
	}
	gpu := Hardware(f)
	if gpu != "" && t.Simulated {
		gpu += nbsp + "(simulated)"
	}
	dotted(page.Strong, cmp.Or(t.Model, f.Model.Value, "model not known"), gpu, EngineName(t))
	dotted(page.Muted, t.URL, figure.Value(d.Duration.Seconds(), "s"), WindowCounts(d.Windows))
	dotted(page.Muted, launchSettings(f)...)
	for _, c := range f.Conflicts {
		sec.Add(page.Paragraph(page.Mark(page.Warn, "conflict:"), page.Toned(page.Body, " "+c)))
	}
	return sec
}

// assumed reports whether a fact is a fallback, which nothing that was read supports.
func assumed[T any](f engine.Fact[T]) bool {
	return f.Known && f.Source == engine.FromDefault && strings.HasPrefix(f.Note, "assumed")
}

// cacheAssumed reports whether the cache's type is a fallback: its own, or that of the
// arithmetic that "auto" follows where neither launch nor model gives one.
func cacheAssumed(f *engine.Facts) bool {
	follows := f.KVCacheDType.Known && strings.HasPrefix(f.KVCacheDType.Note, "auto")
	return assumed(f.KVCacheDType) || follows && f.ComputeDType.Source == engine.FromDefault && !f.ModelKnown
}

// launchSettings is the launch configuration in short, fallbacks marked.
func launchSettings(f *engine.Facts) []string {
	var s []string
	add := func(text string, fallback bool) {
		if fallback {
			text += nbsp + "(assumed)"
		}
		s = append(s, figure.Unbroken(text))
	}
	count := func(label string, v engine.Fact[int], from int) {
		if v.Known && v.Value >= from {
			add(label+" "+figure.Whole(float64(v.Value)), assumed(v))
		}
	}
	word := func(label string, v engine.Fact[string], fallback bool) {
		if v.Known && v.Value != "" {
			add(label+" "+v.Value, fallback)
		}
	}
	count("slots", f.MaxNumSeqs, 1)
	count("TP", f.TensorParallel, 1)
	count("PP", f.PipelineParallel, 2)
	count("DP", f.DataParallel, 2)
	word("weights", f.WeightDType, assumed(f.WeightDType))
	word("KV", f.KVCacheDType, cacheAssumed(f))
	count("max len", f.MaxModelLen, 1)
	if f.KVCapacityTokens.Known {
		pool := "KV pool " + figure.Significant(f.KVCapacityTokens.Value) + " tok"
		if strings.Contains(f.KVCapacityTokens.Note, "(est)") {
			pool += " (est)"
		}
		add(pool, assumed(f.KVCapacityTokens))
	}
	if f.PrefixCaching.Known {
		add("prefix caching "+onOff(f.PrefixCaching.Value), assumed(f.PrefixCaching))
	}
	return s
}
