package trace

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// Cells of a phase's row: its name, its rate, the unit, and at least this much history.
const (
	labelCells  = 9
	figureCells = 7
	unitCells   = 6
	leastSpark  = 6
)

// now draws the view that shows where the time goes and what to do about it. It does not scroll: on
// a small screen the least important parts are left out. Other views have them.
func (v *snapshot) now(p cell.Pane) {
	if p.Width() < frame.TwoColumns {
		w := p.Width() - 2
		v.u.Column(p.Sub(1, 0, w, p.Height()), []frame.Panel{v.speed(false), v.costliest(w), v.findings(w, false), v.advice(w), v.overhead(w, false)}, false)
		return
	}
	h, framed := p.Height(), p.Height() >= frame.FrameLines
	if !framed {
		p = p.Sub(1, 0, p.Width()-2, h)
	}
	v.u.Columns(p, v.columns(p.Width(), framed), framed, v.below)
}

// columns puts measurements in the left column and conclusions in the right one.
func (v *snapshot) columns(w int, framed bool) []frame.PanelColumn {
	const leastLeft = 58 // an operator with all its figures, and a bar
	left := min(max(leastLeft, w*52/100), frame.Widest)
	right := min(w-left-1, frame.Widest)
	a, b := frame.Inner(left, framed), frame.Inner(right, framed)
	return []frame.PanelColumn{
		{Width: left, Panels: []frame.Panel{v.speed(framed), v.costliest(a)}},
		{Width: right, Panels: []frame.Panel{v.advice(b), v.findings(b, framed), v.overhead(b, framed)}},
	}
}

// outdated reports whether the figures are from before a pause or wait.
func (v *snapshot) outdated() bool {
	return v.live.State == optrace.LivePaused || v.live.State == optrace.LiveWaiting
}

// speed returns the panel of tokens per second.
func (v *snapshot) speed(framed bool) frame.Panel {
	u := v.u
	q := frame.Panel{Old: v.outdated()}
	if framed {
		q.Title = "Tokens"
		note := "over " + frame.Age(v.live.Since)
		if v.severalLevels() {
			note += fmt.Sprintf(", several levels: view %d", viewDetails+1)
		}
		q.Note = page.Toned(cell.Muted, note)
	}
	if len(v.s.Phases) == 0 {
		q.Add(u.OneLine(90, page.Toned(cell.Muted, "No complete call has been traced yet.")))
		return q
	}
	for i := range v.s.Phases {
		row := &v.s.Phases[i]
		keep := 88
		if row.Phase == "decode" {
			keep = 92
		}
		q.Add(frame.Block{Lines: 1, Keep: keep, Draw: func(p cell.Pane) { v.phaseRow(p, row) }})
		if c := row.Ceiling.Finite(); row.Phase == v.phase && c.V > 0 {
			q.Add(frame.Block{Lines: 1, Keep: 70, Draw: func(p cell.Pane) { v.ceilingRow(p, row) }})
		}
	}
	return q
}

// phaseRow draws a phase's rate, the time per token, and the recent history.
func (v *snapshot) phaseRow(p cell.Pane, row *optrace.PhaseRow) {
	u := v.u
	p.Text(0, 0, cell.Muted, p.Cut(titled(row.Phase), labelCells-1))
	token, shown, text := cell.Strong, row.Rate.Finite(), strings.Join(trace.Times(row), ", ")
	if row.PaceDiffers() {
		text = "in" + figure.NBSP + "answers; " + figure.Show(row.Rate, "tok/s") + " in" + figure.NBSP + "calls, " + text
		shown = row.Paced.Finite()
	}
	number, unit := figure.Absent, ""
	if shown.OK {
		number, unit = figure.Amount(shown.V, "tok/s")
	} else {
		token = cell.Muted
	}
	x := labelCells + figureCells
	p.Right(x, 0, token, number)
	p.Text(x+1, 0, cell.Muted, unit)
	x += 1 + unitCells + 1
	if first, _, more := strings.Cut(text, ", "); more && x+p.Cells(text)+2+leastSpark > p.Width() {
		text = first // history is more useful than the rest of the text
	}
	x = p.Line(x, 0, u.Cut(page.Toned(cell.Body, text), p.Width()-x)) + 2
	values := v.recent(row.Phase)
	if room := p.Width() - x; room >= leastSpark && len(values) > 0 {
		chart.Sparkline(p.Sub(x, 0, room, 1), u.Glyphs, cell.Baseline, values, chart.Follow(values, room))
	}
}

