package tui

import (
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// plot draws curves, limits and points.
func (r *roofView) plot(p cell.Pane) {
	pl := lines.Plot{
		X: lines.Axis{Title: "running", MinStep: 1},
		Y: lines.Axis{Title: "tok/s"},
	}
	r.axes(&pl, p.Height())
	r.curves(&pl)
	r.limits(&pl)
	r.cloud(&pl)
	g := r.u.Glyphs
	for _, o := range r.at {
		pt := lines.Point{XY: lines.XY{X: o.Running, Y: o.Tokens}, Label: o.Label}
		pt.Sign, pt.Name, pt.Token = o.role.look(g)
		if r.listed && o.role != roleBefore {
			pt.Name = ""
		}
		pl.Points = append(pl.Points, pt)
	}
	pl.Draw(p, g)
}

// look returns how points of a role are drawn and named.
func (is pointRole) look(g cell.Glyphs) (sign, name string, t cell.Token) {
	switch is {
	case rolePresent:
		return g.Point, "now", cell.Accent
	case roleLast:
		return g.Point, "last", cell.Muted
	case roleAdvised:
		if g.ASCII {
			return "@", "advised", cell.Trial
		}
		return "○", "advised", cell.Trial
	}
	return g.Past, "before", cell.Baseline
}

// wideRange is the ratio of most to fewest running requests above which both axes are logarithmic.
// On linear axes the current points would all be at the left edge.
const wideRange = 12

// roofExtent is the range of values to show. most is 0 if there are none.
type roofExtent struct{ least, most, low, high float64 }

func (e *roofExtent) see(running, tokens float64) {
	if running > 0 {
		e.least, e.most = min(e.least, running), max(e.most, running)
	}
	if tokens > 0 {
		e.low, e.high = min(e.low, tokens), max(e.high, tokens)
	}
}

// extent returns the range of the measured points and the limits, as far as the curve goes.
func (r *roofView) extent() roofExtent {
	e := roofExtent{least: math.Inf(1), low: math.Inf(1)}
	for _, o := range r.at {
		e.see(o.Running, o.Tokens)
	}
	if r.curve == nil {
		for i := range r.s.Points {
			e.see(r.s.Points[i].Running.Or(0), r.s.Points[i].Tokens.Or(0))
		}
		e.see(r.slots().Or(0), 0)
		e.most *= 1.1
		return e
	}
	measured := e.most
	for _, limit := range []stat.Opt{r.curve.Slots, r.curve.Pool, r.curve.Ridge} {
		e.see(limit.Or(0), 0)
	}
	first, last := r.curve.Points[0], r.curve.Points[len(r.curve.Points)-1]
	e.most = max(measured*1.05, min(e.most*1.15, last.Running))
	e.least = max(e.least, first.Running)
	end := min(e.most, last.Running)
	e.see(end, r.on(end, idealOf).Or(0))
	e.see(end, r.expected(end).Or(0))
	return e
}

// axes sets the axes of the plot.
func (r *roofView) axes(pl *lines.Plot, h int) {
	e := r.extent()
	most, least := steadyAbove(e.most), steadyBelow(e.least)
	pl.X.Hi, pl.Y.Hi = most, e.high
	if r.curve == nil || most <= wideRange*least {
		pl.Y = pl.Y.Extend(max(2, h/3))
		return
	}
	pl.X.Log, pl.Y.Log = true, true
	pl.Y.Title += ", log scales"
	pl.X.Lo = max(r.curve.Points[0].Running, least/2)
	// Extending to a tick would waste a large part of the plot.
	pl.Y.Lo = steadyBelow(min(e.low, r.expected(pl.X.Lo).Or(e.low)) / 1.05)
	pl.Y.Hi = steadyAbove(e.high * 1.05)
}

// steadyAbove and steadyBelow round to powers of the 20th root of 10, about 12 %, so that the axes
// do not move with small changes of the values.
func steadyAbove(v float64) float64 { return math.Pow(10, math.Ceil(20*math.Log10(v)-1e-9)/20) }
func steadyBelow(v float64) float64 { return math.Pow(10, math.Floor(20*math.Log10(v)+1e-9)/20) }

func (r *roofView) curves(pl *lines.Plot) {
	if r.curve == nil {
		return
	}
	line := func(name string, t cell.Token, stroke lines.Stroke, get func(engine.CurvePoint) stat.Opt) {
		s := lines.Series{Name: name, Token: t, Stroke: stroke}
		for _, c := range r.curve.Points {
			y := math.NaN()
			if v := get(c); v.OK {
				y = v.V
			}
			s.XY = append(s.XY, lines.XY{X: c.Running, Y: y})
		}
		pl.Series = append(pl.Series, s)
	}
	line("ideal", cell.Ideal, lines.Dotted, func(c engine.CurvePoint) stat.Opt { return c.Ideal })
	line("achievable", cell.Achievable, lines.Dashed, func(c engine.CurvePoint) stat.Opt { return c.Achievable })
	line("this server", cell.Strong, lines.Solid, func(c engine.CurvePoint) stat.Opt { return stat.Some(c.Expected) })
}

// limits adds the vertical lines.
func (r *roofView) limits(pl *lines.Plot) {
	add := func(at stat.Opt, name string) {
		if at.OK {
			pl.Uprights = append(pl.Uprights, lines.Tick{At: at.V, Label: name + " " + figure.Count(math.Round(at.V)), Token: cell.Border})
		}
	}
	add(r.slots(), "slots")
	if r.curve == nil {
		return
	}
	for _, l := range tuning.Limits(r.curve)[1:] {
		add(l.At, l.Name)
	}
}

func (r *roofView) slots() stat.Opt {
	if r.curve != nil {
		return r.curve.Slots
	}
	return tuning.Slots(&r.s.Facts)
}

// cloud adds the windows as points if there is no curve.
func (r *roofView) cloud(pl *lines.Plot) {
	if r.curve != nil {
		return
	}
	now := 0
	if n := len(r.s.Points); n > 0 {
		now = r.s.Points[n-1].Iteration
	}
	before := lines.Series{Name: "windows", Token: cell.Muted, Stroke: lines.Cloud}
	present := lines.Series{Name: "windows", Token: cell.Strong, Stroke: lines.Cloud}
	for i := range r.s.Points {
		p := &r.s.Points[i]
		if !p.Running.OK || !p.Tokens.OK {
			continue
		}
		xy := lines.XY{X: p.Running.V, Y: p.Tokens.V}
		if p.Iteration == now {
			present.XY = append(present.XY, xy)
		} else {
			before.XY = append(before.XY, xy)
		}
	}
	for _, s := range []lines.Series{before, present} {
		if len(s.XY) > 0 {
			pl.Series = append(pl.Series, s)
		}
	}
}

// on interpolates a curve at a number of running requests. It returns None outside the curve.
func (r *roofView) on(running float64, get func(engine.CurvePoint) stat.Opt) stat.Opt {
	if r.curve == nil {
		return stat.None
	}
	points := r.curve.Points
	i := slices.IndexFunc(points, func(c engine.CurvePoint) bool { return c.Running >= running })
	switch {
	case i < 0:
		return stat.None
	case points[i].Running == running:
		return get(points[i])
	case i == 0:
		return stat.None
	}
	a, b := get(points[i-1]), get(points[i])
	if !a.OK || !b.OK {
		return stat.None
	}
	f := (running - points[i-1].Running) / (points[i].Running - points[i-1].Running)
	return stat.Some(a.V + f*(b.V-a.V))
}

func (r *roofView) expected(running float64) stat.Opt {
	return r.on(running, func(c engine.CurvePoint) stat.Opt { return stat.Some(c.Expected) })
}
