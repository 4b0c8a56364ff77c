package tui

import (
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// column is one column of a table: cells are set right but in the first.
type column struct {
	head  string
	left  bool
	texts []string
}

// widthOf is the width of a column.
func (c *column) widthOf() int {
	n := cell.Width(c.head)
	for _, t := range c.texts {
		n = max(n, cell.Width(t))
	}
	return n
}

// addRow adds a text to each column.
func addRow(columns []column, texts ...string) {
	for i, text := range texts {
		columns[i].texts = append(columns[i].texts, text)
	}
}

// table draws columns side by side; those at the end that do not fit are left out.
func (l *listing) table(columns []column, token func(row, col int) cell.Token) {
	rows := 0
	for i := range columns {
		for j, t := range columns[i].texts {
			columns[i].texts[j] = l.u.spell(t)
		}
		rows = max(rows, len(columns[i].texts))
	}
	if len(columns) > 0 { // a first column never takes more than half
		first := &columns[0]
		if most := max(12, l.w/2); first.widthOf() > most {
			for j := range first.texts {
				first.texts[j] = cell.Cut(first.texts[j], most, l.u.glyphs.Ellipsis)
			}
		}
	}
	widths := make([]int, len(columns))
	for i := range columns {
		widths[i] = columns[i].widthOf()
	}
	for row := -1; row < rows; row++ {
		l.row(func(p cell.Pane) {
			x := 0
			for i := range columns {
				c, w := &columns[i], widths[i]
				if x+w > p.Width() && i > 0 {
					return
				}
				text, t := c.head, cell.Muted
				if row >= 0 {
					text, t = c.texts[row], token(row, i)
				}
				if c.left {
					p.Text(x, 0, t, text)
				} else {
					p.Right(x+w, 0, t, text)
				}
				x += w + 2
			}
		})
	}
}
