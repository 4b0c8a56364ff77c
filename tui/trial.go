package tui

import (
	"fmt"
	"math"
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
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/lines"
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
	band := lines.EmptyStretch()
	if known {
		band = lines.Stretch{Low: predicted.Low.V, High: predicted.High.V}
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
		rows = []intervalRow{{name: "predicted", band: band, interval: lines.EmptyStretch()}}
	}
	latest := &rows[len(rows)-1]
	return intervals(u, 88, rows, []lines.Stretch{band, within(latest.interval, latest.mid, band)})
}

// vague limits how far an interval determines the axis: up to this multiple of its middle, or of
// the prediction. Showing a very wide interval in full would shrink the important part to one dot.
const vague = 4

// within returns the part of an interval that the axis has to show.
func within(s lines.Stretch, mid float64, band lines.Stretch) lines.Stretch {
	most := max(1, vague*math.Abs(mid))
	if band.Low <= band.High {
		most = max(most, vague*math.Abs(band.High))
	}
	s.High = min(s.High, most)
	return s
}

// stretchOf returns the interval of a result, and its middle. The stretch is empty if there is no
// interval.
func stretchOf(r *verdict.Result) (s lines.Stretch, mid float64) {
	c, ok := effect.Verdict{Result: r}.Change()
	if !ok {
		return lines.EmptyStretch(), 0
	}
	return lines.Stretch{Low: c.Low, High: c.High}, c.Mid
}

// intervalRow is a line of a chart of intervals.
type intervalRow struct {
	name           string
	band, interval lines.Stretch
	mid            float64
	token          cell.Token
}

// leastIntervals is the minimum useful width of a chart of intervals.
const leastIntervals = 20

// intervals returns a block of rows over one axis, which shows the stretches of must in full. If the rows do not all
// fit, it shows the last ones.
func intervals(u *frame.Settings, keep int, rows []intervalRow, must []lines.Stretch) frame.Block {
	names := frame.FieldCells
	var rest []lines.Stretch
	for _, r := range rows {
		names = max(names, cell.Width(u.Spell(r.name))+1)
		rest = append(rest, r.band, r.interval)
	}
	axis := lines.NewChanges(must, rest)
	return frame.Block{Lines: len(rows) + 1, Least: 2, Keep: keep, Draw: func(p cell.Pane) {
		lines := p.Sub(names, 0, p.Width()-names, p.Height())
		if lines.Width() < leastIntervals {
			lines = cell.Pane{}
		}
		shown := rows[max(0, len(rows)-max(1, p.Height()-1)):]
		for y, r := range shown {
			p.Text(0, y, cell.Muted, r.name)
			axis.Row(lines.Sub(0, y, lines.Width(), 1), u.Glyphs, r.band, r.interval, stat.Finite(r.mid).V, r.token)
		}
		if lines.Width() > 0 {
			axis.Axis(lines.Sub(0, len(shown), lines.Width(), 1))
			p.Text(0, len(shown), cell.Muted, bands(u)+" pred")
		}
	}}
}

// bands returns the symbols of a prediction, alone and under an interval.
func bands(u *frame.Settings) string {
	if u.Glyphs.ASCII {
		return u.Glyphs.Rest + "="
	}
	return u.Glyphs.Rest + "═"
}
