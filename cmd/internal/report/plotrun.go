package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// timePlot draws one quantity over the run, a stretch of each configuration in its
// own shade, with the changes marked. Gaps are gaps: nothing is joined across them.
func timePlot(s *engine.Snapshot, id, title, unit string, of func(*engine.Point) stat.Opt) figureOf {
	f := figureOf{ID: id, Title: title, XTitle: "time since the run began", YTitle: title}
	most, seen := 0.0, 0
	for i := range s.Points {
		if v := finite(of(&s.Points[i])); v.OK {
			most = max(most, v.V)
			seen++
		}
	}
	if seen == 0 {
		f.Empty = "no window has it"
		return f
	}
	first := max(0, s.Points[0].T-engine.WindowLength)
	end := max(s.Points[len(s.Points)-1].T, first+time.Second)
	hi, values := zeroTo(cmp.Or(most, 1), 5)
	x, y := xScale(first.Seconds(), end.Seconds(), false), yScale(0, hi, false)
	f.X = ticksAt(x, timeTicks(first, end), func(v float64) string { return clock(time.Duration(v * float64(time.Second))) })
	f.Y = ticksAt(y, values, inUnit(unit))
	if unit == rateUnit { // the title has it, and it would take the room of the figures
		f.Y = ticksAt(y, values, plainNumber)
	}
	for _, st := range stretches(s) {
		class, label := "baseline", "before"
		if st.iteration > 0 {
			class, label = standing(s, st.iteration), "change "+strconv.Itoa(st.iteration)
		}
		a, b := x.at(max(st.from, first).Seconds()), x.at(st.to.Seconds())
		f.Bands = append(f.Bands, bandOf{coordinate(a), coordinate(b - a), coordinate((a + b) / 2), class, fitLabel(label, b-a)})
		for _, run := range st.runs(s.Points, of) {
			var places [][2]float64
			for _, p := range run {
				places = append(places, [2]float64{x.at(p[0]), y.at(p[1])})
			}
			f.Lines = append(f.Lines, lineOf{pathOf(places), class})
		}
	}
	for _, m := range s.Marks {
		if m.Kind == engine.MarkChange && m.T >= first && m.T <= end {
			f.Rules = append(f.Rules, ruleOf{X: coordinate(x.at(m.T.Seconds())), Class: "change", Text: clock(m.T) + " " + safe(m.Text)})
		}
	}
	f.Keys = []keyOf{
		{Class: "baseline", Label: "configuration to beat"}, {Class: "trial", Label: "change on trial, not kept or not judged"}, {Class: "change", Label: "settings changed"},
	}
	f.Desc = describe(s, title, unit, of)
	return f
}

// rateUnit is the unit of the output.
const rateUnit = "tok/s"

// fitLabel is a label where there is room for it.
func fitLabel(label string, room float64) string {
	const cell = 7 // user units of a letter
	if float64(len(label))*cell > room {
		return ""
	}
	return label
}

// stretch is a run of windows of one configuration.
type stretch struct {
	iteration int
	from, to  time.Duration
	a, b      int // of the points
}

func stretches(s *engine.Snapshot) []stretch {
	var out []stretch
	for i := range s.Points {
		p := &s.Points[i]
		if n := len(out); n > 0 && out[n-1].iteration == p.Iteration {
			out[n-1].to, out[n-1].b = p.T, i+1
			continue
		}
		out = append(out, stretch{p.Iteration, p.T - engine.WindowLength, p.T, i, i + 1})
	}
	return out
}

// longestGap is the time between two windows beyond which no line joins them.
const longestGap = 3 * engine.WindowLength

// runs splits a stretch where values are absent or windows far apart.
func (st stretch) runs(points []engine.Point, of func(*engine.Point) stat.Opt) [][][2]float64 {
	var out [][][2]float64
	var run [][2]float64
	last := time.Duration(math.MinInt64)
	flush := func() {
		if len(run) > 0 {
			out = append(out, run)
		}
		run = nil
	}
	for i := st.a; i < st.b; i++ {
		p := &points[i]
		v := finite(of(p))
		if !v.OK || len(run) > 0 && p.T-last > longestGap {
			flush()
		}
		if v.OK {
			run, last = append(run, [2]float64{p.T.Seconds(), v.V}), p.T
		}
	}
	flush()
	return out
}

