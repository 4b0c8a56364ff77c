package tui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawHistory lists the iterations, the newest first, above the whole run over
// time. The list scrolls; the charts stay.
func drawHistory(p cell.Pane, s *engine.Snapshot, u *look) int {
	if s == nil {
		return 0
	}
	framed := p.Width() >= twoColumns && p.Height() >= frameLines
	edges := 2 // lines of frames around one panel
	if !framed {
		p, edges = p.Sub(1, 0, p.Width()-2, p.Height()), 0
	}
	w, h := p.Width(), p.Height()
	lines := historyLines(p.Sub(0, 0, inner(w, framed), h), s, u)
	charts := chartLines(s, h-edges, len(lines)+edges/2)
	room := h - edges
	if charts > 0 {
		room = min(room-edges-charts, len(lines)+1-edges/2)
	}
	list, times := p.Sub(0, 0, w, room+edges), p.Sub(0, room+edges, w, charts+edges)
	if framed {
		list = u.frame(list, &panel{title: "Changes"})
	}
	at := max(0, min(u.scroll[viewHistory], len(lines)-room))
	for y := range min(room, len(lines)-at) {
		lines[at+y](list.Sub(0, y, list.Width(), 1))
	}
	if charts > 0 {
		if framed {
			times = u.frame(times, &panel{title: "Over time"})
		}
		drawTimes(times, s, u)
	}
	return h - room + len(lines)
}

// Heights of the time charts: their frame (names of the stretches, the axis), one
// quantity at least, and one before another is shown too.
const (
	timeFrame  = 3
	leastStrip = 2
	goodStrip  = 3
)

// chartLines is how much of h the charts get: what the list leaves, at least half
// of it where there is enough to see anything at all.
func chartLines(s *engine.Snapshot, h, list int) int {
	if len(s.Points) == 0 || h < timeFrame+leastStrip+3 {
		return 0
	}
	most := timeFrame
	for _, m := range measuredOver(s) {
		most += m.most
	}
	return min(max(h-list-1, h/2), most)
}

// drawTimes draws as many quantities over time as there is room for.
func drawTimes(p cell.Pane, s *engine.Snapshot, u *look) {
	if len(s.Points) == 0 {
		return
	}
	t := newTimeline(s, u, p.Width())
	all := measuredOver(s)
	heights := stripHeights(all, p.Height()-timeFrame)
	t.ribbon(p.Sub(t.left, 0, t.span.N, 1))
	y := 1
	for i, h := range heights {
		t.strip(p.Sub(0, y, p.Width(), h), &all[i])
		y += h
	}
	t.axis(p.Sub(0, y, p.Width(), 2))
}

// stripHeights shares out lines among the first quantities: enough for each to be
// read, what is left to the first ones first.
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

// historyLines is the list of iterations in lines.
func historyLines(p cell.Pane, s *engine.Snapshot, u *look) []historyRow {
	if len(s.Iterations) == 0 {
		text := "No change yet: the first one is compared with the baseline."
		if s.Baseline == nil {
			text = "No change yet: the baseline is not complete."
		}
		return []historyRow{func(p cell.Pane) { p.Text(0, 0, cell.Muted, p.Cut(text, p.Width())) }}
	}
	t := newIterations(p, s, u)
	lines := []historyRow{t.head}
	if text := told(s.Score.Told()); text != "" {
		lines = []historyRow{func(p cell.Pane) { p.Text(0, 0, cell.Strong, p.Cut(text, p.Width())) }, t.head}
	}
	if t.outcomes != nil {
		lines = append(lines, t.outcomes.foot)
	}
	for i := len(s.Iterations) - 1; i >= 0; i-- {
		it := &s.Iterations[i]
		lines = append(lines, func(p cell.Pane) { t.line(p, it) })
		if r, ok := u.outcomeRow(it); ok && t.outcomes != nil {
			lines = append(lines, func(p cell.Pane) { t.outcomes.row(p, &r) })
		}
		for _, text := range t.details(it) {
			lines = append(lines, func(p cell.Pane) { p.Text(t.indent, 0, cell.Muted, text) })
		}
	}
	if text := noiseOf(s); text != "" {
		for _, l := range p.Wrap(text, p.Width()) {
			lines = append(lines, func(p cell.Pane) { p.Text(0, 0, cell.Muted, l) })
		}
	}
	return lines
}

// noiseOf says how far two measurements of one configuration lay apart.
func noiseOf(s *engine.Snapshot) string {
	if len(s.Noise) == 0 {
		return ""
	}
	list := make([]string, len(s.Noise))
	for i, v := range s.Noise {
		list[i] = changeShown(stat.Some(v))
	}
	return "Noise, the same settings measured again: " + strings.Join(list, ", ")
}

// iterationList is the layout of the list.
type iterationList struct {
	p      cell.Pane // as wide as the list, to measure texts by
	s      *engine.Snapshot
	u      *look
	w      int
	indent int // of the change and of what is said below it
	// outcomes are the predictions and intervals on one axis, nil without any.
	outcomes *intervalChart
	columns  []iterationColumn
}

