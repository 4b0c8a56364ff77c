package chart

import (
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
func (s Stroke) sign() byte { return "*-.."[s] }

// sample is a stroke in the legend.
func (s Stroke) sample(ascii bool) string {
	if ascii {
		return strings.Repeat(string(rune(s.sign())), 2)
	}
	return [...]string{"⠒⠒⠒", "⠒⠂⠒", "⠂⠐⠀", "⠶⠀⠶"}[s]
}

// Draw draws the plot into the pane: legend, labels of the uprights, the picture
// between its axes. What there is no room for is left out from the outside in, the
// picture last.
func (pl *Plot) Draw(p cell.Pane, g cell.Glyphs) {
	f := pl.frame(p, g)
	if f.area.Width() == 0 || f.area.Height() == 0 {
		return
	}
	f.drawLegend()
	f.axes()
	if pl.X.ok() && pl.Y.ok() {
		f.shade()
		f.uprights()
		f.levels()
		f.series()
		f.levelLabels()
		f.points()
	}
}
