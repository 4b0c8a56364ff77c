package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Request is what a diagnosis is made from.
type Request struct {
	Started  time.Time
	Duration time.Duration
	Version  string // of rooftop
	Target   Target
	Facts    Facts
	Windows  []Window // in their order; not changed
	Rules    []Rule
	Missing  []Missing // what sources could not read
	Notes    []string
	GPUWhy   string // why no GPU is readable, "" where one is
}

// Diagnose runs the rules over the windows, ranks what they found and picks at
// most one recommendation. It is a pure function of its request.
func Diagnose(q Request) Diagnosis {
	d := Diagnosis{
		Started: q.Started, Duration: q.Duration, Version: q.Version,
		Target: q.Target, Facts: q.Facts, Missing: q.Missing, Notes: q.Notes,
	}
	r := Run{Windows: q.Windows, Facts: &d.Facts, Agg: Combine(q.Windows, &d.Facts)}
	ceilings(&r)
	d.Windows, d.Ceiling, d.GPUs = r.Agg.Windows, *r.Ceiling, r.Agg.GPUs
	d.Curve = curve(&r)
	d.performance, d.ranks = r.Perf, max(1, r.Agg.Ranks)
	d.Measured = measure(&r, q.Windows, q.GPUWhy)
	for i := range q.Rules {
		d.Findings = append(d.Findings, judge(&q.Rules[i], &r))
	}
	suppress(d.Findings, q.Rules)
	rank(d.Findings)
	load := loaded(q.Windows)
	if load {
		d.recommend()
	}
	d.Outcome, d.Doubt = outcome(&d, &r, load)
	if d.Outcome == OutcomeNotEvaluable && len(q.Windows) > 0 {
		last := q.Windows[len(q.Windows)-1].Clone()
		d.LastRaw = &last
	}
	d.Notes = append(d.Notes, runNotes(&r)...)
	if why := aboveSeats(&r); why != "" {
		d.Facts.Conflicts = append(d.Facts.Conflicts, why)
	}
	return d
}

// judge lets one rule look at every evaluable window, applies its gate and lets
// it conclude.
func judge(rule *Rule, r *Run) Finding {
	f := Finding{ID: rule.ID, Rule: rule.Code, Title: rule.Title, Group: rule.Group, Impact: rule.Impact}
	if rule.Once != nil {
		rule.Once(r, &f)
		return finish(f)
	}
	t := Count(rule, r)
	f.Fired, f.Evaluable, f.Missing = t.Fired, t.Evaluable, t.Missing
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
			f.Reason = fmt.Sprintf("fired in %d of %d windows: too few to act on", t.Fired, t.Evaluable)
		}
	case t.Suppressed > 0:
		f.State, f.Reason = Suppressed, t.Suppress.Sentence()
	case t.Evaluable > 0:
		f.State, f.Reason = NotFired, t.Last.Sentence()
	default:
		f.State = NotEvaluable
		f.Reason = "no evaluable window"
		if len(t.Missing) > 0 {
			f.Reason = "needs " + t.Missing[0]
		}
		if rule.Unjudged != nil && r.Agg.Windows.Evaluable > 0 {
			rule.Unjudged(r, &f)
		}
	}
	return finish(f)
}

// Count tallies what a rule says of each evaluable window of a run.
func Count(rule *Rule, r *Run) Tally {
	var t Tally
	t.Collected = len(r.Windows)
	consecutive := 0
	for i := range r.Windows {
		w := &r.Windows[i]
		if !w.Evaluable {
			continue
		}
		c := rule.Check(w, r.Facts)
		if c.State != Fired {
			consecutive = 0
		}
		switch c.State {
		case Fired:
			t.Evaluable++
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
			t.Evaluable++
			t.Suppressed++
			t.Suppress = c
		case NotFired:
			t.Evaluable++
			t.Last = c
		default:
			if !slices.Contains(t.Missing, c.Why) {
				t.Missing = append(t.Missing, c.Why)
			}
		}
	}
	return t
}

// finish scores a finding: impact x confidence, 0 where it did not fire.
func finish(f Finding) Finding {
	if f.State == Fired {
		f.Score = f.Impact * f.Confidence
	} else {
		f.Fix = nil
		f.Significant = false
	}
	return f
}

