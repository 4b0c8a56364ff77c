package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Trace is the figures of a trace, and the time of the recording.
type Trace struct {
	Version string    // version of rooftop that traced
	Started time.Time // wall clock at the start of the recording
	Summary *optrace.Summary
}

// Figures returns the summary of the trace, or an empty one if it has none.
func (t *Trace) Figures() *optrace.Summary { return cmp.Or(t.Summary, &optrace.Summary{}) }

// Source is the input of a document. Everything except the summary may be missing.
type Source struct {
	Trace
	Graph *optrace.LiveGraph // a decode graph to draw thread by thread
}

// Document returns the page of a trace with its pictures.
func Document(x *Source) *page.Page {
	s := x.Figures()
	b := &builder{s}
	p := Report(s, true)
	p.Foot = "rooftop " + x.Version
	about := page.Section{ID: "about"}
	if !x.Started.IsZero() {
		p.Foot += ", " + x.Started.UTC().Format(time.RFC3339)
	}
	p.Foot += "; times are measured, bytes and operations follow from types and shapes (est)"
	if text := b.about(x.Started); text != "" {
		about.Add(page.Paragraph(page.Toned(page.Muted, text)))
	}
	pictures := page.Section{ID: "pictures", Nodes: []page.Node{b.sharePlot(), b.timesPlot(), b.rooflinePlot(), b.callsPlot(), b.contextPlot()}}
	if lanes := Lanes(x.Graph); len(lanes.Nodes) > 0 {
		pictures.Add(page.Paragraph(page.Toned(page.Strong, lanes.Title)), lanes.Nodes[0])
	} else {
		pictures.Add(&page.Plot{Title: lanes.Title, Empty: "no graph was kept to draw"})
	}
	glance := slices.IndexFunc(p.Sections, func(s page.Section) bool { return s.ID == "glance" })
	p.Sections = slices.Insert(p.Sections, glance+1, pictures)
	p.Sections = slices.DeleteFunc(p.Sections, func(s page.Section) bool { return s.ID == "tokens" }) // shown as a plot instead
	p.Sections = slices.Insert(p.Sections, 0, about)
	return p
}

// about returns the time and duration of a trace, and the number of threads, as far as known.
func (b *builder) about(started time.Time) string {
	var parts []string
	if !started.IsZero() {
		parts = append(parts, started.UTC().Format(time.DateTime)+" UTC")
	}
	if v := b.s.Coverage.Seconds; v > 0 && stat.IsFinite(v) {
		parts = append(parts, "traced for "+figure.Value(v, "s"))
	}
	if n := Threads(b.s); n > 0 {
		parts = append(parts, figure.Counted(n, "thread"))
	}
	if n := b.s.Target.CPUs; n > 0 {
		parts = append(parts, figure.Counted(n, "CPU"))
	}
	return figure.Joined(" · ", parts...)
}

// plotted returns the operators of the main phase that pictures show.
func (b *builder) plotted() (phase string, rows []operator, name func(operator) string) {
	const most = 14
	phase = MainPhase(b.s)
	if rows = ofPhase(b.s.Steps, phase); len(rows) == 0 {
		rows = ofPhase(b.s.Kinds, phase)
	}
	rows = rows[:min(len(rows), most)]
	return phase, rows, tensorNames(rows)
}

// boundClass returns the picture class of a bound.
func boundClass(b optrace.Bound) string {
	switch b {
	case optrace.BoundMemory, optrace.BoundCompute, optrace.BoundMixed, optrace.BoundWaiting:
		return string(b)
	}
	return "other"
}

func boundKeys() []page.Key {
	return []page.Key{{Class: "memory", Label: "bound by memory"}, {Class: "compute", Label: "bound by compute"}, {Class: "mixed", Label: "by both"}, {Class: "waiting", Label: "waits for other threads or for a CPU"}, {Class: "other", Label: "by neither, or not known"}}
}

func phaseKeys() []page.Key {
	return []page.Key{{Class: "memory", Label: "decode"}, {Class: "compute", Label: "prefill"}, {Class: "other", Label: "other phases"}}
}

// phaseClass returns the picture class of a phase.
func phaseClass(phase string) string {
	switch phase {
	case "decode":
		return "memory"
	case "prefill":
		return "compute"
	}
	return "other"
}

// sharePlot returns the share of each operator as a bar, coloured by its bound.
func (b *builder) sharePlot() *page.Plot {
	phase, rows, name := b.plotted()
	p := &page.Plot{ID: "share", Title: "Share of time by operator", Keys: boundKeys()}
	var said []string
	for i, o := range rows {
		share := o.Share.Finite()
		text := figure.Show(share, "ratio")
		p.X.To = max(p.X.To, share.V)
		p.Bars = append(p.Bars, page.PlotBar{
			Label: name(o), ValueLabel: text + " · " + cmp.Or(o.Type, strings.ToLower(o.Op)), Class: boundClass(o.Bound), To: max(0, share.V),
			Tooltip: fmt.Sprintf("%s, %s: %s, %s", stepName(o), kindName(o), text, bound(o).Text),
		})
		if i < 3 {
			said = append(said, stepName(o)+" "+text)
		}
	}
	if p.X.To <= 0 {
		p.Empty = "no operator was traced"
	}
	p.Desc = "Share of the time of the operators of " + phase + "; the largest are " + strings.Join(said, ", ") + ". Bounds by roofline are estimates."
	return p
}

