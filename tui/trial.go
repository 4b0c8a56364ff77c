package tui

import (
	"fmt"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// trial is what a measurement under way shows: the interval so far beside what was
// predicted, what the decision waits for, and how the interval narrowed; nothing
// where no trial is.
func (v *nowView) trial(w int) []block {
	t, u := v.s.Trial, v.u
	if t == nil {
		return nil
	}
	var list []block
	predicted, foretold := engine.PredictionOf(t.Predicted, goalOf(t.Results))
	said := "nothing was predicted"
	if foretold {
		said = "predicted " + engine.SpellRange(predicted.Low.V, predicted.High.V)
	}
	latest := lastResult(t.Results)
	if latest != nil {
		p := engine.Proof{Result: latest}
		list = append(list, v.field(w, 95, "so far", line(u.say(cell.Strong, p.Effect()), u.say(cell.Muted, "; "+said))))
	} else {
		list = append(list, v.field(w, 95, "so far", u.say(cell.Body, "no interval before the first look; "+said)))
	}
	list = append(list, v.field(w, 93, "next", u.say(cell.Body, nextLook(t))))
	if latest != nil && latest.Need != "" {
		list = append(list, v.field(w, 91, "needs", u.say(cell.Body, told(latest.Need))))
	}
	if latest != nil && (engine.Proof{Result: latest}).RestartsDominate() {
		list = append(list, short(v.field(w, 62, "width", u.say(cell.Muted, told(engine.Proof{Result: latest}.Width()))), 2))
	}
	if c := v.looks(t, predicted, foretold); c.lines > 0 {
		list = append(list, c)
	}
	return list
}

func goalOf(list []verdict.Result) verdict.Goal {
	if r := lastResult(list); r != nil {
		return r.Goal
	}
	return verdict.Throughput
}

func lastResult(list []verdict.Result) *verdict.Result {
	if len(list) == 0 {
		return nil
	}
	return &list[len(list)-1]
}

// lookWords is which look is next of how many, for the title of a panel.
func lookWords(t *engine.Trial) string {
	if t == nil || len(t.Looks) == 0 {
		return ""
	}
	if len(t.Results) == 0 {
		return fmt.Sprintf("%d looks planned", len(t.Looks))
	}
	return fmt.Sprintf("look %d of %d, 95 %%", min(len(t.Results), len(t.Looks)), len(t.Looks))
}

// nextLook says when the next look is, and how long it may take in all.
func nextLook(t *engine.Trial) string {
	n := len(t.Results)
	if n >= len(t.Looks) {
		return "That was the last look."
	}
	wait := func(d time.Duration) string { return engine.SpellTime(max(0, d-t.Measured)) }
	text := fmt.Sprintf("Look %d of %d in %s", n+1, len(t.Looks), wait(t.Looks[n]))
	if n+1 < len(t.Looks) {
		text += ", the last in " + wait(t.Looks[len(t.Looks)-1])
	}
	return text + ". It ends as soon as the interval decides."
}

// looks is the chart of the intervals of the looks so far, one a line above one
// axis, below what was predicted. Where not all fit the latest stay.
func (v *nowView) looks(t *engine.Trial, predicted engine.Prediction, foretold bool) block {
	u := v.u
	band := chart.Nothing()
	if foretold {
		band = chart.Stretch{Low: predicted.Low.V, High: predicted.High.V}
	}
	var rows []intervalRow
	for i := range t.Results {
		r := intervalRow{band: band, token: cell.Baseline}
		r.interval, r.mid = stretchOf(&t.Results[i])
		if i < len(t.Looks) {
			r.name = engine.SpellTime(t.Looks[i])
		}
		if i == len(t.Results)-1 {
			r.token = cell.Trial
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		if !foretold {
			return block{}
		}
		rows = []intervalRow{{name: "predicted", band: band, interval: chart.Nothing()}}
	}
	latest := &rows[len(rows)-1]
	return u.intervals(88, rows, []chart.Stretch{band, within(latest.interval, latest.mid, band)})
}

// vague is how many times its middle, and what was predicted, an interval may reach
// before its end is cut: with all of one that says next to nothing on the axis, what
// matters would be one dot.
const vague = 4

// within is the part of an interval that its axis has to show.
func within(s chart.Stretch, mid float64, band chart.Stretch) chart.Stretch {
	most := max(1, vague*math.Abs(mid))
	if band.Low <= band.High {
		most = max(most, vague*math.Abs(band.High))
	}
	s.High = min(s.High, most)
	return s
}

// stretchOf is the interval of a result, and its middle.
func stretchOf(r *verdict.Result) (s chart.Stretch, mid float64) {
	c, ok := engine.Proof{Result: r}.Change()
	if !ok {
		return chart.Nothing(), 0
	}
	return chart.Stretch{Low: c.Low, High: c.High}, c.Mid
}

// intervalRow is a line of a chart of intervals.
type intervalRow struct {
	name           string
	band, interval chart.Stretch
	mid            float64
	token          cell.Token
	after          prose // stands behind the line
}

// leastIntervals is the width of a chart of intervals from which it says something.
const leastIntervals = 20

// intervalChart is rows above one axis.
type intervalChart struct {
	u     *look
	rows  []intervalRow
	axis  chart.Changes
	names int // cells of the names
	after int // cells of what stands behind the lines
}

// newIntervals lays out rows; what must be seen decides about their axis.
func (u *look) newIntervals(rows []intervalRow, must []chart.Stretch) *intervalChart {
	c := &intervalChart{u: u, rows: rows}
	var rest []chart.Stretch
	for _, r := range rows {
		c.names, c.after = max(c.names, cell.Width(u.spell(r.name))), max(c.after, r.after.width())
		rest = append(rest, r.band, r.interval)
	}
	c.names = max(c.names+1, fieldCells)
	c.axis = chart.NewChanges(must, rest)
	return c
}

// room is the width of the lines in a pane, 0 where they would say nothing, and
// whether there is room behind them.
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

// row draws one row into a line. Where there is no room for the picture its words
// stand there.
func (c *intervalChart) row(p cell.Pane, r *intervalRow) {
	p.Text(0, 0, cell.Muted, r.name)
	w, after := c.room(p.Width())
	c.axis.Row(p.Sub(c.names, 0, w, 1), c.u.glyphs, r.band, r.interval, finiteOr(r.mid), r.token)
	switch {
	case after:
		r.after.draw(p, c.names+w+2, 0)
	case w == 0:
		r.after.cut(p.Width()-c.names, c.u.glyphs.Ellipsis).draw(p, c.names, 0)
	}
}

// foot draws the axis.
func (c *intervalChart) foot(p cell.Pane) {
	if w, _ := c.room(p.Width()); w > 0 {
		c.axis.Axis(p.Sub(c.names, 0, w, 1))
		p.Text(0, 0, cell.Muted, bands(c.u)+" pred")
	}
}

// intervals makes a block of rows above one axis, as many of the last as there is
// room for.
func (u *look) intervals(keep int, rows []intervalRow, must []chart.Stretch) block {
	c := u.newIntervals(rows, must)
	return block{lines: len(rows) + 1, least: 2, keep: keep, draw: func(p cell.Pane) {
		shown := rows[max(0, len(rows)-max(1, p.Height()-1)):]
		for y := range shown {
			c.row(p.Sub(0, y, p.Width(), 1), &shown[y])
		}
		c.foot(p.Sub(0, len(shown), p.Width(), 1))
	}}
}

// bands are the signs of what was predicted, alone and under an interval.
func bands(u *look) string {
	if u.glyphs.ASCII {
		return u.glyphs.Rest + "="
	}
	return u.glyphs.Rest + "═"
}

// finiteOr is a number, 0 for what is none.
func finiteOr(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
