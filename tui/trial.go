package tui

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// trial returns the state of a measurement in progress: the interval so far and the prediction,
// what the decision needs, and how the interval narrowed. It returns nil without a trial.
func (v *nowView) trial(w int) []frame.Block {
	t, u := v.s.Trial, v.u
	if t == nil {
		return nil
	}
	var list []frame.Block
	prediction, predicted := effect.PredictionOf(t.Predicted, goalOf(t.Results))
	said := "nothing was predicted"
	if predicted {
		said = "predicted " + figure.ChangeRange(prediction.Low.V, prediction.High.V)
	}
	field := func(keep int, label string, text page.Text) { list = append(list, u.Field(w, keep, label, text)) }
	latest := lastResult(t.Results)
	if latest == nil {
		field(95, "so far", page.Toned(cell.Body, "nothing before the first look, which leaves out a warm-up; "+said))
		field(93, "next", page.Toned(cell.Body, nextLook(t)))
		return append(list, v.looks(t, prediction, predicted))
	}
	p := effect.Verdict{Result: latest}
	field(95, "so far", page.Join(page.Toned(cell.Strong, p.Effect()), page.Toned(cell.Muted, "; "+said)))
	field(93, "next", page.Toned(cell.Body, nextLook(t)))
	field(91, "needs", page.Toned(cell.Body, tuning.Sentence(latest.Need)))
	if p.RestartsDominate() {
		list = append(list, frame.Shorten(u.Field(w, 62, "width", page.Toned(cell.Muted, tuning.Sentence(p.Width()))), 2))
	}
	return append(list, v.looks(t, prediction, predicted))
}

// goalOf returns the goal of the latest result, Throughput without results.
func goalOf(list []verdict.Result) verdict.Goal {
	if r := lastResult(list); r != nil {
		return r.Goal
	}
	return verdict.Throughput
}

// lastResult returns the latest result, nil if there is none.
func lastResult(list []verdict.Result) *verdict.Result {
	if len(list) == 0 {
		return nil
	}
	return &list[len(list)-1]
}

// lookWords returns the number of the latest look and of all looks, for the title of a panel.
func lookWords(t *loop.Trial) string {
	if t == nil || len(t.Looks) == 0 {
		return ""
	}
	if len(t.Results) == 0 {
		return figure.Counted(len(t.Looks), "look") + " planned"
	}
	return fmt.Sprintf("look %d of %d, 95 %%", min(len(t.Results), len(t.Looks)), len(t.Looks))
}

// nextLook returns when the next look is, and when the last one.
func nextLook(t *loop.Trial) string {
	n := len(t.Results)
	if n >= len(t.Looks) {
		return "That was the last look."
	}
	wait := func(d time.Duration) string { return figure.Elapsed(max(0, d-t.Measured)) }
	text := fmt.Sprintf("Look %d of %d in %s", n+1, len(t.Looks), wait(t.Looks[n]))
	if n+1 < len(t.Looks) {
		text += ", the last in " + wait(t.Looks[len(t.Looks)-1])
	}
	return text + ". It ends as soon as the interval decides."
}

