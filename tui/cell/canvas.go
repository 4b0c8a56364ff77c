package cell

import (
	"image"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// Canvas is a grid of cells. A cell with the zero value is blank.
type Canvas struct {
	w, h  int
	ascii bool
	cells []sign
}

// sign is the content of one cell: a grapheme, or "" for a blank, and its token. filler marks the
// second cell of a wide grapheme.
type sign struct {
	text   string
	token  Token
	filler bool
}

// NewCanvas returns a blank canvas of w by h cells. Negative sizes count as 0.
func NewCanvas(w, h int) *Canvas {
	w, h = max(0, w), max(0, h)
	return &Canvas{w: w, h: h, cells: make([]sign, w*h)}
}

// ASCII makes the canvas convert all text written from now on to 7-bit ASCII, so that no view has
// to. It returns the canvas.
func (c *Canvas) ASCII() *Canvas {
	c.ascii = true
	return c
}

// Pane returns a pane that covers the whole canvas.
func (c *Canvas) Pane() Pane { return Pane{c, image.Rect(0, 0, c.w, c.h)} }

// Plain returns the canvas as text, one line per row, without trailing blanks.
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

// Render returns the canvas as text. It calls paint once for every run of cells with the same
// token. Rows are separated by newlines, with none at the end.
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

// Pane is a rectangle of a canvas with its own origin. Writing outside of it has no effect. The
// zero Pane has no cells.
type Pane struct {
	c *Canvas
	r image.Rectangle
}

// Width returns the number of cells in a line.
func (p Pane) Width() int { return p.r.Dx() }

// Height returns the number of lines.
func (p Pane) Height() int { return p.r.Dy() }

// Sub returns the part of the pane at x, y with w by h cells, clipped to the pane.
func (p Pane) Sub(x, y, w, h int) Pane {
	at := p.r.Min.Add(image.Pt(x, y))
	return Pane{p.c, image.Rectangle{at, at.Add(image.Pt(max(0, w), max(0, h)))}.Intersect(p.r)}
}

// Text writes s at x, y and returns the column after it. Text that does not fit is clipped, white
// space becomes blanks, and characters without width, such as control characters, are skipped.
func (p Pane) Text(x, y int, t Token, s string) int {
	s = p.spell(s)
	if y < 0 || y >= p.Height() {
		return x + Width(s)
	}
	for s != "" {
		var g string
		var w int
		if g, w, s = next(s); w > 0 {
			p.put(x, y, t, g, w)
			x += w
		}
	}
	return x
}

// Line writes a text of several tones at x, y and returns the column after it.
func (p Pane) Line(x, y int, t page.Text) int {
	for _, s := range t {
		x = p.Text(x, y, s.Tone, s.Text)
	}
	return x
}

// unknown replaces graphemes that terminals draw differently.
const unknown = "\ufffd"

// Plain reports whether a rune takes one cell on every terminal and does not combine with another
// plain rune: Latin letters, digits, and chart symbols.
func Plain(r rune) bool {
	switch {
	case r < 0x7f:
		return r >= ' '
	case r < 0x300:
		return r > 0xa0 && r != 0xad
	}
	return r >= 0x2500 && r <= 0x25fc || r >= 0x2010 && r <= 0x2027 || r >= 0x2190 && r <= 0x2319 || r >= 0x2800 && r <= 0x28ff
}

// next returns the printable form of the first grapheme of s, its width in cells, and the rest of
// s. The text must be valid UTF-8 and not empty.
func next(s string) (g string, w int, rest string) {
	if c := s[0]; c >= ' ' && c < 0x7f && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return s[:1], 1, s[1:]
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == '\t' || r == '\n':
		return " ", 1, s[n:]
	case r < ' ' || r == 0x7f:
		return "", 0, s[n:]
	case Plain(r):
		if after, _ := utf8.DecodeRuneInString(s[n:]); n == len(s) || Plain(after) {
			return s[:n], 1, s[n:]
		}
	}
	g, w = ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	rest = s[len(g):]
	g, w = printable(g, w)
	return g, w, rest
}

