package lines

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Stretch is a range of relative changes, as ratios. It is empty if an end is not finite or Low is
// above High.
type Stretch struct{ Low, High float64 }

// valid reports whether there is something to draw.
func (r Stretch) valid() bool {
	return r.Low <= r.High && !math.IsInf(r.Low, 0) && !math.IsInf(r.High, 0)
}

// EmptyStretch returns a stretch that is not drawn.
func EmptyStretch() Stretch { return Stretch{math.NaN(), math.NaN()} }

// Changes is an axis of relative changes. It always includes zero, because the sign of a change
// matters most.
type Changes struct{ lo, hi, step float64 }

// clipped limits optional stretches to this multiple of the range of the required ones.
const clipped = 2.5

// NewChanges returns an axis that shows the stretches of must in full, and the others as far as
// they leave enough room for those.
func NewChanges(must, rest []Stretch) Changes {
	lo, hi := 0.0, 0.0
	grow := func(list []Stretch, most float64) {
		for _, r := range list {
			if r.valid() {
				lo, hi = max(-most, min(lo, r.Low)), min(most, max(hi, r.High))
			}
		}
	}
	grow(must, 1e9)
	grow(rest, clipped*max(hi-lo, 0.02))
	if hi-lo < 0.02 {
		lo, hi = lo-0.01, hi+0.01
	}
	c := Changes{step: Nice((hi - lo) / 4)}
	c.lo, c.hi = math.Floor(lo/c.step+1e-9)*c.step, math.Ceil(hi/c.step-1e-9)*c.step
	return c
}

// at returns the column of a value among w columns, -1 or w if it is beyond the ends.
func (c Changes) at(v float64, w int) int {
	const slack = 1e-9
	switch x := (v - c.lo) / (c.hi - c.lo); {
	case x < -slack:
		return -1
	case x > 1+slack:
		return w
	default:
		return min(max(0, int(math.Round(x*float64(w-1)))), w-1)
	}
}

// Row draws an interval with its middle over a band: the measured change over the predicted one.
// Either may be empty. If both overlap, the line is double there. A part beyond the axis ends in
// an angle bracket.
func (c Changes) Row(p cell.Pane, g cell.Glyphs, band, interval Stretch, mid float64, t cell.Token) {
	w := p.Width()
	if w <= 0 || p.Height() <= 0 {
		return
	}
	p.Text(c.at(0, w), 0, cell.Border, g.Vertical)
	from, to := w, -1
	if band.valid() {
		from, to = max(0, c.at(band.Low, w)), min(w-1, c.at(band.High, w))
		for x := from; x <= to; x++ {
			p.Text(x, 0, cell.Muted, g.Rest)
		}
	}
	if !interval.valid() {
		return
	}
	left, right := c.at(interval.Low, w), c.at(interval.High, w)
	both := "═"
	if g.ASCII {
		both = "="
	}
	for x := max(0, left); x <= min(w-1, right); x++ {
		sign := g.Horizontal
		if x >= from && x <= to {
			sign = both
		}
		p.Text(x, 0, t, sign)
	}
	if left < 0 {
		p.Text(0, 0, t, "<")
	} else {
		p.Text(left, 0, t, g.TeeLeft)
	}
	if right >= w {
		p.Text(w-1, 0, t, ">")
	} else {
		p.Text(right, 0, t, g.TeeRight)
	}
	if x := c.at(mid, w); x >= 0 && x < w {
		p.Text(x, 0, t, g.Point)
	}
}

// Axis writes round percentages below the rows. Zero and the ends take precedence over the values
// between.
func (c Changes) Axis(p cell.Pane) {
	w := p.Width()
	if w <= 0 || p.Height() <= 0 {
		return
	}
	taken := make([]bool, w)
	put := func(v float64) {
		label := figure.Change(v) + figure.NBSP + "%"
		n := p.Cells(label)
		from := min(max(0, c.at(v, w)-(n-1)/2), w-n)
		if from < 0 {
			return
		}
		for x := max(0, from-1); x < min(w, from+n+1); x++ {
			if taken[x] {
				return
			}
		}
		for x := from; x < from+n; x++ {
			taken[x] = true
		}
		p.Text(from, 0, cell.Muted, label)
	}
	put(0)
	put(tidy(c.hi, c.step))
	put(tidy(c.lo, c.step))
	for i := 1.0; c.lo+i*c.step < c.hi-c.step/2; i++ {
		put(tidy(c.lo+i*c.step, c.step))
	}
}
