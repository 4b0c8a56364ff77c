package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// rules writes every rule with its state, the windows it fired in, and the
// figures that decided.
func (r *plain) rules() {
	r.heading("Findings", "every rule, in rank order")
	for i := range r.d.Findings {
		f := &r.d.Findings[i]
		t, state := stateOf(f)
		head := text{r.span(strong, string(f.ID)), r.span(muted, " ("+f.Rule+", "+string(f.Group)+") "), r.span(body, f.Title)}
		r.define(indent, stateColumn, text{r.mark(t, state)}, head)
		if f.State == engine.Fired {
			r.para(stateColumn, stateColumn, r.text(muted, fmt.Sprintf("%s, confidence %.2f × impact %.0f = %.2f", firedIn(f), f.Confidence, f.Impact, f.Score)))
		} else if f.Evaluable > 0 {
			r.para(stateColumn, stateColumn, r.text(muted, firedIn(f)))
		}
		if f.Reason != "" {
			r.para(stateColumn, stateColumn, r.text(body, f.Reason))
		}
		for _, e := range f.Evidence {
			r.para(stateColumn, stateColumn+2, r.evidence(e))
		}
		if lacked := strings.Join(f.Missing, ", "); lacked != "" && !strings.Contains(f.Reason, lacked) {
			r.para(stateColumn, stateColumn+2, r.text(muted, "lacked "+lacked))
		}
		if f.SuppressedBy != "" {
			r.para(stateColumn, stateColumn+2, r.text(muted, "suppressed by "+f.SuppressedBy))
		}
		if f.Fix != nil && f.Fix.Withheld != "" {
			r.para(stateColumn, stateColumn+2, r.text(muted, "listed, not recommended: "+f.Fix.Withheld))
		}
	}
}

func stateOf(f *engine.Finding) (tone, string) {
	switch f.State {
	case engine.Fired:
		if f.Significant {
			return severity(f), "fired"
		}
		return muted, "seen"
	case engine.Suppressed:
		return muted, "suppressed"
	case engine.NotEvaluable:
		return muted, "not judged"
	}
	return ok, "not fired"
}

// evidence is one figure with its limit, its sentence and its source.
func (r *plain) evidence(e engine.Evidence) text {
	s := e.Name + " " + figure.Show(finite(e.Value), e.Unit)
	if e.Limit.OK {
		s += " " + strings.TrimSpace(e.Op+nbsp+figure.Show(finite(e.Limit), e.Unit))
	}
	t := text{r.span(body, "· "+s)}
	if e.Text != "" {
		t = append(t, r.span(muted, ": "+e.Text))
	}
	if e.Source != "" {
		t = append(t, r.span(muted, " ["+string(e.Source)+"]"))
	}
	return t
}

// inColumn is the widest value that stands in a column; a longer one, a command
// line or a path, stands under its name.
const inColumn = 30

// facts writes the launch facts, each with its source.
func (r *plain) facts() {
	r.heading("Facts", "what was known before measuring, and from where")
	t := &table{}
	var long []fact
	var unknown []string
	for _, f := range factRows(&r.d.Facts) {
		value := factValue(f)
		switch {
		case f.value == nil && f.note == notKnown:
			unknown = append(unknown, f.name)
		case f.value == nil:
			t.add(cell{t: r.text(body, f.name)}, cell{t: r.text(muted, absent)}, cell{}, cell{t: r.text(muted, f.note)})
		case width(value) > inColumn:
			long = append(long, f)
		default:
			t.add(cell{t: r.text(body, f.name)}, cell{t: r.text(strong, value)}, cell{t: r.text(body, string(f.source))}, cell{t: r.text(muted, f.note)})
		}
	}
	r.table(indent, t)
	for _, f := range long {
		r.para(indent, indent+2, append(r.text(body, f.name), r.span(muted, " ("+string(f.source)+") "+f.note)))
		r.command(indent+2, factValue(f))
	}
	if len(unknown) > 0 {
		r.para(indent, indent+2, r.text(muted, absent+" "+strings.Join(unknown, ", ")+": "+notKnown))
	}
}

func factValue(f fact) string {
	switch v := f.value.(type) {
	case bool:
		return map[bool]string{true: "on", false: "off"}[v]
	case int:
		return figure.Whole(float64(v))
	case float64:
		switch f.unit {
		case "ratio", "USD/h":
			return figure.Show(stat.Some(v), f.unit)
		case "1e9":
			return figure.Significant(v) + nbsp + "B"
		}
		return figure.Count(v)
	case string:
		return cmp.Or(v, `""`)
	}
	return fmt.Sprint(f.value)
}

// pairs is a table of labels and optional values.
func (p *page) pairs(list []pair) {
	t := &table{}
	for _, q := range list {
		tn := strong
		if !finite(q.v).OK {
			tn, q.note = muted, ""
		}
		t.add(cell{t: p.text(body, q.label)}, cell{t: p.text(tn, figure.Show(finite(q.v), q.unit)), right: true}, cell{t: p.text(muted, q.note)})
	}
	p.table(indent, t)
}

type pair struct {
	label, unit string
	v           stat.Opt
	note        string
}

// classic writes the documented formulas, as estimates.
func (r *plain) classic() {
	r.heading("Classic ceilings", "the documented formulas, of one replica (est)")
	c := r.d.Ceiling.Classic
	if c == nil {
		r.line(indent, r.text(muted, absent+" "+cmp.Or(r.d.Ceiling.ClassicReason, "not computed")))
		return
	}
	r.pairs(classicPairs(c, false))
	if c.Caveat != "" {
		r.line(indent, r.text(warn, c.Caveat))
	}
}

