package tui

import (
	"cmp"
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// How long findings stay on a small screen: the limiting one longest, then the others in order.
const (
	keepFirst  = 86
	keepSecond = 62
	keepOthers = 52
	keepQuiet  = 30
)

// findings returns the panel of the fired rules, in rank order.
func (v *nowView) findings(w int) frame.Panel {
	d, u := v.latest(), v.u
	if d == nil || d.Windows.Active == 0 {
		return frame.Panel{}
	}
	q := frame.Panel{Title: "Findings", Old: v.old(), Note: others(d)}
	width := titleCells(d)
	fired := 0
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.State != engine.Fired {
			continue
		}
		keep := [...]int{keepFirst, keepSecond}
		k := max(keepQuiet+1, keepOthers-fired)
		if fired < len(keep) && f.Significant {
			k = keep[fired]
		}
		fired++
		rank := tuning.Rank(d, f.ID)
		if rank == "recommended" {
			k, rank = keepFirst, "" // shown in the panel beside it, which needs its finding
		}
		q.Add(finding(u, w, k, f, width, rank))
	}
	if fired == 0 {
		text := fmt.Sprintf("no rule fired in %s of load", figure.Counted(d.Windows.Active, "window"))
		q.Add(u.OneLine(keepSecond, page.Join(page.Toned(cell.OK, u.Glyphs.Good+" ok    "), page.Toned(cell.Body, text))))
	}
	return q
}

// titleCells returns the width of the longest title of a fired rule.
func titleCells(d *engine.Diagnosis) int {
	n := 0
	for i := range d.Findings {
		if d.Findings[i].State == engine.Fired {
			n = max(n, cell.Width(d.Findings[i].Title))
		}
	}
	return n
}

// finding returns a line with symbol, word, title and the deciding figure, or two lines if the pane
// is too narrow for a column of reasons.
func finding(u *frame.Settings, w, keep int, f *engine.Finding, titles int, rank string) frame.Block {
	tone, word := tuning.State(f)
	if word == "fired" {
		word = tone.Name()
	}
	const state = 7 // cells of symbol and word
	grow := func(lines []page.Text) int { return max(0, len(lines)-2) }
	title, reason := cell.Body, cell.Body
	if f.Significant {
		title = cell.Strong
	} else {
		title, reason = cell.Muted, cell.Muted
	}
	says := page.Toned(reason, cmp.Or(tuning.DecidedBy(f), f.Title))
	if f.Fix != nil && f.Fix.Withheld != "" {
		says = page.Join(says, page.Toned(cell.Muted, "; no change: "+f.Fix.Withheld))
	}
	if rank != "" {
		says = page.Join(says, page.Toned(cell.Muted, "; "+rank))
	}
	head := page.Join(page.Toned(tone, u.Sign(tone)+" "+word))
	if room := w - state - titles - 2; room >= 24 {
		lines := u.Wrap(says, room)
		return frame.Block{Lines: min(2, len(lines)), Least: 1, Grow: grow(lines), Keep: keep, Draw: func(p cell.Pane) {
			p.Line(0, 0, head)
			p.Line(state, 0, page.Toned(title, f.Title))
			u.DrawLines(p.Sub(state+titles+2, 0, room, p.Height()), lines)
		}}
	}
	lines := u.Wrap(says, w-state)
	return frame.Block{Lines: 1 + min(2, len(lines)), Least: 1, Grow: grow(lines), Keep: keep, Draw: func(p cell.Pane) {
		p.Line(0, 0, head)
		p.Line(state, 0, u.Cut(page.Toned(title, f.Title), w-state))
		u.DrawLines(p.Sub(state, 1, w-state, p.Height()-1), lines)
	}}
}

// others counts the rules that did not fire.
func others(d *engine.Diagnosis) page.Text {
	n := 0
	for i := range d.Findings {
		if d.Findings[i].State != engine.Fired {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return page.Toned(cell.Muted, fmt.Sprintf("%d more in view %d", n, viewEvidence+1))
}
