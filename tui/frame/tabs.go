package frame

import (
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawTabs writes the names of the views with their digits, the current one in brackets, and the
// phase at the right end. If both do not fit, the other views keep only their digit. It returns the
// columns at which the names end.
func drawTabs(p cell.Pane, s *Scene, u *Settings) (ends []int) {
	phase := s.Stage
	names := tabNames(s, u, true)
	room := p.Width() - 2 - p.Cells(strings.Join(names, ""))
	text := phase.Words + phase.Progress(true)
	if p.Cells(text) > room {
		text = phase.Word + phase.Progress(false)
	}
	if p.Cells(text) > room {
		names = tabNames(s, u, false)
		if long := phase.Words + phase.Progress(true); p.Cells(long) <= p.Width()-2-p.Cells(strings.Join(names, "")) {
			text = long
		}
	}
	x := 0
	for v, name := range names {
		token := cell.Body
		if ViewID(v) == u.View {
			token = cell.Selected
		}
		x = p.Text(x, 0, token, name)
		ends = append(ends, x)
	}
	right := p.Width() - 1
	p.Right(right, 0, phase.Token, text)
	right -= p.Cells(text) + 2
	if bar := 12; phase.Total > 0 && right-bar > x+2 {
		phase.Bar(p.Sub(right-bar, 0, bar, 1), u)
	}
	return ends
}

func tabNames(s *Scene, u *Settings, all bool) []string {
	var names []string
	for i, name := range s.Views {
		text := fmt.Sprintf("%d %s", i+1, name)
		switch {
		case ViewID(i) == u.View:
			text = "[" + text + "]"
		case all:
			text = " " + text + " "
		default:
			text = fmt.Sprintf(" %d ", i+1)
		}
		names = append(names, text)
	}
	return names
}

// Stage is a phase in words.
type Stage struct {
	Words, Word    string
	Token          cell.Token
	Elapsed, Total time.Duration
	Counts         bool // the words already include a duration
}

// clockFrom is the total from which on a phase's progress has minutes: 1:04 of 3:00.
const clockFrom = 100 * time.Second

// Progress returns how far the phase is, both times in one form: of its total, or else the time elapsed.
func (g Stage) Progress(long bool) string {
	sep := map[bool]string{true: " of ", false: "/"}[long]
	switch {
	case g.Total >= clockFrom:
		return " " + figure.Clock(g.Elapsed) + sep + figure.Clock(g.Total)
	case g.Total > 0:
		return fmt.Sprintf(" %2d%s%d s", WholeSeconds(g.Elapsed), sep, WholeSeconds(g.Total))
	case g.Elapsed > 0:
		return " " + figure.Clock(g.Elapsed)
	}
	return ""
}

// WholeSeconds rounds d down to seconds.
func WholeSeconds(d time.Duration) int { return int(d / time.Second) }

// Bar fills the pane by the elapsed part of the phase.
func (g Stage) Bar(p cell.Pane, u *Settings) {
	p.Fill(cell.Border, u.Glyphs.Rest)
	n := int(float64(p.Width()) * min(1, float64(g.Elapsed)/float64(g.Total)))
	p.Sub(0, 0, n, 1).Fill(g.Token, u.Glyphs.Bar)
}
