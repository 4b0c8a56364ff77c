package tui

import (
	"cmp"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// ceiling is the panel of where the server stands between nothing and what its
// hardware allows.
func (v *nowView) ceiling(w int, framed bool) panel {
	u := v.u
	q := panel{title: "Ceiling", old: v.old()}
	d := v.latest()
	if d == nil {
		return panel{}
	}
	c := &d.Ceiling
	if !framed && (c.Impossible != "" || !drawable(c.Physical)) {
		q.title = "" // one sentence needs no heading
	}
	out := d.Quantity("generation_tokens_per_s").Value
	switch {
	case c.Impossible != "":
		q.blocks = append(q.blocks, u.text(w, 79, nil, line(u.say(cell.Warn, u.glyphs.Warn+" misread: "), u.say(cell.Body, c.Impossible))))
		return q
	case !drawable(c.Physical):
		q.blocks = append(q.blocks, u.text(w, 79, nil, u.say(cell.Muted, noCeiling(d))))
		return q
	}
	o := c.Physical
	q.note = u.say(cell.Muted, "tok/s (est)")
	if !framed {
		share, binds := u.standing(out, o, " of achievable (est)", ", above achievable (est)")
		q.note = line(share, u.say(cell.Body, ", "), binds)
		if len(share) == 0 {
			q.note = binds
		} else if q.note.width() > w-noteBeside {
			q.note = share
		}
	}
	q.blocks = append(q.blocks, v.ceilingBar(out, o))
	if framed {
		says, binds := u.standing(out, o, " of what good software reaches at this load", ", more than good software is taken to reach at this load")
		if len(says) > 0 {
			says = line(says, u.say(cell.Body, ", "))
		}
		says = line(says, binds)
		if share := bindingShare(o); number(share) {
			says = line(says, u.say(cell.Body, ", "+figure.Percent(share.V)+figure.NBSP+"% of a step"))
		}
		q.blocks = append(q.blocks, u.text(w, 58, nil, says))
	}
	if best := o.BestTokensPerS.Div(out); number(best) && best.V > 1.03 {
		q.blocks = append(q.blocks, u.text(w, 38, nil, line(u.say(cell.Body, "Within reach here: "),
			u.say(cell.Strong, figure.Significant(o.BestTokensPerS.V)+figure.NBSP+"tok/s"), u.say(cell.Body, " at "+figure.Count(o.BestBatch)+" running, with these seats and this KV pool"))))
	}
	return q
}

// noteBeside are the cells of a heading that its note leaves free: the rest of the
// rule and the title.
const noteBeside = 19

// drawable says that there is an ideal to stand against.
func drawable(o *roofline.Operating) bool {
	return o != nil && number(o.IdealTokensPerS) && o.IdealTokensPerS.V > 0
}

// noCeiling says why there is no ceiling, and which flag gives one where one does.
func noCeiling(d *engine.Diagnosis) string {
	why := cmp.Or(d.Ceiling.PhysicalReason, "not computed")
	return "No ceiling: " + why + "." + toHaveOne(&d.Facts, why)
}

// toHaveOne names the flags of rooftop that give the model what it lacks, but for
// those that the reason names already.
func toHaveOne(f *engine.Facts, why string) string {
	var flags []string
	if !f.GPUKnown && !onCPU(f) && !strings.Contains(why, "--gpu") {
		flags = append(flags, "--gpu NAME")
	}
	if !f.ModelKnown && !strings.Contains(why, "--model") {
		flags = append(flags, "--model NAME")
	}
	if len(flags) == 0 {
		return ""
	}
	return " Start rooftop with " + strings.Join(flags, " and ") + " to have one."
}

// onCPU says that the server runs on no GPU.
func onCPU(f *engine.Facts) bool { return f.Device.Known && f.Device.Value == "cpu" }

// ceilingBar is the bar from zero to the ideal, with the figures under their places.
func (v *nowView) ceilingBar(out stat.Opt, o *roofline.Operating) block {
	return block{lines: 2, least: 1, keep: 79, draw: func(p cell.Pane) {
		bar := chart.Bar{Value: out, Token: cell.Accent, Top: o.IdealTokensPerS.V}
		if a := o.AchievableTokensPerS; number(a) {
			bar.Marks = append(bar.Marks, chart.Tick{At: a.V, Token: cell.Achievable})
		}
		bar.Draw(p.Sub(0, 0, p.Width(), 1), v.u.glyphs)
		v.ceilingLabels(p.Sub(0, 1, p.Width(), 1), out, o)
	}}
}

// standing is the share of the achievable that is reached, and what binds. The
// achievable is an estimate of what good software reaches: a server that does
// better is said to, with other words behind its figure.
// Where nothing is known to reach, the share is empty.
func (u *look) standing(out stat.Opt, o *roofline.Operating, of, above string) (share, binds prose) {
	binds = line(u.say(cell.Body, "bound by "), u.say(cell.Strong, boundBy(o.Binding)))
	ratio := out.Div(o.AchievableTokensPerS)
	if !number(ratio) {
		return nil, binds
	}
	if ratio.V > 1 {
		of = above
	}
	return line(u.say(cell.Strong, figure.Percent(ratio.V)+figure.NBSP+"%"), u.say(cell.Body, of)), binds
}

// ceilingLabels writes the figures under the bar: the ideal at its end, the
// achievable at its mark, the present at its own end where there is room.
func (v *nowView) ceilingLabels(p cell.Pane, out stat.Opt, o *roofline.Operating) {
	u, w := v.u, p.Width()
	labels := []struct {
		name  string
		short string
		value stat.Opt
		token cell.Token
	}{
		{"ideal ", "ideal ", o.IdealTokensPerS, cell.Ideal},
		{"achievable ", "reach ", o.AchievableTokensPerS, cell.Achievable},
		{"now ", "now ", out, cell.Accent},
	}
	free := w // to the left of what is written
	for i, l := range labels {
		if !number(l.value) {
			continue
		}
		text := u.spell(l.name + figure.Significant(l.value.V))
		if w < 50 {
			text = u.spell(l.short + figure.Significant(l.value.V))
		}
		at := int(min(1, l.value.V/o.IdealTokensPerS.V) * float64(w))
		from := min(at-cell.Width(text)+1, free-cell.Width(text))
		if i == len(labels)-1 {
			from = min(max(0, at-cell.Width(text)), free-cell.Width(text))
		}
		if i > 0 && i < len(labels)-1 {
			from = max(from, 0)
		}
		if from < 0 || from+cell.Width(text) > free {
			continue
		}
		p.Text(from, 0, l.token, text)
		free = from - 2
	}
}

// bindingShare is how much of a step the binding term is, 0..1; absent where that
// is not known.
func bindingShare(o *roofline.Operating) stat.Opt {
	t := o.TermsS
	var most float64
	switch o.Binding {
	case "weights":
		most = t.Weights
	case "kv":
		most = t.KV
	case "compute":
		most = t.Compute + t.Attention
	case "collectives":
		most = t.Collectives
	case "fixed":
		most = t.Fixed
	}
	if most <= 0 {
		return stat.None
	}
	return stat.Some(most).Div(stat.Some(t.Total()))
}

// boundBy names the largest term of a step.
func boundBy(term string) string {
	switch term {
	case "weights":
		return "reading the weights"
	case "kv":
		return "reading the KV cache"
	case "compute":
		return "compute"
	case "collectives":
		return "communication between GPUs"
	case "fixed":
		return "fixed costs of a step"
	case "":
		return "what is not known"
	}
	return term
}
