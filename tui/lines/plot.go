package lines

import (
	"strings"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Plot is a chart of lines, clouds and points over two axes.
type Plot struct {
	X, Y     Axis
	Uprights []Tick // vertical lines, the most important first, labelled above the plot
	Series   []Series
	Points   []Point
}

// XY is one point of a series. A point with NaN or infinity is a gap.
type XY struct{ X, Y float64 }

// Series is a line through points, or a cloud of points. It is listed in the legend under Name,
// unless that is "".
type Series struct {
	Name   string
	Token  cell.Token
	Stroke Stroke
	XY     []XY
}

// Point is a single sign with a label beside it. Points with the same Name share a legend entry.
// Later points are drawn over earlier ones.
type Point struct {
	XY
	Sign, Label, Name string
	Token             cell.Token
}

// Stroke is how a series is drawn, so that lines differ without colour.
type Stroke uint8

// Strokes.
const (
	Solid Stroke = iota
	Dashed
	Dotted
	Cloud // the points alone
)

// inks reports whether a stroke draws a dot at a position along its pattern.
func (s Stroke) inks(at int) bool {
	switch s {
	case Dashed:
		return at%8 < 5
	case Dotted:
		return at%4 == 0
	}
	return true
}

// sign returns the ASCII form of a stroke.
func (s Stroke) sign() byte { return "*-.."[s] }

// sample returns a stroke as it appears in the legend.
func (s Stroke) sample(ascii bool) string {
	if ascii {
		return strings.Repeat(string(rune(s.sign())), 2)
	}
	return [...]string{"⠒⠒⠒⠒⠒", "⠒⠒⠂⠀⠒", "⠂⠀⠂⠀⠂", "⠶⠀⠶"}[s] // a whole period of a dash, so that they differ without colour
}

// Draw draws the legend, the labels of the uprights, the axes and the area between them. If space
// is short, the outer parts are left out first and the area last.
func (pl *Plot) Draw(p cell.Pane, g cell.Glyphs) {
	f := pl.frame(p, g)
	if f.area.Width() == 0 || f.area.Height() == 0 {
		return
	}
	f.drawLegend()
	f.axes()
	if pl.X.valid() && pl.Y.valid() {
		f.uprights()
		f.series()
		f.points()
	}
}
