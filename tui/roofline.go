package tui

import (
	"cmp"
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
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
	roleLast                     // what ran when the server was last read
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
	if outdated(r.s) || r.s.Phase == engine.PhaseAttach {
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
	if share := bindingShare(o); number(share) {
		text += ", " + figure.Percent(share.V) + figure.NBSP + "% of a step (est)"
	}
	return text
}

// why says what binds and where that holds, or why there is no curve.
func (r *roofView) why() string {
	if !r.bound() {
		return r.noCurve()
	}
	return told(r.binds() + ", at a mean context of " + figure.Count(math.Round(r.d.Ceiling.Physical.Context)) + figure.NBSP + "tokens")
}

// bound says that there is a curve, and what binds on it.
func (r *roofView) bound() bool { return r.curve != nil && r.d.Ceiling.Physical != nil }

// noCurve says why there is no curve and which flag would give one.
func (r *roofView) noCurve() string {
	if r.d == nil {
		return "No curve: nothing was measured yet."
	}
	why, f := cmp.Or(r.d.Ceiling.PhysicalReason, "it is not computed"), &r.d.Facts
	if onCPU(f) && !f.GPUKnown {
		return "No curve of the hardware: the server runs on a CPU, which the model does not cover. What is measured is shown alone."
	}
	return "No curve of the hardware: " + why + "." + toHaveOne(f, why)
}
