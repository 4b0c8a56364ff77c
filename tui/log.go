package tui

import (
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// Maximum width of a text of the log, and the minimum left for it beside the wall clock.
const (
	logCells  = 110
	leastText = 36
)

// journal returns the view of events, the newest last: time since the start, wall clock if there is
// room, severity, and text. Only the visible lines of a long journal are formatted.
func journal(s *loop.Snapshot, u *frame.Settings, width int) frame.Content {
	l := frame.NewListing(u, width, width)
	if s.Dropped > 0 {
		l.Prose(page.Toned(cell.Muted, figure.Counted(s.Dropped, "earlier entry")+" dropped"))
	}
	if len(s.Journal) == 0 {
		l.Prose(page.Toned(cell.Muted, "Nothing has happened yet."))
		return l
	}
	since := cell.Width(figure.Clock(s.Journal[len(s.Journal)-1].T)) // width of the time since the start
	wall := !s.Started.IsZero() && l.Width >= since+10+8+leastText
	head := func(e *loop.Entry) page.Text {
		at := figure.Clock(e.T)
		head := page.Toned(cell.Muted, spaces(since-cell.Width(at))+at+"  ")
		if wall {
			head = page.Join(head, page.Toned(cell.Muted, s.Started.Add(e.T).Format(time.TimeOnly)+"  "))
		}
		tone, word := tuning.LevelTone(e.Level), e.Level.String()
		return page.Join(head, page.Toned(tone, u.Sign(tone)+figure.NBSP+word+spaces(4-len(word))), page.Toned(cell.Body, "  "))
	}
	lead := u.Width(head(&s.Journal[0]))
	room := min(logCells, l.Width-lead)
	text := func(e *loop.Entry) []page.Text {
		token := cell.Body
		if e.Level == loop.LevelBad {
			token = cell.Strong
		}
		return u.Wrap(page.Toned(token, e.Text), room)
	}
	most := 1 // cells per byte, at most
	if u.Glyphs.ASCII {
		most = 3 // "Δ" becomes "delta"
	}
	filter, matched := strings.ToLower(strings.TrimSpace(u.Filter)), 0
	for i := range s.Journal {
		e, height := &s.Journal[i], 1
		if !strings.Contains(strings.ToLower(e.Level.String()+" "+e.Text), filter) {
			continue
		}
		matched++
		if most*len(e.Text) > room {
			height = len(text(e))
		}
		l.Rows(height, func(p cell.Pane, i int) {
			if i == 0 {
				p.Line(0, 0, head(e))
			}
			p.Line(lead, 0, text(e)[i])
		})
	}
	if filter != "" {
		l.Prose(frame.Matches(matched, len(s.Journal), "entry", strings.TrimSpace(u.Filter)))
	}
	return l
}