// iterationColumn is a quantity of the list: its widest text decides its width.
type iterationColumn struct {
	name   string
	detail string // its name among the details, where that is another
	text   func(*engine.Iteration) (string, cell.Token)
	right  bool
	least  int // width of the view from which on it is a column, and not in the details
	x, w   int
}

func newIterations(p cell.Pane, s *engine.Snapshot, u *look) *iterationList {
	w := p.Width()
	t := &iterationList{p: p, s: s, u: u, w: w}
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
		c.w = p.Cells(c.name)
		empty := true
		for k := range s.Iterations {
			text, _ := c.text(&s.Iterations[k])
			c.w = max(c.w, p.Cells(text))
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

// interval95 is the column of the interval about the change beside it; it is left out
// where no change has one.
const interval95 = "95 %"

// all are the columns right of the change.
func (t *iterationList) all() []iterationColumn {
	pair := func(name, unit string) func(*engine.Iteration) (string, cell.Token) {
		return func(it *engine.Iteration) (string, cell.Token) { return beforeAfter(it, name, unit), cell.Body }
	}
	return []iterationColumn{
		{name: "output tok/s", least: 76, right: true, text: pair("generation_tokens_per_s", "")},
		{name: "", least: 40, right: true, text: func(it *engine.Iteration) (string, cell.Token) {
			if it.Delta == nil {
				return "", cell.Body
			}
			if p, ok := engine.ProofOf(it.Delta); ok {
				if c, ok := p.Change(); ok {
					return changeShown(stat.Some(c.Mid)), cell.Strong
				}
			}
			return changeShown(it.Delta.Throughput), cell.Strong
		}},
		{name: interval95, least: 100, right: true, text: func(it *engine.Iteration) (string, cell.Token) {
			if p, ok := engine.ProofOf(it.Delta); ok {
				if c, ok := p.Change(); ok {
					return engine.SpellRange(c.Low, c.High), cell.Muted
				}
			}
			return "", cell.Muted
		}},
		{name: "TTFT p99", least: 110, right: true, text: pair("ttft_p99_s", "s")},
		{name: "ITL p99", least: 134, right: true, text: pair("itl_p99_s", "s")},
		{name: "$ per 1M tok", detail: "cost per 1M tok", least: 158, right: true, text: pair("usd_per_million_tokens", "USD")},
		{name: "direction", least: 0, text: func(it *engine.Iteration) (string, cell.Token) {
			sign, word, token := t.u.verdictSign(it)
			return sign + " " + word, token
		}},
		{name: "then", least: 64, text: func(it *engine.Iteration) (string, cell.Token) { return t.end(it), cell.Muted }},
	}
}

// end is what became of an iteration, or what it does now.
func (t *iterationList) end(it *engine.Iteration) string {
	if it.End != engine.IterationOpen {
		return string(it.End)
	}
	switch t.s.Phase {
	case engine.PhaseSettling:
		return "settling"
	case engine.PhaseMeasuring:
		return "measuring"
	case engine.PhaseWorse:
		return "your turn"
	case engine.PhaseReverting:
		return "reverting"
	case engine.PhaseDown, engine.PhaseAttach:
		return "down"
	case engine.PhaseApplying:
		return "applying"
	}
	return "open"
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

func (t *iterationList) line(p cell.Pane, it *engine.Iteration) {
	token := cell.Baseline
	if it.End == engine.IterationOpen {
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
	p.Text(t.indent, 0, cell.Strong, p.Cut(changeOf(it), t.room()))
}

// room is how wide a change may be; one that is wider stands in the details too.
func (t *iterationList) room() int { return t.columns[0].x - 2 - t.indent }

// details is what else is known of an iteration, and what has no column.
func (t *iterationList) details(it *engine.Iteration) []string {
	var parts []string
	add := func(text string) {
		if text != "" {
			parts = append(parts, strings.ReplaceAll(text, " ", figure.NBSP))
		}
	}
	if text := changeOf(it); t.p.Cells(text) > t.room() {
		add(text)
	}
	if len(it.Changes) > 0 {
		add(string(it.Noticed))
	}
	if _, drawn := t.u.outcomeRow(it); !drawn {
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
		add("classic " + string(it.Delta.Classic))
	}
	if it.Downtime > 0 {
		add("down " + engine.SpellTime(it.Downtime))
	}
	if text, changed := it.Canary.Told(); changed {
		add(text)
	}
	var lines []string
	if len(parts) > 0 {
		lines = t.p.Wrap(strings.Join(parts, " · "), t.w-t.indent)
	}
	if it.Failure != "" {
		lines = append(lines, t.p.Wrap("failed: "+it.Failure, t.w-t.indent)...)
	}
	for _, l := range it.Load {
		lines = append(lines, t.p.Wrap("load differs: "+l, t.w-t.indent)...)
	}
	return lines
}
