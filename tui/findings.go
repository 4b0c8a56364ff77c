package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// gravity is how a finding stands, in a sign and a word.
type gravity struct {
	sign, word string
	token      cell.Token
}

// gravityOf tells what limits a server now from what was only seen. Nothing is
// broken where the clients could ask for more.
func (u *look) gravityOf(f *engine.Finding) gravity {
	g := u.glyphs
	switch {
	case f.State == engine.Suppressed:
		return gravity{g.Info, "suppressed", cell.Muted}
	case f.State == engine.NotEvaluable:
		return gravity{g.Dash, "not judged", cell.Muted}
	case f.State == engine.NotFired:
		return gravity{g.Good, "not fired", cell.OK}
	case !f.Significant:
		return gravity{g.Info, "seen", cell.Muted}
	case f.Impact >= 5 && (f.Fix == nil || f.Fix.Kind != engine.KindClient):
		return gravity{g.Bad, "bad", cell.Bad}
	}
	return gravity{g.Warn, "warn", cell.Warn}
}

// reasonOf is the figure that decided, without how often it fired.
func reasonOf(f *engine.Finding) string {
	return cmp.Or(strings.TrimPrefix(f.Reason, firedIn(f)+": "), f.Title)
}

// firedIn says in how many of the windows that could be judged a rule fired.
func firedIn(f *engine.Finding) string {
	if f.Evaluable == 0 {
		return "judged once for the whole run"
	}
	return fmt.Sprintf("fired in %d of %s", f.Fired, counted(f.Evaluable, "window"))
}

// How long findings stay: the first is what limits, the next give way in turn.
const (
	keepFirst  = 86
	keepSecond = 62
	keepOthers = 52
	keepQuiet  = 30
)

// findings is the panel of what fired, in rank order.
func (v *nowView) findings(w int) panel {
	d, u := v.latest(), v.u
	if d == nil || d.Windows.Active == 0 {
		return panel{}
	}
	q := panel{title: "Findings", old: v.old(), note: v.others(d)}
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
		q.blocks = append(q.blocks, u.finding(w, k, f, width, v.rank(d, f.ID)))
	}
	if fired == 0 {
		text := fmt.Sprintf("no rule fired in %s of load", counted(d.Windows.Active, "window"))
		q.blocks = append(q.blocks, u.one(keepSecond, line(u.say(cell.OK, u.glyphs.Good+" ok    "), u.say(cell.Body, text))))
	}
	return q
}

// titleCells is the width of the titles that fired.
func titleCells(d *engine.Diagnosis) int {
	n := 0
	for i := range d.Findings {
		if d.Findings[i].State == engine.Fired {
			n = max(n, cell.Width(d.Findings[i].Title))
		}
	}
	return n
}

// rank says what becomes of a finding.
func (v *nowView) rank(d *engine.Diagnosis, id engine.FindingID) string {
	switch {
	case d.Recommendation != nil && d.Recommendation.Finding == id:
		return ""
	case slices.Contains(d.Runners, id):
		return "next in line"
	}
	return ""
}

// finding is one line: sign and word, title, the figure that decided; two where
// the pane is too narrow for a column of reasons.
func (u *look) finding(w, keep int, f *engine.Finding, titles int, rank string) block {
	g := u.gravityOf(f)
	const state = 7 // sign and word
	grow := func(lines []prose) int { return max(0, len(lines)-2) }
	title, reason := cell.Body, cell.Body
	if f.Significant {
		title = cell.Strong
	} else {
		title, reason = cell.Muted, cell.Muted
	}
	says := u.say(reason, reasonOf(f))
	if f.Fix != nil && f.Fix.Withheld != "" {
		says = line(says, u.say(cell.Muted, "; no change: "+f.Fix.Withheld))
	}
	if rank != "" {
		says = line(says, u.say(cell.Muted, "; "+rank))
	}
	head := line(u.say(g.token, g.sign+" "+g.word))
	if room := w - state - titles - 2; room >= 24 {
		lines := says.wrap(room)
		return block{lines: min(2, len(lines)), least: 1, grow: grow(lines), keep: keep, draw: func(p cell.Pane) {
			head.draw(p, 0, 0)
			u.say(title, f.Title).draw(p, state, 0)
			u.drawLines(p.Sub(state+titles+2, 0, room, p.Height()), lines)
		}}
	}
	lines := says.wrap(w - state)
	return block{lines: 1 + min(2, len(lines)), least: 1, grow: grow(lines), keep: keep, draw: func(p cell.Pane) {
		head.draw(p, 0, 0)
		u.say(title, f.Title).cut(w-state, u.glyphs.Ellipsis).draw(p, state, 0)
		u.drawLines(p.Sub(state, 1, w-state, p.Height()-1), lines)
	}}
}

// others counts the rules that did not fire.
func (v *nowView) others(d *engine.Diagnosis) prose {
	n := 0
	for i := range d.Findings {
		if d.Findings[i].State != engine.Fired {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return v.u.say(cell.Muted, fmt.Sprintf("%d more in view %d", n, viewEvidence+1))
}
