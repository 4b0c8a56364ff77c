package tui

import (
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// ceiling returns the panel that compares throughput with the hardware limits. It is empty while the
// server is unhealthy, because then not all requests compute.
func (v *nowView) ceiling(w int, framed bool) frame.Panel {
	u := v.u
	q := frame.Panel{Title: "Ceiling", Old: v.old()}
	d := v.latest()
	if d == nil || v.s.Condition.Ill() {
		return frame.Panel{}
	}
	c := &d.Ceiling
	if !framed && (c.Impossible != "" || !drawable(c.Physical)) {
		q.Title = "" // one sentence needs no heading
	}
	out := d.Quantity("generation_tokens_per_s").Value
	switch {
	case c.Impossible != "":
		q.Add(u.Paragraph(w, 79, nil, page.Join(page.Toned(cell.Warn, u.Glyphs.Warn+" misread: "), page.Toned(cell.Body, c.Impossible))))
		return q
	case !drawable(c.Physical):
		q.Add(u.Paragraph(w, 79, nil, page.Toned(cell.Muted, tuning.NoCeiling(d))))
		return q
	}
	o := c.Physical
	if n := d.Quantity("running_mean").Value.Finite(); n.OK && framed {
		q.Title += " at " + figure.Count(n.V) + " running" // more at once have a higher one
	}
	q.Note = page.Toned(cell.Muted, "tok/s (est)")
	if !framed {
		share, binds := standing(out, o)
		q.Note = page.Join(share, page.Toned(cell.Body, ", "), binds)
		if len(share) == 0 {
			q.Note = binds
		} else if u.Width(q.Note) > w-noteBeside {
			q.Note = share
		}
	}
	at := stat.None // the title has it in a frame
	if !framed {
		at = d.Quantity("running_mean").Value.Finite()
	}
	q.Add(ceilingBar(u, out, o, at))
	if framed {
		says, binds := standing(out, o)
		if len(says) > 0 {
			says = page.Join(says, page.Toned(cell.Body, ", "))
		}
		says = page.Join(says, binds)
		if share := tuning.BindingShare(o); share.Finite().OK {
			says = page.Join(says, page.Toned(cell.Body, ", "+figure.Percent(share.V)+figure.NBSP+"% of a step"))
		}
		q.Add(u.Paragraph(w, 58, nil, says))
	}
	if rate, words := tuning.BestAllowed(out, o); rate != "" {
		q.Add(u.Paragraph(w, 38, nil, page.Join(page.Toned(cell.Body, "Server's best: "), page.Toned(cell.Strong, rate), page.Toned(cell.Body, words))))
	}
	return q
}

// noteBeside is the number of cells of a heading that the note leaves free for the rule and the
// title.
const noteBeside = 19

// drawable reports whether there is an ideal to compare with.
func drawable(o *roofline.Operating) bool {
	return o != nil && o.IdealTokensPerS.Finite().OK && o.IdealTokensPerS.V > 0
}

// ceilingBar returns the bar from zero to the ideal, with labels below it. running, if known, is added
// to the label of the ideal.
func ceilingBar(u *frame.Settings, out stat.Opt, o *roofline.Operating, running stat.Opt) frame.Block {
	return frame.Block{Lines: 2, Least: 1, Keep: 79, Draw: func(p cell.Pane) {
		bar := lines.Bar{Value: out, Token: cell.Accent, Top: o.IdealTokensPerS.V}
		if a := o.AchievableTokensPerS; a.Finite().OK {
			bar.Marks = append(bar.Marks, lines.Tick{At: a.V, Token: cell.Achievable})
		}
		bar.Draw(p.Sub(0, 0, p.Width(), 1), u.Glyphs)
		ceilingLabels(p.Sub(0, 1, p.Width(), 1), out, o, running)
	}}
}

const (
	// wideBar is the width from which the ideal is labelled with the running requests.
	wideBar = 70
	// wideLabels is the width from which labels are not shortened.
	wideLabels = 50
	// labelGap is the least number of cells between two labels.
	labelGap = 2
)

// ceilingLabels writes the labels below the bar: the current rate at its beginning, the ideal at its end, and the
// achievable rate between them, as near to its mark as there is room.
func ceilingLabels(p cell.Pane, out stat.Opt, o *roofline.Operating, running stat.Opt) {
	w, ideal, achievable := p.Width(), "ideal ", "achievable "
	if running.OK && w >= wideBar {
		ideal = "ideal at " + figure.Count(running.V) + " running "
	}
	if w < wideLabels {
		achievable = "achv "
	}
	free := 0
	if out.Finite().OK {
		free = p.Text(0, 0, cell.Accent, "now "+figure.Significant(out.V)) + labelGap
	}
	end := w - p.Cells(ideal+figure.Significant(o.IdealTokensPerS.V))
	if end < free {
		return
	}
	p.Text(end, 0, cell.Ideal, ideal+figure.Significant(o.IdealTokensPerS.V))
	a := o.AchievableTokensPerS.Finite()
	if !a.OK {
		return
	}
	achievable += figure.Significant(a.V)
	texts := []string{achievable}
	if low, high := o.AchievableLower.Finite(), o.AchievableUpper.Finite(); low.OK && high.OK {
		texts = []string{achievable + " (" + figure.Significant(low.V) + "–" + figure.Significant(high.V) + ")", achievable}
	}
	for _, text := range texts {
		last := end - labelGap - p.Cells(text)
		if at := int(min(1, a.V/o.IdealTokensPerS.V)*float64(w)) - p.Cells(text) + 1; last >= free {
			p.Text(min(max(at, free), last), 0, cell.Achievable, text)
			return
		}
	}
}

// standing returns the rate as a share of the achievable one, and what binds. The share is empty if
// the achievable rate is unknown.
func standing(out stat.Opt, o *roofline.Operating) (share, binds page.Text) {
	binds = page.Join(page.Toned(cell.Body, "bound by "), page.Toned(cell.Strong, tuning.BoundBy(o.Binding)))
	ratio, words := tuning.AchievableShare(out, o)
	return page.Join(page.Toned(cell.Strong, ratio), page.Toned(cell.Body, words)), binds
}
