package tui

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawLog lists what happened, the newest last.
func drawLog(p cell.Pane, s *engine.Snapshot, u *look) int {
	if s == nil {
		return 0
	}
	p = p.Sub(1, 0, p.Width()-2, p.Height())
	lines := u.journal(s, p.Width())
	u.page(p, lines, u.scroll[viewLog])
	return len(lines)
}

// page draws the lines from a first one on.
func (u *look) page(p cell.Pane, lines []prose, first int) {
	first = max(0, min(first, len(lines)))
	for y, l := range lines[first:min(len(lines), first+max(0, p.Height()))] {
		l.cut(p.Width(), u.glyphs.Ellipsis).draw(p, 0, y)
	}
}

// Widest text of the log, and the least room for it beside the wall clock.
const (
	logCells  = 110
	leastText = 36
)

// journal is the journal in lines: time since the start, wall clock where there is
// room, how grave it is in a sign and a word, and the text.
func (u *look) journal(s *engine.Snapshot, w int) []prose {
	var lines []prose
	if s.Dropped > 0 {
		lines = append(lines, u.say(cell.Muted, counted(s.Dropped, "earlier entry")+" let go"))
	}
	if len(s.Journal) == 0 {
		return append(lines, u.say(cell.Muted, "Nothing has happened yet."))
	}
	since := cell.Width(clock(s.Journal[len(s.Journal)-1].T))
	wall := !s.Started.IsZero() && w >= since+10+8+leastText
	for i := range s.Journal {
		e := &s.Journal[i]
		at := clock(e.T)
		head := u.say(cell.Muted, pad(since-cell.Width(at))+at+"  ")
		if wall {
			head = line(head, u.say(cell.Muted, s.Started.Add(e.T).Format(time.TimeOnly)+"  "))
		}
		sign, word, token := u.levelOf(e.Level)
		head = line(head, u.say(token, sign+figure.NBSP+word+pad(4-len(word))), u.say(cell.Body, "  "))
		text := cell.Body
		if e.Level == engine.LevelBad {
			text = cell.Strong
		}
		lead := head.width()
		for i, l := range u.say(text, e.Text).wrap(min(logCells, w-lead)) {
			if i > 0 {
				head = u.say(cell.Body, pad(lead))
			}
			lines = append(lines, line(head, l))
		}
	}
	return lines
}

// levelOf is a level in a sign, a word and a colour.
func (u *look) levelOf(l engine.Level) (sign, word string, t cell.Token) {
	switch l {
	case engine.LevelGood:
		return u.glyphs.Good, "good", cell.OK
	case engine.LevelWarn:
		return u.glyphs.Warn, "warn", cell.Warn
	case engine.LevelBad:
		return u.glyphs.Bad, "bad", cell.Bad
	}
	return u.glyphs.Info, "info", cell.Muted
}

// counted spells a number of things.
func counted(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what[len(what)-1] == 'y':
		return figure.Whole(float64(n)) + " " + what[:len(what)-1] + "ies"
	}
	return fmt.Sprintf("%s %ss", figure.Whole(float64(n)), what)
}
