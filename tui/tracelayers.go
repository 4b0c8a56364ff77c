package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// slowLayer is how much more than the median a layer takes that is marked, of at least
// so many: what findings take for one.
const (
	slowLayer = 1.3
	manyLayer = 6
)

// layerParts are what the time of a layer is divided into.
func layerParts() []string { return []string{"attention", "feed-forward", "norm", "other"} }

// layers is the heat map of layers by parts, and the table of both.
func (v *traceView) layers(l *listing) {
	rows, rest := v.layerRows()
	if len(rows) == 0 {
		l.title(v.phaseTitle()+": no layers", nil)
		l.say(v.u.say(cell.Muted, v.noLayers()))
		return
	}
	l.title(v.layerTitle(), v.u.say(cell.Muted, mapNote(foldOf(len(rows), mapColumns(l)))))
	v.layerMap(l, rows)
	l.space()
	v.layerTable(l, rows, rest)
}

// layerRows are the layers of the phase in their order, and what belongs to none.
func (v *traceView) layerRows() (rows []*optrace.LayerRow, rest *optrace.LayerRow) {
	for i := range v.s.Layers {
		switch r := &v.s.Layers[i]; {
		case r.Phase != v.phase:
		case r.Layer < 0:
			rest = r
		default:
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *optrace.LayerRow) int { return a.Layer - b.Layer })
	return rows, rest
}

func (v *traceView) layerTitle() string {
	return v.phaseTitle() + ": time of a graph, by layer and part"
}

func mapColumns(l *listing) int { return max(1, l.w-mapLabel-mapFigure) }

// mapNote says what a column of the map is.
func mapNote(fold int) string {
	if fold > 1 {
		return fmt.Sprintf("the slowest of %d layers a column", fold)
	}
	return "each line its own scale"
}

func (v *traceView) noLayers() string {
	switch {
	case !v.s.Target.Verified && v.s.Target.Withheld != "":
		return "Layers are told by the names of tensors, and these are withheld: " + sentence(v.s.Target.Withheld)
	case len(v.s.Kinds) == 0:
		return v.noOperators()
	}
	return "No tensor of this phase has a name that ends with the number of a layer."
}

// each is the mean of a time of a layer over the graphs in which its operators were
// recorded, over those of its phase where that is not told; over all of them where it is
// not known how many there were.
func (v *traceView) each(r *optrace.LayerRow, d time.Duration) time.Duration {
	if r.Graphs > 0 {
		return d / time.Duration(r.Graphs)
	}
	for i := range v.s.Phases {
		if p := &v.s.Phases[i]; p.Phase == v.phase && p.Graph.Count > 0 {
			return d / time.Duration(p.Graph.Count)
		}
	}
	return d
}

// slowOnes are the layers that are marked.
func slowOnes(rows []*optrace.LayerRow) map[int]bool {
	out := map[int]bool{}
	for _, r := range rows {
		if len(rows) >= manyLayer && number(r.Slow) && r.Slow.V >= slowLayer {
			out[r.Layer] = true
		}
	}
	return out
}

// mapLabel and mapFigure are the cells before and after a line of a map.
const (
	mapLabel  = 13
	mapFigure = 16
)

// layerMap draws a line of cells for each part, a layer a column, each on a scale of
// its own from zero to its highest.
func (v *traceView) layerMap(l *listing, rows []*optrace.LayerRow) {
	u := v.u
	columns := mapColumns(l)
	fold := foldOf(len(rows), columns)
	wide := max(1, min(3, columns/len(rows)))
	parts := append([]string{"whole layer"}, layerParts()...)
	marked := slowOnes(rows)
	slow := func(i int) bool {
		return slices.ContainsFunc(rows[i*fold:min(len(rows), (i+1)*fold)], func(r *optrace.LayerRow) bool { return marked[r.Layer] })
	}
	for n, part := range parts {
		values := make([]stat.Opt, (len(rows)+fold-1)/fold*wide)
		top, at := time.Duration(0), rows[0]
		for i, r := range rows {
			d := r.Time
			if n > 0 {
				d = r.Parts[part]
			}
			if d > top {
				top, at = d, r
			}
			if d > 0 {
				for at := i / fold * wide; at < (i/fold+1)*wide; at++ {
					values[at] = values[at].Max(stat.Some(float64(d)))
				}
			}
		}
		if top == 0 && n > 0 {
			continue
		}
		most := fmt.Sprintf("%s in %d", howLong(v.each(at, top)), at.Layer)
		l.row(func(p cell.Pane) {
			p.Text(0, 0, cell.Muted, part)
			chart.Area(p.Sub(mapLabel, 0, columns, 1), u.glyphs, values, chart.Scale{Hi: float64(top)}, func(i int) cell.Token {
				if slow(i / wide) {
					return cell.Warn
				}
				return cell.Baseline
			})
			p.Right(p.Width(), 0, cell.Body, most)
		})
	}
	l.row(func(p cell.Pane) { layerAxis(p.Sub(mapLabel, 0, columns, 1), rows, fold, wide) })
	if len(marked) > 0 {
		l.row(func(p cell.Pane) {
			end := p.Text(0, 0, cell.Warn, "slow") // its sign stands under the layer
			for i := range (len(rows) + fold - 1) / fold {
				if slow(i) {
					end = p.Text(mapLabel+i*wide, 0, cell.Warn, u.glyphs.Warn)
				}
			}
			if text := figure.Significant(slowLayer) + "x the median"; end+1+p.Cells(text) <= p.Width() {
				p.Right(p.Width(), 0, cell.Muted, text)
			}
		})
	}
}

// layerAxis writes the numbers of layers under their columns, as many as there is room
// for.
func layerAxis(p cell.Pane, rows []*optrace.LayerRow, fold, wide int) {
	const apart = 4 // columns from one number to the next
	steps := [...]int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if s*wide >= apart*fold {
			step = s
			break
		}
	}
	for i := 0; i*fold < len(rows); i++ {
		n := rows[i*fold].Layer
		if text := fmt.Sprint(n); n%step < fold && i*wide+p.Cells(text) <= p.Width() {
			p.Text(i*wide, 0, cell.Muted, text)
		}
	}
}

// layerTable lists the layers, and what belongs to none.
func (v *traceView) layerTable(l *listing, rows []*optrace.LayerRow, rest *optrace.LayerRow) {
	u := v.u
	columns := []column{{head: "layer", left: true}, {head: "a graph"}, {head: "share"}, {head: "of median"}}
	for _, part := range layerParts() {
		columns = append(columns, column{head: part})
	}
	list, marked := rows, slowOnes(rows)
	if rest != nil {
		list = append(list[:len(list):len(list)], rest)
	}
	for _, r := range list {
		name, over := fmt.Sprintf("  %d", r.Layer), figure.Absent
		switch {
		case r.Layer < 0:
			name = "  none"
		case marked[r.Layer]:
			name = u.glyphs.Warn + " " + strings.TrimSpace(name) + " slow"
		}
		if number(r.Slow) && r.Layer >= 0 {
			over = figure.Significant(r.Slow.V) + "x"
		}
		texts := []string{name, howLong(v.each(r, r.Time)), figure.Show(finite(r.Share), "ratio"), over}
		for _, part := range layerParts() {
			texts = append(texts, howLong(v.each(r, r.Parts[part])))
		}
		addRow(columns, texts...)
	}
	l.table(columns, func(row, col int) cell.Token {
		switch {
		case marked[list[row].Layer]:
			return cell.Warn
		case col == 0:
			return cell.Strong
		}
		return cell.Body
	})
}
