package tuning

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// pictures returns the plots of a run.
func (r Run) pictures() page.Section {
	return page.Section{ID: "pictures", Nodes: []page.Node{
		r.overTime("throughput", "output, tok/s", "tok/s", func(p *loop.Point) stat.Opt { return p.Tokens }),
		r.overTime("ttft", "time to first token, p99", "s", func(p *loop.Point) stat.Opt { return p.TTFT }),
		r.roofline(),
	}}
}

// overTime returns a plot of one quantity over the run, with a colour for each configuration and marks for
// changes. No line is drawn across gaps.
func (r Run) overTime(id, title, unit string, of func(*loop.Point) stat.Opt) *page.Plot {
	p := &page.Plot{ID: id, Title: title, Empty: "no window measured it"}
	most := stat.None
	for i := range r.Points {
		most = most.Max(of(&r.Points[i]).Finite())
	}
	if !most.OK {
		return p
	}
	first := max(0, r.Points[0].T-engine.WindowLength)
	end := max(r.Points[len(r.Points)-1].T, first+time.Second)
	p.Empty = ""
	p.X = page.Axis{Title: "time since the run began", Unit: "clock", From: first.Seconds(), To: end.Seconds(), Exact: true, Ticks: timeTicks(first, end)}
	p.Y = page.Axis{Title: title, To: cmp.Or(most.V, 1), Unit: unit}
	if unit == "tok/s" { // it is in the title, and would take room from the figures
		p.Y.Unit = ""
	}
	for _, st := range r.stretches() {
		class, label := "baseline", "before"
		if st.iteration > 0 {
			class, label = r.configurationClass(st.iteration), "change "+strconv.Itoa(st.iteration)
		}
		p.Bands = append(p.Bands, page.Band{From: max(st.from, first).Seconds(), To: st.to.Seconds(), Class: class, Label: label})
		for _, points := range st.curves(r.Points, of) {
			p.Curves = append(p.Curves, page.Curve{Class: class, Points: points})
		}
	}
	for _, m := range r.Marks {
		if m.Kind == loop.MarkChange && m.T >= first && m.T <= end {
			p.Rules = append(p.Rules, page.Rule{X: m.T.Seconds(), Class: "change", Tooltip: figure.Clock(m.T) + " " + m.Text})
		}
	}
	p.Keys = []page.Key{
		{Class: "baseline", Label: "baseline configuration"}, {Class: "trial", Label: "change on trial, not kept or not judged"}, {Class: "change", Label: "settings changed"},
	}
	p.Desc = r.describe(title, unit, of)
	return p
}

// stretch is consecutive windows of one configuration.
type stretch struct {
	iteration int
	from, to  time.Duration
	a, b      int // indexes of the points
}

func (r Run) stretches() []stretch {
	var out []stretch
	for i := range r.Points {
		p := &r.Points[i]
		if n := len(out); n > 0 && out[n-1].iteration == p.Iteration {
			out[n-1].to, out[n-1].b = p.T, i+1
			continue
		}
		out = append(out, stretch{p.Iteration, p.T - engine.WindowLength, p.T, i, i + 1})
	}
	return out
}

// longestGap is the longest time between two windows that a line may join.
const longestGap = 3 * engine.WindowLength

// curves splits a stretch at absent values and gaps between windows.
func (st stretch) curves(points []loop.Point, of func(*loop.Point) stat.Opt) [][][2]float64 {
	var out [][][2]float64
	var run [][2]float64
	last := time.Duration(math.MinInt64)
	for i := st.a; i < st.b; i++ {
		p := &points[i]
		v := of(p).Finite()
		if len(run) > 0 && (!v.OK || p.T-last > longestGap) {
			out, run = append(out, run), nil
		}
		if v.OK {
			run, last = append(run, [2]float64{p.T.Seconds(), v.V}), p.T
		}
	}
	if len(run) > 0 {
		out = append(out, run)
	}
	return out
}

// configurationClass returns the picture class of a configuration: baseline or trial.
func (r Run) configurationClass(n int) string {
	for i := range r.Iterations {
		if it := &r.Iterations[i]; it.N == n && Kept(it) {
			return "baseline"
		}
	}
	return "trial"
}

// timeTicks returns round times, about eight at most.
func timeTicks(from, to time.Duration) []float64 {
	steps := []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
		10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	}
	const most = 8
	step := 24 * time.Hour
	if i := slices.IndexFunc(steps, func(d time.Duration) bool { return (to-from)/d <= most }); i >= 0 {
		step = steps[i]
	}
	var out []float64
	for t := (from + step - 1) / step * step; t <= to && len(out) <= most; t += step {
		out = append(out, t.Seconds())
	}
	return out
}

// describe returns a description of a plot over time.
func (r Run) describe(title, unit string, of func(*loop.Point) stat.Opt) string {
	out := title + " over " + figure.Elapsed(r.Now) + ", by configuration: "
	for i, st := range r.stretches() {
		var values []float64
		for j := st.a; j < st.b; j++ {
			if v := of(&r.Points[j]).Finite(); v.OK {
				values = append(values, v.V)
			}
		}
		name := "before any change"
		if st.iteration > 0 {
			name = "change " + strconv.Itoa(st.iteration)
		}
		if i > 0 {
			out += "; "
		}
		out += fmt.Sprintf("%s, from %s to %s, mean %s", name, figure.Clock(st.from), figure.Clock(st.to), figure.Show(stat.Mean(values), unit))
	}
	return out + "."
}

