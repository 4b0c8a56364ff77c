package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Request is the input of a diagnosis.
type Request struct {
	Started  time.Time
	Duration time.Duration
	Version  string // of rooftop
	Target   Target
	Facts    Facts
	Windows  []Window // in order; not modified
	Rules    []Rule
	Missing  []Missing // what the sources could not read
	Notes    []string
	GPUWhy   string // why no GPU is readable, "" where one is
	// Objectives are limits on latencies that bound the headroom.
	Objectives []verdict.Objective
}

// Diagnose runs the rules over the windows, ranks the findings and picks at most one
// recommendation. It is a pure function of its request.
func Diagnose(q Request) Diagnosis {
	d := Diagnosis{
		Started: q.Started, Duration: q.Duration, Version: q.Version,
		Target: q.Target, Facts: q.Facts, Missing: q.Missing, Notes: q.Notes,
	}
	for i := range q.Rules {
		if infer := q.Rules[i].Infer; infer != nil {
			infer(q.Windows, &d.Facts)
		}
	}
	d.Condition = ConditionAtEnd(q.Windows, &d.Facts, q.Duration)
	r := Run{Windows: q.Windows, Facts: &d.Facts, Agg: Combine(q.Windows, &d.Facts), Condition: d.Condition, HungBefore: hungBefore(q.Windows, &d.Facts)}
	ceilings(&r)
	d.Windows, d.Ceiling, d.GPUs = r.Agg.Windows, *r.Ceiling, r.Agg.GPUs
	d.Curve = curve(&r)
	d.Performance, d.Ranks = r.Perf, max(1, r.Agg.Ranks)
	d.Measured = measure(&r, q.Windows, q.GPUWhy)
	for i := range q.Rules {
		d.Findings = append(d.Findings, judge(&q.Rules[i], &r))
	}
	for i := range d.Findings {
		d.Findings[i].spell(&d.Facts)
	}
	suppress(d.Findings, q.Rules)
	rank(d.Findings)
	load := Loaded(q.Windows)
	d.Headroom = headroom(&r, load, q.Objectives)
	if load && !d.Condition.Ill() && silentFor(r.Windows) == 0 && !mostlyHung(&r) {
		d.recommend()
	}
	d.Outcome, d.Doubt = outcome(&d, &r, load)
	if d.Outcome == OutcomeNotEvaluable && len(q.Windows) > 0 {
		last := q.Windows[len(q.Windows)-1].Clone()
		d.LastRaw = &last
	}
	d.Doubt = spelled(d.Facts.Dialect(), d.Doubt)
	d.Overload = spelled(d.Facts.Dialect(), d.overload(&r.Agg))
	d.Notes = append(d.Notes, d.Facts.Dialect().SpellAll(runNotes(&r))...)
	if why := aboveSlots(&r); why != "" {
		d.Facts.Conflicts = append(d.Facts.Conflicts, why)
	}
	return d
}

// judge checks every evaluable window with one rule, applies its significance condition and
// calls its Conclude.
func judge(rule *Rule, r *Run) Finding {
	f := Finding{ID: rule.ID, Rule: rule.Code, Title: rule.Title, Group: rule.Group, Impact: rule.Impact}
	if rule.Once != nil {
		rule.Once(r, &f)
		if f.Judged == 0 && f.State != NotEvaluable {
			f.Judged = f.Evaluable // the run as a whole was judged
		}
		return finish(f)
	}
	t := TallyChecks(rule, r)
	f.Profile = profileForm(rule, r)
	f.Fired, f.Judged, f.Evaluable, f.Missing = t.Fired, t.Judged, t.Evaluable, t.Missing
	gate := t.Significant
	if rule.Significant != nil {
		gate = func() bool { return rule.Significant(t) }
	}
	switch {
	case t.Fired > 0:
		f.State, f.Significant = Fired, gate()
		if rule.Conclude != nil {
			rule.Conclude(r, t, &f)
		}
		if f.Reason == "" && !f.Significant {
			f.Reason = f.FiredIn() + ": too few to act on"
		}
	case t.Suppressed > 0:
		f.State, f.Reason = Suppressed, t.suppress.reason()
	case t.Judged > t.NoLoad:
		f.State, f.Reason = NotFired, t.quiet.reason()
	case t.NoLoad > 0:
		f.State, f.Judged, f.Reason = NotEvaluable, 0, t.quiet.reason()
	default:
		f.State = NotEvaluable
		f.Reason = "no evaluable window"
		if len(t.Missing) > 0 {
			f.Reason = "needs " + t.Missing[0]
		}
	}
	return finish(f)
}

