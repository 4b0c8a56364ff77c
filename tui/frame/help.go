package frame

import (
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Guide is the content of the help.
type Guide struct {
	Groups []KeyGroup
	Off    [][2]string // keys that do nothing now, each with the reason
	Legend []Remark    // what the symbols mean
}

// newHelp lists every key, the keys without effect now and why, and the meaning of the symbols.
func newHelp(u *Settings, g *Guide, width int) *Listing {
	l := NewListing(u, width, width)
	columns := make([][]func(cell.Pane), 1)
	if width >= 76 {
		columns = make([][]func(cell.Pane), 2)
	}
	height := 0
	for _, group := range g.Groups {
		c := 0
		for i := range columns {
			if len(columns[i]) < len(columns[c]) {
				c = i
			}
		}
		if len(columns[c]) > 0 {
			columns[c] = append(columns[c], func(cell.Pane) {})
		}
		columns[c] = append(columns[c], groupLines(group)...)
		height = max(height, len(columns[c]))
	}
	w := (width - 2) / len(columns)
	l.Rows(height, func(p cell.Pane, y int) {
		for i, lines := range columns {
			if y < len(lines) {
				lines[y](p.Sub(i*w, 0, w-2, 1))
			}
		}
	})
	if len(g.Off) > 0 {
		l.Space()
		l.Row(func(p cell.Pane) { p.Text(0, 0, cell.Title, "Not now") })
	}
	for _, k := range g.Off {
		reason := u.Wrap(page.Toned(cell.Disabled, k[1]), l.Width-helpText)
		l.Rows(len(reason), func(p cell.Pane, i int) {
			if i == 0 {
				p.Text(1, 0, cell.Disabled, k[0])
			}
			p.Line(helpText, 0, reason[i])
		})
	}
	l.Space()
	for _, m := range g.Legend {
		l.Row(func(p cell.Pane) { p.Text(0, 0, m.Token, p.Cut(m.Text, p.Width())) })
	}
	return l
}

// helpText is the column at which the descriptions of the keys begin.
const helpText = 11

// groupLines returns drawing functions for a group of keys, one per line.
func groupLines(g KeyGroup) []func(cell.Pane) {
	list := []func(cell.Pane){func(p cell.Pane) { p.Text(0, 0, cell.Title, g.Title) }}
	for _, b := range g.Keys {
		h := b.Help()
		list = append(list, func(p cell.Pane) {
			p.Text(1, 0, cell.Key, h.Key)
			p.Text(helpText, 0, cell.Body, p.Cut(h.Desc, p.Width()-helpText))
		})
	}
	return list
}
