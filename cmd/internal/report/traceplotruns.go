package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

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
	which := "the newest one"
	if g.Of > 0 {
		which = "the median by time of " + plural(g.Of, "whole graph") + " that the recording has"
	}
	p.Desc = plainText(fmt.Sprintf("Graph %d, %s of %s, %s: %s on %s. Gaps are the time between operators.", g.Index, cmp.Or(g.Phase, "a graph"), plural(g.Tokens, "token"), which, shownTime(g.Time), plural(len(g.Lanes), "lane")))
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
		p.dot(class, x.at(t.Begin.Seconds()), y.at(t.Time.Seconds()), 3, callSaid(t))
	}
	p.Keys = []keyOf{{Class: "memory", Label: "decode"}, {Class: "compute", Label: "prefill"}, {Class: "other", Label: "other"}}
	p.Desc = fmt.Sprintf("Every one of %s, the longest took %s.", plural(n, "call"), shownTime(most))
	if s.Coverage.Calls > n {
		p.Desc = fmt.Sprintf("The last %s of %s: earlier ones are in the other figures and not drawn. The longest of them took %s.", plural(n, "call"), figure.Whole(float64(s.Coverage.Calls)), shownTime(most))
	}
	return p
}

// callSaid is a call in words.
func callSaid(t *optrace.TokenRow) string {
	tokens := "of " + plural(t.Tokens, "token")
	if t.Tokens <= 0 {
		tokens = "call (tokens unknown)"
	}
	s := fmt.Sprintf("%s %s: %s", t.Phase, tokens, shownTime(t.Time))
	if t.Off.OK {
		s += ", off the CPU " + shownTime(t.Off.D)
	}
	return s
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
