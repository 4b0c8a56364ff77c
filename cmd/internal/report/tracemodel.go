package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// layers is the time of each layer as a line of heights, a phase after the other.
func (r *tracePage) layers() {
	var phases []string
	for i := range r.s.Layers {
		if p := r.s.Layers[i].Phase; !slices.Contains(phases, p) {
			phases = append(phases, p)
		}
	}
	if len(phases) == 0 {
		return
	}
	r.section("Layers", "time of each; "+r.level(.5, true)+" is the median of its phase, "+r.level(1, true)+" twice that or more")
	for _, phase := range phases {
		r.layerLine(phase, layersOf(r.s.Layers, phase))
	}
}

// layersOf are the rows of a phase by layer.
func layersOf(rows []optrace.LayerRow, phase string) []*optrace.LayerRow {
	var out []*optrace.LayerRow
	for i := range rows {
		if rows[i].Phase == phase {
			out = append(out, &rows[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *optrace.LayerRow) int { return cmp.Compare(a.Layer, b.Layer) })
	return out
}

// overMedian is a layer's time over the median of the layers of its phase.
func overMedian(rows []*optrace.LayerRow) func(*optrace.LayerRow) stat.Opt {
	var times []time.Duration
	for _, l := range rows {
		if l.Layer >= 0 {
			times = append(times, l.Time)
		}
	}
	slices.Sort(times)
	return func(l *optrace.LayerRow) stat.Opt {
		if v := finite(l.Slow); v.OK || len(times) == 0 {
			return v
		}
		return stat.Some(l.Time.Seconds()).Div(stat.Some(times[len(times)/2].Seconds()))
	}
}

// alike is the most that a layer takes over the median and is still like the others.
const alike = 1.05

func (r *tracePage) layerLine(phase string, rows []*optrace.LayerRow) {
	over := overMedian(rows)
	line := ""
	outside := stat.None
	parts := map[string]time.Duration{}
	var all time.Duration
	var slowest *optrace.LayerRow
	for _, l := range rows {
		for name, d := range l.Parts {
			parts[name] += d
			all += d
		}
		if l.Layer < 0 {
			outside = outside.Plus(finite(l.Share))
			continue
		}
		v := over(l)
		line += r.level(v.V/2, v.OK)
		if slowest == nil || v.V > over(slowest).V {
			slowest = l
		}
	}
	label := r.text(muted, cmp.Or(phase, "unknown"))
	room := max(1, r.width-traceColumn)
	heat := []rune(line)
	for first := 0; first < len(heat); first += room {
		r.define(indent, traceColumn, label, text{{string(heat[first:min(len(heat), first+room)]), accent}})
		label = nil
	}
	var said []string
	if slowest != nil {
		switch v := over(slowest); {
		case v.OK && v.V < alike:
			said = append(said, "all layers within "+figure.Percent(alike-1)+nbsp+"% of the median or below")
		case v.OK:
			said = append(said, "layer "+figure.Whole(float64(slowest.Layer))+" is slowest, "+figure.Significant(v.V)+nbsp+"× the median")
		}
	}
	if outside.OK {
		said = append(said, "outside of layers "+percent(outside))
	}
	for _, name := range slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(parts[b], parts[a]), cmp.Compare(a, b))
	}) {
		if all > 0 && parts[name] > 0 {
			said = append(said, name+" "+figure.Percent(parts[name].Seconds()/all.Seconds())+nbsp+"%")
		}
	}
	if len(said) > 0 {
		r.define(indent, traceColumn, label, r.text(muted, strings.Join(said, " · ")))
	}
}

// mostMixtures are the mixtures shown without -v, the least even first.
const mostMixtures = 4

// experts is which experts the mixtures chose.
func (r *tracePage) experts() {
	e := r.s.Experts
	if e == nil {
		return
	}
	r.section("Experts", figure.Whole(float64(e.Used))+" of "+figure.Whole(float64(e.Count))+" for each token")
	r.row("choices", r.text(body, figure.Whole(float64(e.Tokens))+" read, one for each token and layer, of "+plural(len(e.Layers), "layer")+timesOfExperts(e)))
	times := ratioFigure(e.TimeCV)
	if slices.ContainsFunc(r.s.Gaps, func(g optrace.Gap) bool { return g.What == optrace.GapExpertTimes }) {
		times += " not told without scheduling (see Not known)"
	}
	r.row("imbalance", r.text(body, "CV of how often "+ratioFigure(e.CV)+" (0 is even) · CV of the time by expert "+times))
	rows := slices.Clone(e.Layers)
	if !r.o.Verbose {
		slices.SortStableFunc(rows, func(a, b optrace.ExpertLayer) int { return cmp.Compare(finite(b.CV).V, finite(a.CV).V) })
	}
	n := r.most(len(rows), mostMixtures)
	for i := range rows[:n] {
		r.mixture(&rows[i])
	}
	r.left(len(rows)-n, "mixture")
}