// OperatingPoint is a measured point: a configuration with its load.
type OperatingPoint struct {
	Running, Tokens float64
	Label           string          // number of the configuration
	Iteration       *loop.Iteration // nil for the first baseline, or the running configuration
}

// OperatingPointOf returns the operating point of a diagnosis; ok is false without load or output.
func OperatingPointOf(d *engine.Diagnosis, label string, it *loop.Iteration) (o OperatingPoint, ok bool) {
	running, tokens := Quantity(d, "running_mean").Value, Quantity(d, Output).Value
	return OperatingPoint{running.V, tokens.V, label, it}, running.OK && tokens.OK
}

// OperatingPoints returns the measured point of each configuration: 0 is the first baseline, n the
// configuration after change n.
func (r Run) OperatingPoints() []OperatingPoint {
	var out []OperatingPoint
	add := func(d *engine.Diagnosis, label string, it *loop.Iteration) {
		if o, ok := OperatingPointOf(d, label, it); ok {
			out = append(out, o)
		}
	}
	for i := range r.Iterations {
		it := &r.Iterations[i]
		if i == 0 {
			add(it.Before, "0", nil)
		}
		add(it.After, strconv.Itoa(it.N), it)
	}
	return out
}

// roofline returns a plot of the model's throughput against running requests, with the limits of running
// requests, and the measured point of each configuration.
func (r Run) roofline() *page.Plot {
	p := &page.Plot{ID: "roofline", Title: "Roofline: output against running requests"}
	d := cmp.Or(r.Baseline, r.Live)
	if d == nil || d.Curve == nil || len(d.Curve.Points) < 2 {
		if p.Empty = "no curve: nothing was measured"; d != nil {
			p.Empty = "no curve: " + cmp.Or(d.Ceiling.PhysicalReason, "the physical model has no basis here")
		}
		return p
	}
	at := r.OperatingPoints()
	if o, ok := OperatingPointOf(d, "0", nil); ok && len(r.Iterations) == 0 {
		at = append(at, o)
	}
	p.X = page.Axis{Title: "running requests", Log: true, From: math.Inf(1)}
	p.Y = page.Axis{Title: "output, tok/s", Log: true, From: math.Inf(1)}
	see := func(x, y float64) bool {
		if !(x > 0) || !(y > 0) || math.IsInf(x, 0) || math.IsInf(y, 0) {
			return false
		}
		p.X.From, p.X.To = min(p.X.From, x), max(p.X.To, x)
		p.Y.From, p.Y.To = min(p.Y.From, y), max(p.Y.To, y)
		return true
	}
	addCurves(p, d.Curve, see)
	p.Desc = "Output in tokens per second against running requests, both axes logarithmic."
	for _, o := range at {
		name, class := "before any change", "baseline"
		if o.Iteration != nil {
			name, class = "change "+o.Label, r.configurationClass(o.Iteration.N)
		}
		text := name + ": " + figure.Value(o.Tokens, "tok/s") + " with " + figure.Count(o.Running) + nbsp + "running"
		if see(o.Running, o.Tokens) {
			p.Dots = append(p.Dots, page.Dot{X: o.Running, Y: o.Tokens, Radius: 5, Class: class, Tooltip: text, Label: o.Label})
			p.Desc += " " + o.Label + ", " + text + "."
		}
	}
	if p.X.To == 0 {
		p.Empty = "no curve: the model gives no finite value"
		return p
	}
	for _, limit := range Limits(d.Curve) {
		if v := limit.At.Finite(); v.OK && v.V >= p.X.From && v.V <= p.X.To {
			p.Rules = append(p.Rules, page.Rule{X: v.V, Tooltip: limit.Name + " " + figure.Count(v.V) + ": " + limit.Meaning})
			p.Desc += " " + Sentence(limit.Name+" "+figure.Count(v.V))
		}
	}
	p.Keys = append(p.Keys, page.Key{Class: "baseline", Label: "measured: 0 before any change, then by number"})
	return p
}

// addCurves adds the model's throughput within the visible range.
func addCurves(p *page.Plot, c *engine.Curve, see func(x, y float64) bool) {
	for _, curve := range []struct {
		key page.Key
		of  func(*engine.CurvePoint) stat.Opt
	}{
		{page.Key{Class: "ideal", Label: "ideal: hardware limit (est)"}, func(p *engine.CurvePoint) stat.Opt { return p.Ideal }},
		{page.Key{Class: "achievable", Label: "achievable: estimate for this load (est)"}, func(p *engine.CurvePoint) stat.Opt { return p.Achievable }},
		{page.Key{Class: "expected", Label: "expected of this server (est)"}, func(p *engine.CurvePoint) stat.Opt { return stat.Some(p.Expected) }},
	} {
		var points [][2]float64
		for i := range c.Points {
			x, y := c.Points[i].Running, curve.of(&c.Points[i])
			if y.OK && see(x, y.V) {
				points = append(points, [2]float64{x, y.V})
			}
		}
		if len(points) > 1 {
			p.Curves, p.Keys = append(p.Curves, page.Curve{Class: curve.key.Class, Points: points}), append(p.Keys, curve.key)
		}
	}
}

// RunningLimit is a vertical line in a roofline plot.
type RunningLimit struct {
	Name, Meaning string
	At            stat.Opt // running requests
}

// Limits returns the limits of running requests.
func Limits(c *engine.Curve) []RunningLimit {
	return []RunningLimit{
		{"slots", "as many requests may run", c.Slots},
		{"KV pool", "as many requests of this length fit in it", c.Pool},
		{"ridge", "beyond it a step is bound by compute, not by memory", c.Ridge},
	}
}