// phaseTitle returns the first part of titles about the current phase.
func (v *snapshot) phaseTitle() string { return cmp.Or(titled(v.phase), "No phase yet") }

// titled returns s with its first letter in upper case.
func titled(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// recent returns the recent rates of a phase: of the last seconds while decoding, otherwise of the
// last calls.
func (v *snapshot) recent(phase string) []stat.Opt {
	var out []stat.Opt
	if phase == "decode" && len(v.live.Rates) > 0 {
		for _, r := range v.live.Rates {
			out = append(out, stat.Finite(r))
		}
		return out
	}
	for i := range v.s.Tokens {
		if t := &v.s.Tokens[i]; t.Phase == phase && t.Time > 0 && t.Tokens > 0 {
			out = append(out, stat.PerSecond(float64(t.Tokens), t.Time))
		}
	}
	return out
}

// ceilingRow draws a phase's rate as a share of what the machine peak allows.
func (v *snapshot) ceilingRow(p cell.Pane, row *optrace.PhaseRow) {
	share := row.Rate.Div(row.Ceiling)
	text := figure.Show(share.Finite(), "ratio") + " of " + figure.Show(row.Ceiling, "tok/s") + ", " + trace.PeakFrom(v.s)
	w := p.Width() - labelCells - 1 - p.Cells(text)
	if w < 8 {
		text, w = p.Cut(text, p.Width()-labelCells), 0
	}
	p.Text(0, 0, cell.Muted, "Peak")
	x := labelCells
	if w > 0 {
		b := chart.Bar{Value: row.Rate.Finite(), Token: cell.Accent, Top: row.Ceiling.V}
		b.Draw(p.Sub(x, 0, min(w, 60), 1), v.u.Glyphs)
		x += min(w, 60) + 1
	}
	p.Text(x, 0, cell.Body, text)
}

// costliest returns the panel of the operators that take the most time.
func (v *snapshot) costliest(w int) frame.Panel {
	u := v.u
	table := trace.CostliestOperators(v.s, v.phase)
	q := frame.Panel{Title: v.phaseTitle() + ": where the time goes", Old: v.outdated()}
	if len(table.Rows) == 0 {
		q.Title = ""
		if len(v.s.Phases) > 0 {
			q.Add(u.Paragraph(w, 60, nil, page.Toned(cell.Muted, v.noOperators())))
		}
		return q
	}
	q.Note = page.Toned(cell.Muted, v.covered())
	all := v.u.Lines([]page.Section{{Nodes: []page.Node{table}}}, w+2)
	for i := range all.Height() {
		keep := max(5, 87-3*i)
		if i == 0 {
			keep = 85 // the heading, without which figures have no unit
		}
		q.Add(frame.Block{Lines: 1, Keep: keep, Draw: func(p cell.Pane) { v.u.Text(p, -2, all.From(i, 1)) }})
	}
	return q
}

// covered returns how much of the phase the traced operators cover.
func (v *snapshot) covered() string {
	var words []string
	c := &v.s.Coverage
	if n := c.OpsPerToken.Finite(); n.OK && v.phase == "decode" {
		words = append(words, figure.Count(n.V)+" a token")
	}
	if n := c.OpShare.Finite(); n.OK {
		words = append(words, figure.PercentSign(n.V)+" seen")
	}
	return strings.Join(words, ", ")
}

// findings returns the panel of the findings, the worst first.
func (v *snapshot) findings(w int, framed bool) frame.Panel {
	u := v.u
	q := frame.Panel{Old: v.outdated()}
	if framed {
		q.Title = "Findings"
	}
	const markCells = 7
	for i, f := range trace.Findings(v.s) {
		if f.Tone == page.OK && i > 0 {
			continue
		}
		mark := page.Mark(f.Tone, f.Word)
		if f.Tone == page.Body {
			mark = page.Toned(cell.Muted, u.Glyphs.Info+" "+f.Word)
		}
		head := page.Join(mark, page.Toned(cell.Body, strings.Repeat(" ", max(1, markCells-u.Width(mark)))))
		keep := [...]int{86, 58, 50}[min(i, 2)] - i
		q.Add(frame.Shorten(u.Paragraph(w, max(8, keep), head, f.Title), 2))
		if f.ID != v.s.Advice.Finding {
			inset, seen := page.Toned(cell.Body, strings.Repeat(" ", markCells)), page.Toned(cell.Muted, strings.Join(f.Evidence, " "))
			q.Add(frame.Shorten(u.Paragraph(w, max(7, 36-i), inset, seen), 2))
		}
	}
	return q
}

// advice returns the panel of the recommended change, or of the reason why there is none.
func (v *snapshot) advice(w int) frame.Panel {
	u, a := v.u, &v.s.Advice
	q := frame.Panel{Title: "Recommendation", Token: cell.Accent, Old: v.outdated()}
	if a.Do == "" && a.Flag == "" {
		if a.Why == "" {
			return frame.Panel{}
		}
		q.Title, q.Token = "", cell.Body
		text := page.Join(page.Toned(cell.Strong, "Nothing to change: "), page.Toned(cell.Body, figure.Stopped(a.Why)))
		q.Add(frame.Shorten(u.Paragraph(w, 85, page.Toned(cell.OK, u.Glyphs.Good+" ok    "), text), 3))
		return q
	}
	q.Add(u.Paragraph(w, 94, nil, page.Toned(cell.Accent, cmp.Or(a.Do, strings.TrimSpace(a.Flag+" "+a.Value)))))
	q.Add(u.Field(w, 90, "flag", page.Toned(cell.Accent, strings.ReplaceAll(trace.Command(a), " ", figure.NBSP))))
	// The priority of each part, and its maximum number of lines.
	keeps := map[string][2]int{"because": {80, 4}, "evidence": {79, 2}, "gain": {89, 0}, "trade-off": {64, 2}, "check": {66, 3}}
	short := map[string]string{"because": "why", "evidence": "seen", "gain": "gain", "trade-off": "but", "check": "check"}
	part, at := "", 0
	for _, f := range trace.Reasons(v.s) {
		label := f.Label
		if at++; label != "" {
			part, at = label, 0
		}
		keep := keeps[part]
		q.Add(frame.Shorten(u.Field(w, max(40, keep[0]-6*at), short[label], f.Text), keep[1]))
	}
	for i, r := range a.Rejected {
		label := map[bool]string{true: "not"}[i == 0]
		q.Add(frame.Shorten(u.Field(w, max(6, 20-i), label, page.Toned(cell.Muted, r)), 2))
	}
	return q
}

// overhead returns the panel of the costs and losses of the trace itself: one line without a frame,
// otherwise several.
func (v *snapshot) overhead(w int, framed bool) frame.Panel {
	u, c := v.u, &v.s.Coverage
	cost := trace.Overhead(v.observer(), framed)
	lost := page.Toned(cell.OK, "nothing lost")
	if c.Dropped > 0 {
		lost = page.Toned(cell.Warn, u.Glyphs.Warn+" "+strings.TrimSuffix(lostWords(c), "."))
	}
	if !framed {
		l := page.Join(page.Toned(cell.Muted, "tracing: "), cost, page.Toned(cell.Body, "; "), lost)
		return frame.Panel{Blocks: []frame.Block{u.OneLine(88, l)}}
	}
	if c.Dropped == 0 {
		lost = page.Join(page.Toned(cell.OK, "nothing"), page.Toned(cell.Muted, " of "+figure.Counted(c.Events, "event")))
	}
	q := frame.Panel{Title: "Tracing", Blocks: []frame.Block{frame.Shorten(u.Field(w, 74, "costs", cost), 2)}}
	if c.Partial > 0 {
		lost = page.Join(lost, page.Toned(cell.Muted, ", "+figure.Counted(c.Partial, "partial graph")+" left out"))
	}
	q.Add(frame.Shorten(u.Field(w, 68, "lost", lost), 2))
	if n := len(v.s.Gaps); n > 0 {
		q.Add(u.FieldLine(w, 24, "gaps", page.Toned(cell.Muted, fmt.Sprintf("%s not known: view %d", figure.Counted(n, "thing"), viewDetails+1))))
	}
	return q
}

// below draws the latest decode graph and the layers under the columns.
func (v *snapshot) below(p cell.Pane) {
	const around = 2 // the lines of a frame
	y := 0
	boxed := func(s page.Section) {
		all := v.u.Lines([]page.Section{{Nodes: s.Nodes}}, frame.Inner(p.Width(), true))
		room := p.Height() - y - around
		if room < 3 || len(s.Nodes) == 0 {
			return
		}
		h := min(all.Height(), room)
		box := v.u.Frame(p.Sub(0, y, p.Width(), h+around), &frame.Panel{Title: s.Title, Note: page.Toned(cell.Muted, s.Note)})
		v.u.Text(box, 0, all.From(0, h))
		y += h + around
	}
	boxed(trace.Lanes(&v.live.Graph))
	boxed(trace.LayerPicture(v.s, v.phase))
}
