package tui

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// history returns the view of the changes, the newest first, above charts of the whole run.
func history(s *loop.Snapshot, u *frame.Settings, width int) frame.Content {
	return withTimes(frame.NewListing(u, width, width, historySections(s, u), ""), s, u, 2, measuresOf(s))
}

// Heights of the time charts: labels and axis, the minimum of the first quantity, and the height at
// which another quantity is added.
const (
	timeFrame  = 3
	leastStrip = 2
	goodStrip  = 3
)

// withTimes adds charts of quantities over time below a listing, if there are any. They get at least a share of the
// height: 2 is a half.
func withTimes(l *frame.Listing, s *loop.Snapshot, u *frame.Settings, share int, all []timeMeasure) frame.Content {
	if len(s.Points) == 0 || len(all) == 0 {
		return l
	}
	most := timeFrame
	for _, m := range all {
		most += m.most
	}
	return l.Below(frame.Charts{Least: timeFrame + leastStrip, Most: most, Share: share, Draw: func(p cell.Pane) { drawTimes(p, s, u, all) }})
}

// drawTimes draws as many quantities over time as fit.
func drawTimes(p cell.Pane, s *loop.Snapshot, u *frame.Settings, all []timeMeasure) {
	t := newTimeline(s, u, p.Width())
	heights := stripHeights(all, p.Height()-timeFrame)
	t.ribbon(p.Sub(timeLeft, 0, t.span.N, 1))
	y := 1
	for i, h := range heights {
		t.strip(p.Sub(0, y, p.Width(), h), &all[i])
		y += h
	}
	t.axis(p.Sub(0, y, p.Width(), 2))
}

// stripHeights divides lines among the first quantities. Each one gets enough to be readable; the
// first ones get the spare lines first.
func stripHeights(all []timeMeasure, lines int) []int {
	heights := make([]int, min(len(all), max(1, lines/goodStrip)))
	for i := range heights {
		heights[i] = min(goodStrip, lines)
		lines -= heights[i]
	}
	for grown := true; grown; {
		grown = false
		for i := range heights {
			if lines > 0 && heights[i] < all[i].most {
				heights[i]++
				lines--
				grown = true
			}
		}
	}
	return heights
}

// historySections returns all changes in a table, and what is known of each, the newest first.
func historySections(s *loop.Snapshot, u *frame.Settings) []page.Section {
	if len(s.Iterations) == 0 {
		text := "No change yet: the first one is compared with the baseline."
		if s.Baseline == nil {
			text = "No change yet: the baseline is not complete."
		}
		return []page.Section{{Nodes: []page.Node{page.Paragraph(page.Toned(page.Muted, text))}}}
	}
	run := tuning.Run{Snapshot: s}
	var newest []*loop.Iteration
	for i := range s.Iterations {
		newest = append(newest, &s.Iterations[len(s.Iterations)-1-i])
	}
	table := tuning.ChangeTable(newest)
	for i, it := range newest {
		if it.End == loop.IterationOpen {
			outcome := slices.IndexFunc(table.Columns, func(c page.Column) bool { return c.Head == "outcome" })
			table.Rows[i][outcome] = page.Words(doing(s))
		}
	}
	top := page.Section{}
	if text := tuning.Sentence(s.Score.Summary()); text != "" {
		top.Add(page.Paragraph(page.Toned(page.Strong, text)))
	}
	top.Add(table)
	if text := run.NoiseText(); text != "" {
		top.Add(page.Paragraph(page.Toned(page.Muted, "Noise: "+text)))
	}
	list := []page.Section{top}
	for _, it := range newest {
		list = append(list, changeSection(it, u))
	}
	return list
}

// changeSection returns what is known of a change.
func changeSection(it *loop.Iteration, u *frame.Settings) page.Section {
	sec := page.Section{Title: fmt.Sprintf("Change %d: %s", it.N, tuning.IterationChange(it))}
	add := func(t page.Tone, text string) {
		if text != "" {
			sec.Add(page.Paragraph(page.Toned(t, text)))
		}
	}
	if it.Delta == nil {
		add(page.Body, changeText(it))
	} else { // its note says how long the server was down
		add(page.Body, tuning.Sentence(it.Text))
	}
	add(page.Body, it.Beside)
	if it.Failure != "" {
		add(page.Bad, "failed: "+it.Failure)
	}
	for _, l := range it.Load {
		add(page.Warn, u.Glyphs.Warn+" load differs: "+l)
	}
	if it.Delta == nil {
		add(page.Muted, expectation(it))
		return sec
	}
	add(page.Muted, tuning.ChangeNote(it))
	sec.Add(tuning.DeltaTable(it.Delta, it.Predicted))
	return sec
}

// doing returns what happens to a change that has not ended.
func doing(s *loop.Snapshot) string {
	switch s.Phase {
	case loop.PhaseBaseline, loop.PhaseWaiting, loop.PhaseDone:
		return "open"
	}
	return stages()[min(s.Phase, loop.PhaseDone)].Word
}

// endName returns what happened to an iteration, "open" if it has not ended.
func endName(it *loop.Iteration) string {
	if it.End == loop.IterationOpen {
		return "open"
	}
	return string(it.End)
}

// verdictSign returns an iteration's direction as a symbol and a word.
func verdictSign(u *frame.Settings, it *loop.Iteration) (sign, word string, t cell.Token) {
	tone, word := tuning.Verdict(it)
	sign = u.Sign(tone)
	if tone == page.Warn && it.Delta != nil {
		sign = u.Glyphs.Info
		if it.Delta.Direction == verdict.Plateau {
			sign = u.Glyphs.Flat
		}
	}
	return sign, word, tone
}

// expectation returns the prediction for the goal and whether the result was within it, "" without
// a prediction.
func expectation(it *loop.Iteration) string {
	text, came := tuning.GoalPrediction(it.Delta, it.Predicted)
	if came != tuning.Unresolved {
		text += ": " + came.Word()
	}
	return text
}
