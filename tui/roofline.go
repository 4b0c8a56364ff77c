package tui

import (
	"math"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// rooflineOf returns the view of throughput against running requests: the curves of the hardware
// and of this server, the limits on running requests, and the measured points.
func rooflineOf(s *loop.Snapshot, u *frame.Settings, width int) frame.Content {
	r := newRoofView(s, u)
	if len(r.at) > 0 || r.curve != nil {
		return frame.Fitted(r.draw)
	}
	text := "Nothing has been measured yet."
	switch doing := s.Progress.Text; {
	case strings.HasPrefix(doing, "waiting"), strings.HasPrefix(doing, "measuring"):
		text += " rooftop is " + figure.Stopped(doing)
	case doing != "":
		text += " " + tuning.Sentence(doing)
	}
	return frame.NewListing(u, width, width, []page.Section{{Nodes: []page.Node{page.Paragraph(page.Toned(page.Muted, text))}}}, "")
}

// roofView holds what a roofline is drawn from.
type roofView struct {
	s     *loop.Snapshot
	u     *frame.Settings
	d     *engine.Diagnosis // source of the curve and the limits; nil if there is none
	curve *engine.Curve
	at    []operatingPoint // previous points, oldest first, then the current one, then the advised one
	// listed reports whether a table names the current points, so that the legend need not.
	listed bool
}

// operatingPoint is a point with its meaning.
type operatingPoint struct {
	tuning.OperatingPoint
	role pointRole
}

// pointRole is the meaning of a point in the plot.
type pointRole uint8

const (
	roleBefore  pointRole = iota // an earlier configuration
	rolePresent                  // the current configuration
	roleLast                     // the configuration when the server was last read
	roleAdvised                  // predicted result of the recommendation
)

func newRoofView(s *loop.Snapshot, u *frame.Settings) *roofView {
	r := &roofView{s: s, u: u}
	candidates := []*engine.Diagnosis{r.latest(), s.Baseline}
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
		if d == s.Live {
			break // show why the current configuration has no curve
		}
	}
	for _, o := range (tuning.Run{Snapshot: s}).OperatingPoints() {
		r.at = append(r.at, operatingPoint{o, roleBefore})
	}
	r.present()
	r.target()
	return r
}

func (r *roofView) present() {
	is := rolePresent
	if outdated(r.s) || r.s.Phase == loop.PhaseAttach || noLoad(r.s) {
		is = roleLast
	}
	if o, ok := tuning.OperatingPointOf(r.latest(), "", nil); ok {
		r.at = append(r.at, operatingPoint{o, is})
	}
}

// latest returns the live diagnosis or, if it has no load or only the rest of one that ended and no change is on trial,
// that of the baseline.
func (r *roofView) latest() *engine.Diagnosis {
	if n := len(r.s.Iterations); noLoad(r.s) && r.s.Baseline != nil && (n == 0 || r.s.Iterations[n-1].End != loop.IterationOpen) {
		return r.s.Baseline
	}
	return r.s.Live
}

// target adds the point that the recommendation is predicted to reach from the point of the diagnosis that it
// comes from. It does so only for changes of the number of running requests.
func (r *roofView) target() {
	a, from := r.s.Advice, adviser(r.s)
	if a == nil || r.curve == nil || from == nil {
		return
	}
	switch a.Finding {
	case engine.ConcurrencySaturation, engine.KVPressure, engine.KVAdmission:
	default:
		return
	}
	factor := func(metric string) stat.Opt {
		for _, p := range a.Predicted {
			if p.Metric == metric && (p.Unit == "ratio" || p.Unit == "") && p.Mid.OK {
				return stat.Some(1 + p.Mid.V)
			}
		}
		return stat.None
	}
	// Running requests are their rate times the time between their tokens (Little's law).
	faster, longer := factor("generation_tokens_per_s"), factor("itl_mean_s")
	tokens, running := from.Quantity("generation_tokens_per_s").Value.Times(faster.V), from.Quantity("running_mean").Value.Times(faster.V*longer.V)
	if at := tokens.Plus(running).Finite(); faster.OK && longer.OK && tokens.OK && running.OK && at.OK {
		r.at = append(r.at, operatingPoint{tuning.OperatingPoint{Running: running.V, Tokens: tokens.V}, roleAdvised})
	}
}