// looks returns the chart of the intervals of all looks so far, one per line over a common axis,
// with the prediction. If they do not all fit, the latest are shown.
func (v *nowView) looks(t *loop.Trial, predicted engine.Prediction, known bool) frame.Block {
	u := v.u
	band := chart.EmptyStretch()
	if known {
		band = chart.Stretch{Low: predicted.Low.V, High: predicted.High.V}
	}
	var rows []intervalRow
	for i := range t.Results {
		r := intervalRow{band: band, token: cell.Baseline}
		r.interval, r.mid = stretchOf(&t.Results[i])
		if i < len(t.Looks) {
			r.name = figure.Elapsed(t.Looks[i])
		}
		if i == len(t.Results)-1 {
			r.token = cell.Trial
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		if !known {
			return frame.Block{}
		}
		rows = []intervalRow{{name: "predicted", band: band, interval: chart.EmptyStretch()}}
	}
	latest := &rows[len(rows)-1]
	return intervals(u, 88, rows, []chart.Stretch{band, within(latest.interval, latest.mid, band)})
}

// vague limits how far an interval determines the axis: up to this multiple of its middle, or of
// the prediction. Showing a very wide interval in full would shrink the important part to one dot.
const vague = 4

// within returns the part of an interval that the axis has to show.
func within(s chart.Stretch, mid float64, band chart.Stretch) chart.Stretch {
	most := max(1, vague*math.Abs(mid))
	if band.Low <= band.High {
		most = max(most, vague*math.Abs(band.High))
	}
	s.High = min(s.High, most)
	return s
}

// stretchOf returns the interval of a result, and its middle. The stretch is empty if there is no
// interval.
func stretchOf(r *verdict.Result) (s chart.Stretch, mid float64) {
	c, ok := effect.Verdict{Result: r}.Change()
	if !ok {
		return chart.EmptyStretch(), 0
	}
	return chart.Stretch{Low: c.Low, High: c.High}, c.Mid
}

// intervalRow is a line of a chart of intervals.
type intervalRow struct {
	name           string
	band, interval chart.Stretch
	mid            float64
	token          cell.Token
	after          page.Text // text behind the line
}

// leastIntervals is the minimum useful width of a chart of intervals.
const leastIntervals = 20

// intervalChart is a chart of intervals over one axis.
type intervalChart struct {
	u     *frame.Settings
	rows  []intervalRow
	axis  chart.Changes
	names int // width of the names
	after int // width of the texts behind the lines
}

// newIntervals lays out rows. The axis shows the stretches of must in full.
func newIntervals(u *frame.Settings, rows []intervalRow, must []chart.Stretch) *intervalChart {
	c := &intervalChart{u: u, rows: rows}
	var rest []chart.Stretch
	for _, r := range rows {
		c.names, c.after = max(c.names, cell.Width(u.Spell(r.name))), max(c.after, u.Width(r.after))
		rest = append(rest, r.band, r.interval)
	}
	c.names = max(c.names+1, frame.FieldCells)
	c.axis = chart.NewChanges(must, rest)
	return c
}

// room returns the width of the lines in a pane of width w, 0 if it is too small, and whether there
// is room for the texts behind them.
func (c *intervalChart) room(w int) (cells int, after bool) {
	cells = w - c.names
	if c.after > 0 && cells-c.after-2 >= leastIntervals {
		cells, after = cells-c.after-2, true
	}
	if cells < leastIntervals {
		return 0, false
	}
	return cells, after
}

// row draws one row into a line. If there is no room for the interval, it writes the text instead.
func (c *intervalChart) row(p cell.Pane, r *intervalRow) {
	p.Text(0, 0, cell.Muted, r.name)
	w, after := c.room(p.Width())
	c.axis.Row(p.Sub(c.names, 0, w, 1), c.u.Glyphs, r.band, r.interval, stat.Finite(r.mid).V, r.token)
	switch {
	case after:
		p.Line(c.names+w+2, 0, r.after)
	case w == 0:
		p.Line(c.names, 0, c.u.Cut(r.after, p.Width()-c.names))
	}
}

// foot draws the axis.
func (c *intervalChart) foot(p cell.Pane) {
	if w, _ := c.room(p.Width()); w > 0 {
		c.axis.Axis(p.Sub(c.names, 0, w, 1))
		p.Text(0, 0, cell.Muted, bands(c.u)+" pred")
	}
}

// intervals returns a block of rows over one axis. If they do not all fit, it shows the last ones.
func intervals(u *frame.Settings, keep int, rows []intervalRow, must []chart.Stretch) frame.Block {
	c := newIntervals(u, rows, must)
	return frame.Block{Lines: len(rows) + 1, Least: 2, Keep: keep, Draw: func(p cell.Pane) {
		shown := rows[max(0, len(rows)-max(1, p.Height()-1)):]
		for y := range shown {
			c.row(p.Sub(0, y, p.Width(), 1), &shown[y])
		}
		c.foot(p.Sub(0, len(shown), p.Width(), 1))
	}}
}

// bands returns the symbols of a prediction, alone and under an interval.
func bands(u *frame.Settings) string {
	if u.Glyphs.ASCII {
		return u.Glyphs.Rest + "="
	}
	return u.Glyphs.Rest + "═"
}

// chart returns predictions and results of all changes on one axis, nil if no change has a complete
// interval.
func (t *iterationList) chart() *intervalChart {
	var rows []intervalRow
	var must []chart.Stretch
	for i := range t.s.Iterations {
		if r, ok := outcomeRow(&t.s.Iterations[i]); ok {
			rows, must = append(rows, r), append(must, r.band, r.interval)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	c := newIntervals(t.u, rows, must)
	c.names = t.indent
	return c
}

// outcomeRow returns the row of one change: the predicted range, the measured interval, and whether
// the result is within the range. ok is false if there is nothing to draw.
func outcomeRow(it *loop.Iteration) (r intervalRow, ok bool) {
	r = intervalRow{band: chart.EmptyStretch(), interval: chart.EmptyStretch(), token: cell.Trial}
	p, judged := effect.VerdictOf(it.Delta)
	q, predicted := effect.PredictionOf(it.Predicted, tuning.Goal(it.Delta))
	if predicted {
		r.band = chart.Stretch{Low: q.Low.V, High: q.High.V}
	}
	drawn := false
	if judged {
		_, drawn = p.Change()
		r.interval, r.mid = stretchOf(p.Result)
	}
	text := expectation(it)
	_, came := tuning.GoalPrediction(it.Delta, it.Predicted)
	if came == tuning.Unresolved && it.Failure != "" {
		text += ", not measured"
	}
	r.after = page.Toned(came.Tone(), strings.TrimPrefix(text, ", "))
	unjudged := it.Delta == nil && predicted
	return r, drawn || unjudged && (it.Failure != "" || it.End == loop.IterationOpen)
}
