package tui

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawNow answers what is to be done now. It does not scroll: what matters least
// gives way on a small screen and is found in another view.
func drawNow(p cell.Pane, s *engine.Snapshot, u *look) int {
	if s == nil || p.Width() <= 0 || p.Height() <= 0 {
		return 0
	}
	(&nowView{s: s, u: u}).draw(p)
	return p.Height()
}

// nowView draws one snapshot.
type nowView struct {
	s *engine.Snapshot
	u *look
}

// latest is the diagnosis that findings and ceiling are shown of; that of the
// baseline only where no other configuration runs.
func (v *nowView) latest() *engine.Diagnosis {
	if it := v.last(); v.s.Live == nil && (it == nil || it.End != engine.IterationOpen) {
		return v.s.Baseline
	}
	return v.s.Live
}

// old says that the figures are not of now.
func (v *nowView) old() bool {
	return outdated(v.s) || v.s.Paused || source(v.s).State == engine.SourceLate
}

// Sizes at which the view changes its shape.
const (
	twoColumns   = 100
	threeColumns = 170
	widest       = 100 // cells of a column of text
	frameLines   = 20  // from which panels have frames
	timesLines   = 36  // from which the run over time stands below
	leastTimes   = 10
	leastColumns = 24
)

func (v *nowView) draw(p cell.Pane) {
	if p.Width() < twoColumns {
		v.column(p.Sub(1, 0, p.Width()-2, p.Height()))
		return
	}
	h, framed := p.Height(), p.Height() >= frameLines
	if !framed {
		p = p.Sub(1, 0, p.Width()-2, h)
	}
	below := v.times
	if len(v.s.Points) == 0 {
		below = nil
	}
	v.u.columns(p, v.columns(p.Width(), framed), framed, below)
}

// columns draws panels side by side, and what goes over the whole width below them
// where there is room for it.
func (u *look) columns(p cell.Pane, list []nowColumn, framed bool, below func(cell.Pane)) {
	h := p.Height()
	if h >= timesLines && below != nil {
		need := 0
		for _, c := range list {
			need = max(need, height(c.panels, framed))
		}
		h = min(max(need, leastColumns), h-leastTimes)
		below(p.Sub(0, h, p.Width(), p.Height()-h))
	}
	x := 0
	for _, c := range list {
		u.column(p.Sub(x, 0, c.width, h), c.panels, framed)
		x += c.width + 1
	}
}

// column is the reference: everything needed to decide in one column.
func (v *nowView) column(p cell.Pane) {
	w := p.Width()
	now, numbers, ceiling, findings, verdict := v.situation(w), v.numbers(w, false), v.ceiling(w, false), v.findings(w), v.verdict(w, v.advisesNow())
	auto := v.autopilot(w)
	list := []panel{now, auto, numbers, ceiling, findings, verdict, v.advice(w), v.requestTime()}
	if v.decides() {
		list = []panel{now, auto, verdict, numbers, ceiling, findings}
	}
	v.u.column(p, list, false)
}

// decides says that a verdict is what everything else waits for.
func (v *nowView) decides() bool {
	return goesBack(v.s)
}

// nowColumn is a column of panels with its width.
type nowColumn struct {
	width  int
	panels []panel
}

// columns has what is measured at the left and what follows from it at the right;
// where there is room, what was found and what was changed in a third.
func (v *nowView) columns(w int, framed bool) []nowColumn {
	if w < threeColumns {
		left := min(w*44/100, widest)
		right := w - left - 1
		a, b := inner(left, framed), inner(right, framed)
		return []nowColumn{
			{left, []panel{v.numbers(a, framed), v.ceiling(a, framed), v.findings(a), v.requestTime()}},
			{right, v.decision(b)},
		}
	}
	left, right := min(w*30/100, widest), min(w*31/100, widest)
	mid := min(w-left-right-2, widest)
	a, b, c := inner(left, framed), inner(mid, framed), inner(right, framed)
	last := []panel{v.findings(c), v.verdict(c, false), v.runners(c)}
	if v.decides() {
		last = last[:1]
	}
	middle := []panel{v.situation(b), v.autopilot(b), v.advice(b)}
	if v.decides() {
		middle = append(middle, v.verdict(b, false))
	}
	return []nowColumn{
		{left, []panel{v.numbers(a, framed), v.ceiling(a, framed), v.requestTime()}},
		{mid, middle}, {right, last},
	}
}

// decision is what to do now, and what the last change brought.
func (v *nowView) decision(w int) []panel {
	if v.decides() {
		return []panel{v.situation(w), v.autopilot(w), v.verdict(w, false)}
	}
	return []panel{v.situation(w), v.autopilot(w), v.advice(w), v.verdict(w, false), v.runners(w)}
}

// times is the whole run over time.
func (v *nowView) times(p cell.Pane) {
	q := panel{title: "The run over time"}
	drawTimes(v.u.frame(p, &q), v.s, v.u)
}

// runners is the panel of what comes next, and of what was considered and not
// taken.
func (v *nowView) runners(w int) panel {
	r, u := v.s.Advice, v.u
	if r == nil || !v.advising() || len(r.Rejected) == 0 {
		return panel{}
	}
	q := panel{title: "Considered and not taken"}
	for i, x := range r.Rejected {
		q.blocks = append(q.blocks, u.text(w, max(10, 25-i), nil, line(u.say(cell.Body, x.What), u.say(cell.Muted, ": "+x.Why))))
	}
	return q
}
