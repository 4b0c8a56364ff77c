// Package frame is the part that all screens share: layout with header, tabs, footer and help,
// keys, themes, settings and blocks of text. A [Scene] supplies the content.
package frame

import (
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Extent describes what can be scrolled: the overlay if one is open, otherwise the view.
type Extent struct {
	Lines, Page int
	First       int // the first line shown, at most the start of the last page
	// Tabs are the columns at which the tabs of the views end.
	Tabs []int

	Top, Height int // lines of the screen that the view has
}

// Scene is the content of a screen.
type Scene struct {
	Elapsed  time.Duration
	Identity []Part // what is observed
	Marks    []Remark
	Views    []string
	Stage    Stage
	Banner   Remarks // problems with what is shown
	Question Remarks // what waits for an answer
	Body     func(p cell.Pane) Extent
	Hints    Hints // keys that do something now, the most useful first
	Quit     Hint
	Guide    func() Guide // contents of the help
	// Small returns a summary for a terminal too small for the screen, the most urgent first.
	Small func(brief bool) Remarks
}

// Compose draws a scene on a canvas of w by h cells.
func Compose(s *Scene, u *Settings, w, h int) (*cell.Canvas, Extent) {
	c := cell.NewCanvas(w, h)
	if u.Glyphs.ASCII {
		c.ASCII()
	}
	if w < LeastWidth || h < LeastHeight {
		drawSmall(c.Pane(), s, u)
		return c, Extent{}
	}
	banner := s.Banner.wrapped(u, c.Pane(), 2)
	question := s.Question.wrapped(u, c.Pane(), 3)
	rest := c.Pane()
	top := func(n int) cell.Pane {
		part := rest.Sub(0, 0, w, n)
		rest = rest.Sub(0, n, w, rest.Height()-n)
		return part
	}
	bottom := func(n int) cell.Pane {
		part := rest.Sub(0, rest.Height()-n, w, n)
		rest = rest.Sub(0, 0, w, rest.Height()-n)
		return part
	}
	rule, tape := 0, 0
	if h >= roomyHeight {
		rule = 1
	}
	if u.Tape != nil {
		tape = 1
	}
	drawHeader(top(1), s)
	tabs := drawTabs(top(1), s, u)
	drawRule(top(rule), u)
	banner.draw(top(len(banner)))
	footer := bottom(1)
	drawRule(bottom(rule), u)
	drawTape(bottom(tape), u)
	question.draw(bottom(len(question)))
	e := drawBody(rest, s, u)
	e.Tabs, e.Top, e.Height = tabs, tabsLine+1+rule+len(banner), rest.Height()
	if u.Filter != "" && u.Over == OverlayNone {
		rest.Highlight(strings.TrimSpace(u.Filter))
	}
	drawFooter(footer, s, u, e)
	return c, e
}

// Size of the smallest terminal for the whole screen. Smaller ones show a summary of a few lines.
const (
	LeastWidth  = 60
	LeastHeight = 16
	// roomyHeight is the minimum height for rules around the body.
	roomyHeight = 30
)

// tabsLine is the line of the tabs.
const tabsLine = 1

func drawRule(p cell.Pane, u *Settings) { p.Fill(cell.Border, u.Glyphs.Horizontal) }

// drawBody draws the view and its overlay.
func drawBody(p cell.Pane, s *Scene, u *Settings) Extent {
	if u.Over == OverlayHelp {
		g := s.Guide()
		return scrolled(p, u, u.Down, NewListing(u, p.Width(), p.Width(), g.sections(), ""))
	}
	e := s.Body(p)
	if u.Over != OverlayNone {
		return drawDialog(p, u)
	}
	return e
}

// Scrolled draws the current view from the line that the user scrolled to.
func Scrolled(p cell.Pane, u *Settings, c Content) Extent {
	return scrolled(p, u, u.Scroll[u.View], c)
}

// scrolled draws content that may be longer than its pane, from line first on but at most from the
// start of the last page. If there is more than fits, the last line shows the position.
func scrolled(p cell.Pane, u *Settings, first int, c Content) Extent {
	page := p.Height()
	if lines := c.Lines(page); lines <= page {
		c.Draw(p, 0)
		return Extent{Lines: lines, Page: page}
	}
	if page > 3 {
		page--
	}
	lines := max(c.Lines(page), page)
	first = max(0, min(first, lines-page))
	c.Draw(p.Sub(0, 0, p.Width(), page), first)
	if page < p.Height() {
		drawPosition(p.Sub(0, page, p.Width(), 1), u, Extent{Lines: lines, Page: page, First: first})
	}
	return Extent{Lines: lines, Page: page, First: first}
}

// drawPosition shows which lines are visible and how many there are.
func drawPosition(p cell.Pane, u *Settings, e Extent) {
	drawRule(p, u)
	text := fmt.Sprintf(" lines %d to %d of %d: up, down, pgup, pgdn, g, G ", e.First+1, min(e.First+e.Page, e.Lines), e.Lines)
	p.Right(p.Width()-1, 0, cell.Muted, p.Cut(text, p.Width()-2))
}

// Remarks are sentences below each other.
type Remarks []Remark

// Add appends a sentence, unless it is blank.
func (r *Remarks) Add(t cell.Token, text string) {
	if strings.TrimSpace(text) != "" {
		*r = append(*r, Remark{t, text})
	}
}

// Overlaid returns a short form of the overlay for small terminals. whole reports whether to show
// nothing else.
func Overlaid(u *Settings, h Hints) (list Remarks, whole bool) {
	switch {
	case u.Over == OverlayAsk:
		list.Add(cell.Strong, u.Ask.Title)
		list.Add(cell.Key, "y yes, n no")
		return append(list, u.Ask.Lines...), true
	case u.Over == OverlayText:
		return append(Remarks{{cell.Key, "esc closes"}}, u.Ask.Lines...), true
	case u.Over == OverlayHelp:
		for _, k := range h {
			list.Add(cell.Key, k.Binding.Help().Key+" "+k.Word)
		}
		return append(list, Remark{cell.Key, "q closes this, ctrl+c quits"}), true
	case u.Typing:
		list.Add(cell.Key, "/"+u.Filter+"_")
	default:
		list.Add(u.Notice.Token, u.Notice.Text)
	}
	return list, false
}

// wrapped wraps each sentence and limits the result to most lines, with at least one for each
// sentence as long as there are any. Continuation lines align with the words after a symbol. A
// sentence that begins with a space has no symbol.
func (r Remarks) wrapped(u *Settings, p cell.Pane, most int) Remarks {
	var out Remarks
	for i, m := range r {
		left := most - len(out) - (len(r) - 1 - i)
		if left < 1 {
			break
		}
		w := p.Width() - 4
		lines := u.wrap(m.Text, w)
		if len(lines) > left {
			lines[left-1] = p.Cut(strings.Join(lines[left-1:], " "), w)
			lines = lines[:left]
		}
		for j, text := range lines {
			if j > 0 || strings.HasPrefix(m.Text, " ") {
				text = "  " + text
			}
			out = append(out, Remark{m.Token, text})
		}
	}
	return out
}

// draw writes one sentence per line.
func (r Remarks) draw(p cell.Pane) {
	for y, m := range r {
		p.Text(1, y, m.Token, m.Text)
	}
}

// drawSmall draws the summary for a terminal too small for the screen, and the size that the whole
// screen needs. Keys work as usual.
func drawSmall(p cell.Pane, s *Scene, u *Settings) {
	need := fmt.Sprintf("needs %dx%d, has %dx%d", LeastWidth, LeastHeight, p.Width(), p.Height())
	if p.Cells(need) > p.Width() {
		need = fmt.Sprintf("needs %dx%d", LeastWidth, LeastHeight)
	}
	last := p.Height() - 1
	p.Text(0, last, cell.Muted, p.Cut(need, p.Width()))
	y := 0
	for _, m := range s.Small(p.Width() < narrow) {
		for _, text := range u.wrap(m.Text, p.Width()) {
			if y >= max(1, last) {
				return // the most urgent came first
			}
			p.Text(0, y, m.Token, p.Cut(text, p.Width()))
			y++
		}
	}
}

// narrow is the width below which the summary uses its shortest words.
const narrow = 36
