package tui

import (
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// now returns the view of the current state and what to do. It does not scroll: on a small screen
// the least important parts are left out. Other views have them.
func now(s *loop.Snapshot, u *frame.Settings, _ int) frame.Content {
	return frame.Fitted((&nowView{s: s, u: u}).draw)
}

// nowView draws one snapshot.
type nowView struct {
	s *loop.Snapshot
	u *frame.Settings
}

// latest returns the diagnosis for findings and ceiling: the live one or, unless another
// configuration runs, that of the baseline. It returns nil if there is neither, or if the load that the live
// one describes has ended.
func (v *nowView) latest() *engine.Diagnosis {
	if noLoad(v.s) && v.s.Live.Outcome != engine.OutcomeNoLoad {
		return nil
	}
	if it := v.last(); v.s.Live == nil && (it == nil || it.End != loop.IterationOpen) {
		return v.s.Baseline
	}
	return v.s.Live
}

// old reports whether the figures are outdated.
func (v *nowView) old() bool {
	return outdated(v.s) || v.s.Paused || source(v.s).State == loop.SourceLate
}

func (v *nowView) draw(p cell.Pane) {
	if p.Width() < frame.TwoColumns {
		v.column(p.Sub(1, 0, p.Width()-2, p.Height()))
		return
	}
	h, framed := p.Height(), p.Height() >= frame.FrameLines
	if !framed {
		p = p.Sub(1, 0, p.Width()-2, h)
	}
	below := v.times
	if len(v.s.Points) == 0 {
		below = nil
	}
	v.u.Columns(p, v.columns(p.Width(), framed), framed, below, v.requestTime, v.ranks, v.gpus, v.events)
}

// column draws everything needed for a decision in one column.
func (v *nowView) column(p cell.Pane) {
	w := p.Width()
	now, numbers, ceiling, findings, verdict := v.situation(w), v.withShares(v.numbers(w, false)), v.ceiling(w, false), v.findings(w), v.verdict(w, v.advisesNow())
	auto := v.autopilot(w)
	list := []frame.Panel{now, auto, numbers, ceiling, findings, verdict, v.advice(w), v.requestTime(w)}
	if mustRevert(v.s) {
		list = []frame.Panel{now, auto, verdict, numbers, ceiling, findings}
	}
	v.u.Column(p, list, false)
}

// columns puts measurements in the left column and conclusions in the right one. With enough width,
// findings and verdicts get a third column.
func (v *nowView) columns(w int, framed bool) []frame.PanelColumn {
	if w < frame.ThreeColumns {
		left := min(w*44/100, frame.Widest)
		right := w - left - 1
		a, b := frame.Inner(left, framed), frame.Inner(right, framed)
		return []frame.PanelColumn{
			{Width: left, Panels: []frame.Panel{v.withShares(v.numbers(a, framed)), v.ceiling(a, framed), v.findings(a)}},
			{Width: right, Panels: v.decision(b)},
		}
	}
	left, right := min(w*30/100, frame.Widest), min(w*31/100, frame.Widest)
	mid := min(w-left-right-2, frame.Widest)
	a, b, c := frame.Inner(left, framed), frame.Inner(mid, framed), frame.Inner(right, framed)
	last := []frame.Panel{v.findings(c), v.verdict(c, false), v.runners(c)}
	if mustRevert(v.s) {
		last = last[:1]
	}
	middle := []frame.Panel{v.situation(b), v.autopilot(b), v.advice(b)}
	if mustRevert(v.s) {
		middle = append(middle, v.verdict(b, false))
	}
	return []frame.PanelColumn{
		{Width: left, Panels: []frame.Panel{v.numbers(a, framed), v.ceiling(a, framed)}},
		{Width: mid, Panels: middle}, {Width: right, Panels: last},
	}
}

// withShares adds where a request's time goes to the headline numbers, for a view that may have no
// room for its own panel.
func (v *nowView) withShares(q frame.Panel) frame.Panel {
	if shares := timeShares(v.latest()); len(shares) > 0 {
		q.Add(frame.Block{Lines: 1, Keep: 66, Draw: func(p cell.Pane) { drawShares(p, v.u, shares) }})
	}
	return q
}

// decision returns the panels of what to do now, and of the result of the last change.
func (v *nowView) decision(w int) []frame.Panel {
	if mustRevert(v.s) {
		return []frame.Panel{v.situation(w), v.autopilot(w), v.verdict(w, false)}
	}
	return []frame.Panel{v.situation(w), v.autopilot(w), v.advice(w), v.verdict(w, false), v.runners(w)}
}

// times draws charts of the whole run.
func (v *nowView) times(p cell.Pane) {
	q := frame.Panel{Title: "The run over time"}
	drawTimes(v.u.Frame(p, &q), v.s, v.u, measuresOf(v.s))
}

// runners returns the panel of alternatives that were considered and rejected.
func (v *nowView) runners(w int) frame.Panel {
	r, u := v.s.Advice, v.u
	if r == nil || !v.advising() || len(r.Rejected) == 0 {
		return frame.Panel{}
	}
	q := frame.Panel{Title: "Considered and not taken"}
	for i, x := range r.Rejected {
		q.Add(u.Paragraph(w, max(10, 25-i), nil, page.Join(page.Toned(cell.Body, x.What), page.Toned(cell.Muted, ": "+x.Why))))
	}
	return q
}
