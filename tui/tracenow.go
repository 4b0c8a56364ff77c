package tui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// now answers where the time goes and what to do about it. It does not scroll: what
// matters least gives way on a small screen and is found in another view.
func (v *traceView) now(p cell.Pane) {
	if p.Width() < twoColumns {
		w := p.Width() - 2
		v.u.column(p.Sub(1, 0, w, p.Height()), []panel{v.speed(false), v.dearest(w, false), v.found(w, false), v.advice(w), v.watching(w, false)}, false)
		return
	}
	h, framed := p.Height(), p.Height() >= frameLines
	if !framed {
		p = p.Sub(1, 0, p.Width()-2, h)
	}
	v.u.columns(p, v.columns(p.Width(), framed), framed, v.below)
}

// columns has what is measured at the left and what follows from it at the right.
func (v *traceView) columns(w int, framed bool) []nowColumn {
	const leastLeft = 58 // an operator with all its figures, and a bar
	left := min(max(leastLeft, w*52/100), widest)
	right := min(w-left-1, widest)
	a, b := inner(left, framed), inner(right, framed)
	return []nowColumn{
		{left, []panel{v.speed(framed), v.dearest(a, framed)}},
		{right, []panel{v.advice(b), v.found(b, framed), v.watching(b, framed)}},
	}
}

// old says that the figures are not of now.
func (v *traceView) old() bool {
	return v.live.State == optrace.LivePaused || v.live.State == optrace.LiveWaiting
}

// speed is the panel of tokens a second.
func (v *traceView) speed(framed bool) panel {
	u := v.u
	q := panel{old: v.old()}
	if framed {
		q.title = "Tokens"
		note := "over " + lasting(v.live.Since)
		if v.severalLevels() {
			note += fmt.Sprintf(", several levels: view %d", viewDetails+1)
		}
		q.note = u.say(cell.Muted, note)
	}
	if len(v.s.Phases) == 0 {
		q.blocks = append(q.blocks, u.one(90, u.say(cell.Muted, "No call was traced whole yet.")))
		return q
	}
	for i := range v.s.Phases {
		row := &v.s.Phases[i]
		keep := 88
		if row.Phase == "decode" {
			keep = 92
		}
		q.blocks = append(q.blocks, block{lines: 1, keep: keep, draw: func(p cell.Pane) { v.phaseRow(p, row) }})
		if row.Phase == v.phase && number(row.Ceiling) && row.Ceiling.V > 0 {
			q.blocks = append(q.blocks, block{lines: 1, keep: 70, draw: func(p cell.Pane) { v.ceilingRow(p, row) }})
		}
	}
	return q
}

// phaseRow is a phase's rate, how long a token takes, and its recent past.
func (v *traceView) phaseRow(p cell.Pane, row *optrace.PhaseRow) {
	u := v.u
	p.Text(0, 0, cell.Muted, p.Cut(titled(row.Phase), labelCells-1))
	token := cell.Strong
	if !number(row.Rate) {
		token = cell.Muted
	}
	x := labelCells + figureCells
	shown := row.Rate
	if row.Apart() {
		shown = row.Paced
	}
	number, unit := figure.Absent, ""
	if finite(shown).OK {
		number, unit = figure.Amount(shown.V, "tok/s")
	}
	p.Right(x, 0, token, number)
	p.Text(x+1, 0, cell.Muted, unit)
	x += 1 + unitCells + 1
	text := inAnswers(row) + perToken(row)
	if first, _, more := strings.Cut(text, ", "); more && x+p.Cells(text)+2+leastSpark > p.Width() {
		text = first // the past says more than the rest
	}
	x = u.say(cell.Body, text).cut(p.Width()-x, u.glyphs.Ellipsis).draw(p, x, 0) + 2
	values := v.past(row.Phase)
	if room := p.Width() - x; room >= leastSpark && len(values) > 0 {
		chart.Sparkline(p.Sub(x, 0, room, 1), u.glyphs, cell.Baseline, values, chart.Follow(values, room))
	}
}

// phaseTitle begins the titles of what is of one phase.
func (v *traceView) phaseTitle() string { return cmp.Or(titled(v.phase), "No phase yet") }

