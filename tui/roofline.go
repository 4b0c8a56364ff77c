package tui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// drawRoofline shows throughput against running requests: what the model says of
// this hardware and of this server, what limits how many requests run, and where
// the server is and was.
func drawRoofline(p cell.Pane, s *engine.Snapshot, u *look) int {
	if s == nil {
		return 0
	}
	r := newRoofView(s, u)
	if len(r.at) == 0 && r.curve == nil {
		return u.nothingMeasured(p.Sub(1, 0, p.Width()-2, p.Height()), s)
	}
	r.draw(p)
	return p.Height()
}

// roofView is what a roofline is drawn from.
type roofView struct {
	s     *engine.Snapshot
	u     *look
	d     *engine.Diagnosis // whose curve and limits are shown; nil none
	curve *engine.Curve
	at    []operatingPoint // oldest first, then the present one, then the advised one
	// listed says that a table names the present points, which the legend need not.
	listed bool
}

// operatingPoint is a measured point: a configuration at its load.
type operatingPoint struct {
	running, tokens float64
	label           string // its number; "" of the latest
	role            pointRole
	iteration       *engine.Iteration // of a point of before; nil the first baseline
}

// pointRole is what a point of the plot is.
type pointRole uint8

const (
	roleBefore  pointRole = iota // a configuration of the past
	rolePresent                  // what runs
	roleLast                     // what ran until the server stopped answering
	roleAdvised                  // what the recommendation is predicted to reach
)

func newRoofView(s *engine.Snapshot, u *look) *roofView {
	r := &roofView{s: s, u: u}
	candidates := []*engine.Diagnosis{s.Live, s.Baseline}
	for i := len(s.Iterations) - 1; i >= 0; i-- {
		candidates = append(candidates, s.Iterations[i].After, s.Iterations[i].Before)
	}
	for _, d := range candidates {
		if d == nil {
			continue
		}
		if r.d == nil {
			r.d = d
		}
		if d.Curve != nil && len(d.Curve.Points) > 1 {
			r.d, r.curve = d, d.Curve
			break
		}
		if s.Live != nil {
			break // why the configuration that runs has no curve is what to say
		}
	}
	r.past()
	r.present()
	r.target()
	return r
}

// past adds what each iteration was measured at; 0 is the first baseline.
func (r *roofView) past() {
	for i := range r.s.Iterations {
		it := &r.s.Iterations[i]
		if i == 0 {
			r.measured(it.Before, operatingPoint{label: "0"})
		}
		r.measured(it.After, operatingPoint{label: fmt.Sprint(it.N), iteration: it})
	}
}

func (r *roofView) present() {
	is := rolePresent
	if r.s.Phase == engine.PhaseDown || r.s.Phase == engine.PhaseAttach {
		is = roleLast
	}
	r.measured(r.s.Live, operatingPoint{role: is})
}

// measured adds a point at what was measured.
func (r *roofView) measured(d *engine.Diagnosis, o operatingPoint) {
	if d == nil {
		return
	}
	running, tokens := d.Quantity("running_mean").Value, d.Quantity("generation_tokens_per_s").Value
	if sum := running.Plus(tokens); running.OK && tokens.OK && !math.IsNaN(sum.V) && !math.IsInf(sum.V, 0) {
		o.running, o.tokens = running.V, tokens.V
		r.at = append(r.at, o)
	}
}

// target adds where the recommendation is predicted to lead, on this server's
// curve: only for changes that let more or fewer requests run, which leave the
// curve as it is.
func (r *roofView) target() {
	a := r.s.Advice
	if a == nil || r.curve == nil || r.s.Live == nil {
		return
	}
	switch a.Finding {
	case engine.SeatSaturation, engine.KVPressure, engine.KVAdmission:
	default:
		return
	}
	for _, p := range a.Predicted {
		if p.Metric == "generation_tokens_per_s" && (p.Unit == "ratio" || p.Unit == "") && p.Mid.OK {
			tokens := r.s.Live.Quantity(p.Metric).Value.Times(1 + p.Mid.V)
			if running := r.running(tokens); running.OK {
				r.at = append(r.at, operatingPoint{running: running.V, tokens: tokens.V, role: roleAdvised})
			}
		}
	}
}

// running is where this server's curve first reaches a rate.
func (r *roofView) running(tokens stat.Opt) stat.Opt {
	points := r.curve.Points
	for i := 1; tokens.OK && i < len(points); i++ {
		a, b := points[i-1], points[i]
		if a.Expected <= tokens.V && tokens.V <= b.Expected && b.Expected > a.Expected {
			return stat.Some(a.Running + (b.Running-a.Running)*(tokens.V-a.Expected)/(b.Expected-a.Expected))
		}
	}
	return stat.None
}

// Sizes at which the figures stand beside the plot, and below it.
const (
	roofBeside   = 116
	roofColumn   = 52
	leastPlot    = 8
	leastSummary = 13
	goodPlot     = 28 // body with room for the points of before in the table
)

