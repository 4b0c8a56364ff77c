package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// Size of a picture in user units, and its margins.
const (
	frameWidth  = 860.0
	frameHeight = 300.0
	frameLeft   = 74.0
	frameRight  = 18.0
	frameTop    = 34.0
	frameBottom = 44.0

	rowHeight  = 22.0
	nameWidth  = 190.0 // space for the names of bars and series
	letter     = 7.2   // width of a wide character
	mostLetter = 26    // letters of a name
)

// picture is a list of shapes in user units and, separately, texts, which the template escapes.
type picture struct {
	ID, Title, Desc, Empty string
	W, H                   string
	Rects                  []shapeRect
	Lines                  []shapeLine
	Paths                  []shapePath
	Dots                   []shapeDot
	Labels                 []shapeText
	Keys                   []page.Key
}

type shapeRect struct{ Class, X, Y, W, H, Text string }
type shapeLine struct{ Class, X1, Y1, X2, Y2, Text string }
type shapePath struct{ Class, D string }
type shapeDot struct{ Class, X, Y, R, Text string }
type shapeText struct{ Class, X, Y, Anchor, Text string }

func newPicture(id, title, desc string, height float64) *picture {
	return &picture{ID: identifier(id), Title: safeText(title), Desc: safeText(desc), W: Coordinate(frameWidth), H: Coordinate(height)}
}

// identifier converts a name to an element ID.
func identifier(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(safeText(s)))
}

// Coordinate formats a coordinate to a tenth of a unit.
func Coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// drawable reports whether all coordinates are within range. Figures of a broken target may not be.
func drawable(places ...float64) bool {
	const farthest = 1e5
	return !slices.ContainsFunc(places, func(v float64) bool { return !(math.Abs(v) <= farthest) })
}

func (p *picture) rect(class string, x, y, w, h float64, text string) {
	if drawable(x, y, w, h) {
		p.Rects = append(p.Rects, shapeRect{class, Coordinate(x), Coordinate(y), Coordinate(max(0, w)), Coordinate(max(0, h)), safeText(text)})
	}
}

func (p *picture) line(class string, x1, y1, x2, y2 float64, text string) {
	if drawable(x1, y1, x2, y2) {
		p.Lines = append(p.Lines, shapeLine{class, Coordinate(x1), Coordinate(y1), Coordinate(x2), Coordinate(y2), safeText(text)})
	}
}

func (p *picture) dot(class string, x, y, r float64, text string) {
	if drawable(x, y, r) {
		p.Dots = append(p.Dots, shapeDot{class, Coordinate(x), Coordinate(y), Coordinate(r), safeText(text)})
	}
}

// label writes a text. A centred text that would pass the right edge is right-aligned instead.
func (p *picture) label(class string, x, y float64, anchor, text string) {
	text = safeText(text)
	if anchor == "middle" && x+letter/2*float64(cell.Width(text)) > frameWidth {
		x, anchor = frameWidth-1, "end"
	}
	if drawable(x, y) {
		p.Labels = append(p.Labels, shapeText{class, Coordinate(x), Coordinate(y), anchor, text})
	}
}

// name writes a name to the left of a row.
func (p *picture) name(class string, y float64, text string) {
	p.label(class, nameWidth-8, y, "end", lines.Clip(safeText(text), mostLetter))
}

func (p *picture) path(class string, places [][2]float64) {
	places = slices.DeleteFunc(places, func(at [2]float64) bool { return !drawable(at[0], at[1]) })
	if len(places) == 0 {
		return
	}
	var b strings.Builder
	for i, at := range places {
		b.WriteString(map[bool]string{true: "M", false: "L"}[i == 0])
		b.WriteString(Coordinate(at[0]) + " " + Coordinate(at[1]))
	}
	if len(places) == 1 { // the round line cap draws a single point
		b.WriteString("h.1")
	}
	p.Paths = append(p.Paths, shapePath{class, b.String()})
}