// timesPlot returns the variation of the time of each operator.
func (b *builder) timesPlot() *page.Plot {
	phase, rows, name := b.plotted()
	p := &page.Plot{ID: "spread", Title: "Time of one operator", Keys: boundKeys(), X: page.Axis{Unit: "s", Log: true, From: math.Inf(1)}}
	for _, o := range rows {
		e := &o.Each
		if e.Count <= 0 || e.P50 <= 0 || e.Max < e.P50 {
			continue
		}
		p.X.From, p.X.To = min(p.X.From, e.P50.Seconds()), max(p.X.To, e.Max.Seconds())
		p.Bars = append(p.Bars, page.PlotBar{
			Label: name(o), Class: boundClass(o.Bound), From: e.P50.Seconds(), To: max(e.P50, e.P95).Seconds(), Max: e.Max.Seconds(), Mean: e.Mean.Seconds(),
			Tooltip: fmt.Sprintf("%s: p50 %s, p95 %s, p99 %s, longest %s, %s of them", stepName(o), figure.Duration(e.P50), figure.Duration(e.P95), figure.Duration(e.P99), figure.Duration(e.Max), figure.Whole(float64(e.Count))),
		})
	}
	if len(p.Bars) == 0 {
		p.Empty = "no times of operators are known"
	}
	p.Desc = "Times of single operators of " + phase + ", logarithmic: the bar reaches from the median to the 95th percentile, the line to the longest, the dot is the mean. Quantiles are nearest rank."
	return p
}

// rooflinePlot returns the operation rate of each group of operators against its operations per byte, below
// the peaks of memory and of compute.
func (b *builder) rooflinePlot() *page.Plot {
	p := &page.Plot{ID: "roofline", Title: "Roofline", Keys: phaseKeys(), X: page.Axis{Title: "operations for each byte", Log: true}, Y: page.Axis{Title: "GFLOP/s", Log: true}}
	var xs, ys, rates []float64
	steps := slices.Clone(b.s.Steps)
	slices.SortStableFunc(steps, func(a, b optrace.OperatorRow) int { return cmp.Compare(b.Share.Finite().V, a.Share.Finite().V) })
	for i := range steps {
		o := &steps[i]
		rate, intensity := o.FlopsRate.Finite(), o.Flops.Div(o.Bytes).Finite()
		if !onLogAxis(rate.V) || !onLogAxis(intensity.V) {
			continue
		}
		at := rate.V / 1e9
		share := min(1, max(0, o.Share.Finite().V))
		p.Dots = append(p.Dots, page.Dot{
			X: intensity.V, Y: at, Radius: 3 + 14*math.Sqrt(share), Class: phaseClass(o.Phase), Label: stepName(o),
			Tooltip: fmt.Sprintf("%s, %s: %s GFLOP/s at %s a byte, %s of the phase", stepName(o), o.Phase, figure.Significant(at), figure.Significant(intensity.V), figure.Show(o.Share.Finite(), "ratio")),
		})
		xs, ys = append(xs, intensity.V), append(ys, at)
		if o.Type != "" {
			rates = append(rates, at)
		}
	}
	if len(p.Dots) == 0 {
		p.Empty = "no operator has both bytes and operations that are known"
		return p
	}
	memory := stat.Finite(b.s.Peak.BytesPerSecond).V / 1e9
	computing, _ := b.s.Peak.ComputeRate(weightsOf(b.s.Kinds, MainPhase(b.s)), 1e9*slices.Max(append(rates, 0)))
	ceiling := stat.Finite(computing).V / 1e9
	if onLogAxis(ceiling) {
		ys = append(ys, ceiling)
		if onLogAxis(memory) {
			xs = append(xs, ceiling/memory)
		}
	}
	p.X.From, p.X.To = slices.Min(xs)/1.5, slices.Max(xs)*1.5
	p.Y.From, p.Y.To = slices.Min(ys)/1.5, slices.Max(ys)*1.2
	p.Curves = peakCurves(&p.X, &p.Y, memory, ceiling)
	p.Desc = "Each dot is a group of operators, the larger the more of its phase's time it takes; both axes are logarithmic, bytes and operations follow from shapes (est)."
	if memory > 0 {
		p.Desc += " Dashed: " + figure.Significant(memory) + " GB/s of memory"
		if ceiling > 0 {
			p.Desc += " and " + figure.Significant(ceiling) + " GFLOP/s of compute"
		}
		origin := cmp.Or(b.s.Peak.From, "origin unknown")
		if b.s.Peak.From == optrace.PeakSeen {
			origin = b.s.SeenPeak()
		}
		p.Desc += " (" + origin + ")."
	}
	return p
}

// onLogAxis reports whether a value can be shown on a logarithmic axis.
func onLogAxis(v float64) bool { return v > 0 && !math.IsInf(v, 0) }

