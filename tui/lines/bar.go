package lines

import (
	"slices"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Tick is a position on an axis with its label.
type Tick struct {
	At    float64
	Label string
	Token cell.Token
}

// place writes a label where it first fits: at one of the columns from, with its cells and as many as the margin on
// either side free. It reports whether there was room.
func place(p cell.Pane, y int, t cell.Token, label string, taken []bool, margin int, from ...int) bool {
	n := p.Cells(label)
	for _, x := range from {
		if x < 0 || x+n > len(taken) || slices.Contains(taken[max(0, x-margin):min(len(taken), x+n+margin)], true) {
			continue
		}
		p.Text(x, y, t, label)
		for i := x; i < x+n; i++ {
			taken[i] = true
		}
		return true
	}
	return false
}