func plotPicture(x *page.Plot) *picture {
	if x.Empty != "" {
		p := newPicture(x.ID, x.Title, x.Desc, frameHeight)
		p.Empty = safeText(x.Empty)
		return p
	}
	if x.Bars != nil {
		return barPicture(x)
	}
	p := newPicture(x.ID, x.Title, x.Desc, frameHeight)
	p.Keys = x.Keys
	across := scaleOf(&x.X, frameLeft, frameWidth-frameRight, 6)
	up := scaleOf(&x.Y, frameHeight-frameBottom, frameTop, 5)
	for _, b := range x.Bands {
		from, to := across.at(b.From), across.at(b.To)
		p.rect(b.Class, from, frameTop, to-from, frameHeight-frameBottom-frameTop, "")
		if float64(cell.Width(safeText(b.Label)))*letter <= to-from {
			p.label("", (from+to)/2, frameTop-6, "middle", b.Label)
		}
	}
	p.axes(&across, &up, x.X.Title, x.Y.Title)
	for _, r := range x.Rules {
		p.line("rule "+r.Class, across.at(r.X), frameTop, across.at(r.X), frameHeight-frameBottom, r.Tooltip)
	}
	for _, c := range x.Curves {
		var places [][2]float64
		for _, at := range c.Points {
			places = append(places, [2]float64{across.at(at[0]), up.at(at[1])})
		}
		p.path("curve "+c.Class, places)
	}
	p.dots(x.Dots, &across, &up)
	return p
}

// axes draws the grid of a frame with its labels.
func (p *picture) axes(x, y *scale, xTitle, yTitle string) {
	const left, right, bottom = frameLeft, frameWidth - frameRight, frameHeight - frameBottom
	for _, v := range y.ticks {
		p.line("grid", left, y.at(v), right, y.at(v), "")
		p.label("", left-8, y.at(v)+4, "end", y.label(v))
	}
	for _, v := range x.ticks {
		p.line("axis", x.at(v), bottom, x.at(v), bottom+4, "")
		p.label("", x.at(v), bottom+18, "middle", x.label(v))
	}
	p.line("axis", left, bottom, right, bottom, "")
	p.label("", right, frameHeight-6, "end", xTitle)
	p.label("", left, 14, "start", yTitle)
}

// dots draws points, with labels beside those that are not too close to an earlier label.
func (p *picture) dots(list []page.Dot, across, up *scale) {
	const mostLabels = 10
	var labels [][2]float64
	for i := range list {
		d := &list[i]
		x, y := across.at(d.X), up.at(d.Y)
		p.dot(d.Class, x, y, d.Radius, d.Tooltip)
		near := slices.ContainsFunc(labels, func(q [2]float64) bool { return math.Abs(q[0]-x) < 90 && math.Abs(q[1]-y) < 15 })
		if d.Label == "" || near || len(labels) >= mostLabels {
			continue
		}
		labels = append(labels, [2]float64{x, y})
		anchor, at := "start", x+8
		if x > frameWidth-160 {
			anchor, at = "end", x-8
		}
		p.label("halo", at, y-6, anchor, lines.Clip(safeText(d.Label), 20))
	}
}

