package tui

import (
	"cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// requestTime is the panel of where the mean request's time goes: each part on a
// line of time, one after the other.
func (v *nowView) requestTime() panel {
	d, u := v.latest(), v.u
	if d == nil || d.Windows.Active == 0 {
		return panel{}
	}
	parts := [...]struct {
		label, name string
		token       cell.Token
	}{
		{"front end", "front_end_mean_s", cell.Muted}, {"queue", "queue_mean_s", cell.Warn},
		{"prefill", "prefill_mean_s", cell.Baseline}, {"decode", "decode_mean_s", cell.Accent},
	}
	total := 0.0
	for _, part := range parts {
		if q := d.Quantity(part.name); number(q.Value) {
			total += max(0, q.Value.V)
		}
	}
	total = max(total, finite(d.Quantity("e2e_mean_s").Value).Or(0))
	if total <= 0 {
		return panel{}
	}
	q := panel{title: "Where a request's time goes", old: v.old(), note: u.say(cell.Muted, "mean "+figure.Show(stat.Some(total), "s"))}
	at := 0.0
	for i, part := range parts {
		value := d.Quantity(part.name)
		from := at / total
		if number(value.Value) {
			at += max(0, value.Value.V)
		}
		to := at / total
		q.blocks = append(q.blocks, block{lines: 1, keep: 36 - i, draw: func(p cell.Pane) {
			u.timePart(p, part.label, part.token, value, from, to)
		}})
	}
	return q
}

func finite(o stat.Opt) stat.Opt {
	if !number(o) {
		return stat.None
	}
	return o
}

// timePart is one part of the time: its length, its share and where it lies.
func (u *look) timePart(p cell.Pane, label string, token cell.Token, q engine.Quantity, from, to float64) {
	const amount, share = 20, 26
	p.Text(0, 0, cell.Muted, label)
	if !number(q.Value) {
		p.Right(amount, 0, cell.Muted, figure.Absent)
		u.say(cell.Muted, cmp.Or(q.Reason, "not measured")).cut(p.Width()-amount-2, u.glyphs.Ellipsis).draw(p, amount+2, 0)
		return
	}
	p.Right(amount, 0, cell.Strong, figure.Show(q.Value, "s"))
	p.Right(share, 0, cell.Body, figure.Percent(to-from)+"%")
	w := p.Width() - share - 2
	if w < 8 {
		return
	}
	a, b := int(from*float64(w)), int(to*float64(w)+0.5)
	for x := a; x < max(b, a+1) && x < w && to > from; x++ {
		p.Text(share+2+x, 0, token, u.glyphs.Bar)
	}
}
