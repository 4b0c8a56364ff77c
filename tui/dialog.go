package tui

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// dialog is what is asked, or told, over a view.
type dialog struct {
	title string
	lines remarks
	// yes and no are the answers of a question; "" where there is none to give.
	yes, no string
	command engine.Command // what yes does
	about   string         // what yes was asked about, as aboutOf names it
}

// drawDialog draws a dialog over the lower part of the body, between rules rather
// than in a box, so that a command can be selected with the terminal's own means.
// The answers stay in sight; what is above them can be scrolled.
func drawDialog(p cell.Pane, u *look) extent {
	d := &u.ask
	type row struct {
		remark
		x int
	}
	var rows []row
	for _, m := range d.lines {
		for _, text := range p.Wrap(m.text, p.Width()-4) {
			rows = append(rows, row{remark{m.token, text}, 2})
		}
	}
	const around = 4 // rules, answers, and a blank line above them
	h := min(p.Height(), len(rows)+around)
	page := max(0, h-around)
	p = p.Sub(0, p.Height()-h, p.Width(), h)
	p.Clear()
	p.Sub(0, 0, p.Width(), 1).Fill(cell.Accent, u.glyphs.Horizontal)
	p.Text(2, 0, cell.Strong, " "+p.Cut(d.title, p.Width()-6)+" ")
	first := max(0, min(u.down, len(rows)-page))
	for y := range page {
		m := rows[first+y]
		p.Text(m.x, 1+y, m.token, m.text)
	}
	drawAnswers(p.Sub(2, h-2, p.Width()-4, 1), u, len(rows) > page)
	p.Sub(0, h-1, p.Width(), 1).Fill(cell.Accent, u.glyphs.Horizontal)
	return extent{len(rows), page, first}
}

func drawAnswers(p cell.Pane, u *look, more bool) {
	x := 0
	if u.over == overlayAsk {
		for _, yes := range []bool{false, true} {
			text, token := u.ask.no, cell.Body
			if yes {
				text = u.ask.yes
			}
			if yes == u.yes {
				text, token = "[ "+text+" ]", cell.Selected
			} else {
				text = "  " + text + "  "
			}
			x = p.Text(x, 0, token, text) + 2
		}
	}
	hint := "esc closes"
	switch {
	case u.over == overlayAsk && more:
		hint = "y or n, down: more" // there may be no room for another word
	case u.over == overlayAsk:
		hint = "y or n; tab, then enter"
	case more:
		hint += ", down: more"
	}
	p.Text(x, 0, cell.Muted, p.Cut(hint, p.Width()-x))
}
