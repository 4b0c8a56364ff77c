package lines

import (
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

func (f *frame) uprights() {
	sign := "┆"
	if f.g.ASCII {
		sign = ":"
	}
	taken := make([][]bool, f.labels)
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
		for i := f.labels - 1; i >= 0; i-- {
			if at := f.gutter + x; place(f.whole, f.head()-f.labels+i, u.Token, u.Label, taken[i], 1, at, at-f.whole.Cells(u.Label)+1) {
				break
			}
		}
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
			if !stat.IsFinite(at.X) || !stat.IsFinite(at.Y) {
				joined = false
				continue
			}
			switch {
			case s.Stroke == Cloud || !joined:
				if f.X.inside(v.X) && f.Y.inside(v.Y) {
					r.point(int(math.Round(at.X)), int(math.Round(at.Y)), s)
				}
			default:
				phase = r.line(before.X, before.Y, at.X, at.Y, s, phase)
			}
			before, joined = at, true
		}
	}
	r.draw(f.area)
}

// points draws the points, on top of everything. Points in the same cell show the last one's sign
// and all labels. A label that would cover another point is left out.
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
		label := strings.Join(s.labels, ",")
		place(f.area, y, s.point.Token, label, taken[y*w:(y+1)*w], 0, x+1, x-f.area.Cells(label))
	}
}