// profileForm judges the windows of a run by PROFILE's form of a rule; zero if the rule has none of
// its own.
func profileForm(rule *Rule, r *Run) ProfileForm {
	if rule.Profile == nil {
		return ProfileForm{}
	}
	form := Rule{Check: rule.Profile}
	t := TallyChecks(&form, r)
	p := ProfileForm{State: NotEvaluable, Significant: t.Significant(), Fired: t.Fired, Judged: t.Judged}
	switch {
	case t.Fired > 0:
		p.State, p.Reason = Fired, fmt.Sprintf("fired in %d of %s", t.Fired, figure.Counted(t.Evaluable, "window"))
	case t.Judged > 0:
		p.State, p.Reason = NotFired, t.quiet.reason()
	case len(t.Missing) > 0:
		p.Reason = "needs " + t.Missing[0]
	}
	return p
}

// TallyChecks counts the results of a rule's check over the evaluable windows of a run.
func TallyChecks(rule *Rule, r *Run) Tally {
	var t Tally
	consecutive := 0
	for i := range r.Windows {
		w := &r.Windows[i]
		if !w.Evaluable {
			continue
		}
		t.Evaluable++
		c := rule.Check(w, r.Facts)
		if c.State != Fired {
			consecutive = 0
		}
		switch c.State {
		case Fired:
			t.Judged++
			t.Fired++
			consecutive++
			t.ConsecFired = max(t.ConsecFired, consecutive)
			switch c.Critical {
			case 1:
				t.Critical1++
			case 2:
				t.Critical2++
			}
		case Suppressed:
			t.Judged++
			t.Suppressed++
			t.suppress.add(c)
		case NotFired:
			t.Judged++
			t.quiet.add(c)
			if c.NoLoad {
				t.NoLoad++
			}
		default:
			if !slices.Contains(t.Missing, c.Why) {
				t.Missing = append(t.Missing, c.Why)
			}
		}
	}
	return t
}

// finish sets the score of a finding: impact x confidence, or 0 if it did not fire. Windows that
// the rule could not judge lower its confidence in proportion. Both have three decimals, so that equal
// scores are equal.
func finish(f Finding) Finding {
	if f.Judged < f.Evaluable {
		f.Confidence = math.Round(1e3*f.Confidence*float64(f.Judged)/float64(f.Evaluable)) / 1e3
	}
	if f.State == Fired {
		f.Score = math.Round(1e3*f.Impact*f.Confidence) / 1e3
	} else {
		f.Fix = nil
		f.Significant = false
	}
	return f
}

// suppress suppresses findings that another finding explains, and withholds remedies that have
// no basis while a stronger finding is present.
func suppress(findings []Finding, rules []Rule) {
	for i := range rules {
		by := find(findings, rules[i].ID)
		if by.State != Fired || !by.Significant {
			continue
		}
		for _, id := range rules[i].Suppresses {
			if f := find(findings, id); f != nil && f.State == Fired {
				f.State, f.SuppressedBy, f.Significant, f.Score = Suppressed, string(by.ID), false, 0
				f.Reason = "explained by " + string(by.ID)
				f.Fix = nil
			}
		}
		for _, id := range rules[i].Overrides {
			if f := find(findings, id); f != nil && f.State == Fired && f.Fix != nil && f.Fix.Withheld == "" {
				f.Fix.Withheld = "not judged while " + rules[i].While
			}
		}
	}
}

// clientWeight is the weight, beside that of a flag of this server, of what clients would have to do for an unknown
// gain: of findings with the same score, the one with a flag comes first, because a flag can be tried.
const clientWeight = 0.8

// RankedAs returns the score that a finding is ranked by: less than its own if clients would have to do something for an
// unknown gain.
func (f *Finding) RankedAs() float64 {
	known := func(p Prediction) bool { return p.Low.OK || p.Mid.OK || p.High.OK }
	if f.Fix != nil && f.Fix.Kind == KindClient && !slices.ContainsFunc(f.Fix.Predicted, known) {
		return clientWeight * f.Score
	}
	return f.Score
}

