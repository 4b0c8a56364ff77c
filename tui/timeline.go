package tui

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// timeline charts the whole run over one time axis.
type timeline struct {
	s       *loop.Snapshot
	u       *frame.Settings
	points  []loop.Point // within the window that the user chose
	span    lines.Span
	state   []timeStretch  // of each column
	samples []lines.Sample // of the points; their values are those of the current strip
	values  []stat.Opt     // the same values
	cols    int            // columns of the charts; the span may be shorter
}

// timeStretch is the state of the run during a time range.
type timeStretch struct {
	iteration int  // the configuration that ran; 0 is the first
	trial     bool // a change on trial; otherwise the baseline for later ones
	judged    bool // the change has a verdict
	down      bool
}

// Columns beside the time charts.
const (
	timeLeft  = 17 // names and scales
	timeRight = 17 // figures
)

func newTimeline(s *loop.Snapshot, u *frame.Settings, w int) *timeline {
	t := &timeline{s: s, u: u}
	length := windowOf(s.Points)
	from, to := shownTime(s, u, length)
	t.points = s.Points // in the order of time
	for len(t.points) > 0 && t.points[0].T <= from {
		t.points = t.points[1:]
	}
	t.samples, t.values = windowSamples(t.points), make([]stat.Opt, len(t.points))
	t.cols = max(0, w-timeLeft-timeRight)
	t.span = lines.NewSpan(from, to, t.cols)
	t.state = make([]timeStretch, t.span.N)
	for i := range t.state {
		t.state[i] = t.at(t.span.Start(i) + t.span.Step/2)
	}
	return t
}

// shownTime returns the time that charts cover: the window that the user chose or else the whole
// run.
func shownTime(s *loop.Snapshot, u *frame.Settings, length time.Duration) (from, to time.Duration) {
	from, to = max(0, s.Points[0].T-length), endOf(s)
	if u.Window > 0 {
		from = max(from, to-u.Window)
	}
	return from, to
}

// at returns the state of the run at a time.
func (t *timeline) at(when time.Duration) timeStretch {
	var st timeStretch
	all := t.s.Iterations
	next := slices.IndexFunc(all, func(it loop.Iteration) bool { return it.At > when })
	if next < 0 {
		next = len(all)
	}
	if next > 0 {
		it := &all[next-1]
		st = timeStretch{iteration: it.N, trial: it.End != loop.IterationNoise}
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
		st.down = m.Kind == loop.MarkDown || st.down && m.Kind != loop.MarkUp
	}
	return st
}

// pass applies a mark. A kept change is on trial until its verdict, a reverted one until the server
// is back, any other until the next change.
func (st *timeStretch) pass(kind loop.MarkKind, end loop.IterationEnd) {
	switch {
	case kind == loop.MarkVerdict:
		st.judged = true
		st.trial = st.trial && end != loop.IterationKept && end != loop.IterationContinued
	case kind == loop.MarkUp && st.judged && end == loop.IterationReverted:
		st.trial = false
	}
}

func (st timeStretch) token() cell.Token {
	if st.trial {
		return cell.Trial
	}
	return cell.Baseline
}

// words returns names of a stretch, the longest first.
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
			if it.End == loop.IterationReverted && !st.trial {
				return []string{"reverted", "back"} // the change is no longer active
			}
			word := string(it.End)
			if it.End == loop.IterationOpen && it.Delta != nil {
				word = string(it.Delta.Direction)
			}
			return []string{number + " " + word, number}
		}
	}
	return []string{number}
}

// ribbon writes the names of the stretches above the charts.
func (t *timeline) ribbon(p cell.Pane) {
	g := t.u.Glyphs
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

// strip draws one quantity over time.
func (t *timeline) strip(p cell.Pane, m *timeMeasure) {
	for i := range t.values {
		t.values[i] = m.get(&t.points[i])
		t.samples[i].V = t.values[i]
	}
	values := lines.Buckets(t.span, m.fold, t.samples)
	top, limit := 1.0, m.limitOf(t.s)
	if !m.full {
		top = lines.Top(t.values)
		if limit.OK && limit.V <= limitInView*top {
			top = max(top, lines.Nice(limit.V))
		}
	}
	t.scale(p.Sub(0, 0, timeLeft, p.Height()), m, top)
	body := p.Sub(timeLeft, 0, t.span.N, p.Height())
	for x := 1; x < len(t.state); x++ {
		if t.state[x].iteration != t.state[x-1].iteration {
			body.Sub(x, 0, 1, p.Height()).Fill(cell.Border, t.u.Glyphs.Vertical)
		}
	}
	if limit.OK && limit.V <= top {
		lines.Limit(body, t.u.Glyphs, limit.V, top)
	}
	lines.Area(body, t.u.Glyphs, values, top, func(i int) cell.Token { return t.state[i].token() })
	t.figures(p.Sub(timeLeft+t.cols, 0, timeRight, p.Height()), m)
}

// now returns the latest value, None if windows have stopped arriving.
func (t *timeline) now(m *timeMeasure) stat.Opt {
	if len(t.points) == 0 {
		return stat.None
	}
	last := &t.points[len(t.points)-1]
	if _, to := shownTime(t.s, t.u, 0); last.T < to-2*windowOf(t.points) {
		return stat.None
	}
	return m.get(last)
}

// scale draws the quantity's name and the ends of the scale.
func (t *timeline) scale(p cell.Pane, m *timeMeasure, top float64) {
	g, h, edge := t.u.Glyphs, p.Height(), p.Width()-1
	p.Text(0, 0, cell.Title, m.name)
	p.Text(0, 1, cell.Muted, m.fold.String())
	if limit := m.limitOf(t.s); limit.OK && h > 2 {
		p.Text(0, 2, cell.Warn, p.Cut(m.limitName+" "+m.show(limit, nil), edge-1))
	}
	p.Sub(edge, 0, 1, h).Fill(cell.Border, g.Vertical)
	p.Text(edge, 0, cell.Border, g.TeeRight)
	if top == 0 { // nothing was measured
		return
	}
	p.Right(edge-1, 0, cell.Muted, m.top(top))
	if h > 1 {
		p.Text(edge, h-1, cell.Border, g.TeeRight)
		p.Right(edge-1, h-1, cell.Muted, "0")
	}
}

// figures draws the highest, the current and the lowest value of the run.
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
		p.Text(5, y, token, m.show(v, t.points))
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

// axis draws the time axis below the charts, in two lines.
func (t *timeline) axis(p cell.Pane) {
	g := t.u.Glyphs
	p.Text(timeLeft-1, 0, cell.Border, g.BottomLeft)
	body := p.Sub(timeLeft, 0, t.cols, 2)
	for x := range t.cols {
		body.Text(x, 0, cell.Border, g.Horizontal)
	}
	tee := "┬"
	if g.ASCII {
		tee = "+"
	}
	every := lines.TickStep(t.span, 10)
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
	p.Text(timeLeft+t.cols+1, 1, cell.Muted, "min, "+bucketLength(t.span.Step)+" each")
}

// minuteLabel formats a time for an axis of minutes, with seconds if ticks are closer than a
// minute.
func minuteLabel(t, every time.Duration) string {
	if every < time.Minute {
		return figure.Clock(t)
	}
	return figure.Whole(t.Minutes())
}

// bucketLength formats a duration briefly, in its largest whole unit.
func bucketLength(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
