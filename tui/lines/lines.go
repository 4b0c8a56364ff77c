// Package lines draws pages and numbers as lines of text: reports print them, screens scroll through them. No
// line is wider than asked for, and no word of a page is lost: long texts wrap, tables leave out their least
// important columns.
//
// Charts (sparklines, bars, plots in braille) depend only on their values, size and scale. A value that is
// absent, NaN or infinite is a gap: it is not drawn as zero, and lines do not cross it. With ASCII glyphs they
// draw 7-bit text only.
package lines

import (
	"cmp"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Options control how a page is formatted.
type Options struct {
	Width      int
	ASCII      bool // 7-bit text only
	Everything bool // include details, and every row of every table
	// Mark is written before and after the heading of the column that a table is sorted by.
	Mark [2]string
	// Bars replaces the tone page.Accent of bars and series.
	Bars page.Tone
}

// Columns of a page in cells.
const (
	indent     = 2  // of the text under a title
	textColumn = 13 // where the text after a label begins
)

// Lines are a page formatted for a width. Most lines of tables and charts are made on demand,
// because a screen shows few of them.
type Lines struct {
	blocks []block
	height int
}

// block is one line, or n lines that are made on demand.
type block struct {
	text page.Text
	n    int
	line func(i int) page.Text
}

// Height returns the number of lines.
func (l *Lines) Height() int { return l.height }

// From returns at most n lines, from line first on.
func (l *Lines) From(first, n int) []page.Text {
	first = min(max(first, 0), l.height)
	n = min(max(n, 0), l.height-first)
	out := make([]page.Text, 0, n)
	y := 0
	for i := range l.blocks {
		b := &l.blocks[i]
		for at := max(0, first-y); at < b.n && len(out) < n; at++ {
			if b.line == nil {
				out = append(out, b.text)
			} else {
				out = append(out, b.line(at))
			}
		}
		y += b.n
	}
	return out
}

// add appends n lines that are made on demand.
func (l *Lines) add(n int, line func(i int) page.Text) {
	l.blocks = append(l.blocks, block{n: n, line: line})
	l.height += n
}

// Page formats the sections of a page with a blank line between them.
func Page(p *page.Page, o Options) []page.Text {
	l := Sections(p.Sections, o)
	return l.From(0, l.height)
}

// Sections formats sections with a blank line between them. Sections without content are left out.
func Sections(list []page.Section, o Options) *Lines {
	s := &formatter{Options: o}
	s.Bars = cmp.Or(s.Bars, page.Accent)
	for len(list) > 0 {
		n := 1
		for list[0].Beside && n < len(list) && list[n].Beside {
			n++
		}
		if n > 1 {
			s.beside(list[:n])
		} else {
			s.section(&list[0])
		}
		list = list[n:]
	}
	return &s.Lines
}

// besideGutter is the minimum space between sections side by side.
const besideGutter = 3

// beside formats short sections side by side as far as there is room. Sections that do not fit
// go below the previous one.
func (s *formatter) beside(list []page.Section) {
	columns := make([][]page.Text, len(list))
	for i := range list {
		l := Sections(list[i:i+1], s.Options)
		columns[i] = l.From(0, l.height)
	}
	widest := func(lines []page.Text) int {
		n := 0
		for _, l := range lines {
			n = max(n, cell.Width(Plain(l)))
		}
		return n
	}
	total := func() int {
		n := -besideGutter
		for _, c := range columns {
			n += widest(c) + besideGutter
		}
		return n
	}
	for total() > s.Width && len(columns) > 1 {
		last := len(columns) - 1
		columns[last-1] = append(append(columns[last-1], nil), columns[last]...)
		columns = columns[:last]
	}
	if s.height > 0 {
		s.line(0, nil)
	}
	spare := max(0, s.Width-total())
	height := 0
	for _, c := range columns {
		height = max(height, len(c))
	}
	for y := range height {
		var line page.Text
		for i, c := range columns {
			var t page.Text
			if y < len(c) {
				t = c[y]
			}
			line = page.Join(line, t)
			if i < len(columns)-1 {
				line = page.Join(line, spaces(widest(c)+besideGutter+min(spare/(len(columns)-1), 6)-Width(t)))
			}
		}
		s.line(0, line)
	}
}

// formatter collects the lines of a page.
type formatter struct {
	Options
	Lines
}

func (s *formatter) section(sec *page.Section) {
	if sec.Detail && !s.Everything {
		return
	}
	before := s.Lines
	if before.height > 0 {
		s.line(0, nil)
	}
	in := 0
	if sec.Title != "" {
		in = indent
		t := page.Toned(page.Strong, sec.Title)
		if sec.Note != "" {
			t = page.Join(t, page.Toned(page.Muted, figure.NBSP+" "+sec.Note))
		}
		s.paragraph(0, indent, t)
	}
	empty := s.height
	for _, n := range sec.Nodes {
		s.node(in, n)
	}
	if s.height == empty {
		s.Lines = before
	}
}

func (s *formatter) node(in int, n page.Node) {
	switch n := n.(type) {
	case page.Prose:
		if n.Inset {
			in += indent
		}
		for i, l := range s.truncate(Wrap(s.safe(n.Text), s.Width-in, s.Width-in-indent), n.MaxLines, s.Width-in-indent) {
			s.line(in+min(i, 1)*indent, l)
		}
	case page.Command:
		s.command(max(in, indent), string(n))
	case page.Facts:
		s.facts(n)
	case page.Findings:
		s.findings(n)
	case *page.Table:
		s.table(n)
	case *page.Series:
		s.series(n)
	case *page.Timeline:
		s.timeline(n)
	case *page.Plot:
		if n.TerminalNode != nil {
			s.node(in, n.TerminalNode)
		}
	}
}

// line adds a line, indented by in cells.
func (s *formatter) line(in int, t page.Text) {
	if in > 0 && len(t) > 0 {
		t = page.Join(spaces(in), t)
	}
	s.blocks = append(s.blocks, block{text: t, n: 1})
	s.height++
}

// paragraph wraps a text. Its first line is indented by first cells, the others by hang.
func (s *formatter) paragraph(first, hang int, t page.Text) {
	for _, l := range Wrap(s.safe(t), s.Width-first, s.Width-hang) {
		s.line(first, l)
		first = hang
	}
}

// define writes a label, and its text wrapped from a column on. A label that does not fit gets its
// own line. most limits the lines of the text; 0 is no limit.
func (s *formatter) define(column int, label, t page.Text, most int) {
	label = s.safe(label)
	if indent+Width(label) > column-2 {
		s.paragraph(indent, indent, label)
		s.paragraph(column, column, t)
		return
	}
	lines := s.truncate(Wrap(s.safe(t), s.Width-column, s.Width-column), most, s.Width-column)
	s.line(indent, page.Join(label, spaces(column-indent-Width(label)), lines[0]))
	for _, l := range lines[1:] {
		s.line(column, l)
	}
}

// truncate returns the first most lines of a text. If there are more, the last one ends in an
// ellipsis. 0 is no limit.
func (s *formatter) truncate(list []page.Text, most, cells int) []page.Text {
	if most <= 0 || len(list) <= most {
		return list
	}
	mark := page.Toned(page.Muted, s.clean("…"))
	room := cells - Width(mark)
	var last page.Text
	for _, span := range list[most-1] {
		head, _ := cell.Split(span.Text, room)
		last, room = append(last, page.Span{Text: head, Tone: span.Tone}), room-cell.Width(head)
	}
	return append(list[:most-1:most-1], append(last, mark...))
}

func spaces(n int) page.Text { return page.Text{{Text: blanks(n)}} }

// blanks returns n spaces, none if n is negative.
func blanks(n int) string {
	const most = "                                                                                "
	if n <= len(most) {
		return most[:max(0, n)]
	}
	return strings.Repeat(" ", n)
}

func (s *formatter) facts(list page.Facts) {
	for _, f := range list {
		switch {
		case f.Detail && !s.Everything:
		case f.NoWrap && Width(s.safe(f.Text)) > s.Width-textColumn:
			s.line(indent, s.safe(page.Toned(page.Muted, f.Label)))
			s.line(0, s.safe(f.Text))
		default:
			s.define(textColumn, page.Toned(page.Muted, f.Label), f.Text, f.MaxLines)
		}
	}
}

func (s *formatter) findings(list page.Findings) {
	column := textColumn
	for _, f := range list {
		column = max(column, min(indent+cell.Width(f.Tone.Sign()+" "+f.Word)+2, 20))
	}
	for _, f := range list {
		mark := page.Mark(f.Tone, f.Word)
		if f.Tone == page.Body {
			mark = page.Toned(page.Muted, figure.NBSP+figure.NBSP+f.Word)
		}
		s.define(column, mark, f.Title, 0)
		for _, e := range f.Evidence {
			s.paragraph(column, column+indent, page.Toned(page.Muted, "· "+e))
		}
	}
}

func (s *formatter) safe(t page.Text) page.Text { return SafeText(t, s.ASCII) }

func (s *formatter) clean(text string) string { return Safe(text, s.ASCII) }

// Plain returns a line as it is printed: without tones, with spaces for no-break spaces, and
// without spaces at its end.
func Plain(t page.Text) string {
	return strings.TrimRight(strings.ReplaceAll(t.String(), figure.NBSP, " "), " ")
}

// command writes a shell command so that it can be copied. Lines end with a backslash, at a space
// if possible. Otherwise the line breaks inside a word, and the next one starts at the margin.
func (s *formatter) command(in int, text string) {
	text = strings.ReplaceAll(s.clean(text), figure.NBSP, " ")
	first := true
	for text != "" {
		lead := in
		if !first {
			lead = in + indent
		}
		if lead+cell.Width(text) <= s.Width {
			s.line(lead, page.Toned(page.Accent, text))
			return
		}
		head, _ := cell.Split(text, s.Width-lead-2)
		at := strings.LastIndex(head, " -") // rather before a flag than before its value
		if at < len(head)/2 {
			at = strings.LastIndexByte(head, ' ')
		}
		if at > 0 {
			s.line(lead, page.Toned(page.Accent, head[:at]+` \`))
			text = strings.TrimLeft(text[at:], " ")
		} else {
			text = s.commandWord(lead, text)
		}
		first = false
	}
}

// commandWord writes the long first word of a command over several lines, and returns the text
// after it.
func (s *formatter) commandWord(lead int, text string) string {
	long, rest, _ := strings.Cut(text, " ")
	for long != "" {
		if lead+cell.Width(long)+2 <= s.Width {
			if rest != "" {
				long += ` \`
			}
			s.line(lead, page.Toned(page.Accent, long))
			break
		}
		head, tail := cell.Split(long, s.Width-lead-1)
		s.line(lead, page.Toned(page.Accent, head+`\`))
		long, lead = tail, 0
	}
	return strings.TrimLeft(rest, " ")
}
