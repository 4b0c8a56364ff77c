package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
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

func (p *plate) label(class string, x, y float64, anchor, text string) {
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

// Rows of operators in a picture, their height, and where their bars begin.
const (
	mostPlotted = 14
	plotRow     = 22.0
	plotNames   = 190.0
)

// mainPhase is the phase with most time, decode where there is one.
func mainPhase(s *optrace.Summary) string {
	phases := phasesByTime(s)
	switch {
	case slices.Contains(phases, "decode"):
		return "decode"
	case len(phases) > 0:
		return phases[0]
	}
	return ""
}

// plotted are the rows of the main phase that pictures show.
func plotted(s *optrace.Summary) (string, []*optrace.OperatorRow) {
	phase := mainPhase(s)
	rows := of(s.Steps, phase)
	if len(rows) == 0 {
		rows = of(s.Kinds, phase)
	}
	return phase, rows[:min(len(rows), mostPlotted)]
}

// boundClass is the shade of a bound.
func boundClass(b optrace.Bound) string {
	switch b {
	case optrace.BoundMemory, optrace.BoundCompute, optrace.BoundMixed:
		return string(b)
	}
	return "other"
}

func boundKeys() []keyOf {
	return []keyOf{{Class: "memory", Label: "bound by memory"}, {Class: "compute", Label: "bound by compute"}, {Class: "mixed", Label: "by both"}, {Class: "other", Label: "by neither, or not known"}}
}

// sharePlate is the share of each operator as a bar, shaded by what bounds it.
func sharePlate(s *optrace.Summary) *plate {
	phase, rows := plotted(s)
	p := newPlate("share", "Share of time by operator", float64(len(rows))*plotRow+16)
	most := stat.None
	name := distinct(rows)
	for _, o := range rows {
		most = most.Max(finite(o.Share))
	}
	if most.V <= 0 {
		p.Empty = "no operator was seen"
		return p
	}
	var said []string
	for i, o := range rows {
		y := float64(i)*plotRow + 6
		share := finite(o.Share)
		p.label("strong", plotNames-8, y+14, "end", clipped(safe(name(o)), 26))
		text := fmt.Sprintf("%s, %s: %s, %s", stepName(o), kindName(o), percent(share), shownBound(o))
		length := (frameWidth - plotNames - 130) * max(0, share.V) / most.V
		p.rect(boundClass(o.Bound), plotNames, y+2, max(1, length), plotRow-6, text)
		p.label("", plotNames+length+6, y+14, "start", percent(share)+" · "+cmp.Or(o.Type, strings.ToLower(o.Op)))
		if i < 3 {
			said = append(said, stepName(o)+" "+percent(share))
		}
	}
	p.Keys = boundKeys()
	p.Desc = plainText("Share of the time of the operators of " + phase + "; the largest are " + strings.Join(said, ", ") + ". Bounds by roofline are estimates.")
	return p
}

// spreadPlate is how the time of each operator is spread: from the median to the 95th
// percentile a bar, a line to the longest.
func spreadPlate(s *optrace.Summary) *plate {
	phase, rows := plotted(s)
	rows = slices.DeleteFunc(slices.Clone(rows), func(o *optrace.OperatorRow) bool {
		return o.Each.Count <= 0 || o.Each.P50 <= 0 || o.Each.Max < o.Each.P50
	})
	p := newPlate("spread", "Time of one operator", float64(len(rows))*plotRow+46)
	if len(rows) == 0 {
		p.Empty = "no times of operators are known"
		return p
	}
	least, most := math.Inf(1), 0.0
	name := distinct(rows)
	for _, o := range rows {
		least, most = min(least, o.Each.P50.Seconds()), max(most, o.Each.Max.Seconds())
	}
	lo, hi, ticks := decades(least, most)
	x := scaleOf{lo, hi, plotNames, frameWidth - frameRight - 30, true}
	bottom := float64(len(rows))*plotRow + 8
	for _, v := range ticks {
		p.line("grid", x.at(v), 4, x.at(v), bottom)
		p.label("", x.at(v), bottom+16, "middle", inUnit("s")(v))
	}
	for i, o := range rows {
		y := float64(i)*plotRow + 6
		e := &o.Each
		at := func(d time.Duration) float64 { return x.at(min(max(d.Seconds(), lo), hi)) }
		p.label("strong", plotNames-8, y+14, "end", clipped(safe(name(o)), 26))
		p.line("whisker", at(e.P50), y+plotRow/2-1, at(e.Max), y+plotRow/2-1)
		text := fmt.Sprintf("%s: p50 %s, p95 %s, p99 %s, longest %s, %d of them", stepName(o), shownTime(e.P50), shownTime(e.P95), shownTime(e.P99), shownTime(e.Max), e.Count)
		p.rect(boundClass(o.Bound), at(e.P50), y+4, max(2, at(e.P95)-at(e.P50)), plotRow-10, text)
		p.dot("other", at(e.Mean), y+plotRow/2-1, 3, text)
	}
	p.Keys = boundKeys()
	p.Desc = plainText("Times of single operators of " + phase + ", logarithmic: the bar reaches from the median to the 95th percentile, the line to the longest, the dot is the mean. Quantiles are nearest rank.")
	return p
}

// roofPlate is the roofline: the rate of operations of each group of operators against
// its operations for each byte, under the roofs of memory and of compute.
func roofPlate(s *optrace.Summary) *plate {
	p := newPlate("roofline", "Roofline", frameHeight)
	type spot struct {
		o    *optrace.OperatorRow
		x, y float64
	}
	var spots []spot
	var xs, ys []float64
	for i := range s.Steps {
		o := &s.Steps[i]
		bytes, flops, rate := finite(o.Bytes), finite(o.Flops), finite(o.FlopsRate)
		if !finiteAbove(bytes.V) || !finiteAbove(flops.V) || !finiteAbove(rate.V) || !finiteAbove(flops.V/bytes.V) {
			continue
		}
		spots = append(spots, spot{o, flops.V / bytes.V, rate.V / 1e9})
		xs, ys = append(xs, flops.V/bytes.V), append(ys, rate.V/1e9)
	}
	if len(spots) == 0 {
		p.Empty = "no operator has both bytes and operations that are known"
		return p
	}
	memory := finite(stat.Some(s.Roof.BytesPerSecond)).V / 1e9
	ceiling := finite(stat.Some(s.Roof.OperationsPerSecond(weightsOf(s.Kinds, mainPhase(s))))).V / 1e9
	if finiteAbove(ceiling) {
		ys = append(ys, ceiling)
		if finiteAbove(memory) {
			xs = append(xs, ceiling/memory)
		}
	}
	xlo, xhi, xticks := decades(slices.Min(xs)/1.5, slices.Max(xs)*1.5)
	ylo, yhi, yticks := decades(slices.Min(ys)/1.5, slices.Max(ys)*1.2)
	x, y := xScale(xlo, xhi, true), yScale(ylo, yhi, true)
	p.axes(x, y, xticks, yticks, roundNumber, roundNumber, "operations for each byte", "GFLOP/s")
	p.roofs(x, y, memory, ceiling)
	slices.SortStableFunc(spots, func(a, b spot) int { return cmp.Compare(finite(b.o.Share).V, finite(a.o.Share).V) })
	var labelled [][2]float64
	for _, at := range spots {
		class := "other"
		switch at.o.Phase {
		case "decode":
			class = "memory"
		case "prefill":
			class = "compute"
		}
		px, py := x.at(at.x), y.at(at.y)
		share := min(1, max(0, finite(at.o.Share).V))
		p.dot(class, px, py, 3+14*math.Sqrt(share), fmt.Sprintf("%s, %s: %s GFLOP/s at %s a byte, %s of the phase", stepName(at.o), at.o.Phase, figure.Significant(at.y), figure.Significant(at.x), percent(at.o.Share)))
		near := slices.ContainsFunc(labelled, func(q [2]float64) bool { return math.Abs(q[0]-px) < 90 && math.Abs(q[1]-py) < 15 })
		const mostLabelled = 10
		if !near && len(labelled) < mostLabelled {
			labelled = append(labelled, [2]float64{px, py})
			anchor, lx := "start", px+8
			if px > frameWidth-160 {
				anchor, lx = "end", px-8
			}
			p.label("halo", lx, py-6, anchor, clipped(safe(stepName(at.o)), 20))
		}
	}
	p.Keys = []keyOf{{Class: "memory", Label: "decode"}, {Class: "compute", Label: "prefill"}, {Class: "other", Label: "other phases"}}
	p.Desc = "Each dot is a group of operators, the larger the more of its phase's time it takes; both axes are logarithmic, bytes and operations are reckoned from shapes (est)."
	if memory > 0 {
		p.Desc += " Dashed: " + figure.Significant(memory) + " GB/s of memory"
		if ceiling > 0 {
			p.Desc += " and " + figure.Significant(ceiling) + " GFLOP/s of compute"
		}
		p.Desc += " (" + plainText(cmp.Or(s.Roof.Origin(), "origin unknown")) + ")."
	}
	return p
}

// roundNumber labels a tick, which is a round number however small.
func roundNumber(v float64) string {
	if v >= 1 {
		return figure.Count(v)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// roofs draws the slope of memory and the line of compute, as far as they are known and
// in the frame.
func (p *plate) roofs(x, y scaleOf, memory, ceiling float64) {
	if finiteAbove(memory) {
		from, to := max(x.lo, y.lo/memory), min(x.hi, y.hi/memory)
		if finiteAbove(ceiling) {
			to = min(to, ceiling/memory)
		}
		if from < to {
			p.path("curve roof memory", [][2]float64{{x.at(from), y.at(from * memory)}, {x.at(to), y.at(to * memory)}})
		}
	}
	if finiteAbove(ceiling) && y.inside(ceiling) {
		from := x.lo
		if finiteAbove(memory) {
			from = min(max(x.lo, ceiling/memory), x.hi)
		}
		p.path("curve roof compute", [][2]float64{{x.at(from), y.at(ceiling)}, {x.at(x.hi), y.at(ceiling)}})
	}
}

// heatClass is the shade of a share of the largest.
func heatClass(share float64) string {
	if !(share > 0) {
		return "heat h0"
	}
	return fmt.Sprintf("heat h%d", min(9, int(share*10)))
}

// mostHeatRows bounds the phases of a heat map.
const mostHeatRows = 12

// layerPlate is the time of each layer, a row for each part of it.
func layerPlate(s *optrace.Summary) *plate {
	type heatRow struct {
		label string
		of    func(*optrace.LayerRow) time.Duration
		rows  []*optrace.LayerRow
	}
	var rows []heatRow
	var phases []string
	for i := range s.Layers {
		if !slices.Contains(phases, s.Layers[i].Phase) {
			phases = append(phases, s.Layers[i].Phase)
		}
	}
	columns := 0
	for _, phase := range phases {
		list := slices.DeleteFunc(layersOf(s.Layers, phase), func(l *optrace.LayerRow) bool { return l.Layer < 0 })
		columns = max(columns, len(list))
		parts := map[string]time.Duration{}
		for _, l := range list {
			for name, d := range l.Parts {
				parts[name] += d
			}
		}
		rows = append(rows, heatRow{phase + ", whole layer", func(l *optrace.LayerRow) time.Duration { return l.Time }, list})
		for _, name := range slices.Sorted(maps.Keys(parts)) {
			if parts[name] > 0 {
				rows = append(rows, heatRow{phase + ", " + name, func(l *optrace.LayerRow) time.Duration { return l.Parts[name] }, list})
			}
		}
	}
	rows = rows[:min(len(rows), mostHeatRows)]
	p := newPlate("layers", "Layers", float64(len(rows))*plotRow+40)
	if columns == 0 {
		p.Empty = "no operator belongs to a layer"
		return p
	}
	cell := (frameWidth - plotNames - frameRight) / float64(columns)
	for i, row := range rows {
		y := float64(i)*plotRow + 4
		p.label("strong", plotNames-8, y+15, "end", clipped(safe(row.label), 28))
		var most time.Duration
		for _, l := range row.rows {
			most = max(most, row.of(l))
		}
		for j, l := range row.rows {
			share := 0.0
			if most > 0 {
				share = row.of(l).Seconds() / most.Seconds()
			}
			p.rect(heatClass(share), plotNames+float64(j)*cell, y, cell-1, plotRow-3, fmt.Sprintf("layer %d, %s: %s", l.Layer, row.label, shownTime(row.of(l))))
		}
	}
	first := rows[0].rows
	step := max(1, len(first)/12)
	for j := 0; j < len(first); j += step {
		p.label("", plotNames+(float64(j)+.5)*cell, float64(len(rows))*plotRow+20, "middle", figure.Whole(float64(first[j].Layer)))
	}
	p.Desc = "Time of each layer, a row for each of its parts; the strongest shade of a row is its longest layer. Numbers are layers."
	return p
}

// timelinePlate is one decode graph, lane by lane.
func timelinePlate(g *optrace.LiveGraph) *plate {
	const row = 34.0
	if g == nil || g.Time <= 0 || len(g.Lanes) == 0 {
		p := newPlate("timeline", "One graph, thread by thread", 10)
		p.Empty = "no graph was kept to draw"
		return p
	}
	const mostLanes = 64
	lanes := g.Lanes[:min(len(g.Lanes), mostLanes)]
	p := newPlate("timeline", "One graph, thread by thread", float64(len(lanes))*row+46)
	bottom := float64(len(lanes))*row + 6
	hi, ticks := zeroTo(g.Time.Seconds(), 6)
	x := scaleOf{0, hi, frameLeft, frameWidth - frameRight, false}
	for _, v := range ticks {
		p.line("grid", x.at(v), 4, x.at(v), bottom)
		p.label("", x.at(v), bottom+16, "middle", inUnit("s")(v))
	}
	for i := range lanes {
		y := float64(i)*row + 8
		p.label("strong", frameLeft-8, y+17, "end", fmt.Sprintf("lane %d", lanes[i].Lane))
		for _, s := range lanes[i].Spans {
			from, to := x.at(min(max(s.Begin.Seconds(), 0), hi)), x.at(min(max(s.End.Seconds(), 0), hi))
			text := fmt.Sprintf("%s %s: %s", s.Op, s.Name, shownTime(s.End-s.Begin))
			if s.Sync > 0 {
				text += ", waits " + shownTime(s.Sync)
			}
			if s.Off > 0 {
				text += ", off the CPU " + shownTime(s.Off)
			}
			p.rect(opClass(s.Op), from, y, max(.3, to-from-.2), row-12, text)
			if wait := s.Sync + s.Off; wait > 0 { // how much of it, not where
				share := min(1, wait.Seconds()/max(1e-12, (s.End-s.Begin).Seconds()))
				p.rect("panel", from, y, max(.3, to-from-.2), (row-12)*share, text)
			}
		}
	}
	p.Keys = []keyOf{{Class: "memory", Label: "products of matrices"}, {Class: "compute", Label: "attention"}, {Class: "mixed", Label: "norms and activations"}, {Class: "other", Label: "other operators"}, {Class: "panel", Label: "waiting or off the CPU, as a share of the height"}}
	p.Desc = plainText(fmt.Sprintf("Graph %d, %s of %s: %s on %s. Gaps are the time between operators.", g.Index, cmp.Or(g.Phase, "a graph"), plural(g.Tokens, "token"), shownTime(g.Time), plural(len(g.Lanes), "lane")))
	return p
}

// opClass is the shade of an operator's family.
func opClass(op string) string {
	switch {
	case strings.HasPrefix(op, "MUL_MAT"), op == "OUT_PROD":
		return "memory"
	case strings.HasPrefix(op, "FLASH_ATTN"), op == "SOFT_MAX", op == "ROPE", op == "SET_ROWS":
		return "compute"
	case strings.HasSuffix(op, "NORM"), op == "GLU", op == "UNARY":
		return "mixed"
	}
	return "other"
}

// tokenPlate is the time of the last calls.
func tokenPlate(s *optrace.Summary) *plate {
	p := newPlate("tokens", "Time of each call", frameHeight)
	var most, first, last time.Duration
	n := 0
	for i := range s.Tokens {
		t := &s.Tokens[i]
		if t.Time <= 0 {
			continue
		}
		if n == 0 {
			first = t.Begin
		}
		most, last = max(most, t.Time), max(last, t.Begin)
		n++
	}
	if n == 0 || last < first {
		p.Empty = "no call was seen to its end"
		return p
	}
	hi, ys := zeroTo(most.Seconds(), 5)
	x, y := xScale(first.Seconds(), max(last, first+time.Millisecond).Seconds(), false), yScale(0, hi, false)
	p.axes(x, y, []float64{x.lo, (x.lo + x.hi) / 2, x.hi}, ys, inUnit("s"), inUnit("s"), "since the begin of the trace", "time of a call")
	for i := range s.Tokens {
		t := &s.Tokens[i]
		if t.Time <= 0 || t.Begin < first {
			continue
		}
		class := "other"
		switch t.Phase {
		case "decode":
			class = "memory"
		case "prefill":
			class = "compute"
		}
		p.dot(class, x.at(t.Begin.Seconds()), y.at(t.Time.Seconds()), 3, fmt.Sprintf("%s of %s: %s, off the CPU %s", t.Phase, plural(t.Tokens, "token"), shownTime(t.Time), shownTime(t.Off)))
	}
	p.Keys = []keyOf{{Class: "memory", Label: "decode"}, {Class: "compute", Label: "prefill"}, {Class: "other", Label: "other"}}
	p.Desc = fmt.Sprintf("The last %s, the longest took %s.", plural(n, "call"), shownTime(most))
	return p
}

// contextPlate is attention, and the whole graph, against the length of the KV cache.
func contextPlate(s *optrace.Summary) *plate {
	p := newPlate("context", "Attention against context", frameHeight)
	rows := slices.DeleteFunc(slices.Clone(s.Context), func(c optrace.ContextRow) bool { return c.Length <= 0 || c.Graph <= 0 || c.Attention < 0 })
	if len(rows) < 2 {
		p.Empty = "the context had one length only, or none that is known"
		return p
	}
	slices.SortStableFunc(rows, func(a, b optrace.ContextRow) int { return cmp.Compare(a.Length, b.Length) })
	longest := float64(rows[len(rows)-1].Length)
	most := 0.0
	for i := range rows {
		most = max(most, rows[i].Graph.Seconds(), rows[i].Attention.Seconds())
	}
	xhi, xs := zeroTo(longest, 6)
	yhi, ys := zeroTo(most, 5)
	x, y := xScale(0, xhi, false), yScale(0, yhi, false)
	p.axes(x, y, xs, ys, plainNumber, inUnit("s"), "length of the KV cache, tokens", "time of a decode graph")
	var attention, graph [][2]float64
	for i := range rows {
		c := &rows[i]
		px := x.at(float64(c.Length))
		attention, graph = append(attention, [2]float64{px, y.at(c.Attention.Seconds())}), append(graph, [2]float64{px, y.at(c.Graph.Seconds())})
		p.dot("compute", px, y.at(c.Attention.Seconds()), 3, fmt.Sprintf("%s tokens: attention %s, %s of the graph", figure.Whole(float64(c.Length)), shownTime(c.Attention), percent(c.Share)))
	}
	p.path("curve compute", attention)
	p.path("curve other", graph)
	p.Keys = []keyOf{{Class: "compute", Label: "attention"}, {Class: "other", Label: "whole graph"}}
	p.Desc = fmt.Sprintf("Mean time of attention and of the whole graph by the length of the KV cache: attention takes %s at %s tokens and %s at %s.",
		percent(rows[0].Share), figure.Whole(float64(rows[0].Length)), percent(rows[len(rows)-1].Share), figure.Whole(longest))
	return p
}

// mostPlottedMixtures are the mixtures of a picture.
const mostPlottedMixtures = 64

// expertPlate is how often each expert was chosen: all layers together as bars, each as
// a row of shades.
func expertPlate(e *optrace.Experts) *plate {
	layers := e.Layers[:min(len(e.Layers), mostPlottedMixtures)]
	const bars, row = 90.0, 16.0
	p := newPlate("experts", "Experts", bars+float64(len(layers))*row+56)
	count := 0
	for i := range e.Layers {
		count = max(count, len(e.Layers[i].Chosen))
	}
	sums := make([]int64, count)
	var most int64
	for i := range e.Layers {
		for x, n := range e.Layers[i].Chosen {
			sums[x] += max(0, min(n, math.MaxInt32))
			most = max(most, sums[x])
		}
	}
	if most == 0 {
		p.Empty = "no choice of experts could be read"
		return p
	}
	cell := (frameWidth - plotNames - frameRight) / float64(count)
	p.label("strong", plotNames-8, bars, "end", "all layers")
	for x, n := range sums {
		h := (bars - 10) * float64(n) / float64(most)
		p.rect("memory", plotNames+float64(x)*cell, bars+4-h, max(.5, cell-1), h, fmt.Sprintf("expert %d: %s", x, figure.Whole(float64(n))))
	}
	for i := range layers {
		l := &layers[i]
		y := bars + 14 + float64(i)*row
		p.label("", plotNames-8, y+11, "end", fmt.Sprintf("layer %d, CV %s", l.Layer, ratioFigure(l.CV)))
		top := max(1, slices.Max(append([]int64{0}, l.Chosen...)))
		for x, n := range l.Chosen {
			p.rect(heatClass(float64(n)/float64(top)), plotNames+float64(x)*cell, y, max(.5, cell-1), row-2, fmt.Sprintf("layer %d, expert %d: %s", l.Layer, x, figure.Whole(float64(n))))
		}
	}
	step := max(1, count/16)
	for x := 0; x < count; x += step {
		p.label("", plotNames+(float64(x)+.5)*cell, bars+float64(len(layers))*row+30, "middle", figure.Whole(float64(x)))
	}
	p.Desc = fmt.Sprintf("How often each of %d experts was chosen, %d for each token: bars over all layers, shades by layer. CV of how often %s, of the time by expert %s; 0 is even.", count, e.Used, ratioFigure(e.CV), ratioFigure(e.TimeCV))
	return p
}
