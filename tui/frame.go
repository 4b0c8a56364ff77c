package tui

import (
	"fmt"
	"image"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// extent is how much there is to scroll through: of the overlay where one lies
// over the view, else of the view.
type extent struct {
	lines, page int
	first       int // the first line shown, not beyond the last page
}

// frame draws the screen at a size. A snapshot, what the person at the keys has
// set, and the size are all that it depends on. s may be nil: nothing is known yet.
func frame(s *engine.Snapshot, u *look, w, h int) (*cell.Canvas, extent) {
	c := cell.NewCanvas(w, h)
	if u.glyphs.ASCII {
		c.ASCII()
	}
	if s == nil {
		s = &engine.Snapshot{}
	}
	if w < leastWidth || h < leastHeight {
		drawSmall(c.Pane(), s, u)
		return c, extent{}
	}
	banner := bannerOf(s, u).wrapped(c.Pane(), 2)
	question := questionOf(s, u, w).wrapped(c.Pane(), 3)
	want := bars{banner: len(banner), question: len(question)}
	if u.tape != nil {
		want.tape = 1
	}
	l := arrange(w, h, want)
	at := func(r image.Rectangle) cell.Pane { return c.Pane().Sub(r.Min.X, r.Min.Y, r.Dx(), r.Dy()) }
	drawHeader(at(l.header), s, u)
	drawTabs(at(l.tabs), s, u)
	drawRule(at(l.upper), u)
	banner.draw(at(l.banner))
	e := drawBody(at(l.body), s, u)
	question.draw(at(l.question))
	drawTape(at(l.tape), u)
	drawRule(at(l.lower), u)
	drawFooter(at(l.footer), s, u)
	return c, e
}

func drawRule(p cell.Pane, u *look) { p.Fill(cell.Border, u.glyphs.Horizontal) }

// drawBody draws the view, or what stands in for it or lies over it.
func drawBody(p cell.Pane, s *engine.Snapshot, u *look) extent {
	if u.over == overlayHelp {
		return scrolled(p, u, u.down, func(p cell.Pane, first int) int { return drawHelp(p, s, u, first) })
	}
	var e extent
	if !s.Attached && u.view != viewLog {
		drawLooking(p, s)
	} else {
		e = scrolled(p, u, u.scroll[u.view], func(p cell.Pane, first int) int {
			shifted := *u
			shifted.scroll[u.view] = first
			return views()[u.view].draw(p, s, &shifted)
		})
	}
	if u.over != overlayNone {
		return drawDialog(p, u)
	}
	return e
}

// scrolled draws what may be longer than its pane, from a first line on that is
// never beyond the last page. Where there is more than fits, the last line says so.
func scrolled(p cell.Pane, u *look, first int, draw func(p cell.Pane, first int) int) extent {
	lines := draw(p, first)
	if lines <= p.Height() && first == 0 {
		return extent{lines, p.Height(), 0}
	}
	p.Clear()
	page := p.Height()
	if lines > page && page > 3 {
		page--
	}
	inside := p.Sub(0, 0, p.Width(), page)
	first = min(first, max(0, lines-page))
	lines = max(draw(inside, first), page)
	if page < p.Height() {
		drawPosition(p.Sub(0, page, p.Width(), 1), u, extent{lines, page, first})
	}
	return extent{lines, page, min(first, lines-page)}
}

// drawPosition says which lines are shown of how many.
func drawPosition(p cell.Pane, u *look, e extent) {
	drawRule(p, u)
	text := fmt.Sprintf(" lines %d to %d of %d: up, down, pgup, pgdn, g, G ", e.first+1, min(e.first+e.page, e.lines), e.lines)
	p.Right(p.Width()-1, 0, cell.Muted, p.Cut(text, p.Width()-2))
}

// outdated says that the latest figures are not of now.
func outdated(s *engine.Snapshot) bool {
	return s.Phase == engine.PhaseDown || len(s.Sources) > 0 && s.Sources[0].State == engine.SourceFailing
}

// remarks are sentences below each other.
type remarks []remark

// wrapped sets each sentence in as many lines as it needs, and cuts what goes
// beyond the most. What follows a sign on the first line stands under its words;
// a sentence that begins with a space has no sign.
func (r remarks) wrapped(p cell.Pane, most int) remarks {
	var out remarks
	for i, m := range r {
		left := most - len(out) - (len(r) - 1 - i)
		if left < 1 {
			break
		}
		w := p.Width() - 4
		lines := p.Wrap(m.text, w)
		if len(lines) > left {
			lines[left-1] = p.Cut(strings.Join(lines[left-1:], " "), w)
			lines = lines[:left]
		}
		for j, text := range lines {
			if j > 0 || strings.HasPrefix(m.text, " ") {
				text = "  " + text
			}
			out = append(out, remark{m.token, text})
		}
	}
	return out
}

// draw writes one sentence a line.
func (r remarks) draw(p cell.Pane) {
	for y, m := range r {
		p.Text(1, y, m.token, m.text)
	}
}
