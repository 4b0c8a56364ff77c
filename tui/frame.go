package tui

import (
	"fmt"
	"image"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// extent is how much there is to scroll through: of the overlay where one lies
// over the view, else of the view.
type extent struct {
	lines, page int
	first       int // the first line shown, not beyond the last page
}

// scene is what a screen fills its frame with.
type scene struct {
	elapsed  time.Duration
	identity []part // what is looked at
	marks    []remark
	views    []string
	stage    stage
	banner   remarks // what is wrong with what is shown
	question remarks // what waits for an answer
	body     func(p cell.Pane) extent
	hints    []hint // keys that do something now, the most useful first
	quit     hint
	guide    func() guide // what the help says
	// small is what fits on a terminal too small for the screen, the most urgent first.
	small func(brief bool) remarks
}

// frame draws the main screen at a size. A snapshot, what the person at the keys has
// set, and the size are all that it depends on. s may be nil: nothing is known yet.
func frame(s *engine.Snapshot, u *look, w, h int) (*cell.Canvas, extent) {
	if s == nil {
		s = &engine.Snapshot{}
	}
	return compose(sceneOf(s, u, w), u, w, h)
}

func sceneOf(s *engine.Snapshot, u *look, w int) *scene {
	names := make([]string, 0, numViews)
	for _, v := range views() {
		names = append(names, v.name)
	}
	k := keys()
	return &scene{
		elapsed: s.Now, identity: identity(s, u), marks: marksOf(s, u), views: names, stage: phaseOf(s),
		banner: bannerOf(s, u), question: questionOf(s, u, w),
		body:  func(p cell.Pane) extent { return drawView(p, s, u) },
		hints: hintsFor(s, u), quit: hint{k.Quit, "quit"},
		guide: func() guide { return guideTo(s, u) },
		small: func(brief bool) remarks { return summary(s, u, brief) },
	}
}

// compose draws a scene at a size.
func compose(s *scene, u *look, w, h int) (*cell.Canvas, extent) {
	c := cell.NewCanvas(w, h)
	if u.glyphs.ASCII {
		c.ASCII()
	}
	if w < leastWidth || h < leastHeight {
		drawSmall(c.Pane(), s)
		return c, extent{}
	}
	banner := s.banner.wrapped(c.Pane(), 2)
	question := s.question.wrapped(c.Pane(), 3)
	want := bars{banner: len(banner), question: len(question)}
	if u.tape != nil {
		want.tape = 1
	}
	l := arrange(w, h, want)
	at := func(r image.Rectangle) cell.Pane { return c.Pane().Sub(r.Min.X, r.Min.Y, r.Dx(), r.Dy()) }
	drawHeader(at(l.header), s)
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

// drawBody draws the view, or what lies over it.
func drawBody(p cell.Pane, s *scene, u *look) extent {
	if u.over == overlayHelp {
		g := s.guide()
		return scrolled(p, u, u.down, func(p cell.Pane, first int) int { return drawHelp(p, &g, first) })
	}
	e := s.body(p)
	if u.over != overlayNone {
		return drawDialog(p, u)
	}
	return e
}

// drawView draws the view of a run, or what stands in for it.
func drawView(p cell.Pane, s *engine.Snapshot, u *look) extent {
	if !s.Attached && u.view != viewLog {
		lookingFor(s).draw(p)
		return extent{}
	}
	return scrolledView(p, u, func(p cell.Pane, u *look) int { return views()[u.view].draw(p, s, u) })
}

// scrolledView draws a view from the first line on that the person at the keys chose.
func scrolledView(p cell.Pane, u *look, draw func(p cell.Pane, u *look) int) extent {
	return scrolled(p, u, u.scroll[u.view], func(p cell.Pane, first int) int {
		shifted := *u
		shifted.scroll[u.view] = first
		return draw(p, &shifted)
	})
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