// rank sorts significant fired findings first, by descending score; that of what clients would have to do for
// an unknown gain counts less. Ties are broken in favour of a flag of this server, by the smaller risk, and
// then by name, so that the order is deterministic.
func rank(findings []Finding) {
	class := func(f *Finding) int {
		switch {
		case f.State == Fired && f.Significant:
			return 0
		case f.State == Fired:
			return 1
		case f.State == Suppressed:
			return 2
		case f.State == NotFired:
			return 3
		}
		return 4
	}
	others := func(f *Finding) int {
		if f.Fix == nil || f.Fix.Kind == KindFlag {
			return 0
		}
		return 1
	}
	risk := func(f *Finding) int {
		if f.Fix == nil {
			return 0
		}
		return f.Fix.Risk
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(class(&a), class(&b)),
			cmp.Compare(b.RankedAs(), a.RankedAs()),
			cmp.Compare(others(&a), others(&b)),
			cmp.Compare(risk(&a), risk(&b)),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

// recommend picks the first significant finding whose remedy is not withheld, and lists the
// best of each other group as runners-up.
func (d *Diagnosis) recommend() {
	groups := map[Group]bool{}
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.State != Fired || !f.Significant || groups[f.Group] {
			continue
		}
		if f.Fix == nil || f.Fix.Withheld != "" {
			continue
		}
		groups[f.Group] = true
		if d.Recommendation == nil {
			d.Recommendation = &Recommendation{Finding: f.ID, Fix: *f.Fix}
			continue
		}
		if sameFix(&d.Recommendation.Fix, f.Fix) {
			continue // a different cause with the same remedy
		}
		d.Runners = append(d.Runners, f.ID)
	}
	if d.Recommendation == nil {
		return
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.State == Fired && f.Significant && f.Fix != nil && f.Fix.Withheld != "" {
			d.Recommendation.Rejected = append(d.Recommendation.Rejected,
				Rejected{What: f.Title + ": " + f.Fix.Command, Why: f.Fix.Withheld})
		}
	}
}

// sameFix reports whether two remedies are the same change.
func sameFix(a, b *Fix) bool { return a.Flag != "" && a.Flag == b.Flag && a.To == b.To }

// Loaded reports whether the server received requests while it was observed. Gauges of a
// sleeping engine do not count.
func Loaded(windows []Window) bool {
	for i := range windows {
		w := &windows[i]
		if w.Asleep {
			continue
		}
		if w.RunningPeak.Or(0) > 0 || w.WaitingPeak.Or(0) > 0 ||
			w.Delta[CounterGenerationTokens].Or(0) > 0 || w.Delta[CounterPromptTokens].Or(0) > 0 {
			return true
		}
	}
	return false
}

// Finding returns the finding with the given ID, or nil.
func (d *Diagnosis) Finding(id FindingID) *Finding { return find(d.Findings, id) }

func find(list []Finding, id FindingID) *Finding {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// runNotes returns remarks that a reader needs to interpret the run.
func runNotes(r *Run) []string {
	var out []string
	a := &r.Agg
	if a.Light {
		out = append(out, "light load: no window passes the documented gate (KV above 30 % or GPU above 20 %); the figures cover the windows in which tokens moved")
	}
	if refused := a.Rate[CounterAdmissionRejections]; refused.Or(0) > 0 {
		out = append(out, fmt.Sprintf("the server refused %s requests a second by its admission limits (--max-num-queued-reqs, --max-num-queued-tokens): the queue on the page is shorter than the demand", figure.Count(refused.V)))
	}
	if failing := a.Rate[CounterHTTP5xx]; failing.Or(0) > 0 {
		out = append(out, fmt.Sprintf("the server answered %s requests a second with a 5xx error", figure.Count(failing.V)))
	}
	if r.HungBefore > 0 && !mostlyHung(r) {
		out = append(out, "the engine was hung for at least "+figure.Elapsed(r.HungBefore)+" of the run, and then continued; the server's log may say why")
	}
	out = append(out, requestNotes(r)...)
	if a.Restarts >= manyRestarts {
		out = append(out, fmt.Sprintf("%d restarts were seen: if none happened, several servers answer at this address; pass the address of one", a.Restarts))
	} else if a.Restarts > 0 {
		out = append(out, figure.Counted(a.Restarts, "restart")+" of the server during the run; windows across a restart are left out")
	}
	if a.Failed > 0 {
		text := fmt.Sprintf("%d of %d scrapes failed; the gaps are marked, not filled", a.Failed, a.Ticks)
		if a.LastErr != "" {
			text += " (the last: " + a.LastErr + ")"
		}
		out = append(out, text)
	}
	if a.Missed > 0 {
		text := fmt.Sprintf("rooftop missed %d of %d ticks: this host is short of CPU", a.Missed, a.Ticks)
		if float64(a.Missed) > starvedShare*float64(a.Ticks) {
			text += "; short peaks between them were not seen, and rates are less certain"
		}
		out = append(out, text)
	}
	return out
}

// notableShare is the share of requests that are invalid, or that clients leave, from which that is noted.
const notableShare = 0.10

// endings counts requests as the front end answered them, and as the engine finished them.
type endings struct {
	answered, invalid float64 // by HTTP status, 2xx and 4xx
	left              float64 // answered without being finished
	inside            float64 // in the server at once, the most, where a stream counts as it begins, as with SGLang
	seconds           float64
}

func endingsOf(windows []Window, f *Facts) endings {
	var e endings
	for i := range windows {
		w := &windows[i]
		good, finished := w.Delta[CounterHTTP2xx], w.Delta[CounterRequestSuccess]
		if !w.Evaluable || !good.OK {
			continue
		}
		e.seconds += w.Seconds()
		e.invalid += w.Delta[CounterHTTP4xx].Or(0)
		e.answered += good.V
		if f.Dialect().ID != catalog.VLLM {
			e.inside = max(e.inside, w.RunningPeak.Or(0)+w.WaitingPeak.Or(0))
		}
		e.left += good.V - finished.Or(good.V)
	}
	return e
}

// perSecond returns a number of requests as a rate.
func (e *endings) perSecond(n float64) string { return figure.Count(n / e.seconds) }

// requestNotes returns remarks on requests that other figures leave out.
func requestNotes(r *Run) []string {
	var out []string
	e := endingsOf(r.Windows, r.Facts)
	if all := e.answered + e.invalid; e.answered > 0 && e.invalid > notableShare*all {
		out = append(out, fmt.Sprintf("the server refused %s of %s requests a second as invalid (4xx): no other figure includes them", e.perSecond(e.invalid), e.perSecond(all)))
	}
	if e.left-e.inside > notableShare*e.answered { // a request of several samples is answered once and finishes several times
		out = append(out, fmt.Sprintf("clients abandoned %s of %s requests a second: the output includes their tokens, but no mean includes their times", e.perSecond(e.left), e.perSecond(e.answered)))
	}
	a := &r.Agg
	if a.Rate[CounterPromptTokens].Or(0) > 0 && a.Rate[CounterRequestSuccess].Or(0) > 0 && a.Rate[CounterGenerationTokens] == stat.Some(0) {
		out = append(out, "no request generates a token, as with a model for embeddings or scores: the output says nothing here, and no gain in output can be predicted or measured")
	}
	return out
}

// aboveSlots returns a remark if more requests ran at once than there are slots, which shows
// that max_num_seqs was misread; "" otherwise. A request or two above is chunked prefill.
func aboveSlots(r *Run) string {
	slots := r.Facts.MaxNumSeqs
	if !slots.Known || r.Facts.Dialect().ID != catalog.VLLM { // others' front ends count a request a moment longer
		return ""
	}
	most := 0.0
	for i := range r.Windows {
		w := &r.Windows[i]
		most = max(most, w.RunningPeak.Or(0)/float64(max(1, len(w.Ranks))))
	}
	if most <= float64(slots.Value)+slotsTolerance {
		return ""
	}
	return fmt.Sprintf("max_num_seqs: %s requests ran at once, more than the %d slots of the %s: that number is wrong", figure.Count(most), slots.Value, slots.Source)
}

// slotsTolerance is the number of requests above the slots that is not a contradiction.
const slotsTolerance = 2

// manyRestarts is the number of restarts in a run that suggests a load balancer.
const manyRestarts = 3

// starvedShare is the share of missed ticks above which the peaks of a run are doubtful.
const starvedShare = 0.10

func formatSeconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond).String()
}
