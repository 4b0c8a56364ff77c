package tui

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// headline is one of the most important numbers of the view.
type headline struct {
	label   string
	name    string // of the quantity
	unit    string
	keep    int
	counted bool // a number of requests: the label implies the unit
	get     func(*loop.Point) stat.Opt
	bucket  func(*loop.Point) stat.Bucket // of a quantile, else nil
}

// headlines are in reading order. In two columns the first three are on the left.
func headlines() [6]headline {
	return [...]headline{
		{label: "Output", name: "generation_tokens_per_s", unit: "tok/s", keep: 90, get: func(p *loop.Point) stat.Opt { return p.Tokens }},
		{label: "TTFT p99", name: "ttft_p99_s", unit: "s", keep: 87, get: func(p *loop.Point) stat.Opt { return p.TTFT }, bucket: ttftBucket},
		{label: "ITL p99", name: "itl_p99_s", unit: "s", keep: 75, get: func(p *loop.Point) stat.Opt { return p.ITL }, bucket: itlBucket},
		{label: "Running", name: "running_mean", unit: "req", keep: 88, counted: true, get: func(p *loop.Point) stat.Opt { return p.Running }},
		{label: "Waiting", name: "waiting_mean", unit: "req", keep: 71, counted: true, get: func(p *loop.Point) stat.Opt { return p.Waiting }},
		{label: "KV peak", name: "kv_usage_peak", unit: "ratio", keep: 72, get: func(p *loop.Point) stat.Opt { return p.KV }},
	}
}

// reading is the current value of a headline number.
type reading struct {
	figure, unit string
	value        stat.Opt
}

// read returns the value from the diagnosis of the latest windows or, without one, from the latest
// window of the current configuration.
func (n *headline) read(s *loop.Snapshot) reading {
	var q engine.Quantity
	switch last := lastPoint(s); {
	case s.Live != nil && s.Live.Windows.Evaluable > 0 && !noLoad(s):
		q = s.Live.Quantity(n.name)
	case last != nil: // an idle server has values, too
		q = n.of(last)
	}
	if last := lastPoint(s); !q.Value.OK && last != nil && s.Live != nil && s.Live.Windows.Active == 0 {
		q = n.of(last) // of an engine that does not step
	}
	if !q.Value.Finite().OK {
		return reading{figure: figure.Absent, value: stat.None}
	}
	r := reading{value: q.Value}
	r.figure, r.unit = figure.AmountWithin(q.Value.V, q.Bucket.Width(), n.unit)
	r.figure = tuning.AtLeast(q) + r.figure
	if n.counted {
		r.unit = ""
	}
	return r
}

// of returns the value of a window.
func (n *headline) of(p *loop.Point) engine.Quantity {
	q := engine.Quantity{Value: n.get(p)}
	if n.bucket != nil {
		q.Bucket = n.bucket(p)
	}
	return q
}

// lastPoint returns the latest window, nil if the current configuration has none.
func lastPoint(s *loop.Snapshot) *loop.Point {
	if len(s.Points) == 0 {
		return nil
	}
	p := &s.Points[len(s.Points)-1]
	if p.Iteration != s.RunningIteration {
		return nil
	}
	return p
}

// top returns the upper end of the scale of the number's sparkline.
func (n *headline) top(s *loop.Snapshot) float64 {
	if n.unit == "ratio" {
		return 1
	}
	if n.name == "running_mean" {
		if slots := tuning.Slots(&s.Facts); slots.OK && slots.V > 0 {
			return slots.V
		}
	}
	values := make([]stat.Opt, len(s.Points))
	for i := range s.Points {
		values[i] = n.get(&s.Points[i])
	}
	return lines.Top(values)
}

// Columns of a headline number: its label, its value, its unit.
const (
	labelCells  = 9
	figureCells = 7
	unitCells   = 6
	wideUnit    = 12 // with "of 1,024 slots"
	leastSpark  = 6
)

