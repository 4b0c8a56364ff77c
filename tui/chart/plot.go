package chart

import (
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Plot is a picture of lines, clouds and points over two axes.
type Plot struct {
	X, Y     Axis
	Spans    []Range // shaded stretches of x, behind everything
	Uprights []Tick  // vertical lines, most important first, labelled above the plot
	Levels   []Tick  // horizontal lines, labelled at their right end
	Series   []Series
	Points   []Point
}

// XY is one point of a series; NaN and infinite ones are gaps.
type XY struct{ X, Y float64 }

// Series is a line through points, or a cloud of them. Name is its place in the
// legend, "" none.
type Series struct {
	Name   string
	Token  cell.Token
	Stroke Stroke
	XY     []XY
}

// Range is a stretch of the x axis.
type Range struct {
	From, To float64
	Token    cell.Token
}

// Point is a single sign with a label beside it. Those of one Name share a place in
// the legend. Later ones are drawn over earlier ones.
type Point struct {
	XY
	Sign, Label, Name string
	Token             cell.Token
}

// Stroke says how a series is drawn, so that lines are told apart without colour.
type Stroke uint8

// Strokes.
const (
	Solid Stroke = iota
	Dashed
	Dotted
	Cloud // the points alone
)

// inks says whether a stroke leaves a dot at a place along its way.
func (s Stroke) inks(at int) bool {
	switch s {
	case Dashed:
		return at%8 < 5
	case Dotted:
		return at%4 == 0
	}
	return true
}

// sign is the ASCII form of a stroke.
func (s Stroke) sign() byte { return "*-.'"[s] }

// sample is a stroke in the legend.
func (s Stroke) sample(ascii bool) string {
	if ascii {
		return strings.Repeat(string(rune(s.sign())), 2)
	}
	return [...]string{"⠒⠒⠒", "⠒⠂⠒", "⠂⠐⠀", "⠂⠔⠄"}[s]
}

// Draw draws the plot into the pane: legend, labels of the uprights, the picture
// between its axes. What there is no room for is left out from the outside in, the
// picture last.
func (pl *Plot) Draw(p cell.Pane, g cell.Glyphs) {
	f := pl.frame(p, g)
	if f.area.Width() == 0 || f.area.Height() == 0 {
		return
	}
	f.legend()
	f.axes()
	if pl.X.ok() && pl.Y.ok() {
		f.shade()
		f.uprights()
		f.levels()
		f.series()
		f.points()
	}
}

// frame is a plot with its place on the sheet.
type frame struct {
	*Plot
	g      cell.Glyphs
	whole  cell.Pane
	area   cell.Pane // between the axes
	gutter int       // columns left of it, the axis itself included; 0 none
	head   int       // lines above it: legend, then labels of uprights
	lines  int       // of the head that labels may use
	yTicks []float64
	xTicks []float64
}

// Least sizes of a picture that still gets axes, a legend, lines of labels.
const (
	leastWidth  = 16
	leastHeight = 4
)

func (pl *Plot) frame(p cell.Pane, g cell.Glyphs) *frame {
	f := &frame{Plot: pl, g: g, whole: p}
	w, h := p.Width(), p.Height()
	foot := 0
	if h >= leastHeight+2 {
		foot = 2
	}
	if h >= leastHeight+foot+1 {
		f.head = 1
	}
	if len(pl.Uprights) > 0 && h >= leastHeight+foot+2 {
		f.lines = min(len(pl.Uprights), 1+max(0, h-14)/4, 2)
		f.head += f.lines
	}
	rows := h - f.head - foot
	f.yTicks = pl.Y.ticks(max(2, rows/3))
	for _, v := range f.yTicks {
		f.gutter = max(f.gutter, cell.Width(pl.Y.label(v)))
	}
	f.gutter += 2
	if foot == 0 || w < f.gutter+leastWidth {
		f.gutter = 0
	}
	f.area = p.Sub(f.gutter, f.head, w-f.gutter, rows)
	if foot > 0 {
		f.xTicks = f.spaced(pl.X.ticks(max(2, f.area.Width()/8)))
	}
	return f
}

// spaced drops ticks whose labels would touch those before them.
func (f *frame) spaced(ticks []float64) []float64 {
	end, out := -1, ticks[:0:0]
	for _, v := range ticks {
		n := cell.Width(f.X.label(v))
		if from := f.column(v) - n/2; from > end || end < 0 {
			out, end = append(out, v), from+n
		}
	}
	return out
}

// column and row are the cells in which a value lies.
func (f *frame) column(x float64) int {
	return int(math.Round(f.X.at(x) * float64(f.area.Width()-1)))
}

func (f *frame) row(y float64) int {
	return int(math.Round((1 - f.Y.at(y)) * float64(f.area.Height()-1)))
}

func (f *frame) legend() {
	if f.head == 0 {
		return
	}
	x := f.whole.Text(0, 0, cell.Muted, f.Y.Title)
	entry := func(t cell.Token, sign, name string) {
		if n := cell.Width(sign) + 1 + cell.Width(name); x+3+n <= f.whole.Width() {
			x = f.whole.Text(x+3, 0, t, sign)
			x = f.whole.Text(x+1, 0, cell.Muted, name)
		}
	}
	for i := range f.Series {
		if s := &f.Series[i]; s.Name != "" {
			entry(s.Token, s.Stroke.sample(f.g.ASCII), s.Name)
		}
	}
	last := ""
	for _, pt := range f.Points {
		if pt.Name != "" && pt.Name != last {
			entry(pt.Token, pt.Sign, pt.Name)
			last = pt.Name
		}
	}
}

func (f *frame) axes() {
	if f.gutter == 0 {
		return
	}
	p, left, bottom := f.whole, f.gutter-1, f.head+f.area.Height()
	for y := range f.area.Height() {
		p.Text(left, f.head+y, cell.Border, f.g.Vertical)
	}
	for _, v := range f.yTicks {
		y := f.head + f.row(v)
		p.Text(left, y, cell.Border, f.g.TeeRight)
		p.Right(left-1, y, cell.Muted, f.Y.label(v))
	}
	p.Text(left, bottom, cell.Border, f.g.BottomLeft)
	for x := range f.area.Width() {
		p.Text(f.gutter+x, bottom, cell.Border, f.g.Horizontal)
	}
	tee := "┬"
	if f.g.ASCII {
		tee = "+"
	}
	title := cell.Width(f.X.Title)
	for _, v := range f.xTicks {
		x, label := f.gutter+f.column(v), f.X.label(v)
		p.Text(x, bottom, cell.Border, tee)
		from := min(x-cell.Width(label)/2, p.Width()-cell.Width(label))
		if from+cell.Width(label) < p.Width()-title {
			p.Text(from, bottom+1, cell.Muted, label)
		}
	}
	p.Right(p.Width(), bottom+1, cell.Muted, f.X.Title)
}

// shade fills stretches with a pattern that stays behind what is drawn over it.
func (f *frame) shade() {
	for _, s := range f.Spans {
		if !(s.To > s.From) {
			continue
		}
		from, to := 0, f.area.Width()
		if f.X.at(s.From) > 0 {
			from = f.column(s.From) + 1
		}
		if f.X.at(s.To) < 1 {
			to = f.column(s.To)
		}
		for y := range f.area.Height() {
			for x := from + (from+y)%2; x < to; x += 2 {
				f.area.Text(x, y, s.Token, f.g.Info)
			}
		}
	}
}

func (f *frame) uprights() {
	sign := "┆"
	if f.g.ASCII {
		sign = ":"
	}
	taken := make([][]bool, f.lines)
	for i := range taken {
		taken[i] = make([]bool, f.whole.Width())
	}
	for _, u := range f.Uprights {
		if !f.X.inside(u.At) {
			continue
		}
		x := f.column(u.At)
		for y := range f.area.Height() {
			f.area.Text(x, y, u.Token, sign)
		}
		for i := f.lines - 1; i >= 0; i-- {
			if place(f.whole, f.head-f.lines+i, f.gutter+x, u.Token, u.Label, taken[i]) {
				break
			}
		}
	}
}

func (f *frame) levels() {
	for _, l := range f.Levels {
		if !f.Y.inside(l.At) {
			continue
		}
		y, w := f.row(l.At), f.area.Width()
		for x := 0; x < w; x += 2 {
			f.area.Text(x, y, l.Token, f.g.Horizontal)
		}
		f.area.Right(w, y, l.Token, " "+l.Label)
	}
}

func (f *frame) series() {
	r := newRaster(f.area.Width(), f.area.Height(), f.g.ASCII)
	for i := range f.Series {
		s := &f.Series[i]
		var before XY
		joined, phase := false, 0
		for _, v := range s.XY {
			at := XY{f.X.at(v.X) * float64(r.w-1), (1 - f.Y.at(v.Y)) * float64(r.h-1)}
			if !finite(at.X) || !finite(at.Y) {
				joined = false
				continue
			}
			switch {
			case s.Stroke == Cloud || !joined:
				if f.X.inside(v.X) && f.Y.inside(v.Y) {
					r.set(int(math.Round(at.X)), int(math.Round(at.Y)), s)
				}
			default:
				phase = r.line(before.X, before.Y, at.X, at.Y, s, phase)
			}
			before, joined = at, true
		}
	}
	r.draw(f.area)
}

// points are drawn last. Those that fall into one cell show the last one's sign
// and all their labels; a label that would cover another point is left out.
func (f *frame) points() {
	w := f.area.Width()
	type spot struct {
		at     int
		point  *Point
		labels []string
	}
	var spots []*spot
	taken := make([]bool, w*f.area.Height())
	for i := range f.Points {
		pt := &f.Points[i]
		if !f.X.inside(pt.X) || !f.Y.inside(pt.Y) {
			continue
		}
		at := f.row(pt.Y)*w + f.column(pt.X)
		k := slices.IndexFunc(spots, func(s *spot) bool { return s.at == at })
		if k < 0 {
			k = len(spots)
			spots = append(spots, &spot{at: at})
		}
		spots[k].point, taken[at] = pt, true
		if pt.Label != "" {
			spots[k].labels = append(spots[k].labels, pt.Label)
		}
	}
	for _, s := range spots {
		x, y := s.at%w, s.at/w
		f.area.Text(x, y, s.point.Token, s.point.Sign)
		beside(f.area, x, y, s.point.Token, strings.Join(s.labels, ","), taken[y*w:(y+1)*w])
	}
}

// beside writes a label right of a point, or left of it, where nothing is yet.
func beside(p cell.Pane, x, y int, t cell.Token, label string, taken []bool) {
	n := cell.Width(label)
	for _, from := range [...]int{x + 1, x - n} {
		if from < 0 || from+n > len(taken) || slices.Contains(taken[from:from+n], true) {
			continue
		}
		p.Text(from, y, t, label)
		for i := from; i < from+n; i++ {
			taken[i] = true
		}
		return
	}
}
