package report

import (
	"math"
	"slices"
)

// plate is a picture as a template draws it: shapes in user units, texts apart. The
// template escapes the texts.
type plate struct {
	ID, Title string
	Desc      string // the picture in words, for those who do not see it
	Empty     string // why there is nothing to draw, "" where there is
	W, H      string
	Rects     []plateRect
	Lines     []plateLine
	Paths     []lineOf
	Dots      []plateDot
	Labels    []plateText
	Keys      []keyOf
}

type plateRect struct{ Class, X, Y, W, H, Text string }
type plateLine struct{ Class, X1, Y1, X2, Y2 string }
type plateDot struct{ Class, X, Y, R, Text string }
type plateText struct{ Class, X, Y, Anchor, Text string }

func newPlate(id, title string, height float64) *plate {
	return &plate{ID: id, Title: title, W: coordinate(frameWidth), H: coordinate(height)}
}

// drawable says that all are places: figures that no target has may give none.
func drawable(places ...float64) bool {
	const farthest = 1e5
	for _, v := range places {
		if !(math.Abs(v) <= farthest) {
			return false
		}
	}
	return true
}

func (p *plate) rect(class string, x, y, w, h float64, text string) {
	if drawable(x, y, w, h) {
		p.Rects = append(p.Rects, plateRect{class, coordinate(x), coordinate(y), coordinate(max(0, w)), coordinate(max(0, h)), plainText(text)})
	}
}

func (p *plate) line(class string, x1, y1, x2, y2 float64) {
	if drawable(x1, y1, x2, y2) {
		p.Lines = append(p.Lines, plateLine{class, coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2)})
	}
}

func (p *plate) dot(class string, x, y, r float64, text string) {
	if drawable(x, y, r) {
		p.Dots = append(p.Dots, plateDot{class, coordinate(x), coordinate(y), coordinate(r), plainText(text)})
	}
}

// label writes a text; one that is centred so near to the right edge that it would be cut
// ends there.
func (p *plate) label(class string, x, y float64, anchor, text string) {
	const halfCell = 3.6 // of the font, wide characters
	if anchor == "middle" && x+halfCell*float64(width(text)) > frameWidth {
		x, anchor = frameWidth-1, "end"
	}
	if drawable(x, y) {
		p.Labels = append(p.Labels, plateText{class, coordinate(x), coordinate(y), anchor, plainText(text)})
	}
}

func (p *plate) path(class string, places [][2]float64) {
	places = slices.DeleteFunc(places, func(at [2]float64) bool { return !drawable(at[0], at[1]) })
	if len(places) > 1 {
		p.Paths = append(p.Paths, lineOf{pathOf(places), class})
	}
}

// axes draws the grid of a frame of the usual size with its labels.
func (p *plate) axes(x, y scaleOf, xs, ys []float64, xLabel, yLabel func(float64) string, xTitle, yTitle string) {
	for _, v := range ys {
		p.line("grid", frameLeft, y.at(v), frameWidth-frameRight, y.at(v))
		p.label("", frameLeft-8, y.at(v)+4, "end", yLabel(v))
	}
	for _, v := range xs {
		p.line("axis", x.at(v), frameHeight-frameBottom, x.at(v), frameHeight-frameBottom+4)
		p.label("", x.at(v), frameHeight-frameBottom+18, "middle", xLabel(v))
	}
	p.line("axis", frameLeft, frameHeight-frameBottom, frameWidth-frameRight, frameHeight-frameBottom)
	p.label("", frameWidth-frameRight, frameHeight-6, "end", xTitle)
	p.label("", frameLeft, 14, "start", yTitle)
}