// draw shows the figures beside the plot where that is wide, else below it, and
// frames around both where there are lines to spare.
func (r *roofView) draw(p cell.Pane) {
	w, h, framed := p.Width(), p.Height(), p.Width() >= twoColumns && p.Height() >= frameLines
	switch {
	case w >= roofBeside:
		at := w - roofColumn
		plot, side := p.Sub(1, 0, at-4, h), p.Sub(at-1, 0, roofColumn, h)
		if framed {
			plot = r.u.frame(p.Sub(0, 0, at-5, h), &panel{title: "Roofline"})
			side = r.u.frame(p.Sub(at-4, 0, roofColumn+4, h), &panel{title: "Where it stands"})
		}
		r.listed = true
		r.plot(plot)
		n := side.Paragraph(0, 0, cell.Body, r.why()) + 1
		r.table(side.Sub(0, n, side.Width(), h-n))
	case framed:
		r.below(r.u.frame(p, &panel{title: "Roofline"}), r.why())
	case h >= leastSummary && r.bound():
		p = p.Sub(1, 0, w-2, h)
		r.u.heading(p, &panel{title: "Roofline", note: r.u.say(cell.Muted, r.binds())})
		r.below(p.Sub(0, 1, w, h-1), "")
	default:
		r.below(p.Sub(1, 0, w-2, h), r.why())
	}
}

// below draws a text, the plot, and under it as much of the table as leaves the
// plot its least height.
func (r *roofView) below(p cell.Pane, why string) {
	w, h := p.Width(), p.Height()
	text := 0
	if why != "" {
		text = p.Paragraph(0, 0, cell.Body, why)
	}
	table := 1 + len(r.rows())
	if r.curve == nil || h >= goodPlot {
		table += len(r.pastRows())
	}
	if table = min(table, h-text-leastPlot); table < 2 {
		table = 0
	}
	r.listed = table > 1
	r.plot(p.Sub(0, text, w, h-text-table))
	r.table(p.Sub(0, h-table, w, table))
}

// binds says what a step's time goes to: the most of it, and how much that is.
func (r *roofView) binds() string {
	o := r.d.Ceiling.Physical
	text := "bound by " + boundBy(o.Binding)
	if total := o.TermsS.Total(); total > 0 {
		most := max(o.TermsS.Weights, o.TermsS.KV, o.TermsS.Compute+o.TermsS.Attention, o.TermsS.Collectives, o.TermsS.Fixed)
		text += ", " + figure.Percent(most/total) + figure.NBSP + "% of a step (est)"
	}
	return text
}

// why says what binds and where that holds, or why there is no curve.
func (r *roofView) why() string {
	if !r.bound() {
		return r.noCurve()
	}
	return "B" + r.binds()[1:] + ", at a mean context of " + figure.Count(math.Round(r.d.Ceiling.Physical.Context)) + figure.NBSP + "tokens."
}

// bound says that there is a curve, and what binds on it.
func (r *roofView) bound() bool { return r.curve != nil && r.d.Ceiling.Physical != nil }

// boundBy names the largest term of a step.
func boundBy(term string) string {
	switch term {
	case "weights":
		return "reading the weights"
	case "kv":
		return "reading the KV cache"
	case "compute":
		return "compute"
	case "collectives":
		return "communication between GPUs"
	case "fixed":
		return "fixed costs of a step"
	case "":
		return "what is not known"
	}
	return term
}

// noCurve says why there is no curve and which flag would give one.
func (r *roofView) noCurve() string {
	if r.d == nil {
		return "No curve: nothing was measured yet."
	}
	why, f := r.d.Ceiling.PhysicalReason, &r.d.Facts
	if f.Device.Value == "cpu" && !f.GPUKnown {
		return "No curve of the hardware: the server runs on a CPU, which the model does not cover. What is measured is shown alone."
	}
	text := "No curve of the hardware: " + cmp.Or(why, "it is not computed") + "."
	var flags []string
	if !f.GPUKnown && !strings.Contains(why, "--gpu names") {
		flags = append(flags, "--gpu NAME")
	}
	if !f.ModelKnown {
		flags = append(flags, "--model NAME")
	}
	if len(flags) > 0 {
		text += " Start rooftop with " + strings.Join(flags, " and ") + " to have one."
	}
	return text
}

// plot draws curves, limits and points.
func (r *roofView) plot(p cell.Pane) {
	pl := chart.Plot{
		X: chart.Axis{Title: "running", Least: 1},
		Y: chart.Axis{Title: "tok/s"},
	}
	r.axes(&pl, p.Height())
	r.curves(&pl)
	r.limits(&pl)
	r.cloud(&pl)
	g := r.u.glyphs
	for _, o := range r.at {
		pt := chart.Point{XY: chart.XY{X: o.running, Y: o.tokens}, Label: o.label}
		pt.Sign, pt.Name, pt.Token = o.role.look(g)
		if r.listed && o.role != roleBefore {
			pt.Name = ""
		}
		pl.Points = append(pl.Points, pt)
	}
	pl.Draw(p, g)
}

// look is how a point is drawn and called.
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

// wide is the ratio of the most to the least requests beyond which both axes are
// logarithmic: on linear ones all that runs would stand at the left edge.
const wide = 12