// timesOfExperts says what the times by expert are, "" where there are none.
func timesOfExperts(e *optrace.Experts) string {
	for i := range e.Layers {
		if slices.ContainsFunc(e.Layers[i].Time, func(t stat.Opt) bool { return finite(t).OK }) {
			return "; times are means of the mixture's products, one token at a time"
		}
	}
	return ""
}

// mixture is one layer's experts: the full height is the most chosen one.
func (r *tracePage) mixture(l *optrace.ExpertLayer) {
	var most int64
	top := 0
	for i, n := range l.Chosen {
		if n > most {
			most, top = n, i
		}
	}
	line := ""
	for _, n := range l.Chosen {
		line += r.level(float64(n)/float64(max(most, 1))-1e-9, true)
	}
	said := "CV " + ratioFigure(l.CV)
	if most > 0 {
		said += ", " + chosenWords(l, top)
	}
	label := r.text(muted, "layer "+figure.Whole(float64(l.Layer)))
	if width(line)+width(said)+2 <= r.width-traceColumn {
		r.define(indent, traceColumn, label, text{{line, accent}, r.span(body, nbsp+nbsp+said)})
		return
	}
	heat := []rune(line)
	for room := max(1, r.width-traceColumn); len(heat) > 0; label = nil {
		n := min(room, len(heat))
		r.define(indent, traceColumn, label, text{{string(heat[:n]), accent}})
		heat = heat[n:]
	}
	r.define(indent, traceColumn, label, r.text(body, said))
}

// chosenWords are the experts of a mixture that were chosen most and least, and between
// what the time of the mixture lies by the expert.
func chosenWords(l *optrace.ExpertLayer, top int) string {
	least, slow, fast := 0, -1, -1
	var all int64
	for i, n := range l.Chosen {
		all += n
		if n < l.Chosen[least] {
			least = i
		}
	}
	for i, v := range l.Time {
		switch {
		case !finite(v).OK:
			continue
		case slow < 0:
			slow, fast = i, i
		}
		if v.V > l.Time[slow].V {
			slow = i
		}
		if v.V < l.Time[fast].V {
			fast = i
		}
	}
	of := func(i int) string {
		// Top is the share of the tokens; the others go by it.
		share := finite(l.Top).Div(stat.Some(float64(l.Chosen[top])))
		return "expert" + nbsp + figure.Whole(float64(i)) + " by " + percent(stat.Opt{V: share.V * float64(l.Chosen[i]), OK: share.OK}) + " of tokens"
	}
	s := "most " + of(top) + ", " + figure.Significant(float64(l.Chosen[top])*float64(len(l.Chosen))/float64(max(all, 1))) + nbsp + "× an even share, least " + of(least)
	if slow >= 0 && slow != fast {
		s += "; with expert" + nbsp + figure.Whole(float64(fast)) + " " + figure.Show(l.Time[fast], "s") + ", with expert" + nbsp + figure.Whole(float64(slow)) + " " + figure.Show(l.Time[slow], "s")
	}
	return s
}

// mostLengths are the lengths of context shown without -v, spread over all.
const mostLengths = 6

// contexts is attention against the length of the KV cache.
func (r *tracePage) contexts() {
	rows := r.s.Context
	if len(rows) == 0 {
		return
	}
	r.section("Context", "attention by the length of the KV cache, decode; means of a graph")
	shown := spreadOver(len(rows), r.most(len(rows), mostLengths))
	at := func(i int) *optrace.ContextRow { return &rows[shown[i]] }
	r.grid(len(shown), []column{
		{head: "length", tone: strong, of: func(i int) string { return figure.Whole(float64(at(i).Length)) }},
		{head: "", left: true, rank: 1, tone: accent, of: func(i int) string { return r.bar(at(i).Share, 20) }},
		{head: "attention", of: func(i int) string { return shownTime(at(i).Attention) }},
		{head: "graph", of: func(i int) string { return shownTime(at(i).Graph) }},
		{head: "share", of: func(i int) string { return percent(at(i).Share) }},
		{head: "graphs", rank: 2, of: func(i int) string { return figure.Whole(float64(at(i).Graphs)) }},
	})
	r.left(len(rows)-len(shown), "length")
}