// standing is the shade of a configuration: that of what is to be beaten, or that
// of a trial.
func standing(s *engine.Snapshot, n int) string {
	for i := range s.Iterations {
		if it := &s.Iterations[i]; it.N == n && !unsettled(it) && it.End != engine.IterationReverted {
			return "baseline"
		}
	}
	return "trial"
}

// timeTicks are at most about eight round times.
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

// describe says in words what a plot over time shows.
func describe(s *engine.Snapshot, title, unit string, of func(*engine.Point) stat.Opt) string {
	out := title + " over " + lasted(s.Now) + ", by configuration: "
	for i, st := range stretches(s) {
		sum, n := 0.0, 0
		for _, p := range s.Points[st.a:st.b] {
			if v := finite(of(&p)); v.OK {
				sum, n = sum+v.V, n+1
			}
		}
		mean := stat.None
		if n > 0 {
			mean = stat.Some(sum / float64(n))
		}
		if i > 0 {
			out += "; "
		}
		name := "before any change"
		if st.iteration > 0 {
			name = "change " + strconv.Itoa(st.iteration)
		}
		out += fmt.Sprintf("%s, from %s to %s, mean %s", name, clock(st.from), clock(st.to), figure.Show(mean, unit))
	}
	return out + "."
}

// operating is a measured point of throughput against running requests.
type operating struct {
	running, tokens float64
	label, text     string
	class           string
}

// operatingPoints are what each configuration was measured at: 0 is the first
// baseline, n what change n led to.
func operatingPoints(s *engine.Snapshot) []operating {
	var out []operating
	put := func(d *engine.Diagnosis, label, name, class string) {
		if d == nil {
			return
		}
		running, tokens := finite(d.Quantity("running_mean").Value), finite(d.Quantity(output).Value)
		if !running.OK || !tokens.OK || !finiteAbove(running.V) || !finiteAbove(tokens.V) {
			return
		}
		text := name + ": " + figure.Show(tokens, "tok/s") + " with " + figure.Count(running.V) + nbsp + "running"
		out = append(out, operating{running.V, tokens.V, label, text, class})
	}
	if len(s.Iterations) == 0 {
		put(cmp.Or(s.Baseline, s.Live), "0", "measured", "baseline")
		return out
	}
	put(s.Iterations[0].Before, "0", "before any change", "baseline")
	for i := range s.Iterations {
		it := &s.Iterations[i]
		put(it.After, strconv.Itoa(it.N), "change "+strconv.Itoa(it.N), standing(s, it.N))
	}
	return out
}

// limits are the vertical lines of a roofline: seats, KV pool and ridge.
func limits() [3]ruleOf {
	return [...]ruleOf{
		{Class: "seats", Label: "seats", Text: "seats: as many requests may run"},
		{Class: "pool", Label: "KV pool", Text: "KV pool: as many requests of this length fit in it"},
		{Class: "ridge", Label: "ridge", Text: "ridge: beyond it a step is bound by compute, not by memory"},
	}
}

