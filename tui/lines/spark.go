package lines

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Sparkline fills the pane with one column per value, the last at the right edge. The oldest values
// are left out if there are too many. Every line has eight levels. A value of zero or below is drawn at the
// lowest level, so that a measured zero is not a gap; values above the top of the scale are clipped.
func Sparkline(p cell.Pane, g cell.Glyphs, t cell.Token, values []stat.Opt, top float64) {
	values = values[max(0, len(values)-p.Width()):]
	at := p.Width() - len(values)
	Area(p.Sub(at, 0, len(values), p.Height()), g, values, top, func(int) cell.Token { return t })
}

// Limit draws a dashed line at a value, behind what is drawn later.
func Limit(p cell.Pane, g cell.Glyphs, v, top float64) {
	dash := "┄"
	if g.ASCII {
		dash = "~"
	}
	y := p.Height() - 1 - int(share(v, top)*float64(p.Height())-1e-9)
	p.Sub(0, y, p.Width(), 1).Fill(cell.Warn, dash)
}

// Area fills the pane with one column per value from the left edge on, each with its own token. See
// Sparkline for the levels.
func Area(p cell.Pane, g cell.Glyphs, values []stat.Opt, top float64, token func(i int) cell.Token) {
	h, per := p.Height(), len(g.Levels)
	if h == 0 || per == 0 {
		return
	}
	for x, v := range values[:min(len(values), p.Width())] {
		if !v.Finite().OK {
			continue
		}
		level := max(1, int(math.Ceil(share(v.V, top)*float64(h*per)-1e-9)))
		t := token(x)
		for y := h - 1; y >= 0 && level > 0; y-- {
			p.Text(x, y, t, g.Levels[min(level, per)-1])
			level -= per
		}
	}
}