// printable returns the text drawn for a grapheme, and its width. Graphemes without a printable
// form, or whose width differs between terminals, become unknown: a line longer than counted would
// break the frame.
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

// spell returns s as it is written on this canvas: in ASCII if the canvas is ASCII, without invalid
// bytes.
func (p Pane) spell(s string) string {
	if p.c != nil && p.c.ascii {
		return figure.ASCII(s)
	}
	return valid(s)
}

// valid replaces invalid UTF-8, which a terminal could take for a control sequence.
func valid(s string) string { return strings.ToValidUTF8(s, unknown) }

func (p Pane) put(x, y int, t Token, g string, w int) {
	if x < 0 || x+w > p.Width() {
		return
	}
	row := p.c.row(p.r.Min.Y + y)
	at := p.r.Min.X + x
	for i := at; i < at+w; i++ { // overwriting one cell of a wide sign removes all of it
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

// clearWide blanks the wide sign that covers the cell at i.
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

// Cells returns how many cells a text takes on this canvas. In ASCII some characters take more than
// one.
func (p Pane) Cells(s string) int { return Width(p.spell(s)) }

// Cut returns s as it is written on this canvas, in at most w cells. Shortened text ends in an
// ellipsis.
func (p Pane) Cut(s string, w int) string { return Cut(p.spell(s), w, p.spell("…")) }

// Clear blanks the pane.
func (p Pane) Clear() { p.Fill(Body, " ") }

// Tint changes the token of every cell of the pane.
func (p Pane) Tint(t Token) {
	for y := range p.Height() {
		p.Mark(0, p.Width(), y, t)
	}
}

// Fill writes s, which must have width 1, into every cell.
func (p Pane) Fill(t Token, s string) {
	for y := range p.Height() {
		for x := range p.Width() {
			p.put(x, y, t, s, 1)
		}
	}
}

// Mark changes the token of the cells of line y from column x up to, but not including, column to.
func (p Pane) Mark(x, to, y int, t Token) {
	if y < 0 || y >= p.Height() {
		return
	}
	row := p.c.row(p.r.Min.Y + y)
	for i := max(0, x); i < min(to, p.Width()); i++ {
		row[p.r.Min.X+i].token = t
	}
}

// Highlight marks each occurrence of a text, in upper or lower case, as selected.
func (p Pane) Highlight(text string) {
	sought := strings.ToLower(p.spell(text))
	if sought == "" {
		return
	}
	for y := range p.Height() {
		row := p.c.row(p.r.Min.Y + y)[p.r.Min.X:p.r.Max.X]
		var line strings.Builder
		starts := make([]int, 0, len(row)) // byte at which each cell begins
		for _, s := range row {
			starts = append(starts, line.Len())
			if !s.filler {
				line.WriteString(strings.ToLower(orBlank(s.text)))
			}
		}
		for at, all := 0, line.String(); ; {
			i := strings.Index(all[at:], sought)
			if i < 0 {
				break
			}
			from := at + i
			at = from + len(sought)
			first, _ := slices.BinarySearch(starts, from)
			last, _ := slices.BinarySearch(starts, at)
			p.Mark(first, last, y, Selected)
		}
	}
}

// Width returns how many cells a text takes.
func Width(s string) int {
	n, w := 0, 0
	for s = valid(s); s != ""; n += w {
		_, w, s = next(s)
	}
	return n
}

// Cut returns s in at most w cells. Shortened text ends in ellipsis, unless that is wider than w.
func Cut(s string, w int, ellipsis string) string {
	s = valid(s)
	if Width(s) <= w {
		return s
	}
	keep := w - Width(ellipsis)
	if keep < 0 {
		ellipsis, keep = "", max(0, w)
	}
	head, _ := Split(s, keep)
	return strings.TrimRight(head, " ") + ellipsis
}

// Split cuts s before the first grapheme that does not fit into w cells.
func Split(s string, w int) (head, rest string) {
	for rest = s; rest != ""; {
		_, gw, after := next(rest)
		if gw > w {
			break
		}
		w, rest = w-gw, after
	}
	return s[:len(s)-len(rest)], rest
}