// rooflinePlot draws what the model says of throughput against running requests,
// what limits how many run, and where each configuration was measured.
func rooflinePlot(s *engine.Snapshot) figureOf {
	f := figureOf{ID: "roofline", Title: "Roofline: output against running requests", XTitle: "running requests", YTitle: "output, tok/s"}
	d := cmp.Or(s.Baseline, s.Live)
	at := operatingPoints(s)
	if d == nil || d.Curve == nil || len(d.Curve.Points) < 2 {
		f.Empty = "no curve: nothing was measured"
		if d != nil {
			f.Empty = "no curve: " + safe(cmp.Or(d.Ceiling.PhysicalReason, "the physical model has no basis here"))
		}
		return f
	}
	c := d.Curve
	curves := []struct {
		key keyOf
		of  func(*engine.CurvePoint) stat.Opt
	}{
		{keyOf{Class: "ideal", Label: "ideal: what physics allows (est)"}, func(p *engine.CurvePoint) stat.Opt { return p.Ideal }},
		{keyOf{Class: "achievable", Label: "achievable: good software on this hardware (est)"}, func(p *engine.CurvePoint) stat.Opt { return p.Achievable }},
		{keyOf{Class: "expected", Label: "expected of this server (est)"}, func(p *engine.CurvePoint) stat.Opt { return stat.Some(p.Expected) }},
	}
	var xs, ys []float64
	note := func(x, y float64) {
		if finiteAbove(x) && finiteAbove(y) {
			xs, ys = append(xs, x), append(ys, y)
		}
	}
	for i := range c.Points {
		for _, curve := range curves {
			note(c.Points[i].Running, finite(curve.of(&c.Points[i])).V)
		}
	}
	for _, p := range at {
		note(p.running, p.tokens)
	}
	if len(xs) == 0 {
		f.Empty = "no curve: the model gives no finite value"
		return f
	}
	xlo, xhi, xticks := decades(slices.Min(xs), slices.Max(xs))
	ylo, yhi, yticks := decades(slices.Min(ys), slices.Max(ys))
	x, y := xScale(xlo, xhi, true), yScale(ylo, yhi, true)
	f.X, f.Y = ticksAt(x, xticks, plainNumber), ticksAt(y, yticks, plainNumber)
	for _, curve := range curves {
		if d := curvePath(c.Points, curve.of, x, y); d != "" {
			f.Lines = append(f.Lines, lineOf{d, curve.key.Class})
			f.Keys = append(f.Keys, curve.key)
		}
	}
	f.Rules = limitRules(c, x)
	for _, p := range at {
		px, py := x.at(p.running), y.at(p.tokens)
		f.Dots = append(f.Dots, dotOf{coordinate(px), coordinate(py), coordinate(px + 9), coordinate(py + 4), p.class, p.label, p.text})
	}
	f.Keys = append(f.Keys, keyOf{Class: "baseline", Label: "measured: 0 before any change, then by number", Dot: true})
	f.Desc = describeRoofline(c, at)
	return f
}

// curvePath draws one curve where it has values.
func curvePath(points []engine.CurvePoint, of func(*engine.CurvePoint) stat.Opt, x, y scaleOf) string {
	var places [][2]float64
	for i := range points {
		if v := finite(of(&points[i])); v.OK && finiteAbove(v.V) && finiteAbove(points[i].Running) {
			places = append(places, [2]float64{x.at(points[i].Running), y.at(v.V)})
		}
	}
	if len(places) < 2 {
		return ""
	}
	return pathOf(places)
}

// limitRules places the limits that the plot shows, their names in turn at three
// heights so that close ones can be read.
func limitRules(c *engine.Curve, x scaleOf) []ruleOf {
	var out []ruleOf
	values := []stat.Opt{c.Seats, c.Pool, c.Ridge}
	for i, rule := range limits() {
		v := finite(values[i])
		if !v.OK || !finiteAbove(v.V) || !x.inside(v.V) {
			continue
		}
		place := x.at(v.V)
		rule.X, rule.LabelX, rule.Anchor = coordinate(place), coordinate(place+4), "start"
		if place > frameWidth-frameRight-110 {
			rule.LabelX, rule.Anchor = coordinate(place-4), "end"
		}
		rule.LabelY = coordinate(frameHeight - frameBottom - 8 - 14*float64(len(out)))
		rule.Label += " " + figure.Count(v.V)
		out = append(out, rule)
	}
	return out
}

func describeRoofline(c *engine.Curve, at []operating) string {
	out := "Output in tokens per second against running requests, both axes logarithmic."
	for i, v := range []stat.Opt{c.Seats, c.Pool, c.Ridge} {
		if v := finite(v); v.OK {
			out += " " + []string{"Seats", "The KV pool holds", "The ridge lies at"}[i] + " " + figure.Count(v.V) + "."
		}
	}
	for _, p := range at {
		out += " " + p.label + ", " + p.text + "."
	}
	return out
}
