package lines

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// frame is a plot with its position on the canvas.
type frame struct {
	*Plot
	g      cell.Glyphs
	whole  cell.Pane
	area   cell.Pane // between the axes
	gutter int       // columns left of the area including the axis; 0 without axes
	legend [][]entry // lines above the area
	labels int       // lines for labels of uprights, below the legend
	yTicks []float64
	xTicks []float64
}

// Minimum size of a plot's area if it has axes, a legend or lines of labels.
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
	if spare := h - leastHeight - foot; spare > 0 {
		f.legend = pl.entries(p, g, 1+min(1, spare/8))
	}
	if spare := h - leastHeight - foot - len(f.legend); spare > 0 {
		f.labels = min(pl.visibleUprights(), 1+spare/8, 2)
	}
	rows := h - f.head() - foot
	f.yTicks = pl.Y.Ticks(max(2, rows/2))
	for _, v := range f.yTicks {
		f.gutter = max(f.gutter, p.Cells(figure.Count(v)))
	}
	f.gutter += 2
	if foot == 0 || w < f.gutter+leastWidth {
		f.gutter = 0
	}
	f.area = p.Sub(f.gutter, f.head(), w-f.gutter, rows)
	if foot > 0 {
		f.xTicks = f.spaced(pl.X.Ticks(max(2, f.area.Width()/8)))
	}
	return f
}

// visibleUprights returns the number of vertical lines to draw.
func (pl *Plot) visibleUprights() int {
	n := 0
	for _, u := range pl.Uprights {
		if pl.X.valid() && pl.X.inside(u.At) {
			n++
		}
	}
	return n
}

// head returns the number of lines above the area.
func (f *frame) head() int { return len(f.legend) + f.labels }

// entry is an item of the legend. The title of the y axis is an entry without a sign.
type entry struct {
	token      cell.Token
	sign, name string
}

// entries lays out the legend in at most most lines. Entries that do not fit are left out.
func (pl *Plot) entries(p cell.Pane, g cell.Glyphs, most int) [][]entry {
	all := []entry{{name: pl.Y.Title}}
	add := func(e entry) {
		if e.name != "" && all[len(all)-1].name != e.name {
			all = append(all, e)
		}
	}
	for i := range pl.Series {
		add(entry{pl.Series[i].Token, pl.Series[i].Stroke.sample(g.ASCII), pl.Series[i].Name})
	}
	for _, pt := range pl.Points {
		add(entry{pt.Token, pt.Sign, pt.Name})
	}
	lines, x := [][]entry{nil}, 0
	for _, e := range all {
		n := p.Cells(e.sign) + 1 + p.Cells(e.name)
		if x+n > p.Width() {
			if len(lines) == most {
				break
			}
			lines, x = append(lines, nil), 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], e)
		x += n + legendGap
	}
	return lines
}

// legendGap is the number of cells between two entries of a legend.
const legendGap = 2

// spaced drops ticks whose labels would touch the previous label.
func (f *frame) spaced(ticks []float64) []float64 {
	end, out := -1, ticks[:0:0]
	for _, v := range ticks {
		n := f.whole.Cells(figure.Count(v))
		if from := f.column(v) - n/2; from > end || end < 0 {
			out, end = append(out, v), from+n
		}
	}
	return out
}

// column and row return the cell in which a value lies.
func (f *frame) column(x float64) int {
	return int(math.Round(f.X.at(x) * float64(f.area.Width()-1)))
}

func (f *frame) row(y float64) int {
	return int(math.Round((1 - f.Y.at(y)) * float64(f.area.Height()-1)))
}

func (f *frame) drawLegend() {
	for y, line := range f.legend {
		x := 0
		for _, e := range line {
			if e.sign != "" {
				x = f.whole.Text(x, y, e.token, e.sign) + 1
			}
			x = f.whole.Text(x, y, cell.Muted, e.name) + legendGap
		}
	}
}

func (f *frame) axes() {
	if f.gutter == 0 {
		return
	}
	p, left, bottom := f.whole, f.gutter-1, f.head()+f.area.Height()
	for y := range f.area.Height() {
		p.Text(left, f.head()+y, cell.Border, f.g.Vertical)
	}
	for _, v := range f.yTicks {
		y := f.head() + f.row(v)
		p.Text(left, y, cell.Border, f.g.TeeRight)
		p.Right(left-1, y, cell.Muted, figure.Count(v))
	}
	p.Text(left, bottom, cell.Border, f.g.BottomLeft)
	for x := range f.area.Width() {
		p.Text(f.gutter+x, bottom, cell.Border, f.g.Horizontal)
	}
	tee := "┬"
	if f.g.ASCII {
		tee = "+"
	}
	title := p.Cells(f.X.Title)
	for _, v := range f.xTicks {
		x, label := f.gutter+f.column(v), figure.Count(v)
		p.Text(x, bottom, cell.Border, tee)
		from := min(x-p.Cells(label)/2, p.Width()-p.Cells(label))
		if from+p.Cells(label) < p.Width()-title {
			p.Text(from, bottom+1, cell.Muted, label)
		}
	}
	p.Right(p.Width(), bottom+1, cell.Muted, f.X.Title)
}
