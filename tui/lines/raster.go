package lines

import (
	"math"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// raster is a bitmap of two by four dots per cell in braille, one per cell in ASCII. A cell has the
// token of the last dot drawn in it.
type raster struct {
	w, h   int // dots
	sx, sy int // dots per cell
	cols   int // cells per line
	cells  []inked
}

// inked is the content of one cell: its dots as a braille pattern, or its ASCII sign.
type inked struct {
	dots  uint8
	sign  byte
	token cell.Token
}

func newRaster(w, h int, ascii bool) *raster {
	r := &raster{sx: 2, sy: 4, cols: w, cells: make([]inked, w*h)}
	if ascii {
		r.sx, r.sy = 1, 1
	}
	r.w, r.h = w*r.sx, h*r.sy
	return r
}

// braille holds the bit of each dot of a cell, by row and column.
var braille = [4][2]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// set draws a dot. It ignores dots outside the raster.
func (r *raster) set(x, y int, s *Series) {
	if x < 0 || y < 0 || x >= r.w || y >= r.h {
		return
	}
	c := &r.cells[y/r.sy*r.cols+x/r.sx]
	c.dots |= braille[y%r.sy][x%r.sx]
	c.sign = s.Stroke.sign()
	c.token = s.Token
}

// point draws a dot. For a cloud in braille it draws four, so that a single one is visible.
func (r *raster) point(x, y int, s *Series) {
	size := 1
	if s.Stroke == Cloud && r.sx > 1 {
		size = 2
	}
	x, y = min(x, r.w-size), min(y, r.h-size)
	for i := range size * size {
		r.set(x+i%size, y+i/size, s)
	}
}

// line draws from a to b, in dots. phase is the position along the stroke's pattern at a; line
// returns the position at b.
func (r *raster) line(ax, ay, bx, by float64, s *Series, phase int) int {
	ax, ay, bx, by, ok := clip(ax, ay, bx, by, float64(r.w-1), float64(r.h-1))
	if !ok {
		return phase
	}
	n := int(math.Ceil(max(math.Abs(bx-ax), math.Abs(by-ay))))
	for i := range n + 1 {
		f := float64(i) / float64(max(1, n))
		if r.sx == 1 || s.Stroke.inks(phase) {
			r.set(int(math.Round(ax+f*(bx-ax))), int(math.Round(ay+f*(by-ay))), s)
		}
		if i < n {
			phase++
		}
	}
	return phase
}

// clip clips a line to the rectangle from 0, 0 to w, h with the Liang-Barsky algorithm. ok is false
// if no part of it is inside.
func clip(ax, ay, bx, by, w, h float64) (x0, y0, x1, y1 float64, ok bool) {
	from, to := 0.0, 1.0
	dx, dy := bx-ax, by-ay
	for _, e := range [...]struct{ p, q float64 }{{-dx, ax}, {dx, w - ax}, {-dy, ay}, {dy, h - ay}} {
		switch t := e.q / e.p; {
		case e.p == 0 && e.q < 0:
			return 0, 0, 0, 0, false
		case e.p < 0:
			from = max(from, t)
		case e.p > 0:
			to = min(to, t)
		}
	}
	if from > to {
		return 0, 0, 0, 0, false
	}
	return ax + from*dx, ay + from*dy, ax + to*dx, ay + to*dy, true
}

// draw writes the bitmap to the pane. Cells without a dot are not changed.
func (r *raster) draw(p cell.Pane) {
	for i, c := range r.cells {
		if c.dots == 0 {
			continue
		}
		sign := string(rune(0x2800 + int(c.dots)))
		if r.sx == 1 {
			sign = string(rune(c.sign))
		}
		p.Text(i%r.cols, i/r.cols, c.token, sign)
	}
}