// spreadOver are some of n places, the first and the last among them.
func spreadOver(n, some int) []int {
	var out []int
	for i := range some {
		at := 0
		if some > 1 {
			at = i * (n - 1) / (some - 1)
		}
		out = append(out, at)
	}
	return out
}

// types is the weights by their quantisation type.
func (r *tracePage) types() {
	rows := r.s.Types
	if len(rows) == 0 {
		return
	}
	r.section("Types of weights", "time of the operators that read them")
	r.grid(len(rows), []column{
		{head: "", left: true, tone: strong, of: func(i int) string { return cmp.Or(rows[i].Type, "none") }},
		{head: "", left: true, tone: muted, of: func(i int) string { return rows[i].Phase }},
		{head: "time", rank: 2, of: func(i int) string { return shownTime(rows[i].Time) }},
		{head: "share", of: func(i int) string { return percent(rows[i].Share) }},
		{head: "weights", rank: 1, of: func(i int) string { return figure.Show(finite(rows[i].Weights), "B") }},
		{head: "GB/s", rank: 1, of: func(i int) string { return inBillions(rows[i].BytesRate) }},
		{head: "GFLOP/s", rank: 1, of: func(i int) string { return inBillions(rows[i].FlopsRate) }},
	})
}

// mostCritical are the parts of the critical path shown without -v.
const mostCritical = 5

// critical is what decided the time of decode graphs.
func (r *tracePage) critical() {
	rows := r.s.Critical
	if len(rows) == 0 {
		return
	}
	r.section("Critical path", "what decided the time of decode graphs")
	n := r.most(len(rows), mostCritical)
	r.grid(n, []column{
		{head: "", left: true, tone: strong, of: func(i int) string { return clipped(r.span(body, cmp.Or(rows[i].Name, absent)).s, longestName) }},
		{head: "", left: true, rank: 1, tone: accent, of: func(i int) string { return r.bar(rows[i].Share, 20) }},
		{head: "share", of: func(i int) string { return percent(rows[i].Share) }},
		{head: "time", rank: 2, of: func(i int) string { return shownTime(rows[i].Time) }},
		{head: "lane", of: func(i int) string { return laneOf(rows[i].Lane) }},
	})
	r.left(len(rows)-n, "row")
}

// laneOf is the number of a lane; below 0 is none.
func laneOf(lane int) string {
	if lane < 0 {
		return absent
	}
	return figure.Whole(float64(lane))
}

// backends are where the graphs ran, and what was copied between them.
func (r *tracePage) backends() {
	if len(r.s.Backends)+len(r.s.Copies) == 0 {
		return
	}
	r.section("Backends", "")
	for _, b := range r.s.Backends {
		seen := "its operators are in the figures"
		switch {
		case b.Seen:
		case b.Time > 0:
			seen = "none of its operators was watched (--level operator and above do)"
		default:
			seen = "its operators are not seen" + after(": pair with ", b.Pair)
		}
		r.row(cmp.Or(b.Name, "unnamed"), r.text(body, plural(int(b.Splits), "split")+", "+plural(int(b.Nodes), "node")+", "+shownTime(b.Time)+"; "+seen))
	}
	for _, c := range r.s.Copies {
		r.row("copies", r.text(body, cmp.Or(c.Direction, "unknown direction")+": "+figure.Whole(float64(c.Count))+" of "+figure.Show(stat.Some(float64(c.Bytes)), "B")))
	}
}

// shapes are the distinct graphs.
func (r *tracePage) shapes() {
	rows := r.s.Graphs
	if len(rows) == 0 {
		return
	}
	n := r.most(len(rows), 3)
	r.section("Graphs", "distinct ones, as read at their begin")
	whole := func(f func(*optrace.GraphShape) int) func(int) string {
		return func(i int) string { return figure.Whole(float64(f(&rows[i]))) }
	}
	r.grid(n, []column{
		{head: "DAG", tone: strong, of: whole(func(g *optrace.GraphShape) int { return int(g.DAG) })},
		{head: "computed", of: whole(func(g *optrace.GraphShape) int { return g.Graphs })},
		{head: "nodes", of: whole(func(g *optrace.GraphShape) int { return g.Nodes })},
		{head: "edges", of: whole(func(g *optrace.GraphShape) int { return g.Edges })},
		{head: "leaves", of: whole(func(g *optrace.GraphShape) int { return g.Leaves })},
		{head: "views", of: whole(func(g *optrace.GraphShape) int { return g.Views })},
	})
	r.left(len(rows)-n, "graph")
}
