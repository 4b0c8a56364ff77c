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
	v := &nowView{s: s, u: u}
	v.draw(p)
	if v.old() {
		p.Tint(cell.Muted)
	}
	return p.Height()
}

// nowView draws one snapshot.
type nowView struct {
	s *engine.Snapshot
	u *look
}

// latest is the diagnosis that findings and ceiling are shown of.
func (v *nowView) latest() *engine.Diagnosis {
	if v.s.Live != nil {
		return v.s.Live
	}
	return v.s.Baseline
}

// old says that the figures are not of now: how old they are is said above them.
func (v *nowView) old() bool {
	return outdated(v.s) || source(v.s).State == engine.SourceLate
}

// Sizes at which the view changes its shape.
const (
	twoColumns   = 100
	threeColumns = 170
	frameLines   = 24 // lines from which panels have frames
	chartLines2  = 38 // lines from which charts stand below
)

func (v *nowView) draw(p cell.Pane) {
	w, h := p.Width(), p.Height()
	switch {
	case w < twoColumns:
		v.column(p.Sub(1, 0, w-2, h))
	case w < threeColumns:
		v.columns(p)
	default:
		v.columns(p)
	}
}

// column is the reference: everything needed to decide in one column.
func (v *nowView) column(p cell.Pane) {
	w := p.Width()
	now, numbers, ceiling, findings, verdict := v.situation(w), v.numbers(w, false), v.ceiling(w, false), v.findings(w), v.verdict(w, v.advisesNow())
	list := []panel{now, numbers, ceiling, findings, verdict, v.advice(w, false), v.requestTime()}
	if v.s.Phase == engine.PhaseWorse || v.s.Phase == engine.PhaseReverting {
		list = []panel{now, verdict, numbers, ceiling, findings}
	}
	v.u.column(p, list, false)
}

// columns has what is measured at the left, and what follows from it at the right.
func (v *nowView) columns(p cell.Pane) {
	w, h := p.Width(), p.Height()
	framed := h >= frameLines
	left := min(w*44/100, 84)
	right := w - left - 1
	in, out := inner(left, framed), inner(right, framed)
	v.u.column(p.Sub(0, 0, left, h), []panel{v.numbers(in, framed), v.ceiling(in, framed), v.findings(in), v.requestTime()}, framed)
	v.u.column(p.Sub(left+1, 0, right, h), []panel{v.situation(out), v.advice(out, framed), v.verdict(out, false), v.runners(out)}, framed)
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
		q.blocks = append(q.blocks, u.text(w, max(10, 25-i), 1, nil, line(u.say(cell.Body, x.What), u.say(cell.Muted, ": "+x.Why))))
	}
	return q
}
