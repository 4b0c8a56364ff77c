package lines

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Bar is a value on a line from zero to Top, with marks for limits.
type Bar struct {
	Value stat.Opt
	Token cell.Token // of the filled part
	// Top is the value at the right end. Without a positive Top the bar is empty.
	Top   float64
	Marks []Tick // limits on the way, without labels
}

// Tick is a position on an axis with its label.
type Tick struct {
	At    float64
	Label string
	Token cell.Token
}

// eighths are the characters that fill a cell from the left, by eighths.
var eighths = [...]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// Draw draws the bar into the first line of the pane. A value above Top fills the bar and ends in
// ">".
func (b *Bar) Draw(p cell.Pane, g cell.Glyphs) {
	w := p.Width()
	p.Fill(cell.Border, g.Rest)
	if b.Value.Finite().OK {
		b.fill(p, g)
	}
	sign := "┃"
	if g.ASCII {
		sign = "|"
	}
	for _, m := range b.Marks {
		if m.At > 0 && m.At <= b.Top && stat.IsFinite(m.At) {
			p.Text(column(b.at(m.At, w), w), 0, m.Token, sign)
		}
	}
}

// at returns the position of a value in cells, limited to the bar.
func (b *Bar) at(v float64, w int) float64 { return share(v, b.Top) * float64(w) }

func (b *Bar) fill(p cell.Pane, g cell.Glyphs) {
	w := p.Width()
	full := b.at(b.Value.V, w)
	whole := int(full)
	for x := range whole {
		p.Text(x, 0, b.Token, g.Bar)
	}
	part := int(math.Round((full - float64(whole)) * 8))
	switch {
	case whole >= w:
	case g.ASCII && part >= 4, !g.ASCII && part == 8:
		p.Text(whole, 0, b.Token, g.Bar)
	case !g.ASCII && part > 0:
		p.Text(whole, 0, b.Token, eighths[part])
	}
	if b.Top > 0 && b.Value.V > b.Top*(1+1e-9) {
		p.Text(w-1, 0, b.Token, ">")
	}
}

// column returns the cell of a position from 0 to w. Position w belongs to the last cell.
func column(at float64, w int) int { return min(max(0, int(at)), w-1) }

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
