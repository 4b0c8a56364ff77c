package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// term is one part of a step's time.
type term struct {
	name string
	s    float64
}

// termsOf lists the parts of a step, the longest first.
func termsOf(t roofline.Terms) []term {
	list := []term{
		{"weights", t.Weights}, {"KV reads", t.KV}, {"compute", t.Compute + t.Attention},
		{"collectives", t.Collectives}, {"fixed costs", t.Fixed},
	}
	slices.SortStableFunc(list, func(a, b term) int { return cmp.Compare(b.s, a.s) })
	return list
}

// binding says in words what the largest term is.
func binding(name string) string {
	words := map[string]string{
		"weights":     "reading the weights",
		"kv":          "reading the KV cache",
		"compute":     "tensor-core compute",
		"collectives": "communication between GPUs",
		"fixed":       "fixed costs of a step (launches, scheduler, sampler)",
	}
	return cmp.Or(words[name], name, "not known")
}

// distance shows how far the server is from what its hardware allows, and what
// binds.
func (r *plain) distance() {
	if r.d.Windows.Active == 0 {
		return
	}
	if r.o.Classic {
		r.classic()
		return
	}
	r.heading("How far from the hardware", "")
	c := &r.d.Ceiling
	out := r.value("generation_tokens_per_s")
	if c.Impossible != "" {
		r.para(indent, indent+2, r.text(muted, absent+" no distance is shown: model, GPU, dtype or TP is misread (above)"))
		return
	}
	p := c.Physical
	if p == nil {
		r.para(indent, indent+2, r.text(muted, absent+" "+cmp.Or(c.PhysicalReason, "not computed")))
		return
	}
	ideal, reach := finite(p.IdealTokensPerS), finite(p.AchievableTokensPerS)
	if bar := distanceBar(out.Value, reach, ideal, r.width-2*indent); bar != nil {
		t := text{}
		for i, part := range bar {
			t = append(t, r.span([]tone{accent, body, muted}[i], part))
		}
		r.raw(indent, t)
	}
	t := &table{}
	level := func(glyph, label string, v stat.Opt, share stat.Opt, note string) {
		value := absent
		if v.OK {
			value = figure.Significant(v.V)
		}
		percentage := ""
		if share.OK {
			percentage = figure.Percent(share.V) + nbsp + "%"
		}
		t.add(cell{t: r.text(accent, glyph)}, cell{t: r.text(body, label)}, cell{t: r.text(strong, value), right: true},
			cell{t: r.text(body, "tok/s")}, cell{t: r.text(body, percentage), right: true}, cell{t: r.text(muted, note)})
	}
	level("█", "measured", out.Value, shareOf(out.Value, ideal), r.byStep(p, ideal))
	level("░", "achievable", reach, shareOf(reach, ideal), "good software at this load (est)")
	level("╌", "ideal", ideal, shareOf(ideal, ideal), "this GPU at this load, nothing lost (est)")
	r.table(indent, t)
	r.bindings(p.Binding, p.TermsS)
	if best := shareOf(p.BestTokensPerS, out.Value); best.OK && best.V > 1.03 {
		r.line(indent, text{r.span(body, "best "), r.span(strong, figure.Significant(p.BestTokensPerS.V)+nbsp+"tok/s"),
			r.span(body, " at "+figure.Count(p.BestBatch)+" running, within these seats and this KV pool (est)")})
	}
}

// byStep says how far the measured step is from the ideal one where that is
// another distance than the rate's: steps that wait or stand still.
func (r *plain) byStep(p *roofline.Operating, ideal stat.Opt) string {
	const notable = 0.03
	rate, step := shareOf(r.value("generation_tokens_per_s").Value, ideal), finite(p.Efficiency)
	if !rate.OK || !step.OK || math.Abs(rate.V-step.V) < notable {
		return ""
	}
	return "by the measured step " + figure.Percent(step.V) + " %"
}

// bindings names what the step's time goes to.
func (p *page) bindings(name string, terms roofline.Terms) {
	var shares []string
	total := terms.Total()
	for _, t := range termsOf(terms) {
		if share := shareOf(stat.Some(t.s), stat.Some(total)); share.OK && share.V >= 0.005 {
			shares = append(shares, t.name+nbsp+figure.Percent(share.V)+nbsp+"%")
		}
	}
	t := text{p.span(body, "bound by "), p.span(strong, binding(name))}
	if len(shares) > 0 {
		t = append(t, p.span(body, ": "+strings.Join(shares, ", ")+" of a step"))
	}
	p.para(indent, indent+2, t)
}

// distanceBar draws zero to ideal: what is measured, what more good software
// reaches, and the rest. It is nil where there is no scale.
func distanceBar(out, reach, ideal stat.Opt, cells int) []string {
	now := shareOf(out, ideal)
	if !now.OK || cells < 10 {
		return nil
	}
	at := func(share float64) int { return min(max(int(share*float64(cells)+0.5), 0), cells) }
	a := at(now.V)
	if now.V > 0 {
		a = max(a, 1)
	}
	b := max(a, at(shareOf(reach, ideal).Or(now.V)))
	return []string{strings.Repeat("█", a), strings.Repeat("░", b-a), strings.Repeat("╌", cells-b)}
}

// shareOf is a/b as a ratio that can be drawn.
func shareOf(a, b stat.Opt) stat.Opt {
	s := a.Div(b)
	if number(s) == nil {
		return stat.None
	}
	return s
}
