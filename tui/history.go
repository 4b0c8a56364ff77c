package tui

import (
	"cmp"
	"fmt"
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
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// historyView shows the list of iterations, the newest first, above charts of the whole run. The
// list scrolls; the charts stay in place.
type historyView struct {
	s      *loop.Snapshot
	u      *frame.Settings
	width  int
	framed bool
	lines  []historyRow
}

func history(s *loop.Snapshot, u *frame.Settings, width int) frame.Content {
	return &historyView{s: s, u: u, width: width}
}

// Lines returns the number of lines of the charts and of the whole list.
func (v *historyView) Lines(h int) int {
	if framed := v.width >= frame.TwoColumns && h >= frame.FrameLines; v.lines == nil || framed != v.framed {
		v.framed = framed
		w := max(0, v.width-2)
		if framed {
			w = frame.Inner(v.width, true)
		}
		v.lines = historyLines(w, v.s, v.u)
	}
	room, _ := v.rooms(h)
	return h - room + len(v.lines)
}

// edges returns the number of lines of the frame around a panel.
func (v *historyView) edges() int {
	if v.framed {
		return 2
	}
	return 0
}

// rooms divides h lines between the list and the charts. The frames are not included.
func (v *historyView) rooms(h int) (list, charts int) {
	edges := v.edges()
	list = h - edges
	if charts = chartLines(v.s, list, len(v.lines)+edges/2); charts > 0 {
		list = min(list-edges-charts, len(v.lines)+1-edges/2)
	}
	return list, charts
}

// Draw draws the list from line first on, and the charts.
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
	first = max(0, min(first, len(v.lines)-room))
	for y := range min(room, len(v.lines)-first) {
		v.lines[first+y](list.Sub(0, y, list.Width(), 1))
	}
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
	if len(s.Points) == 0 {
		return
	}
	t := newTimeline(s, u, p.Width())
	heights := stripHeights(all, p.Height()-timeFrame)
	t.ribbon(p.Sub(t.left, 0, t.span.N, 1))
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

// historyRow draws one line of the list.
type historyRow func(p cell.Pane)

// historyLines returns the lines of the list of iterations.
func historyLines(w int, s *loop.Snapshot, u *frame.Settings) []historyRow {
	if len(s.Iterations) == 0 {
		text := "No change yet: the first one is compared with the baseline."
		if s.Baseline == nil {
			text = "No change yet: the baseline is not complete."
		}
		return []historyRow{func(p cell.Pane) { p.Text(0, 0, cell.Muted, p.Cut(text, p.Width())) }}
	}
	t := newIterations(w, s, u)
	lines := []historyRow{t.head}
	if text := tuning.Sentence(s.Score.Summary()); text != "" {
		lines = []historyRow{func(p cell.Pane) { p.Text(0, 0, cell.Strong, p.Cut(text, p.Width())) }, t.head}
	}
	if t.outcomes != nil {
		lines = append(lines, t.outcomes.foot)
	}
	for i := len(s.Iterations) - 1; i >= 0; i-- {
		it := &s.Iterations[i]
		lines = append(lines, func(p cell.Pane) { t.line(p, it) })
		if r, ok := outcomeRow(it); ok && t.outcomes != nil {
			lines = append(lines, func(p cell.Pane) { t.outcomes.row(p, &r) })
		}
		for _, text := range t.details(it) {
			lines = append(lines, func(p cell.Pane) { p.Text(t.indent, 0, cell.Muted, text) })
		}
	}
	if text := noiseOf(s); text != "" {
		for _, l := range cell.Wrap(u.Spell(text), w) {
			lines = append(lines, func(p cell.Pane) { p.Text(0, 0, cell.Muted, l) })
		}
	}
	return lines
}

// noiseOf describes how much measurements of the same configuration differ, "" if unknown.
func noiseOf(s *loop.Snapshot) string {
	if len(s.Noise) == 0 {
		return ""
	}
	list := make([]string, len(s.Noise))
	for i, v := range s.Noise {
		list[i] = tuning.Change(stat.Some(v))
	}
	return "Noise, the same settings measured again: " + strings.Join(list, ", ")
}

// iterationList is the layout of the list.
type iterationList struct {
	s      *loop.Snapshot
	u      *frame.Settings
	w      int
	indent int // of the change and of the details below it
	// outcomes charts predictions and intervals on one axis. It is nil without any.
	outcomes *intervalChart
	columns  []iterationColumn
}

// iterationColumn is a quantity of the list. Its widest text determines its width.
type iterationColumn struct {
	name   string
	detail string // its name in the details, if that differs
	text   func(*loop.Iteration) (string, cell.Token)
	right  bool
	least  int // minimum width of the view for the column; in a narrower view it is in the details
	x, w   int
}

func newIterations(w int, s *loop.Snapshot, u *frame.Settings) *iterationList {
	t := &iterationList{s: s, u: u, w: w}
	t.indent = len(fmt.Sprint(s.Iterations[len(s.Iterations)-1].N)) + 9
	if w < 60 {
		t.indent = len(fmt.Sprint(s.Iterations[len(s.Iterations)-1].N)) + 1
	}
	t.outcomes = t.chart()
	x := w
	all := t.all()
	for i := len(all) - 1; i >= 0; i-- {
		c := all[i]
		if w < c.least {
			continue
		}
		c.w = cell.Width(u.Spell(c.name))
		empty := true
		for k := range s.Iterations {
			text, _ := c.text(&s.Iterations[k])
			c.w = max(c.w, cell.Width(u.Spell(text)))
			empty = empty && text == ""
		}
		if c.name == interval95 && empty {
			continue
		}
		x -= c.w
		c.x = x
		x -= 2
		t.columns = append([]iterationColumn{c}, t.columns...)
	}
	return t
}

// interval95 names the column of the 95 % interval of the change. The column is left out if no
// change has one.
const interval95 = "95 %"

// all returns the columns to the right of the change.
func (t *iterationList) all() []iterationColumn {
	pair := func(name string, headed bool) func(*loop.Iteration) (string, cell.Token) {
		return func(it *loop.Iteration) (string, cell.Token) { return beforeAfter(it, name, headed), cell.Body }
	}
	return []iterationColumn{
		{name: "output tok/s", least: 76, right: true, text: pair(tuning.Output, true)},
		{name: "", least: 40, right: true, text: func(it *loop.Iteration) (string, cell.Token) {
			if it.Delta == nil {
				return "", cell.Body
			}
			if p, ok := effect.VerdictOf(it.Delta); ok {
				if c, ok := p.Change(); ok {
					return tuning.Change(stat.Some(c.Mid)), tuning.ChangeTone(tuning.Output, c.Mid)
				}
			}
			return tuning.Change(it.Delta.Throughput), tuning.ChangeTone(tuning.Output, it.Delta.Throughput.Or(0))
		}},
		{name: interval95, least: 100, right: true, text: func(it *loop.Iteration) (string, cell.Token) {
			if p, ok := effect.VerdictOf(it.Delta); ok {
				if c, ok := p.Change(); ok {
					return figure.ChangeRange(c.Low, c.High), cell.Muted
				}
			}
			return "", cell.Muted
		}},
		{name: "TTFT p99", least: 110, right: true, text: pair("ttft_p99_s", false)},
		{name: "ITL p99", least: 134, right: true, text: pair("itl_p99_s", false)},
		{name: "$ per 1M tok", detail: "cost per 1M tok", least: 158, right: true, text: pair("usd_per_million_tokens", false)},
		{name: "direction", least: 0, text: func(it *loop.Iteration) (string, cell.Token) {
			sign, word, token := verdictSign(t.u, it)
			return sign + " " + word, token
		}},
		{name: "then", least: 64, text: func(it *loop.Iteration) (string, cell.Token) { return t.end(it), cell.Muted }},
	}
}

// end returns what happened to an iteration, or what it does now.
func (t *iterationList) end(it *loop.Iteration) string {
	if it.End != loop.IterationOpen {
		return string(it.End)
	}
	words := map[loop.Phase]string{
		loop.PhaseSettling: "settling", loop.PhaseMeasuring: "measuring", loop.PhaseWorse: "decide", loop.PhaseReverting: "reverting",
		loop.PhaseDown: "down", loop.PhaseAttach: "down", loop.PhaseApplying: "applying", loop.PhaseCanary: "canary",
	}
	return cmp.Or(words[t.s.Phase], "open")
}

func (t *iterationList) head(p cell.Pane) {
	p.Text(0, 0, cell.Muted, "#")
	if t.w >= 60 {
		p.Right(t.indent-2, 0, cell.Muted, "at")
	}
	p.Text(t.indent, 0, cell.Muted, "change")
	for _, c := range t.columns {
		if c.right {
			p.Right(c.x+c.w, 0, cell.Muted, c.name)
		} else {
			p.Text(c.x, 0, cell.Muted, c.name)
		}
	}
}

func (t *iterationList) line(p cell.Pane, it *loop.Iteration) {
	token := cell.Baseline
	if it.End == loop.IterationOpen {
		token = cell.Trial
	}
	p.Text(0, 0, token, fmt.Sprint(it.N))
	if t.w >= 60 {
		p.Right(t.indent-2, 0, cell.Muted, minuteLabel(it.At.Truncate(time.Second), time.Second))
	}
	for i := range t.columns {
		c := &t.columns[i]
		text, token := c.text(it)
		if c.right {
			p.Right(c.x+c.w, 0, token, text)
		} else {
			p.Text(c.x, 0, token, text)
		}
	}
	p.Text(t.indent, 0, cell.Strong, p.Cut(tuning.IterationChange(it), t.room()))
}

// room is the maximum width of a change. A wider one is repeated in the details.
func (t *iterationList) room() int { return t.columns[0].x - 2 - t.indent }

// details returns the lines below an iteration: further facts, and quantities without a column.
func (t *iterationList) details(it *loop.Iteration) []string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, strings.ReplaceAll(text, " ", figure.NBSP))
		}
	}
	if text := tuning.IterationChange(it); cell.Width(t.u.Spell(text)) > t.room() {
		add(text)
	}
	if len(it.Changes) > 0 {
		add(string(it.Noticed))
	}
	if _, drawn := outcomeRow(it); !drawn {
		add(expectation(it))
	}
	for _, c := range t.all() {
		if t.w < c.least {
			if text, _ := c.text(it); text != "" && text != figure.Absent {
				add(strings.TrimSpace(cmp.Or(c.detail, c.name) + " " + text))
			}
		}
	}
	if it.Delta != nil && it.Delta.Classic != "" {
		add("PROFILE " + string(it.Delta.Classic))
	}
	if it.Downtime > 0 {
		add("down " + figure.Elapsed(it.Downtime))
	}
	if text, changed := it.AnswerCheck.Summary(); changed {
		add(text)
	}
	var lines []string
	wrap := func(text string) { lines = append(lines, cell.Wrap(t.u.Spell(text), t.w-t.indent)...) }
	if len(parts) > 0 {
		wrap(strings.Join(parts, " · "))
	}
	if it.Beside != "" {
		wrap(it.Beside)
	}
	if it.Failure != "" {
		wrap("failed: " + it.Failure)
	}
	for _, l := range it.Load {
		wrap("load differs: " + l)
	}
	return lines
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

// beforeAfter formats a quantity before and after a change as the table of the change does. If both have the same
// unit, it appears once, or not at all if the head of the column has it.
func beforeAfter(it *loop.Iteration, name string, headed bool) string {
	before, after := tuning.BeforeAfter(it, name)
	switch {
	case !before.Value.OK && !after.Value.OK:
		return figure.Absent
	case headed:
		return withoutUnit(before) + " → " + withoutUnit(after)
	}
	b, a, unit := tuning.FormatPair(before, after)
	return strings.TrimSpace(b + " → " + a + " " + unit)
}

// withoutUnit formats a quantity whose unit stands elsewhere.
func withoutUnit(q engine.Quantity) string {
	if !q.Value.OK {
		return figure.Absent
	}
	text, _ := figure.Amount(q.Value.V, q.Unit)
	return text
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