// row draws a number and its recent history into a line.
func (n *headline) row(p cell.Pane, s *loop.Snapshot, u *frame.Settings, at reading) {
	p.Text(0, 0, cell.Muted, n.label)
	token := cell.Strong
	if !at.value.OK {
		token = cell.Muted
	}
	x := labelCells + figureCells
	p.Right(x, 0, token, at.figure)
	end := p.Text(x+1, 0, cell.Muted, at.unit)
	unit, suffix := unitCells, ""
	if p.Width() >= labelCells+figureCells+wideUnit+2*leastSpark {
		unit, suffix = wideUnit, " slots"
	}
	if slots := tuning.Slots(&s.Facts); n.name == "running_mean" && slots.OK {
		end = p.Text(x+1, 0, cell.Muted, "of "+figure.Count(slots.V)+suffix)
	}
	from := max(x+1+unit+1, end+1)
	if w := p.Width() - from; w >= leastSpark {
		n.spark(p.Sub(from, 0, w, 1), s, u)
	}
}

// spark draws the recent history, one window per column. A configuration on trial has its own
// colour.
func (n *headline) spark(p cell.Pane, s *loop.Snapshot, u *frame.Settings) {
	values := recent(s, p.Width(), n.get)
	if len(values) == 0 {
		return
	}
	lines.Sparkline(p, u.Glyphs, sparkToken(s), values, n.top(s))
}

// sparkToken returns the token of a change on trial, or of the baseline.
func sparkToken(s *loop.Snapshot) cell.Token {
	if n := len(s.Iterations); n > 0 && s.Iterations[n-1].End == loop.IterationOpen {
		return cell.Trial
	}
	return cell.Baseline
}

// numbers returns the panel of the headline numbers, one or two per line.
func (v *nowView) numbers(w int, framed bool) frame.Panel {
	u, s := v.u, v.s
	q := frame.Panel{Note: v.span(), Old: v.old()}
	if framed {
		q.Title = "Load and latency"
	}
	if text := tuning.Failures(s.Live); text != "" {
		q.Add(u.Paragraph(w, 91, page.Toned(cell.Bad, u.Glyphs.Bad+" "), page.Join(page.Toned(cell.Strong, text), page.Toned(cell.Muted, ", mean of "+figure.Elapsed(s.Live.Duration)))))
	}
	list := headlines()
	if framed || w < 2*(labelCells+figureCells+unitCells+leastSpark)+3 {
		for _, i := range [...]int{0, 3, 4, 5, 1, 2} {
			n := list[i]
			q.Add(frame.Block{Lines: 1, Keep: n.keep, Draw: func(p cell.Pane) { n.row(p, s, u, n.read(s)) }})
		}
		return q
	}
	half := (w - 3) / 2
	for i := range 3 {
		left, right := list[i], list[i+3]
		q.Add(frame.Block{Lines: 1, Keep: max(left.keep, right.keep), Draw: func(p cell.Pane) {
			left.row(p.Sub(0, 0, half, 1), s, u, left.read(s))
			right.row(p.Sub(half+3, 0, half, 1), s, u, right.read(s))
		}})
	}
	return q
}

// span returns the time range that the numbers cover. Means are of the windows with load.
func (v *nowView) span() page.Text {
	d := v.s.Live
	switch {
	case v.old() && source(v.s).Last > 0:
		return page.Toned(cell.Warn, figure.Elapsed(v.s.Now-source(v.s).Last)+" old")
	case d == nil || d.Windows.Evaluable == 0:
		return nil
	case noLoad(v.s):
		if since, ok := lastLoad(v.s); ok {
			return page.Toned(cell.Muted, "no requests since "+figure.Clock(since))
		}
	case v.s.Phase == loop.PhaseBaseline:
		return page.Toned(cell.Muted, "so far: "+figure.Elapsed(d.Duration))
	case 0 < d.Windows.Active && d.Windows.Active < d.Windows.Evaluable:
		return page.Toned(cell.Muted, "last "+figure.Elapsed(d.Duration)+", under load")
	}
	return page.Toned(cell.Muted, "last "+figure.Elapsed(d.Duration))
}
