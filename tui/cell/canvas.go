package cell

import (
	"image"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Canvas is a grid of cells. The zero value of a cell is blank.
type Canvas struct {
	w, h  int
	cells []sign
}

// sign is what stands in one cell: a grapheme, "" for a blank, and its width; the
// second cell of a wide grapheme is filler.
type sign struct {
	text   string
	token  Token
	filler bool
}

// NewCanvas returns a blank sheet of w by h cells; negative sizes are 0.
func NewCanvas(w, h int) *Canvas {
	w, h = max(0, w), max(0, h)
	return &Canvas{w: w, h: h, cells: make([]sign, w*h)}
}

// Pane returns the whole sheet.
func (c *Canvas) Pane() Pane { return Pane{c, image.Rect(0, 0, c.w, c.h)} }

// Plain returns the sheet as text, one line a row, without trailing blanks.
func (c *Canvas) Plain() string {
	var b strings.Builder
	for y := range c.h {
		var line strings.Builder
		for _, s := range c.row(y) {
			if !s.filler {
				line.WriteString(orBlank(s.text))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// Render returns the sheet as text whose runs of one token went through paint.
// Rows are joined by newlines, without one at the end.
func (c *Canvas) Render(paint func(Token, string) string) string {
	var out, run strings.Builder
	for y := range c.h {
		if y > 0 {
			out.WriteByte('\n')
		}
		token := Body
		flush := func() {
			if run.Len() > 0 {
				out.WriteString(paint(token, run.String()))
				run.Reset()
			}
		}
		for _, s := range c.row(y) {
			if s.filler {
				continue
			}
			if s.token != token {
				flush()
				token = s.token
			}
			run.WriteString(orBlank(s.text))
		}
		flush()
	}
	return out.String()
}

func (c *Canvas) row(y int) []sign { return c.cells[y*c.w : (y+1)*c.w] }

func orBlank(s string) string {
	if s == "" {
		return " "
	}
	return s
}

// Pane is a rectangle of a sheet with its own origin. Writing outside of it has no
// effect. The zero Pane has no size.
type Pane struct {
	c *Canvas
	r image.Rectangle
}

// Width returns the cells of a line.
func (p Pane) Width() int { return p.r.Dx() }

// Height returns the number of lines.
func (p Pane) Height() int { return p.r.Dy() }

// Rect returns where the pane lies on its sheet.
func (p Pane) Rect() image.Rectangle { return p.r }

// Sub returns the part of the pane at x, y of w by h cells, cut to the pane.
func (p Pane) Sub(x, y, w, h int) Pane {
	at := p.r.Min.Add(image.Pt(x, y))
	return Pane{p.c, image.Rectangle{at, at.Add(image.Pt(max(0, w), max(0, h)))}.Intersect(p.r)}
}

// Text writes s at x, y and returns the column after it. What does not fit is cut
// off; control characters are left out.
func (p Pane) Text(x, y int, t Token, s string) int {
	if y < 0 || y >= p.Height() {
		return x + ansi.StringWidth(s)
	}
	for len(s) > 0 {
		g, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		s = s[len(g):]
		if w == 0 || g[0] < ' ' || g[0] == 0x7f {
			continue
		}
		p.put(x, y, t, g, w)
		x += w
	}
	return x
}

func (p Pane) put(x, y int, t Token, g string, w int) {
	if x < 0 || x+w > p.Width() {
		return
	}
	row := p.c.row(p.r.Min.Y + y)
	at := p.r.Min.X + x
	row[at] = sign{text: g, token: t}
	for i := 1; i < w; i++ {
		row[at+i] = sign{token: t, filler: true}
	}
}

// Right writes s so that it ends before column x.
func (p Pane) Right(x, y int, t Token, s string) { p.Text(x-ansi.StringWidth(s), y, t, s) }

// Fill writes a sign of width 1 into every cell.
func (p Pane) Fill(t Token, s string) {
	for y := range p.Height() {
		for x := range p.Width() {
			p.put(x, y, t, s, 1)
		}
	}
}

// Mark gives the cells of a line another token, from column x to before column to.
func (p Pane) Mark(x, to, y int, t Token) {
	if y < 0 || y >= p.Height() {
		return
	}
	row := p.c.row(p.r.Min.Y + y)
	for i := max(0, x); i < min(to, p.Width()); i++ {
		row[p.r.Min.X+i].token = t
	}
}

// Width returns how many cells a text takes.
func Width(s string) int { return ansi.StringWidth(s) }

// Cut returns s in at most w cells; what was cut off leaves an ellipsis.
func Cut(s string, w int, ellipsis string) string { return ansi.Truncate(s, max(0, w), ellipsis) }

// Wrap sets a paragraph in lines of at most w cells. Words longer than a line are
// broken; nothing is lost.
func Wrap(s string, w int) []string {
	return strings.Split(ansi.Wrap(s, max(1, w), ""), "\n")
}
