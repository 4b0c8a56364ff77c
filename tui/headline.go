package tui

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// headline is one of the numbers that a person looks at first.
type headline struct {
	label   string
	name    string // of the quantity (interfaces.md section 3)
	unit    string
	keep    int
	counted bool // requests: the unit is said by the label
	get     func(*engine.Point) stat.Opt
}

// headlines are in reading order: the left column, then the right one, where two
// stand side by side.
func headlines() [6]headline {
	return [...]headline{
		{label: "Output", name: "generation_tokens_per_s", unit: "tok/s", keep: 90, get: func(p *engine.Point) stat.Opt { return p.Tokens }},
		{label: "TTFT p99", name: "ttft_p99_s", unit: "s", keep: 87, get: func(p *engine.Point) stat.Opt { return p.TTFT }},
		{label: "ITL p99", name: "itl_p99_s", unit: "s", keep: 75, get: func(p *engine.Point) stat.Opt { return p.ITL }},
		{label: "Running", name: "running_mean", unit: "req", keep: 88, counted: true, get: func(p *engine.Point) stat.Opt { return p.Running }},
		{label: "Waiting", name: "waiting_mean", unit: "req", keep: 71, counted: true, get: func(p *engine.Point) stat.Opt { return p.Waiting }},
		{label: "KV peak", name: "kv_usage_peak", unit: "ratio", keep: 72, get: func(p *engine.Point) stat.Opt { return p.KV }},
	}
}

// reading is a headline number as it stands.
type reading struct {
	figure, unit string
	value        stat.Opt
}

// read takes the number from the diagnosis of the latest windows; before there is
// one, from the latest window of this configuration.
func (n *headline) read(s *engine.Snapshot) reading {
	var q engine.Quantity
	switch last := lastPoint(s); {
	case s.Live != nil && s.Live.Windows.Evaluable > 0 && !noLoad(s):
		q = s.Live.Quantity(n.name)
	case last != nil: // an idle server runs none: that is known
		q.Value = n.get(last)
	}
	if !number(q.Value) {
		return reading{figure: figure.Absent, value: stat.None}
	}
	r := reading{value: q.Value}
	r.figure, r.unit = figure.Amount(q.Value.V, n.unit)
	r.figure = overLimit(q) + r.figure
	if n.counted {
		r.unit = ""
	}
	return r
}

// number says that there is a finite value.
func number(o stat.Opt) bool { return o.OK && figure.Significant(o.V) != figure.Absent }

// lastPoint is the latest window, nil where the configuration that runs has none.
func lastPoint(s *engine.Snapshot) *engine.Point {
	if len(s.Points) == 0 {
		return nil
	}
	p := &s.Points[len(s.Points)-1]
	if n := len(s.Iterations); n > 0 && p.Iteration != s.Iterations[n-1].N {
		return nil
	}
	return p
}

// seatsOf is how many requests the server lets run at once, all ranks together.
func seatsOf(f *engine.Facts) stat.Opt {
	if !f.MaxNumSeqs.Known {
		return stat.None
	}
	ranks := max(1, f.Ranks)
	if f.DataParallel.Known {
		ranks = max(ranks, f.DataParallel.Value)
	}
	return stat.Some(float64(f.MaxNumSeqs.Value) * float64(ranks))
}

// scale is what the number's sparkline is drawn on.
func (n *headline) scale(s *engine.Snapshot) chart.Scale {
	if n.unit == "ratio" {
		return chart.Ratio()
	}
	if n.name == "running_mean" {
		if seats := seatsOf(&s.Facts); seats.OK && seats.V > 0 {
			return chart.Scale{Hi: seats.V}
		}
	}
	values := make([]stat.Opt, len(s.Points))
	for i := range s.Points {
		values[i] = n.get(&s.Points[i])
	}
	return chart.Follow(values, len(values))
}

// Columns of a headline number: its label, its figure, its unit.
const (
	labelCells  = 9
	figureCells = 7
	unitCells   = 6
	wideUnit    = 12 // with "of 1,024 seats"
	leastSpark  = 6
)