// classicPairs lists the classic figures; bare leaves out those that only a
// running server has.
func classicPairs(c *roofline.Classic, bare bool) []pair {
	band := func(low, high stat.Opt) string {
		if !finite(low).OK || !finite(high).OK {
			return ""
		}
		return figure.Significant(low.V) + " to " + figure.Significant(high.V)
	}
	list := []pair{
		{"decode, one sequence", "tok/s", c.DecodeTokensPerS, band(c.DecodeLower, c.DecodeUpper)},
		{"prefill", "tok/s", c.PrefillTokensPerS, band(c.PrefillLower, c.PrefillUpper)},
		{"ridge batch", "", c.RidgeBatch, ""},
		{"weights", "GB", c.WeightGB, "at " + figure.Significant(c.BytesPerParam.Or(0)) + " bytes per parameter, from " + cmp.Or(c.BytesPerParamFrom, "nowhere")},
		{"KV headroom", "GB", c.KVHeadroomGB, "of each GPU"},
		{"TPOT floor", "s", c.TPOTFloorS, ""},
		{"prefill floor", "s", c.PrefillFloorS, ""},
	}
	if bare {
		return list
	}
	return append(list,
		pair{"decode × running", "tok/s", c.AggregateTokensPerS, ""},
		pair{"efficiency", "ratio", c.Efficiency, "of decode × running"},
		pair{"headroom", "ratio", c.Headroom, ""},
		pair{"recoverable", "USD/h", c.RecoverableUSDPerHour, "cost × (1 − efficiency)"},
	)
}

// physical writes the model's step term by term.
func (r *plain) physical() {
	p := r.d.Ceiling.Physical
	if p == nil {
		return
	}
	r.heading("One engine step", "physical model at "+figure.Count(p.Batch)+" running, "+figure.Count(p.Context)+" tokens each (est)")
	r.pairs([]pair{
		{"ideal", "s", stat.Some(p.StepIdealS), ""},
		{"achievable", "s", stat.Some(p.StepAchievableS), ""},
		{"measured", "s", r.value("step_time_s").Value, ""},
		{"measured/achievable", "x", p.CalibrationRaw, "predictions use it within 0.8 to 3"},
		{"tokens of a step", "tok", stat.Some(p.StepTokens), "bound by compute above " + figure.Count(p.RidgeTokens)},
	})
	r.terms(p.TermsS, p.IdealTermsS)
	for _, a := range p.Assumptions {
		r.para(indent, indent+2, r.text(muted, "assumed: "+a))
	}
}

// terms writes what a step's time consists of.
func (p *page) terms(reach, best roofline.Terms) {
	t := &table{}
	t.add(cell{t: p.text(muted, "term")}, cell{t: p.text(muted, "achievable"), right: true}, cell{t: p.text(muted, "ideal"), right: true}, cell{})
	for _, x := range []struct {
		label    string
		s, least float64
	}{
		{"weights", reach.Weights, best.Weights},
		{"KV reads", reach.KV, best.KV},
		{"linear compute", reach.Compute, best.Compute},
		{"prefill attention", reach.Attention, best.Attention},
		{"collectives", reach.Collectives, best.Collectives},
		{"fixed costs", reach.Fixed, best.Fixed},
	} {
		t.add(cell{t: p.text(body, x.label)}, cell{t: p.text(strong, figure.Show(finite(stat.Some(x.s)), "s")), right: true},
			cell{t: p.text(strong, figure.Show(finite(stat.Some(x.least)), "s")), right: true}, cell{})
	}
	p.table(indent, t)
}

// measured writes every quantity with its origin, or the reason why it is
// absent.
func (r *plain) measured() {
	r.heading("Measured", "")
	t := &table{}
	for _, q := range quantities(r.d) {
		figure, origin, note := strong, string(q.Source), q.Note
		if !q.Value.OK {
			figure, origin, note = muted, "", q.Reason
		}
		t.add(cell{t: r.text(body, q.Name)}, cell{t: r.text(figure, shown(q.Quantity)), right: true},
			cell{t: r.text(body, origin)}, cell{t: r.text(muted, note)})
	}
	r.table(indent, t)
}

// devices writes every reading of every GPU with its peak.
func (r *plain) devices() {
	for i := range r.d.GPUs {
		g := &r.d.GPUs[i]
		r.heading(fmt.Sprintf("GPU %d", g.Index), strings.TrimSpace(g.Name+" "+g.UUID))
		t := &table{}
		t.add(cell{}, cell{t: r.text(muted, "run"), right: true}, cell{t: r.text(muted, "peak"), right: true}, cell{})
		unread := []string{}
		for _, x := range readings() {
			v, peak := finite(x.value(g)), finite(g.Peak[x.field])
			if !v.OK && !peak.OK {
				unread = append(unread, x.name)
				continue
			}
			kind := "mean"
			if x.state {
				kind = "last"
			}
			t.add(cell{t: r.text(body, x.name)}, cell{t: r.text(strong, figure.Show(v, x.unit)), right: true},
				cell{t: r.text(body, figure.Show(peak, x.unit)), right: true}, cell{t: r.text(muted, kind)})
		}
		r.table(indent, t)
		switch {
		case !g.ThrottleOK:
			unread = append(unread, "throttle reasons")
		case g.Throttle == 0:
			r.line(indent, r.text(body, "throttle reasons: none"))
		default:
			r.line(indent, r.text(warn, "throttle reasons: "+strings.Join(throttleReasons(g.Throttle), ", ")))
		}
		if len(unread) > 0 {
			r.para(indent, indent+2, r.text(muted, absent+" "+strings.Join(unread, ", ")+": not read on this device"))
		}
	}
}
