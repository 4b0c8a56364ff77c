package tui

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// Cells around a layer's line of experts: its number before, its figures behind.
const (
	expertLabel  = 6
	expertFigure = 36 // CV, top, which, never
)

// experts is how often each expert of each layer was chosen.
func (v *traceView) experts(l *listing) {
	u, e := v.u, v.s.Experts
	if e == nil || len(e.Layers) == 0 {
		l.title("Experts", nil)
		l.say(u.say(cell.Muted, v.noExperts()))
		return
	}
	columns := expertWidth(e.Count, l.w-expertLabel-expertFigure)
	l.title(fmt.Sprintf("%s, %s for each token", counted(e.Count, "expert"), figure.Whole(float64(e.Used))), u.say(cell.Muted, counted(int(e.Tokens), "choice")+" read"))
	says := u.say(cell.Body, "Uneven by CV "+plainly(e.CV)+" over all layers (0 is perfectly even)")
	if number(e.TimeCV) {
		says = line(says, u.say(cell.Body, ", their time by CV "+plainly(e.TimeCV)))
	}
	l.say(line(says, u.say(cell.Muted, ". "+expertColumns(e, columns))))
	l.row(func(p cell.Pane) { v.expertHead(p, columns) })
	top := 0.0
	for i := range e.Layers {
		top = max(top, highestShare(e.Layers[i].Chosen))
	}
	if len(e.Layers) > 1 {
		all := optrace.ExpertLayer{Layer: -1, Chosen: addedUp(e), CV: e.CV}
		l.row(func(p cell.Pane) { v.expertRow(p, &all, columns, highestShare(all.Chosen)) })
	}
	for i := range e.Layers {
		layer := &e.Layers[i]
		l.row(func(p cell.Pane) { v.expertRow(p, layer, columns, top) })
	}
}

func (v *traceView) noExperts() string {
	switch {
	case v.live.Detail != 0 && v.live.Detail&optrace.DetailExperts == 0:
		return "The choices of experts are not traced at this level of detail: + traces them."
	case len(v.s.Kinds) == 0:
		return v.noOperators()
	case !v.s.Target.Verified && v.s.Target.Withheld != "":
		return "Mixtures are told by the names of operators, and these are withheld: " + sentence(v.s.Target.Withheld)
	}
	return "This model is dense: no graph so far chooses among experts."
}

// expertColumns says what a column is.
func expertColumns(e *optrace.Experts, columns int) string {
	if fold := foldOf(e.Count, columns); fold > 1 {
		return fmt.Sprintf("A column is the more chosen of %d experts, blank where none was chosen; lines share a scale.", fold)
	}
	return "Blank is an expert that was never chosen; lines share a scale."
}

// expertWidth is how many columns of those that there are experts take.
func expertWidth(n, columns int) int {
	columns = max(8, columns)
	if n <= 0 {
		return columns
	}
	return min(columns, n*wideOf(n, columns))
}

// wideOf is how many columns one of n things takes where they have some each.
func wideOf(n, columns int) int { return max(1, min(4, columns/max(1, n))) }

// plainly spells a number without a unit.
func plainly(o stat.Opt) string {
	if !number(o) {
		return figure.Absent
	}
	return figure.Significant(o.V)
}

// foldOf is how many of n things share a column.
func foldOf(n, columns int) int { return max(1, (n+columns-1)/max(1, columns)) }

func (v *traceView) expertHead(p cell.Pane, columns int) {
	p.Text(0, 0, cell.Muted, "layer")
	x := expertLabel + columns
	for _, c := range expertFields(&optrace.ExpertLayer{}) {
		x += c.cells
		p.Right(x, 0, cell.Muted, c.head)
	}
}

// expertField is a figure of a layer of experts.
type expertField struct {
	head  string
	cells int
	text  string
}

func expertFields(r *optrace.ExpertLayer) []expertField {
	most, never := 0, 0
	for i, n := range r.Chosen {
		if n > r.Chosen[most] {
			most = i
		}
		if n <= 0 {
			never++
		}
	}
	which := figure.Absent
	if len(r.Chosen) > 0 {
		which = fmt.Sprint(most)
	}
	return []expertField{
		{"CV", 8, plainly(r.CV)}, {"top share", 11, figure.Show(finite(r.Top), "ratio")}, {"expert", 8, which}, {"never", 7, figure.Whole(float64(never))},
	}
}

// expertRow is one layer: a cell an expert, and its figures.
func (v *traceView) expertRow(p cell.Pane, r *optrace.ExpertLayer, columns int, top float64) {
	label := figure.Whole(float64(r.Layer))
	if r.Layer < 0 {
		label = "all"
	}
	p.Text(0, 0, cell.Muted, label)
	sum := total(r.Chosen)
	values := spread(r.Chosen, sum, columns)
	even := 0.0
	if len(r.Chosen) > 0 {
		even = 1 / float64(len(r.Chosen))
	}
	const hot = 2 // times its even share
	chart.Area(p.Sub(expertLabel, 0, columns, 1), v.u.glyphs, values, chart.Scale{Hi: top}, func(i int) cell.Token {
		if values[i].V >= hot*even {
			return cell.Warn
		}
		return cell.Baseline
	})
	x := expertLabel + columns
	for _, c := range expertFields(r) {
		x += c.cells
		p.Right(x, 0, cell.Body, c.text)
	}
}

func total(chosen []int64) float64 {
	sum := 0.0
	for _, n := range chosen {
		sum += float64(max(0, n))
	}
	return sum
}

func highestShare(chosen []int64) float64 {
	sum, most := total(chosen), 0.0
	for _, n := range chosen {
		most = max(most, float64(n))
	}
	if sum <= 0 {
		return 0
	}
	return most / sum
}

// addedUp is how often each expert was chosen in all layers.
func addedUp(e *optrace.Experts) []int64 {
	n := 0
	for i := range e.Layers {
		n = max(n, len(e.Layers[i].Chosen))
	}
	out := make([]int64, n)
	for i := range e.Layers {
		for j, c := range e.Layers[i].Chosen {
			out[j] += max(0, c)
		}
	}
	return out
}

// spread lays the shares of experts out over columns: the highest of several in one,
// or each over several with a blank between where there is room.
func spread(chosen []int64, sum float64, columns int) []stat.Opt {
	n := len(chosen)
	if n == 0 || sum <= 0 {
		return nil
	}
	fold := foldOf(n, columns)
	wide := 1
	if fold == 1 {
		wide = wideOf(n, columns)
	}
	ink := max(1, wide-1)
	if wide == 2 {
		ink = 2
	}
	out := make([]stat.Opt, min(columns, (n+fold-1)/fold*wide))
	for i, c := range chosen {
		if c <= 0 {
			continue
		}
		for k := range ink {
			if at := i/fold*wide + k; at < len(out) {
				out[at] = out[at].Max(stat.Some(float64(c) / sum))
			}
		}
	}
	return out
}
