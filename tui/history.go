package tui

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// historyView shows the changes, the newest first, above charts of the whole run. The changes scroll; the charts
// stay in place.
type historyView struct {
	s      *loop.Snapshot
	u      *frame.Settings
	width  int
	framed bool
	lines  *lines.Lines
}

func history(s *loop.Snapshot, u *frame.Settings, width int) frame.Content {
	return &historyView{s: s, u: u, width: width}
}

// Lines returns the number of lines of the charts and of all changes.
func (v *historyView) Lines(h int) int {
	if framed := v.width >= frame.TwoColumns && h >= frame.FrameLines; v.lines == nil || framed != v.framed {
		v.framed = framed
		w := max(0, v.width-2)
		if framed {
			w = frame.Inner(v.width, true)
		}
		v.lines = v.u.Lines(historySections(v.s, v.u), w)
	}
	room, _ := v.rooms(h)
	return h - room + v.lines.Height()
}

// edges returns the number of lines of the frame around a panel.
func (v *historyView) edges() int {
	if v.framed {
		return 2
	}
	return 0
}

// rooms divides h lines between the changes and the charts. The frames are not included.
func (v *historyView) rooms(h int) (list, charts int) {
	edges := v.edges()
	list = h - edges
	if charts = chartLines(v.s, list, v.lines.Height()+edges/2); charts > 0 {
		list = min(list-edges-charts, v.lines.Height()+1-edges/2)
	}
	return list, charts
}

// Draw draws the changes from line first on, and the charts.
func (v *historyView) Draw(p cell.Pane, first int) {
	h := p.Height()
	v.Lines(h)
	room, charts := v.rooms(h)
	if !v.framed {
		p = p.Sub(1, 0, p.Width()-2, h)
	}
	list, times := p.Sub(0, 0, p.Width(), room+v.edges()), p.Sub(0, room+v.edges(), p.Width(), charts+v.edges())
	if v.framed {
		list = v.u.Frame(list, &frame.Panel{Title: "Changes"})
	}
	v.u.Text(list, 0, v.lines.From(max(0, min(first, v.lines.Height()-room)), room))
	if charts > 0 {
		if v.framed {
			times = v.u.Frame(times, &frame.Panel{Title: "Over time"})
		}
		drawTimes(times, v.s, v.u, measuresOf(v.s))
	}
}

// Heights of the time charts: labels and axis, the minimum of the first quantity, and the height at
// which another quantity is added.
const (
	timeFrame  = 3
	leastStrip = 2
	goodStrip  = 3
)

// chartLines returns how many of h lines the charts get: what the list leaves, but at least half of
// h, unless that is too small to show anything.
func chartLines(s *loop.Snapshot, h, list int) int {
	if len(s.Points) == 0 || h < timeFrame+leastStrip+3 {
		return 0
	}
	most := timeFrame
	for _, m := range measuresOf(s) {
		most += m.most
	}
	return min(max(h-list-1, h/2), most)
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
	// Each change has these below.
	for head, rank := range map[string]int{"before, tok/s": 1, "after, tok/s": 1, "noticed as": 2, "what else differed": 3} {
		i := slices.IndexFunc(table.Columns, func(c page.Column) bool { return c.Head == head })
		table.Columns[i].Rank = rank
	}
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
	words := map[loop.Phase]string{
		loop.PhaseSettling: "settling", loop.PhaseMeasuring: "measuring", loop.PhaseWorse: "decide", loop.PhaseReverting: "reverting",
		loop.PhaseDown: "down", loop.PhaseAttach: "down", loop.PhaseApplying: "applying", loop.PhaseCanary: "canary",
	}
	return cmp.Or(words[s.Phase], "open")
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