// axes choose what is shown: all that was measured and the limits, as far as the
// curve goes.
func (r *roofView) axes(pl *chart.Plot, h int) {
	least, most := math.Inf(1), 0.0
	rates, low := 0.0, math.Inf(1)
	see := func(running, tokens float64) {
		if running > 0 {
			least, most = min(least, running), max(most, running)
		}
		if tokens > 0 {
			rates, low = max(rates, tokens), min(low, tokens)
		}
	}
	for _, o := range r.at {
		see(o.running, o.tokens)
	}
	if r.curve == nil {
		for i := range r.s.Points {
			see(r.s.Points[i].Running.Or(0), r.s.Points[i].Tokens.Or(0))
		}
		see(r.seats().Or(0), 0)
	} else {
		for _, l := range []stat.Opt{r.curve.Seats, r.curve.Pool, r.curve.Ridge} {
			see(l.Or(0), 0)
		}
		first, last := r.curve.Points[0], r.curve.Points[len(r.curve.Points)-1]
		most = min(most*1.15, last.Running)
		least = max(least, first.Running)
	}
	if r.curve == nil {
		most *= 1.1
	}
	pl.X.Lo, pl.X.Hi = 0, most
	if r.curve != nil && most > wide*least {
		pl.X.Log, pl.Y.Log = true, true
		pl.Y.Title += ", log scales"
		pl.X.Lo = max(r.curve.Points[0].Running, least/2)
		low = min(low, r.expected(pl.X.Lo).Or(low))
	}
	if r.curve != nil {
		rates = max(rates, r.on(most, func(c engine.CurvePoint) stat.Opt { return c.Ideal }).Or(0), r.expected(most).Or(0))
	}
	pl.Y.Hi = rates
	if pl.Y.Log { // a step of ticks beyond the values would be a large part of it
		pl.Y.Lo, pl.Y.Hi = low/1.1, rates*1.1
		return
	}
	pl.Y = pl.Y.Extend(max(2, h/3))
}

func (r *roofView) curves(pl *chart.Plot) {
	if r.curve == nil {
		return
	}
	line := func(name string, t cell.Token, stroke chart.Stroke, get func(engine.CurvePoint) stat.Opt) {
		s := chart.Series{Name: name, Token: t, Stroke: stroke}
		for _, c := range r.curve.Points {
			y := math.NaN()
			if v := get(c); v.OK {
				y = v.V
			}
			s.XY = append(s.XY, chart.XY{X: c.Running, Y: y})
		}
		pl.Series = append(pl.Series, s)
	}
	line("ideal", cell.Ideal, chart.Dotted, func(c engine.CurvePoint) stat.Opt { return c.Ideal })
	line("achievable", cell.Achievable, chart.Dashed, func(c engine.CurvePoint) stat.Opt { return c.Achievable })
	line("this server", cell.Strong, chart.Solid, func(c engine.CurvePoint) stat.Opt { return stat.Some(c.Expected) })
}

// limits are the vertical lines; what lies beyond the KV pool, which no flag moves
// far, is shaded.
func (r *roofView) limits(pl *chart.Plot) {
	add := func(at stat.Opt, name string) {
		if at.OK {
			pl.Uprights = append(pl.Uprights, chart.Tick{At: at.V, Label: name + " " + figure.Count(at.V), Token: cell.Border})
		}
	}
	add(r.seats(), "seats")
	if r.curve == nil {
		return
	}
	add(r.curve.Pool, "KV pool")
	add(r.curve.Ridge, "ridge")
	if pool := r.curve.Pool; pool.OK {
		pl.Spans = append(pl.Spans, chart.Range{From: pool.V, To: math.Inf(1), Token: cell.Border})
	}
}

func (r *roofView) seats() stat.Opt {
	if r.curve != nil {
		return r.curve.Seats
	}
	if f := r.s.Facts.MaxNumSeqs; f.Known {
		return stat.Some(float64(f.Value * max(1, r.s.Facts.Ranks)))
	}
	return stat.None
}

// cloud are the windows, where there is no curve to see the load by.
func (r *roofView) cloud(pl *chart.Plot) {
	if r.curve != nil {
		return
	}
	now := 0
	if n := len(r.s.Points); n > 0 {
		now = r.s.Points[n-1].Iteration
	}
	before := chart.Series{Name: "windows", Token: cell.Muted, Stroke: chart.Cloud}
	present := chart.Series{Name: "windows", Token: cell.Strong, Stroke: chart.Cloud}
	for i := range r.s.Points {
		p := &r.s.Points[i]
		if !p.Running.OK || !p.Tokens.OK {
			continue
		}
		xy := chart.XY{X: p.Running.V, Y: p.Tokens.V}
		if p.Iteration == now {
			present.XY = append(present.XY, xy)
		} else {
			before.XY = append(before.XY, xy)
		}
	}
	for _, s := range []chart.Series{before, present} {
		if len(s.XY) > 0 {
			pl.Series = append(pl.Series, s)
		}
	}
}

// on is a curve's value at a number of running requests, between its points;
// absent outside of them.
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
