package cell

import (
	"image"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Canvas is a grid of cells. The zero value of a cell is blank.
type Canvas struct {
	w, h  int
	ascii bool
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

// ASCII makes the sheet spell whatever is written on it from now on in seven
// bits, so that no view can forget to. It returns the sheet.
func (c *Canvas) ASCII() *Canvas {
	c.ascii = true
	return c
}

// Width returns the cells of a line.
func (c *Canvas) Width() int { return c.w }

// Height returns the number of lines.
func (c *Canvas) Height() int { return c.h }

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
// off; any white space is a blank; control characters and others without a cell
// are left out.
func (p Pane) Text(x, y int, t Token, s string) int {
	s = p.spell(s)
	if y < 0 || y >= p.Height() {
		return x + Width(s)
	}
	for len(s) > 0 {
		if c := s[0]; c < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
			switch {
			case c == '\t' || c == '\n':
				p.put(x, y, t, " ", 1)
				x++
			case c >= ' ' && c != 0x7f:
				p.put(x, y, t, s[:1], 1)
				x++
			}
			s = s[1:]
			continue
		}
		g, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		s = s[len(g):]
		if g, w = printable(g, w); w > 0 {
			p.put(x, y, t, g, w)
			x += w
		}
	}
	return x
}

// unknown stands for what no terminal is sure to draw.
const unknown = "\ufffd"

// printable returns what stands for a grapheme on the sheet, and its width. One
// whose width terminals disagree about, and what is no text at all, is drawn as
// unknown: a line that is longer than was counted would break the frame.
func printable(g string, w int) (string, int) {
	switch {
	case g == figure.NBSP || g == "\u2028" || g == "\u2029":
		return " ", 1
	case w == 0:
		return "", 0
	case ansi.StringWidthWc(g) != w:
		return unknown, 1
	}
	return g, w
}

// spell returns s as it is written on this sheet.
func (p Pane) spell(s string) string {
	if p.c != nil && p.c.ascii {
		return figure.ASCII(s)
	}
	return valid(s)
}

// valid marks bytes that are no text: a terminal could take them for a command.
func valid(s string) string { return strings.ToValidUTF8(s, unknown) }

func (p Pane) put(x, y int, t Token, g string, w int) {
	if x < 0 || x+w > p.Width() {
		return
	}
	row := p.c.row(p.r.Min.Y + y)
	at := p.r.Min.X + x
	for i := at; i < at+w; i++ { // a wide sign that loses one of its cells is gone
		clearWide(row, i)
	}
	if g == " " {
		g = ""
	}
	row[at] = sign{text: g, token: t}
	for i := 1; i < w; i++ {
		row[at+i] = sign{token: t, filler: true}
	}
}

// clearWide blanks the wide sign of which the cell at i is a part.
func clearWide(row []sign, i int) {
	if row[i].filler && i > 0 {
		row[i-1].text, row[i].filler = "", false
	}
	if i+1 < len(row) && row[i+1].filler {
		row[i].text, row[i+1].filler = "", false
	}
}

// Right writes s so that it ends before column x.
func (p Pane) Right(x, y int, t Token, s string) {
	s = p.spell(s)
	p.Text(x-Width(s), y, t, s)
}

// Centre writes s in the middle of the line, cut to it, and returns the column
// after it.
func (p Pane) Centre(y int, t Token, s string) int {
	s = p.Cut(s, p.Width())
	return p.Text((p.Width()-Width(s))/2, y, t, s)
}

// Cells returns how many cells a text takes on this sheet: in seven bits some
// signs take more than one.
func (p Pane) Cells(s string) int { return Width(p.spell(s)) }

// Cut returns s as it is written on this sheet, in at most w cells; what was cut
// off leaves an ellipsis.
func (p Pane) Cut(s string, w int) string { return Cut(p.spell(s), w, p.spell("…")) }

// Wrap sets a paragraph, as it is written on this sheet, in lines of at most w
// cells.
func (p Pane) Wrap(s string, w int) []string { return Wrap(p.spell(s), w) }

// Paragraph writes s from line y on, wrapped to the width from column x to the
// edge of the pane, and returns the line after it.
func (p Pane) Paragraph(x, y int, t Token, s string) int {
	for _, l := range p.Wrap(s, p.Width()-x) {
		p.Text(x, y, t, l)
		y++
	}
	return y
}

// Clear blanks the pane.
func (p Pane) Clear() { p.Fill(Body, " ") }

// Tint gives every cell of the pane another token.
func (p Pane) Tint(t Token) {
	for y := range p.Height() {
		p.Mark(0, p.Width(), y, t)
	}
}

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
func Width(s string) int {
	s = valid(s)
	n := 0
	for len(s) > 0 {
		if c := s[0]; c < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
			if c >= ' ' && c != 0x7f || c == '\t' || c == '\n' {
				n++
			}
			s = s[1:]
			continue
		}
		g, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		_, w = printable(g, w)
		n += w
		s = s[len(g):]
	}
	return n
}

// Cut returns s in at most w cells; what was cut off leaves an ellipsis.
func Cut(s string, w int, ellipsis string) string {
	s = valid(s)
	if Width(s) <= w {
		return s
	}
	keep := w - Width(ellipsis)
	if keep < 0 {
		ellipsis, keep = "", max(0, w)
	}
	head, _ := split(s, keep)
	return strings.TrimRight(head, " ") + ellipsis
}

// split returns the part of s that fits into w cells, and the rest.
func split(s string, w int) (head, rest string) {
	n := 0
	for at := 0; at < len(s); {
		g, gw := ansi.FirstGraphemeCluster(s[at:], ansi.GraphemeWidth)
		_, gw = printable(g, gw)
		if n+gw > w {
			return s[:at], s[at:]
		}
		n += gw
		at += len(g)
	}
	return s, ""
}

// Wrap sets a paragraph in lines of at most w cells, broken at spaces; newlines
// stay. Only words longer than a line are broken, so that a flag is not taken
// apart at its hyphens; no-break spaces hold. Nothing is lost.
func Wrap(s string, w int) []string {
	s, w = valid(s), max(1, w)
	var out []string
	for paragraph := range strings.SplitSeq(s, "\n") {
		line, n := "", 0
		for _, word := range strings.FieldsFunc(paragraph, func(r rune) bool { return r == ' ' || r == '\t' }) {
			cells := Width(word)
			switch {
			case line == "":
			case n+1+cells <= w:
				line, n = line+" "+word, n+1+cells
				continue
			default:
				out = append(out, line)
			}
			for cells > w {
				head, rest := split(word, w)
				if head == "" { // a wide sign on a line of one cell
					_, size := utf8.DecodeRuneInString(rest)
					head, rest = rest[:size], rest[size:]
				}
				out = append(out, head)
				word, cells = rest, cells-Width(head)
			}
			line, n = word, cells
		}
		out = append(out, line)
	}
	return out
}