// barPicture draws horizontal bars: without ticks if the bars have their value as a label, else with them.
func barPicture(x *page.Plot) *picture {
	const gap = 6.0
	bottom := float64(len(x.Bars))*rowHeight + 8
	behind := 0.0
	for i := range x.Bars {
		if b := &x.Bars[i]; b.ValueLabel != "" {
			behind = max(behind, gap+letter*float64(cell.Width(safeText(b.ValueLabel))))
		}
	}
	p := newPicture(x.ID, x.Title, x.Desc, bottom+8)
	p.Keys = x.Keys
	s := scaleOf(&x.X, nameWidth, frameWidth-max(behind, frameRight+30), 6)
	if behind == 0 {
		p.H = Coordinate(bottom + 38)
		for _, v := range s.ticks {
			p.line("grid", s.at(v), 4, s.at(v), bottom, "")
			p.label("", s.at(v), bottom+16, "middle", s.label(v))
		}
	} else {
		s.lo, s.hi = 0, x.X.To
	}
	for i := range x.Bars {
		b := &x.Bars[i]
		y := float64(i)*rowHeight + 6
		p.name("strong", y+14, b.Label)
		if b.Max > 0 {
			p.line("whisker", s.at(b.From), y+10, s.at(b.Max), y+10, "")
		}
		p.rect(b.Class, s.at(b.From), y+3, max(2, s.at(b.To)-s.at(b.From)), rowHeight-8, b.Tooltip)
		if b.Mean > 0 {
			p.dot("other", s.at(b.Mean), y+10, 3, b.Tooltip)
		}
		if b.ValueLabel != "" {
			p.label("", s.at(b.To)+gap, y+14, "start", b.ValueLabel)
		}
	}
	return p
}

// seriesPicture draws a row of shaded cells for each row of a series.
func seriesPicture(x *page.Series) *picture {
	const mostRows = 64
	rows := x.Rows[:min(len(x.Rows), mostRows)]
	p := newPicture(x.ID, x.Title, x.Desc, float64(len(rows))*rowHeight+40)
	most := 0
	for i := range rows {
		most = max(most, len(rows[i].Values))
	}
	wide := (frameWidth - nameWidth - frameRight) / float64(max(1, most))
	for i := range rows {
		r := &rows[i]
		y := float64(i)*rowHeight + 4
		p.name("strong", y+15, r.Label)
		for j, v := range r.Values {
			text := ""
			if r.Tooltip != nil {
				text = r.Tooltip(j)
			}
			p.rect(shade(v.Finite().V), nameWidth+float64(j)*wide, y, max(.5, wide-1), rowHeight-3, text)
		}
	}
	for j := 0; j < len(x.Ends); j += max(1, len(x.Ends)/12) {
		p.label("", nameWidth+(float64(j)+.5)*wide, float64(len(rows))*rowHeight+20, "middle", x.Ends[j])
	}
	return p
}

// shade returns the class for a share of the full height.
func shade(share float64) string {
	if !(share > 0) {
		return "heat h0"
	}
	return fmt.Sprintf("heat h%d", min(9, int(share*10)))
}

// timelinePicture draws the stretches of each lane. Waiting and time off CPU are drawn as a share of a stretch,
// without their position.
func timelinePicture(x *page.Timeline) *picture {
	const row, mostLanes = 34.0, 64
	lanes := x.Lanes[:min(len(x.Lanes), mostLanes)]
	p := newPicture(x.ID, x.Title, x.Desc, float64(len(lanes))*row+46)
	p.Keys = x.Keys
	bottom := float64(len(lanes))*row + 6
	s := scaleOf(&page.Axis{Unit: "s", To: x.Total.Seconds()}, frameLeft, frameWidth-frameRight, 6)
	for _, v := range s.ticks {
		p.line("grid", s.at(v), 4, s.at(v), bottom, "")
		p.label("", s.at(v), bottom+16, "middle", s.label(v))
	}
	place := func(d time.Duration) float64 { return s.at(min(max(d.Seconds(), 0), s.hi)) }
	for i := range lanes {
		y := float64(i)*row + 8
		p.label("strong", frameLeft-8, y+17, "end", lanes[i].Label)
		for j, b := range lanes[i].Stretches() {
			from, wide := place(b.From), max(.3, place(b.To)-place(b.From)-.2)
			text := lanes[i].Tooltip(j)
			p.rect(b.Class, from, y, wide, row-12, text)
			if off := b.Wait + b.Off; off > 0 {
				p.rect("panel", from, y, wide, (row-12)*min(1, off.Seconds()/max(1e-12, (b.To-b.From).Seconds())), text)
			}
		}
	}
	return p
}
