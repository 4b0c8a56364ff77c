package tui

import (
	"fmt"
	"slices"
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
	j := newJournal(s, u, p.Width())
	first := max(0, min(u.scroll[viewLog], j.lines))
	u.page(p, j.from(first, p.Height()), 0)
	return j.lines
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
// room, how grave it is in a sign and a word, and the text. It may be long, so that
// only what is shown of it is set.
type journal struct {
	s       *engine.Snapshot
	u       *look
	above   []prose // what stands before the entries
	since   int     // cells of the time since the start
	wall    bool
	lead    int   // cells before a text
	room    int   // cells of a text
	heights []int // lines of each entry
	lines   int   // of all
}

func newJournal(s *engine.Snapshot, u *look, w int) *journal {
	j := &journal{s: s, u: u, heights: make([]int, len(s.Journal))}
	if s.Dropped > 0 {
		j.above = append(j.above, u.say(cell.Muted, counted(s.Dropped, "earlier entry")+" let go"))
	}
	if len(s.Journal) == 0 {
		j.above = append(j.above, u.say(cell.Muted, "Nothing has happened yet."))
	}
	j.lines = len(j.above)
	if len(s.Journal) == 0 {
		return j
	}
	j.since = cell.Width(clock(s.Journal[len(s.Journal)-1].T))
	j.wall = !s.Started.IsZero() && w >= j.since+10+8+leastText
	j.lead = j.head(&s.Journal[0]).width()
	j.room = min(logCells, w-j.lead)
	most := 1 // cells of a byte
	if u.glyphs.ASCII {
		most = 3 // "Δ" is "delta"
	}
	for i := range s.Journal {
		j.heights[i] = 1
		if e := &s.Journal[i]; most*len(e.Text) > j.room {
			j.heights[i] = len(j.text(e))
		}
		j.lines += j.heights[i]
	}
	return j
}

// head is what stands before a text.
func (j *journal) head(e *engine.Entry) prose {
	u, at := j.u, clock(e.T)
	head := u.say(cell.Muted, pad(j.since-cell.Width(at))+at+"  ")
	if j.wall {
		head = line(head, u.say(cell.Muted, j.s.Started.Add(e.T).Format(time.TimeOnly)+"  "))
	}
	sign, word, token := u.levelOf(e.Level)
	return line(head, u.say(token, sign+figure.NBSP+word+pad(4-len(word))), u.say(cell.Body, "  "))
}

func (j *journal) text(e *engine.Entry) []prose {
	token := cell.Body
	if e.Level == engine.LevelBad {
		token = cell.Strong
	}
	return j.u.say(token, e.Text).wrap(j.room)
}

// from are n lines from a first one on, or fewer where there are no more.
func (j *journal) from(first, n int) []prose {
	out := slices.Clone(j.above[min(first, len(j.above)):])
	y := len(j.above)
	for i := range j.s.Journal {
		if y >= first+n {
			break
		}
		if y += j.heights[i]; y <= first {
			continue
		}
		e := &j.s.Journal[i]
		head := j.head(e)
		for k, l := range j.text(e) {
			if k > 0 {
				head = j.u.say(cell.Body, pad(j.lead))
			}
			if y-j.heights[i]+k >= first {
				out = append(out, line(head, l))
			}
		}
	}
	return out[:min(len(out), max(0, n))]
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
