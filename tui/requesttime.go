package tui

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// requestTime returns the panel of where the mean request's time goes: the parts on a time axis,
// one after the other. It is empty without a finished request.
func (v *nowView) requestTime(int) frame.Panel {
	u := v.u
	r, ok := timeOfRequest(v.latest())
	if !ok {
		return frame.Panel{}
	}
	q := frame.Panel{Title: "Where a request's time goes", Old: v.old(), Note: page.Toned(cell.Muted, "mean "+figure.Value(r.Total, "s"))}
	tokens := [...]cell.Token{cell.Muted, cell.Warn, cell.Baseline, cell.Accent}
	q.Add(frame.Block{Lines: len(r.Parts), Keep: 36, Draw: func(p cell.Pane) {
		for i, part := range r.Parts {
			timePart(u, p.Sub(0, i, p.Width(), 1), part, tokens[i])
		}
	}})
	return q
}

// timeOfRequest returns how the mean request's time is divided, and false if no request finished.
func timeOfRequest(d *engine.Diagnosis) (r tuning.RequestTime, ok bool) {
	if d == nil || d.Windows.Active == 0 {
		return r, false
	}
	r = tuning.NewRequestTime(d)
	return r, r.Total > 0
}

// timeShares returns the parts of the mean request's time, the largest first.
func timeShares(d *engine.Diagnosis) []string {
	r, ok := timeOfRequest(d)
	if !ok {
		return nil
	}
	slices.SortStableFunc(r.Parts, func(a, b tuning.TimePart) int { return cmp.Compare(b.Share(), a.Share()) })
	var shares []string
	for _, part := range r.Parts {
		if part.Share() > 0 {
			shares = append(shares, part.Label+" "+figure.PercentSign(part.Share()))
		}
	}
	return shares
}

// drawShares draws as many shares as fit, and a mark if some are left out.
func drawShares(p cell.Pane, u *frame.Settings, shares []string) {
	x := p.Text(0, 0, cell.Muted, "Request time ") + 1
	for n := len(shares); n > 0; n-- {
		text := strings.Join(shares[:n], ", ")
		if n < len(shares) {
			text += ", …"
		}
		if text = u.Spell(text); n == 1 || x+cell.Width(text) <= p.Width() {
			p.Text(x, 0, cell.Body, text)
			return
		}
	}
}

// timePart draws one part: its duration, its share and its position.
func timePart(u *frame.Settings, p cell.Pane, part tuning.TimePart, token cell.Token) {
	const amount, share = 20, 26
	p.Text(0, 0, cell.Muted, part.Label)
	if !part.Quantity.Value.OK {
		p.Right(amount, 0, cell.Muted, figure.Absent)
		p.Line(amount+2, 0, u.Cut(page.Toned(cell.Muted, part.Quantity.Reason), p.Width()-amount-2))
		return
	}
	p.Right(amount, 0, cell.Strong, tuning.Show(part.Quantity))
	p.Right(share, 0, cell.Body, figure.Percent(part.Share())+"%")
	w := p.Width() - share - 2
	if w < 8 {
		return
	}
	a, b := int(part.From*float64(w)), int(part.To*float64(w)+0.5)
	for x := a; x < max(b, a+1) && x < w && part.To > part.From; x++ {
		p.Text(share+2+x, 0, token, u.Glyphs.Bar)
	}
}
