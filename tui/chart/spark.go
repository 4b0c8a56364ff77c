package chart

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Sparkline fills the pane with one column a value, the last at the right edge;
// older ones than fit are left out. Every line has eight levels. A value at or
// below the foot of the scale still shows its lowest level, so that a measured zero
// is not a gap; one above the top is cut.
func Sparkline(p cell.Pane, g cell.Glyphs, t cell.Token, values []stat.Opt, s Scale) {
	values = values[max(0, len(values)-p.Width()):]
	at := p.Width() - len(values)
	Area(p.Sub(at, 0, len(values), p.Height()), g, values, s, func(int) cell.Token { return t })
}

// Area fills the pane with one column a value from its left edge on, each with its
// own token. See Sparkline.
func Area(p cell.Pane, g cell.Glyphs, values []stat.Opt, s Scale, token func(i int) cell.Token) {
	h, per := p.Height(), len(g.Levels)
	if h == 0 || per == 0 {
		return
	}
	for x, v := range values[:min(len(values), p.Width())] {
		if !present(v) {
			continue
		}
		level := max(1, int(math.Ceil(s.At(v.V)*float64(h*per)-1e-9)))
		t := token(x)
		for y := h - 1; y >= 0 && level > 0; y-- {
			p.Text(x, y, t, g.Levels[min(level, per)-1])
			level -= per
		}
	}
}