// peakCurves returns the slope of memory and the line of compute, as far as they are known and within the
// axes.
func peakCurves(x, y *page.Axis, memory, ceiling float64) []page.Curve {
	var list []page.Curve
	if onLogAxis(memory) {
		from, to := max(x.From, y.From/memory), min(x.To, y.To/memory)
		if onLogAxis(ceiling) {
			to = min(to, ceiling/memory)
		}
		if from < to {
			list = append(list, page.Curve{Class: "roof memory", Points: [][2]float64{{from, from * memory}, {to, to * memory}}})
		}
	}
	if onLogAxis(ceiling) {
		from := x.From
		if onLogAxis(memory) {
			from = min(max(from, ceiling/memory), x.To)
		}
		list = append(list, page.Curve{Class: "roof compute", Points: [][2]float64{{from, ceiling}, {x.To, ceiling}}})
	}
	return list
}

// callsPlot returns the time of the last calls.
func (b *builder) callsPlot() *page.Plot {
	p := &page.Plot{ID: "tokens", Title: "Time of each call", Keys: phaseKeys(), X: page.Axis{Title: "since the start of the trace", Unit: "s", Exact: true}, Y: page.Axis{Title: "time of a call", Unit: "s"}}
	var most time.Duration
	for i := range b.s.Tokens {
		t := &b.s.Tokens[i]
		if t.Time <= 0 {
			continue
		}
		at := t.Begin.Seconds()
		if len(p.Dots) == 0 {
			p.X.From, p.X.To = at, at+1e-3
		}
		if at < p.X.From {
			continue
		}
		p.X.To, most = max(p.X.To, at), max(most, t.Time)
		p.Dots = append(p.Dots, page.Dot{X: at, Y: t.Time.Seconds(), Radius: 3, Class: phaseClass(t.Phase), Tooltip: callWords(t)})
	}
	p.Y.To = most.Seconds()
	n := len(p.Dots)
	if n == 0 {
		p.Empty = "no call was traced to its end"
		return p
	}
	p.Desc = fmt.Sprintf("Every one of %s; the longest took %s.", figure.Counted(n, "call"), figure.Duration(most))
	if b.s.Coverage.Calls > n {
		p.Desc = fmt.Sprintf("The last %s of %s: earlier ones are in the other figures and not drawn. The longest of them took %s.", figure.Counted(n, "call"), figure.Whole(float64(b.s.Coverage.Calls)), figure.Duration(most))
	}
	return p
}

// callWords describes a call in words.
func callWords(t *optrace.TokenRow) string {
	tokens := "of " + figure.Counted(t.Tokens, "token")
	if t.Tokens <= 0 {
		tokens = "call (tokens unknown)"
	}
	text := fmt.Sprintf("%s %s: %s", t.Phase, tokens, figure.Duration(t.Time))
	if t.Off.OK {
		text += ", off the CPU " + figure.Duration(t.Off.D)
	}
	return text
}

// contextPlot returns attention, and the whole graph, against the length of the KV cache.
func (b *builder) contextPlot() *page.Plot {
	p := &page.Plot{
		ID: "context", Title: "Attention against context", Keys: []page.Key{{Class: "compute", Label: "attention"}, {Class: "other", Label: "whole graph"}},
		X: page.Axis{Title: "length of the KV cache, tokens"}, Y: page.Axis{Title: "time of a decode graph", Unit: "s"},
	}
	rows := slices.DeleteFunc(slices.Clone(b.s.Context), func(c optrace.ContextRow) bool { return c.Length <= 0 || c.Graph <= 0 || c.Attention < 0 })
	if len(rows) < 2 {
		p.Empty = "the context had one length only, or none that is known"
		return p
	}
	slices.SortStableFunc(rows, func(a, b optrace.ContextRow) int { return cmp.Compare(a.Length, b.Length) })
	attention, graph := page.Curve{Class: "compute"}, page.Curve{Class: "other"}
	for i := range rows {
		c := &rows[i]
		x := float64(c.Length)
		p.X.To, p.Y.To = x, max(p.Y.To, c.Graph.Seconds(), c.Attention.Seconds())
		attention.Points, graph.Points = append(attention.Points, [2]float64{x, c.Attention.Seconds()}), append(graph.Points, [2]float64{x, c.Graph.Seconds()})
		p.Dots = append(p.Dots, page.Dot{X: x, Y: c.Attention.Seconds(), Radius: 3, Class: "compute", Tooltip: fmt.Sprintf("%s tokens: attention %s, %s of the graph", figure.Whole(x), figure.Duration(c.Attention), figure.Show(c.Share.Finite(), "ratio"))})
	}
	p.Curves = []page.Curve{attention, graph}
	first, last := &rows[0], &rows[len(rows)-1]
	p.Desc = fmt.Sprintf("Mean time of attention and of the whole graph by the length of the KV cache: attention takes %s at %s tokens and %s at %s.",
		figure.Show(first.Share.Finite(), "ratio"), figure.Whole(float64(first.Length)), figure.Show(last.Share.Finite(), "ratio"), figure.Whole(float64(last.Length)))
	return p
}
