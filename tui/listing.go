package tui

import "github.com/rooftop-dev/rooftop/tui/cell"

// listing collects the lines of a view that scrolls.
type listing struct {
	u    *look
	w    int
	rows []func(cell.Pane)
}

// draw shows the lines from a first one on, and returns how many there are.
func (l *listing) draw(p cell.Pane, first int) int {
	first = max(0, first)
	for y := range p.Height() {
		if first+y < len(l.rows) {
			l.rows[first+y](p.Sub(0, y, p.Width(), 1))
		}
	}
	return len(l.rows)
}

func (l *listing) row(draw func(p cell.Pane)) { l.rows = append(l.rows, draw) }

func (l *listing) say(text prose) {
	for _, part := range text.wrap(l.w) {
		l.row(func(p cell.Pane) { part.draw(p, 0, 0) })
	}
}

func (l *listing) space() { l.row(func(cell.Pane) {}) }

func (l *listing) title(text string, note prose) {
	q := panel{title: text, note: note}
	l.row(func(p cell.Pane) { l.u.heading(p, &q) })
}
