package tui

import (
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// noteBeside is the number of cells of a heading that the note leaves free for the rule and the
// title.
const noteBeside = 19

// ceiling returns the panel that compares throughput with the hardware limits. It is empty while the
// server is unhealthy, because then not all requests compute.
func (v *nowView) ceiling(w int, framed bool) frame.Panel {
	u := v.u
	d := v.latest()
	if d == nil || v.s.Condition.Ill() {
		return frame.Panel{}
	}
	c := &d.Ceiling
	o := c.Physical
	says := page.Toned(cell.Muted, tuning.NoCeiling(d))
	if c.Impossible != "" {
		says = page.Join(page.Toned(cell.Warn, u.Glyphs.Warn+" misread: "), page.Toned(cell.Body, c.Impossible))
	}
	if c.Impossible != "" || !drawable(o) {
		q := frame.Panel{Old: v.old()} // one sentence needs no heading
		if framed {
			q.Title = "Ceiling"
		}
		q.Add(u.Paragraph(w, 79, nil, says))
		return q
	}
	levels := tuning.Levels(d)
	levels.Columns[len(levels.Columns)-1].Rank = 1
	q := frame.Panel{Title: "Ceiling", Old: v.old()}
	q.Add(tableRows(u, w, levels, func(i int) int { return [...]int{79, 50, 79}[i] })...)
	out := d.Quantity("generation_tokens_per_s").Value
	share, words := tuning.AchievableShare(out, o)
	q.Note = page.Join(page.Toned(cell.Strong, share), page.Toned(cell.Body, words))
	binds := page.Join(page.Toned(cell.Body, "bound by "), page.Toned(cell.Strong, tuning.BoundBy(o.Binding)))
	switch both := page.Join(q.Note, page.Toned(cell.Body, ", "), binds); {
	case framed:
		q.Add(u.Paragraph(w, 58, nil, tuning.BoundByShares(o)))
	case share == "":
		q.Note = binds
	case u.Width(both) <= w-noteBeside:
		q.Note = both
	}
	if rate, words := tuning.BestAllowed(out, o); rate != "" {
		q.Add(u.Paragraph(w, 38, nil, page.Join(page.Toned(cell.Body, "Server's best: "), page.Toned(cell.Strong, rate), page.Toned(cell.Body, words))))
	}
	return q
}

// drawable reports whether there is an ideal to compare with.
func drawable(o *roofline.Operating) bool {
	return o != nil && o.IdealTokensPerS.Finite().OK && o.IdealTokensPerS.V > 0
}