// suppress silences findings that are another one seen from another side, and
// withholds remedies that have no basis while a stronger finding holds.
func suppress(findings []Finding, rules []Rule) {
	at := func(id FindingID) *Finding {
		for i := range findings {
			if findings[i].ID == id {
				return &findings[i]
			}
		}
		return nil
	}
	for i := range rules {
		by := at(rules[i].ID)
		if by.State != Fired || !by.Significant {
			continue
		}
		for _, id := range rules[i].Suppresses {
			if f := at(id); f != nil && f.State == Fired {
				f.State, f.SuppressedBy, f.Significant, f.Score = Suppressed, string(by.ID), false, 0
				f.Reason = "explained by " + string(by.ID)
				f.Fix = nil
			}
		}
		for _, id := range rules[i].Overrides {
			if f := at(id); f != nil && f.State == Fired && f.Fix != nil && f.Fix.Withheld == "" {
				f.Fix.Withheld = "its remedy has no basis while " + string(by.ID) + " holds"
			}
		}
	}
}

// rank puts significant firings first, by score; the smaller risk breaks ties,
// then the name, so that the order is the same every time.
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
	risk := func(f *Finding) int {
		if f.Fix == nil {
			return 0
		}
		return f.Fix.Risk
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(class(&a), class(&b)),
			cmp.Compare(b.Score, a.Score),
			cmp.Compare(risk(&a), risk(&b)),
			cmp.Compare(a.ID, b.ID),
		)
	})
}

// recommend takes the first significant finding whose remedy is not withheld,
// and lists the best of the other groups after it.
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
		if same(&d.Recommendation.Fix, f.Fix) {
			continue // another cause, the same change
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

// same says whether two remedies are one change.
func same(a, b *Fix) bool { return a.Flag != "" && a.Flag == b.Flag && a.To == b.To }

// loaded says whether anything was asked of the server while it was watched.
// Gauges of a sleeping engine do not count.
func loaded(windows []Window) bool {
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

func (d *Diagnosis) finding(id FindingID) *Finding {
	for i := range d.Findings {
		if d.Findings[i].ID == id {
			return &d.Findings[i]
		}
	}
	return nil
}

// runNotes says what a reader must know of how the run was measured.
func runNotes(r *Run) []string {
	var out []string
	a := &r.Agg
	if a.Light {
		out = append(out, "light load: no window passes the documented gate (KV above 30 % or GPU above 20 %); the figures are over those in which tokens moved")
	}
	if refused := a.Rate[CounterAdmissionRejections]; refused.Or(0) > 0 {
		out = append(out, fmt.Sprintf("the server refused %.2g requests a second by its admission limits (--max-num-queued-reqs, --max-num-queued-tokens): the queue on the page is shorter than the demand", refused.V))
	}
	if failing := a.Rate[CounterHTTP5xx]; failing.Or(0) > 0 {
		out = append(out, fmt.Sprintf("the server answered %.2g requests a second with a 5xx error", failing.V))
	}
	if a.Restarts >= manyRestarts {
		out = append(out, fmt.Sprintf("%d restarts were seen: if none happened, several servers answer behind this address; give each one's own", a.Restarts))
	} else if a.Restarts > 0 {
		out = append(out, fmt.Sprintf("the server restarted %s during the run; windows across a restart are left out", times(a.Restarts)))
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
		if float64(a.Missed) > starved*float64(a.Ticks) {
			text += "; short peaks between them were not seen, and rates are less certain"
		}
		out = append(out, text)
	}
	return out
}

// aboveSeats says where more requests ran at once than there are seats: proof
// that max_num_seqs is misread. A request or two above it is chunked prefill.
func aboveSeats(r *Run) string {
	seats := r.Facts.MaxNumSeqs
	if !seats.Known {
		return ""
	}
	most := 0.0
	for i := range r.Windows {
		w := &r.Windows[i]
		most = max(most, w.RunningPeak.Or(0)/float64(max(1, len(w.Ranks))))
	}
	if most <= float64(seats.Value)+seatsTolerance {
		return ""
	}
	return fmt.Sprintf("max_num_seqs: %.0f requests ran at once, more than the %d seats of the %s: that number is wrong", most, seats.Value, seats.Source)
}

// seatsTolerance is how many requests above the seats are no contradiction.
const seatsTolerance = 2

// manyRestarts is how many restarts in one run make a load balancer likelier.
const manyRestarts = 3

// starved is the share of missed ticks above which a run's peaks are in doubt.
const starved = 0.10

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func formatSeconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond).String()
}
