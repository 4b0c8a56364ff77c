package tui

import (
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

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

// section is a table under its title, nothing where it has no row.
func (l *listing) section(title string, columns []column) { l.noted(title, nil, columns) }

// noted is a section with a note beside its title.
func (l *listing) noted(title string, note prose, columns []column) {
	if len(columns[0].texts) == 0 {
		return
	}
	l.title(title, note)
	l.table(columns, func(_, col int) cell.Token {
		if col == 0 {
			return cell.Strong
		}
		return cell.Body
	})
	l.space()
}

// factCells is the column of the values of facts.
const factCells = 14

// fact is a line with its name; what is longer than a line goes on below its value.
func (l *listing) fact(name string, t cell.Token, text string) {
	if text == "" {
		t, text = cell.Muted, figure.Absent
	}
	label := l.u.say(cell.Muted, name)
	for i, part := range l.u.say(t, text).wrap(max(1, l.w-factCells)) {
		l.row(func(p cell.Pane) {
			if i == 0 {
				label.draw(p, 0, 0)
			}
			part.draw(p, factCells, 0)
		})
	}
}
