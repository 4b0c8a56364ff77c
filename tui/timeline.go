package tui

import (
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// timeline is the whole run over one axis of time.
type timeline struct {
	s       *engine.Snapshot
	u       *look
	span    chart.Span
	state   []timeStretch  // of each column
	samples []chart.Sample // of the points; the values are those of the strip that is drawn
	values  []stat.Opt     // the same values
	left    int            // columns of names and scales, 0 none
	cols    int            // columns of the charts; the span may be shorter
	right   int            // columns of figures, 0 none
}

// timeStretch is what went on in a stretch of time.
type timeStretch struct {
	iteration int  // whose configuration ran; 0 the first
	trial     bool // a change on trial; else what later ones are held against
	judged    bool // it had its verdict
	down      bool
}

// Columns beside the charts of time.
const (
	timeLeft   = 17
	timeRight  = 17
	leastChart = 24
)

func newTimeline(s *engine.Snapshot, u *look, w int) *timeline {
	t := &timeline{s: s, u: u, left: timeLeft, right: timeRight}
	if w-t.left-t.right < leastChart {
		t.right = 0
	}
	if w-t.left < leastChart {
		t.left = 0
	}
	t.samples, t.values = windowSamples(s.Points), make([]stat.Opt, len(s.Points))
	to, length := endOf(s), windowOf(s.Points)
	from := max(0, s.Points[0].T-length)
	t.cols = max(0, w-t.left-t.right)
	t.span = chart.NewSpan(from, to, length, t.cols)
	t.state = make([]timeStretch, t.span.N)
	for i := range t.state {
		t.state[i] = t.at(t.span.Start(i) + t.span.Step/2)
	}
	return t
}

// at says what went on at a time.
func (t *timeline) at(when time.Duration) timeStretch {
	var st timeStretch
	all := t.s.Iterations
	next := slices.IndexFunc(all, func(it engine.Iteration) bool { return it.At > when })
	if next < 0 {
		next = len(all)
	}
	if next > 0 {
		it := &all[next-1]
		st = timeStretch{iteration: it.N, trial: it.End != engine.IterationNoise}
		for _, m := range t.s.Marks {
			if m.T >= it.At && m.T <= when {
				st.pass(m.Kind, it.End)
			}
		}
	}
	for _, m := range t.s.Marks {
		if m.T > when {
			break
		}
		st.down = m.Kind == engine.MarkDown || st.down && m.Kind != engine.MarkUp
	}
	return st
}

// pass is a mark that goes by. A change is on trial until its verdict where it was
// kept, until the server is back where it was reverted, else until the next one.
func (st *timeStretch) pass(kind engine.MarkKind, end engine.IterationEnd) {
	switch {
	case kind == engine.MarkVerdict:
		st.judged = true
		st.trial = st.trial && end != engine.IterationKept && end != engine.IterationContinued
	case kind == engine.MarkUp && st.judged && end == engine.IterationReverted:
		st.trial = false
	}
}

func (st timeStretch) token() cell.Token {
	if st.trial {
		return cell.Trial
	}
	return cell.Baseline
}

// words name a stretch, the longest first.
func (t *timeline) words(st timeStretch) []string {
	number := fmt.Sprint(st.iteration)
	switch {
	case st.down:
		return []string{"down"}
	case st.iteration == 0:
		return []string{"baseline", number}
	case st.trial && !st.judged:
		return []string{number + " on trial", number}
	}
	for i := range t.s.Iterations {
		if it := &t.s.Iterations[i]; it.N == st.iteration {
			if it.End == engine.IterationReverted && !st.trial {
				return []string{"put back", "back"} // what runs is no longer that change
			}
			word := string(it.End)
			if it.End == engine.IterationOpen && it.Delta != nil {
				word = string(it.Delta.Direction)
			}
			return []string{number + " " + word, number}
		}
	}
	return []string{number}
}

// ribbon names the stretches above the charts.
func (t *timeline) ribbon(p cell.Pane) {
	g := t.u.glyphs
	for from := 0; from < len(t.state); {
		edge := min(from, 1)
		to := from + 1
		for to < len(t.state) && t.state[to] == t.state[from] {
			to++
		}
		st, token := t.state[from], t.state[from].token()
		if st.down {
			token = cell.Bad
		} else {
			for x := from; x < to; x++ {
				p.Text(x, 0, token, g.Horizontal)
			}
		}
		for _, word := range t.words(st) {
			if n := p.Cells(word); n <= to-from-edge {
				p.Text(from+edge+(to-from-edge-n)/2, 0, token, word)
				break
			}
		}
		if from > 0 {
			p.Text(from, 0, cell.Border, g.Vertical)
		}
		from = to
	}
}

// strip is one quantity over time.
func (t *timeline) strip(p cell.Pane, m *timeMeasure) {
	for i := range t.values {
		t.values[i] = m.get(&t.s.Points[i])
		t.samples[i].V = t.values[i]
	}
	values := chart.Buckets(t.span, m.fold, t.samples)
	scale := chart.Ratio()
	if !m.full {
		scale = chart.Follow(t.values, len(t.values))
	}
	if t.left > 0 {
		t.scale(p.Sub(0, 0, t.left, p.Height()), m, scale)
	} else {
		t.title(p.Sub(0, 0, p.Width(), 1), m, scale)
		p = p.Sub(0, 1, p.Width(), p.Height()-1)
	}
	body := p.Sub(t.left, 0, t.span.N, p.Height())
	for x := 1; x < len(t.state); x++ {
		if t.state[x].iteration != t.state[x-1].iteration {
			body.Sub(x, 0, 1, p.Height()).Fill(cell.Border, t.u.glyphs.Vertical)
		}
	}
	chart.Area(body, t.u.glyphs, values, scale, func(i int) cell.Token { return t.state[i].token() })
	if t.right > 0 {
		t.figures(p.Sub(t.left+t.cols, 0, t.right, p.Height()), m)
	}
}

// title is what stands above a chart that has no room beside it.
func (t *timeline) title(p cell.Pane, m *timeMeasure, s chart.Scale) {
	x := p.Text(0, 0, cell.Title, m.name)
	x = p.Text(x+1, 0, cell.Strong, m.show(t.now(m)))
	p.Text(x+1, 0, cell.Muted, "("+m.fold.String()+", 0 to "+m.top(s.Hi)+")")
}

// now is the latest value, absent where windows have stopped coming.
func (t *timeline) now(m *timeMeasure) stat.Opt {
	last := &t.s.Points[len(t.s.Points)-1]
	if last.T != endOf(t.s) {
		return stat.None
	}
	return m.get(last)
}

// scale names the quantity and the ends of what is shown.
func (t *timeline) scale(p cell.Pane, m *timeMeasure, s chart.Scale) {
	g, h, edge := t.u.glyphs, p.Height(), p.Width()-1
	p.Text(0, 0, cell.Title, m.name)
	p.Text(0, 1, cell.Muted, m.fold.String())
	p.Sub(edge, 0, 1, h).Fill(cell.Border, g.Vertical)
	p.Text(edge, 0, cell.Border, g.TeeRight)
	if s.Hi == 0 { // nothing was measured
		return
	}
	p.Right(edge-1, 0, cell.Muted, m.top(s.Hi))
	if h > 1 {
		p.Text(edge, h-1, cell.Border, g.TeeRight)
		p.Right(edge-1, h-1, cell.Muted, "0")
	}
}

// figures are the highest, the present and the lowest value of the run.
func (t *timeline) figures(p cell.Pane, m *timeMeasure) {
	var lo, hi stat.Opt
	for _, v := range t.values {
		if v.OK {
			hi = hi.Max(v)
			if !lo.OK || v.V < lo.V {
				lo = v
			}
		}
	}
	put := func(y int, token cell.Token, name string, v stat.Opt) {
		p.Text(1, y, cell.Muted, name)
		p.Text(5, y, token, m.show(v))
	}
	h := p.Height()
	now := 0
	if h > 1 {
		put(0, cell.Body, "max", hi)
		now = h / 2
	}
	put(now, cell.Strong, "now", t.now(m))
	if h > 2 {
		put(h-1, cell.Body, "min", lo)
	}
}

// axis is the line of time below the charts, in two lines.
func (t *timeline) axis(p cell.Pane) {
	g := t.u.glyphs
	if t.left > 0 {
		p.Text(t.left-1, 0, cell.Border, g.BottomLeft)
	}
	body := p.Sub(t.left, 0, t.cols, 2)
	for x := range t.cols {
		body.Text(x, 0, cell.Border, g.Horizontal)
	}
	tee := "┬"
	if g.ASCII {
		tee = "+"
	}
	every := chart.Every(t.span, 10)
	end := -2
	for when := t.span.Start(0).Truncate(every); when <= t.span.Start(t.cols); when += every {
		i := t.span.At(when)
		if i < 0 {
			continue
		}
		label := minuteLabel(when, every)
		from := max(0, i-p.Cells(label)/2)
		if from <= end+1 || from+p.Cells(label) > t.cols {
			continue
		}
		body.Text(i, 0, cell.Border, tee)
		end = body.Text(from, 1, cell.Muted, label)
	}
	if t.right > 0 {
		p.Text(t.left+t.cols+1, 1, cell.Muted, "min, "+bucketLength(t.span.Step)+"/column")
	}
}

// minuteLabel spells a time on an axis of minutes.
func minuteLabel(t, every time.Duration) string {
	if every < time.Minute {
		return fmt.Sprintf("%d:%02d", int(t.Minutes()), int(t.Seconds())%60)
	}
	return figure.Whole(t.Minutes())
}

// bucketLength spells a length of time shortly.
func bucketLength(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
