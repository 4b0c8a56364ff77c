package frame

import (
	"slices"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawHeader writes what is observed at the left, and marks and elapsed time at the right. Parts
// that do not fit are left out, the least important first.
func drawHeader(p cell.Pane, s *Scene) {
	x := p.Width() - 1
	right := func(t cell.Token, text string) {
		p.Right(x, 0, t, text)
		x -= p.Cells(text) + 2
	}
	right(cell.Muted, figure.Clock(s.Elapsed))
	for _, m := range s.Marks {
		right(m.Token, m.Text)
	}
	parts := slices.Clone(s.Identity)
	for width(p, parts) > x && len(parts) > 2 {
		least := 0
		for i := range parts {
			if parts[i].Keep < parts[least].Keep {
				least = i
			}
		}
		parts = append(parts[:least], parts[least+1:]...)
	}
	at := 1
	for i, part := range parts {
		text := part.Text
		if i == len(parts)-1 {
			text = p.Cut(text, x-at)
		}
		at = p.Text(at, 0, part.Token, text) + part.Gap
	}
}

// Part is a piece of the header. Parts with a lower Keep are left out first.
type Part struct {
	Token cell.Token
	Text  string
	Gap   int // cells after it
	Keep  int
}

func width(p cell.Pane, parts []Part) int {
	n := 1
	for _, part := range parts {
		n += p.Cells(part.Text) + part.Gap
	}
	return n
}
