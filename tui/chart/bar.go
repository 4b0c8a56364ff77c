package chart

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Bar is a value on a line from zero to a top, with marks on the way: where a
// server stands between nothing and what physics allows.
type Bar struct {
	Value stat.Opt
	Token cell.Token // of the filled part
	// Top is the right end. Without a positive one the bar is empty.
	Top float64
	// Lo and Hi are the labels of the ends, "" none: they stand beside the bar.
	Lo, Hi string
	// Marks are limits on the way, most important first. Their labels stand in the
	// second line, under their sign; one for which there is no room is left out.
	Marks []Tick
}

// Tick is a place on a line with its label.
type Tick struct {
	At    float64
	Label string
	Token cell.Token
}

// eighths fill a cell from the left.
var eighths = [...]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// Draw draws the bar into the first line of the pane and the labels of its marks
// into the second, where the pane has one. A value above the top fills the bar and
// ends it with a sign that it goes on.
func (b *Bar) Draw(p cell.Pane, g cell.Glyphs) {
	lo, hi := p.Cells(b.Lo), p.Cells(b.Hi)
	if lo > 0 {
		lo++
	}
	if hi > 0 {
		hi++
	}
	if p.Width()-lo-hi < 8 { // the bar says more than its ends
		lo, hi = 0, 0
	}
	line := p.Sub(lo, 0, p.Width()-lo-hi, 2)
	if lo > 0 {
		p.Text(0, 0, cell.Muted, b.Lo)
	}
	if hi > 0 {
		p.Text(p.Width()-hi+1, 0, cell.Muted, b.Hi)
	}
	b.line(line.Sub(0, 0, line.Width(), 1), g)
	b.labels(line.Sub(0, 1, line.Width(), 1))
}

// at is the place of a value in cells, cut to the bar.
func (b *Bar) at(v float64, w int) float64 { return Scale{0, b.Top}.At(v) * float64(w) }

func (b *Bar) line(p cell.Pane, g cell.Glyphs) {
	w := p.Width()
	p.Fill(cell.Border, g.Rest)
	if present(b.Value) {
		b.fill(p, g)
	}
	for _, m := range b.Marks {
		if b.Top > 0 && finite(m.At) && m.At > 0 && m.At <= b.Top {
			sign := "┃"
			if g.ASCII {
				sign = "|"
			}
			p.Text(column(b.at(m.At, w), w), 0, m.Token, sign)
		}
	}
}

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

// column is the cell that a place from 0 to w falls into; the end belongs to the
// last cell.
func column(at float64, w int) int { return min(max(0, int(at)), w-1) }

func (b *Bar) labels(p cell.Pane) {
	w := p.Width()
	taken := make([]bool, w)
	for _, m := range b.Marks {
		if b.Top <= 0 || !finite(m.At) || m.At <= 0 || m.At > b.Top || m.Label == "" {
			continue
		}
		place(p, 0, column(b.at(m.At, w), w), m.Token, m.Label, taken)
	}
}

// place writes a label that begins at column x, or ends there, where that many
// cells are free with one beside them; false where there is no room.
func place(p cell.Pane, y, x int, t cell.Token, label string, taken []bool) bool {
	n := p.Cells(label)
	for _, from := range [...]int{x, x - n + 1} {
		if from < 0 || from+n > len(taken) {
			continue
		}
		if slices.Contains(taken[max(0, from-1):min(len(taken), from+n+1)], true) {
			continue
		}
		p.Text(from, y, t, label)
		for i := from; i < from+n; i++ {
			taken[i] = true
		}
		return true
	}
	return false
}