// reshapes reports whether a change alters the curves of the hardware: another type of the cache, other GPUs.
func reshapes(a *engine.Recommendation) bool {
	return a.Kind == engine.KindHardware || slices.ContainsFunc(a.Changes(), func(c engine.Change) bool { return c.Sets("--kv-cache-dtype") })
}

// Minimum sizes for the figures beside the plot, and below it.
const (
	roofBeside = 116
	roofColumn = 52
	leastPlot  = 8
	goodPlot   = 28 // height with room for previous points in the table
)

// draw draws the figures below the plot or, with enough room, beside it.
func (r *roofView) draw(p cell.Pane) {
	w, h := p.Width(), p.Height()
	framed := w >= frame.TwoColumns && h >= frame.FrameLines
	title := &frame.Panel{Title: "Roofline", Note: r.note()}
	switch {
	case framed && w >= roofBeside:
		at := w - roofColumn
		side := r.u.Frame(p.Sub(at-4, 0, roofColumn+4, h), &frame.Panel{Title: "Current point"})
		r.listed = true
		r.plot(r.u.Frame(p.Sub(0, 0, at-5, h), title))
		n := r.u.Write(side, 0, 0, cell.Body, r.why()) + 1
		r.table(side.Sub(0, n, side.Width(), h-n))
	case framed:
		r.below(r.u.Frame(p, title))
	default:
		r.below(p.Sub(1, 0, w-2, h))
	}
}

// below draws what binds, the plot, and as much of the table as leaves the plot its minimum height.
func (r *roofView) below(p cell.Pane) {
	w, h := p.Width(), p.Height()
	text := r.u.Write(p, 0, 0, cell.Body, r.why())
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

// binds returns what takes most of a step's time, and its share.
func (r *roofView) binds() string {
	o := r.d.Ceiling.Physical
	text := "bound by " + tuning.BoundBy(o.Binding)
	if share := tuning.BindingShare(o); share.Finite().OK {
		text += ", " + figure.Percent(share.V) + figure.NBSP + "% of a step (est)"
	}
	return text
}

// noticeablyLess is the largest ratio of tokens held to tokens read to state both.
const noticeablyLess = 0.98

// note says which measurement the curve comes from if it is not the latest one.
func (r *roofView) note() page.Text {
	if r.curve == nil || r.d == r.s.Live || r.d != r.s.Baseline {
		return nil
	}
	return page.Toned(cell.Muted, "from the baseline of "+figure.Elapsed(r.d.Duration))
}

// why returns what binds and at which context length, or why there is no curve. If a request reads more than
// it holds of the pool, it states both: the curve follows from what is read, the pool's limit from what is
// held.
func (r *roofView) why() string {
	if !r.bound() {
		return tuning.NoCurve(r.d)
	}
	read := math.Round(r.d.Ceiling.Physical.Context)
	text := r.binds() + ", at a mean context of " + figure.Count(read) + figure.NBSP + "tokens"
	if p := r.d.Performance; p != nil && p.Measured.Resident.OK && p.Measured.Resident.V < noticeablyLess*read {
		text += " that a request reads; it holds " + figure.Count(p.Measured.Resident.V) + " of the KV" + figure.NBSP + "pool, where shared prefixes count once and unfinished prompts in part"
	}
	return tuning.Sentence(text)
}

// bound reports whether there is a curve, and what binds on it.
func (r *roofView) bound() bool { return r.curve != nil && r.d.Ceiling.Physical != nil }