// row draws a number with its recent past into a line.
func (n *headline) row(p cell.Pane, s *engine.Snapshot, u *look, at reading) {
	p.Text(0, 0, cell.Muted, n.label)
	token := cell.Strong
	if !at.value.OK {
		token = cell.Muted
	}
	x := labelCells + figureCells
	p.Right(x, 0, token, at.figure)
	end := p.Text(x+1, 0, cell.Muted, at.unit)
	unit, of := unitCells, ""
	if p.Width() >= labelCells+figureCells+wideUnit+2*leastSpark {
		unit, of = wideUnit, " seats"
	}
	if seats := seatsOf(&s.Facts); n.name == "running_mean" && seats.OK {
		end = p.Text(x+1, 0, cell.Muted, "of "+figure.Count(seats.V)+of)
	}
	from := max(x+1+unit+1, end+1)
	if w := p.Width() - from; w >= leastSpark {
		n.spark(p.Sub(from, 0, w, 1), s, u)
	}
}

// spark draws the past: a window a column, the configuration that is on trial in
// its own colour.
func (n *headline) spark(p cell.Pane, s *engine.Snapshot, u *look) {
	values := recent(s, p.Width(), n.get)
	if len(values) == 0 {
		return
	}
	chart.Sparkline(p, u.glyphs, sparkToken(s), values, n.scale(s))
}

// sparkToken tells a change under trial from what it is judged against.
func sparkToken(s *engine.Snapshot) cell.Token {
	if n := len(s.Iterations); n > 0 && s.Iterations[n-1].End == engine.IterationOpen {
		return cell.Trial
	}
	return cell.Baseline
}

// numbers is the panel of the headline numbers, one or two a line.
func (v *nowView) numbers(w int, framed bool) panel {
	u, s := v.u, v.s
	q := panel{note: v.span(), old: v.old()}
	if framed {
		q.title = "Load and latency"
	}
	list := headlines()
	if framed || w < 2*(labelCells+figureCells+unitCells+leastSpark)+3 {
		for _, i := range [...]int{0, 3, 4, 5, 1, 2} {
			n := list[i]
			q.blocks = append(q.blocks, block{lines: 1, keep: n.keep, draw: func(p cell.Pane) { n.row(p, s, u, n.read(s)) }})
		}
		return q
	}
	half := (w - 3) / 2
	for i := range 3 {
		left, right := list[i], list[i+3]
		q.blocks = append(q.blocks, block{lines: 1, keep: max(left.keep, right.keep), draw: func(p cell.Pane) {
			left.row(p.Sub(0, 0, half, 1), s, u, left.read(s))
			right.row(p.Sub(half+3, 0, half, 1), s, u, right.read(s))
		}})
	}
	return q
}

// span says over how long the numbers are.
func (v *nowView) span() prose {
	d := v.s.Live
	switch {
	case v.old() && source(v.s).Last > 0:
		return v.u.say(cell.Warn, lasting(v.s.Now-source(v.s).Last)+" old")
	case d == nil || d.Windows.Evaluable == 0:
		return nil
	case v.s.Phase == engine.PhaseBaseline || v.s.Phase == engine.PhaseSettling || v.s.Phase == engine.PhaseMeasuring:
		return v.u.say(cell.Muted, "so far: "+lasting(d.Duration))
	}
	return v.u.say(cell.Muted, "last "+lasting(d.Duration))
}

// lasting spells a length of time for people: 8 s, 4 min, 2 h 5 min.
func lasting(d time.Duration) string {
	switch s := int(d.Round(time.Second) / time.Second); {
	case s < 100:
		return figure.Whole(float64(s)) + figure.NBSP + "s"
	case s < 3600:
		return figure.Whole(float64(s/60)) + figure.NBSP + "min"
	case s < 48*3600:
		return strings.TrimSuffix(figure.Whole(float64(s/3600))+figure.NBSP+"h"+figure.NBSP+figure.Whole(float64(s/60%60))+figure.NBSP+"min", figure.NBSP+"0"+figure.NBSP+"min")
	default:
		return figure.Whole(float64(s/86400)) + figure.NBSP + "days"
	}
}
