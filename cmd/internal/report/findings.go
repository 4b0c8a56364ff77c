package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// stateColumn is where a finding's text starts, after its state.
const stateColumn = 16

// findings lists what fired, in rank order, and names the rest by state.
func (r *plain) findings() {
	r.heading("Findings", "")
	var quiet, blind, suppressed []string
	for i := range r.d.Findings {
		f := &r.d.Findings[i]
		switch f.State {
		case engine.Fired:
			r.fired(f)
		case engine.Suppressed:
			suppressed = append(suppressed, string(f.ID)+" ("+cmp.Or(f.Reason, "by "+f.SuppressedBy)+")")
		case engine.NotEvaluable:
			s := string(f.ID)
			// What a rule lacks is worth a line where it can be given; -v says the rest.
			if len(f.Missing) > 0 && f.Rule != "beyond" && f.ID != engine.OOMRisk {
				s += " (needs " + strings.Join(f.Missing, ", ") + ")"
			}
			blind = append(blind, s)
		default:
			quiet = append(quiet, string(f.ID))
		}
	}
	r.grouped(ok, "not fired", quiet)
	r.grouped(muted, "suppressed", suppressed)
	r.grouped(muted, "not judged", blind)
	if len(r.d.Findings) == 0 {
		r.line(indent, r.text(muted, absent+" no rule was run"))
	}
}

func (r *plain) grouped(t tone, state string, ids []string) {
	if len(ids) > 0 {
		r.define(indent, stateColumn, text{r.mark(t, state)}, r.text(muted, strings.Join(ids, ", ")))
	}
}

// fired writes one finding that fired: where it stands and what decided.
func (r *plain) fired(f *engine.Finding) {
	state, t := "fired", severity(f)
	if !f.Significant {
		state, t = "seen", muted
	}
	line := text{r.span(strong, string(f.ID)), r.span(muted, " ("+f.Rule+"), "+firedIn(f))}
	switch {
	case r.d.Recommendation != nil && r.d.Recommendation.Finding == f.ID:
		line = append(line, r.span(accent, " → recommended"))
	case slices.Contains(r.d.Runners, f.ID):
		line = append(line, r.span(muted, " → next in line"))
	}
	r.define(indent, stateColumn, text{r.mark(t, state)}, line)
	reason := strings.TrimPrefix(f.Reason, firedIn(f)+": ") // said in the line above
	if s := cmp.Or(reason, f.Title); s != "" {
		r.para(stateColumn, stateColumn, r.text(body, s))
	}
	if f.Fix != nil && f.Fix.Withheld != "" {
		r.para(stateColumn, stateColumn, r.text(muted, "listed, not recommended: "+f.Fix.Withheld))
	}
}

// firedIn says in how many of the windows that could be judged a rule fired.
func firedIn(f *engine.Finding) string {
	if f.Evaluable == 0 {
		return "judged once for the whole run"
	}
	return fmt.Sprintf("fired in %d of %s", f.Fired, plural(f.Evaluable, "window"))
}

// rejected lists what was considered and not taken. Findings whose remedy is
// withheld have said so themselves.
func (r *plain) rejected() {
	rec := r.d.Recommendation
	if rec == nil {
		return
	}
	said := func(x engine.Rejected) bool {
		return slices.ContainsFunc(r.d.Findings, func(f engine.Finding) bool { return f.Fix != nil && f.Fix.Withheld == x.Why })
	}
	rest := slices.DeleteFunc(slices.Clone(rec.Rejected), said)
	if len(rest) == 0 {
		return
	}
	r.heading("Considered and not taken", "")
	for _, x := range rest {
		r.para(indent, indent+2, text{r.span(body, x.What), r.span(muted, ": "+x.Why)})
	}
}

// lastRaw is the window to show as it was read: the last one of a run without
// any evaluable one, else nil.
func lastRaw(d *engine.Diagnosis) *engine.Window {
	if d.Windows.Evaluable > 0 {
		return nil
	}
	return d.LastRaw
}

// missing lists what could not be read and what that switches off.
func (r *plain) missing() {
	if len(r.d.Missing) > 0 {
		r.heading("Not read", "")
		for _, m := range r.d.Missing {
			t := text{r.span(strong, m.What), r.span(body, ": "+m.Reason)}
			if m.Effect != "" {
				t = append(t, r.span(muted, " → "+m.Effect))
			}
			r.para(indent, indent+2, t)
		}
	}
	if w := lastRaw(r.d); w != nil {
		r.heading("Last raw window", "not evaluable, shown as it was read")
		t := &table{}
		for _, q := range []struct {
			label, unit string
			v           stat.Opt
		}{
			{"polls answered", "", stat.Some(float64(w.Polls))},
			{"polls failed", "", stat.Some(float64(w.Failed))},
			{"running", "req", w.Running},
			{"waiting", "req", w.Waiting},
			{"KV pool", "ratio", w.KV},
			{"output", "tok/s", w.Rate[engine.CounterGenerationTokens]},
			{"prompt", "tok/s", w.Rate[engine.CounterPromptTokens]},
		} {
			t.add(cell{t: r.text(body, q.label)}, cell{t: r.text(strong, figure.Show(finite(q.v), q.unit)), right: true}, cell{})
		}
		r.table(indent, t)
	}
}
