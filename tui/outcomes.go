package tui

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// chart is what was predicted and what was measured of all changes on one axis, nil
// where no change has both ends of either.
func (t *iterationList) chart() *intervalChart {
	var rows []intervalRow
	var must []chart.Stretch
	for i := range t.s.Iterations {
		if r, ok := t.u.outcomeRow(&t.s.Iterations[i]); ok {
			rows, must = append(rows, r), append(must, r.band, r.interval)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	c := t.u.newIntervals(rows, must)
	c.names = t.indent
	return c
}

// outcomeRow is one change: the range that was predicted, the interval that was
// measured, and whether it held. ok is false where there is nothing to draw.
func (u *look) outcomeRow(it *engine.Iteration) (r intervalRow, ok bool) {
	r = intervalRow{band: chart.Nothing(), interval: chart.Nothing(), token: cell.Trial}
	goal := verdict.Throughput
	p, judged := engine.ProofOf(it.Delta)
	if judged {
		goal = p.Result.Goal
	}
	q, foretold := engine.PredictionOf(it.Predicted, goal)
	if foretold {
		r.band = chart.Stretch{Low: q.Low.V, High: q.High.V}
	}
	drawn := false
	if judged {
		_, drawn = p.Change()
		r.interval, r.mid = stretchOf(p.Result)
	}
	text, token := expectation(it), cell.Muted
	switch {
	case strings.HasSuffix(text, ": held"):
		token = cell.OK
	case strings.HasSuffix(text, ": missed"):
		token = cell.Warn
	case it.Failure != "":
		text += ", not measured"
	}
	r.after = u.say(token, strings.TrimPrefix(text, ", "))
	unjudged := it.Delta == nil && foretold
	return r, drawn || unjudged && (it.Failure != "" || it.End == engine.IterationOpen)
}