// titled begins a word with a capital.
func titled(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// perToken is how long a token takes, or a call where it has more of them: the median, as
// in the report, beside another quantile.
func perToken(row *optrace.PhaseRow) string {
	d := &row.Call
	if d.Count == 0 {
		return ""
	}
	text := "p50 " + show(d.P50.Seconds())
	switch {
	case row.Phase == "prefill" && row.FirstToken.Count > 0:
		return "p50 " + show(row.FirstToken.P50.Seconds()) + " to a first token, " + counted(row.Calls, "call")
	case row.Tokens == int64(row.Calls):
		text += " a token"
	case row.Calls > 0 && row.Tokens <= 0:
		text += " a call (tokens unknown)"
	case row.Calls > 0:
		tokens := figure.Count(float64(row.Tokens) / float64(row.Calls))
		text += " a call of " + tokens + " token" + map[bool]string{false: "s"}[tokens == "1"]
	}
	if d.P95 > 0 && row.Phase != "prefill" {
		text += ", p95 " + show(d.P95.Seconds())
	}
	return strings.ReplaceAll(text, " a token", figure.NBSP+"a"+figure.NBSP+"token")
}

// inAnswers says of a rate that the time between calls is in it, and what it is without,
// "" where that makes no difference.
func inAnswers(row *optrace.PhaseRow) string {
	if !row.Apart() {
		return ""
	}
	return "in" + figure.NBSP + "answers; " + figure.Show(row.Rate, "tok/s") + " in" + figure.NBSP + "calls, "
}

// past is the recent past of a phase: the last seconds of decoding, else the last
// calls.
func (v *traceView) past(phase string) []stat.Opt {
	var out []stat.Opt
	if phase == "decode" && len(v.live.Rates) > 0 {
		for _, r := range v.live.Rates {
			out = append(out, finite(stat.Opt{V: r, OK: !math.IsNaN(r)}))
		}
		return out
	}
	for i := range v.s.Tokens {
		if t := &v.s.Tokens[i]; t.Phase == phase && t.Time > 0 && t.Tokens > 0 {
			out = append(out, stat.Some(float64(t.Tokens)/t.Time.Seconds()))
		}
	}
	return out
}

// ceilingRow is where a phase stands below what the roof allows.
func (v *traceView) ceilingRow(p cell.Pane, row *optrace.PhaseRow) {
	share := row.Rate.Div(row.Ceiling)
	text := figure.Show(finite(share), "ratio") + " of " + figure.Show(row.Ceiling, "tok/s")
	text += ", " + roofFrom(v.s)
	w := p.Width() - labelCells - 1 - p.Cells(text)
	if w < 8 {
		text, w = p.Cut(text, p.Width()-labelCells), 0
	}
	p.Text(0, 0, cell.Muted, "Roof")
	x := labelCells
	if w > 0 {
		b := chart.Bar{Value: finite(row.Rate), Token: cell.Accent, Top: row.Ceiling.V}
		b.Draw(p.Sub(x, 0, min(w, 60), 1), v.u.glyphs)
		x += min(w, 60) + 1
	}
	p.Text(x, 0, cell.Body, text)
}

// dearest is the panel of the operators that take most time.
func (v *traceView) dearest(w int, framed bool) panel {
	u := v.u
	rows := v.sorted(v.s.Kinds, &traceSet{})
	q := panel{title: v.phaseTitle() + ": where the time goes", old: v.old()}
	if len(rows) == 0 {
		q.title = ""
		if len(v.s.Phases) > 0 {
			q.blocks = append(q.blocks, u.text(w, 60, nil, u.say(cell.Muted, v.noOperators())))
		}
		return q
	}
	q.note = u.say(cell.Muted, v.coverageWords())
	names := 0
	for i := range rows {
		names = max(names, cell.Width(u.spell(kindName(rows[i]))))
	}
	names = min(names, max(12, w*3/10))
	shape := dearShape(w, names, framed)
	if framed {
		q.blocks = append(q.blocks, block{lines: 1, keep: 60, draw: func(p cell.Pane) { shape.head(p) }})
	}
	for i, row := range rows {
		q.blocks = append(q.blocks, block{lines: 1, keep: max(5, 84-3*i), draw: func(p cell.Pane) { v.dearRow(p, row, shape) }})
	}
	return q
}

// noOperators says why a trace shows no operator.
func (v *traceView) noOperators() string {
	switch l := v.live; {
	case l.Detail != 0 && l.Detail&optrace.DetailOperator == 0:
		return "No operator is traced at this level of detail: + traces them."
	case len(v.s.Phases) == 0:
		return "No call was traced whole yet."
	}
	return "No operator was traced in this phase: view 6 says what is missing."
}

// coverageWords say how much of the phase the operators are.
func (v *traceView) coverageWords() string {
	var words []string
	c := &v.s.Coverage
	if number(c.OpsPerToken) && v.phase == "decode" {
		words = append(words, figure.Count(c.OpsPerToken.V)+" a token")
	}
	if number(c.OpShare) {
		words = append(words, figure.Show(c.OpShare, "ratio")+" seen")
	}
	return strings.Join(words, ", ")
}

// dearColumns are where the columns of an operator with its bar begin and end; one
// for which there is no room is 0 wide.
type dearColumns struct {
	names, bar, share, rate, roof, bound int
	words                                bool // figures say what they are: there is no head
}

// dearShape gives the figures their room, and the bar what is left.
func dearShape(w, names int, head bool) dearColumns {
	c := dearColumns{names: names, share: 7, words: !head}
	room := w - names - 1 - c.share
	leastBar, most, rate, roof, bound := 8, 40, 11, 14, 9
	if head {
		leastBar, rate, roof, bound = 4, 10, 8, 8
	}
	for _, x := range [...]struct {
		to *int
		n  int
	}{{&c.rate, rate}, {&c.bound, bound}, {&c.roof, roof}} {
		if room-x.n >= leastBar {
			*x.to = x.n
			room -= x.n
		}
	}
	c.bar = max(0, min(room, most))
	return c
}

func (c *dearColumns) head(p cell.Pane) {
	x := c.names + 1 + c.bar + c.share
	p.Right(x, 0, cell.Muted, "share")
	for _, part := range [...]struct {
		n    int
		name string
	}{{c.rate, "moves"}, {c.roof, "of roof"}} {
		if part.n > 0 {
			x += part.n
			p.Right(x, 0, cell.Muted, part.name)
		}
	}
	if c.bound > 0 {
		p.Text(x+1, 0, cell.Muted, "bound")
	}
}

// dearRow is an operator with its share as a bar.
func (v *traceView) dearRow(p cell.Pane, row *optrace.OperatorRow, c dearColumns) {
	u := v.u
	u.say(cell.Strong, kindName(row)).cut(c.names, u.glyphs.Ellipsis).draw(p, 0, 0)
	x := c.names + 1
	b := chart.Bar{Value: finite(row.Share), Token: cell.Baseline, Top: 1}
	b.Draw(p.Sub(x, 0, c.bar, 1), u.glyphs)
	x += c.bar + c.share
	p.Right(x, 0, cell.Strong, figure.Show(finite(row.Share), "ratio"))
	if c.rate > 0 {
		x += c.rate
		p.Right(x, 0, cell.Body, figure.Show(finite(row.BytesRate), "B/s"))
	}
	if c.roof > 0 {
		x += c.roof
		text := shareOfRoof(row)
		if c.words && number(row.OfRoof) && row.OfRoof.V <= 1 {
			text += " of roof"
		}
		p.Right(x, 0, cell.Body, text)
	}
	if c.bound > 0 {
		p.Text(x+1, 0, cell.Muted, cmp.Or(string(row.Bound), figure.Absent))
	}
}

// shareOfRoof is the share of the roof that an operator reached. What passed the roof, with
// operands from caches or instructions that no rate was measured of, is no share of it.
func shareOfRoof(r *optrace.OperatorRow) string {
	if number(r.OfRoof) && r.OfRoof.V > 1 {
		return "above it"
	}
	return figure.Show(finite(r.OfRoof), "ratio")
}

// kindName is an operator as GGML calls it, with the function and the type of weights.
func kindName(r *optrace.OperatorRow) string {
	name := r.Op
	if name == "" {
		name = "(name withheld)"
	}
	for _, s := range [...]string{r.Sub, r.Type} {
		if s != "" {
			name += " " + s
		}
	}
	return estimated(r, name)
}

// estimated marks an operator whose bytes and operations are an estimate.
func estimated(r *optrace.OperatorRow, name string) string {
	if r.Estimated {
		return name + " (est)"
	}
	return name
}

// found is the panel of what costs time, the worst first.
func (v *traceView) found(w int, framed bool) panel {
	u := v.u
	q := panel{old: v.old()}
	if framed {
		q.title = "Findings"
	}
	for i := range v.s.Findings {
		f := &v.s.Findings[i]
		if f.Severity == "good" && i > 0 {
			continue
		}
		g := u.severity(f.Severity)
		head := line(u.say(g.token, g.sign+" "+g.word), u.say(cell.Body, pad(7-cell.Width(u.spell(g.sign+" "+g.word)))))
		text := u.say(cell.Strong, f.Title)
		if number(f.Cost) {
			text = line(text, u.say(cell.Muted, ", "+figure.Show(f.Cost, "ratio")+" of the time"))
		}
		keep := [...]int{86, 58, 50}[min(i, 2)] - i
		q.blocks = append(q.blocks, short(u.text(w, max(8, keep), head, text), 2))
		if ev := strings.Join(f.Evidence, " "); ev != "" && f.ID != v.s.Advice.Finding {
			q.blocks = append(q.blocks, short(u.text(w, max(7, 36-i), u.say(cell.Body, pad(7)), u.say(cell.Muted, ev)), 2))
		}
	}
	return q
}

// severity is how grave a finding is, in a sign and a word.
func (u *look) severity(s string) gravity {
	g := u.glyphs
	switch s {
	case "bad":
		return gravity{g.Bad, "bad", cell.Bad}
	case "warn":
		return gravity{g.Warn, "warn", cell.Warn}
	case "good":
		return gravity{g.Good, "ok", cell.OK}
	}
	return gravity{g.Info, "seen", cell.Muted}
}

// advice is the panel of the one change to make, or of why there is none.
func (v *traceView) advice(w int) panel {
	u, a := v.u, &v.s.Advice
	q := panel{title: "Recommendation", token: cell.Accent, old: v.old()}
	if a.Do == "" && a.Flag == "" {
		if a.Why == "" {
			return panel{}
		}
		q.title, q.token = "", cell.Body
		q.blocks = append(q.blocks, short(u.text(w, 85, u.say(cell.OK, u.glyphs.Good+" ok    "), line(u.say(cell.Strong, "Nothing to change: "), u.say(cell.Body, sentence(a.Why)))), 3))
		return q
	}
	action := u.say(cell.Accent, cmp.Or(a.Do, strings.TrimSpace(a.Flag+" "+a.Value)))
	q.blocks = append(q.blocks, u.text(w, 94, nil, action))
	if a.Flag != "" && !strings.Contains(a.Do, a.Flag) {
		q.blocks = append(q.blocks, u.field(w, 90, "flag", u.say(cell.Accent, strings.TrimSpace(a.Flag+figure.NBSP+a.Value))))
	}
	if a.Why != "" {
		q.blocks = append(q.blocks, short(u.field(w, 80, "why", u.say(cell.Body, a.Why)), 4))
	}
	for i, e := range v.evidence() {
		label := map[bool]string{true: "seen"}[i == 0]
		q.blocks = append(q.blocks, short(u.field(w, max(40, 79-6*i), label, u.say(cell.Body, e)), 2))
	}
	if gain := gainWords(a); gain != "" {
		q.blocks = append(q.blocks, u.field(w, 89, "expect", u.say(cell.Strong, gain)))
	}
	if a.Price != "" {
		q.blocks = append(q.blocks, short(u.field(w, 64, "price", u.say(cell.Body, a.Price)), 2))
	}
	if a.Check != "" {
		q.blocks = append(q.blocks, short(u.field(w, 66, "check", u.say(cell.Accent, a.Check)), 3))
	}
	for i, r := range a.Rejected {
		label := map[bool]string{true: "not"}[i == 0]
		q.blocks = append(q.blocks, short(u.field(w, max(6, 20-i), label, u.say(cell.Muted, r)), 2))
	}
	return q
}

// evidence is that of the finding that the recommendation follows from.
func (v *traceView) evidence() []string {
	for i := range v.s.Findings {
		if f := &v.s.Findings[i]; f.ID == v.s.Advice.Finding {
			return f.Evidence
		}
	}
	return nil
}

// gainWords is the expected change of tokens a second.
func gainWords(a *optrace.Advice) string {
	if !number(a.Gain) {
		return ""
	}
	text := signed(a.Gain.V) + " tokens a second (est)"
	if number(a.GainLow) && number(a.GainHigh) {
		text += ", " + figure.Change(a.GainLow.V) + " to " + signed(a.GainHigh.V)
	}
	return text
}

// watching is the panel of what the trace itself costs and lost: a line where there
// is no room for a frame.
func (v *traceView) watching(w int, framed bool) panel {
	u, c := v.u, &v.s.Coverage
	cost, token := u.costWords(v.observer(), framed)
	lost := u.say(cell.OK, "nothing lost")
	if c.Dropped > 0 {
		lost = u.say(cell.Warn, u.glyphs.Warn+" "+strings.TrimSuffix(lostWords(c), "."))
	}
	if !framed {
		l := line(u.say(cell.Muted, "watching: "), u.say(token, cost), u.say(cell.Body, "; "), lost)
		return panel{blocks: []block{u.one(88, l)}}
	}
	if c.Dropped == 0 {
		lost = line(u.say(cell.OK, "nothing"), u.say(cell.Muted, " of "+counted(int(c.Events), "event")))
	}
	q := panel{title: "Watching", blocks: []block{short(u.field(w, 74, "costs", u.say(token, cost)), 2)}}
	if c.Partial > 0 {
		lost = line(lost, u.say(cell.Muted, ", "+counted(c.Partial, "partial graph")+" left out"))
	}
	q.blocks = append(q.blocks, short(u.field(w, 68, "lost", lost), 2))
	if len(v.s.Gaps) > 0 {
		q.blocks = append(q.blocks, u.fieldLine(w, 24, "gaps", u.say(cell.Muted, fmt.Sprintf("%s not known: view %d", counted(len(v.s.Gaps), "thing"), viewDetails+1))))
	}
	return q
}

// below has the newest decode graph and the layers, where there is room for them under
// the columns.
func (v *traceView) below(p cell.Pane) {
	const around = 2 // the lines of a frame
	boxed := func(y, h int, q panel, l *listing) {
		l.draw(v.u.frame(p.Sub(0, y, p.Width(), h), &q), 0)
	}
	y := 0
	layers := &listing{u: v.u, w: inner(p.Width(), true)}
	rows, _ := v.layerRows()
	if len(rows) > 0 {
		v.layerMap(layers, rows)
	}
	if len(v.live.Graph.Lanes) > 0 {
		lanes := &listing{u: v.u, w: inner(p.Width(), true)}
		room := p.Height() - around
		if n := len(layers.rows); n > 0 && room-n-around >= 4 {
			room -= n + around
		}
		v.lanes(lanes, room)
		y = min(p.Height(), len(lanes.rows)+around)
		boxed(0, y, panel{title: "The newest decode graph", note: v.graphNote()}, lanes)
	}
	if n := len(layers.rows); n > 0 && y+n+around <= p.Height() {
		boxed(y, n+around, panel{title: v.layerTitle()}, layers)
	}
}

// sorted are the rows of the phase that the filter lets through, in their order.
func (v *traceView) sorted(list []optrace.OperatorRow, set *traceSet) []*optrace.OperatorRow {
	filter := ""
	if set == v.set {
		filter = strings.ToLower(strings.TrimSpace(v.u.filter))
	}
	rows := make([]*optrace.OperatorRow, 0, len(list))
	for i := range list {
		r := &list[i]
		if r.Phase == v.phase && (filter == "" || strings.Contains(strings.ToLower(kindName(r)+" "+r.Name+" "+string(r.Bound)), filter)) {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *optrace.OperatorRow) int {
		x, y := set.order.value(a), set.order.value(b)
		switch { // what is not known comes last either way
		case x.OK != y.OK && x.OK:
			return -1
		case x.OK != y.OK:
			return 1
		case set.least:
			return cmp.Compare(x.V, y.V)
		}
		return cmp.Compare(y.V, x.V)
	})
	return rows
}

// secondsOf is a length of time as a figure; none where it is not positive.
func secondsOf(d time.Duration) stat.Opt {
	if d <= 0 {
		return stat.None
	}
	return stat.Some(d.Seconds())
}
