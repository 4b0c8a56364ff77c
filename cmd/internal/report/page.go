package report

import (
	"bufio"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// page draws lines no wider than its width. The first write error is kept.
type page struct {
	w     *bufio.Writer
	width int
	o     Options
	err   error
}

func newPage(w io.Writer, o Options) *page {
	return &page{w: bufio.NewWriter(w), width: o.width(), o: o}
}

// flush ends the page and returns the first error.
func (p *page) flush() error {
	if err := p.w.Flush(); p.err == nil {
		p.err = err
	}
	return p.err
}

// span makes text safe for this page.
func (p *page) span(t tone, s string) span {
	s = safe(s)
	if p.o.ASCII {
		s = figure.ASCII(s)
	}
	return span{s, t}
}

// mark is the symbol of a tone with its word.
func (p *page) mark(t tone, word string) span { return p.span(t, t.symbol()+nbsp+word) }

// text is a line or paragraph of one tone.
func (p *page) text(t tone, s string) text { return text{p.span(t, s)} }

// line writes t behind an indent. A line that would be too wide is wrapped.
func (p *page) line(indent int, t text) { p.para(indent, indent, t) }

// para writes a wrapped paragraph: its first line behind first cells, the
// others behind hang cells.
func (p *page) para(first, hang int, t text) {
	indent := first
	for _, l := range wrap(t, p.width-first, p.width-hang) {
		p.raw(indent, l)
		indent = hang
	}
}

// raw writes one line that is known to fit, without spaces at its end.
func (p *page) raw(indent int, t text) {
	line := text{{strings.Repeat(" ", indent), body}}
	for _, s := range t {
		s.s = strings.ReplaceAll(s.s, nbsp, " ")
		if last := &line[len(line)-1]; last.t == s.t {
			last.s += s.s
		} else {
			line = append(line, s)
		}
	}
	for i := len(line) - 1; i >= 0; i-- {
		line[i].s = strings.TrimRight(line[i].s, " ")
		if line[i].s != "" {
			break
		}
	}
	var b strings.Builder
	for _, s := range line {
		if code := s.t.sgr(); p.o.Color && code != "" && s.s != "" {
			s.s = code + s.s + sgrReset
		}
		b.WriteString(s.s)
	}
	b.WriteByte('\n')
	if _, err := p.w.WriteString(b.String()); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *page) blank() { p.raw(0, nil) }

// heading starts a section.
func (p *page) heading(title string, aside string) {
	p.blank()
	p.title(title, aside)
}

// title starts a page.
func (p *page) title(title, aside string) {
	t := p.text(strong, title)
	if aside != "" {
		t = append(t, p.span(muted, nbsp+" "+aside))
	}
	p.para(0, 2, t)
}

// define writes a label and its text, the text starting at column and wrapped
// there; a label that does not fit gets a line of its own.
func (p *page) define(indent, column int, label, t text) {
	if indent+label.width() > column-2 {
		p.para(indent, indent, label)
		p.para(column, column, t)
		return
	}
	lines := wrap(t, p.width-column, p.width-column)
	pad := strings.Repeat(" ", column-indent-label.width())
	p.raw(indent, append(append(append(text{}, label...), span{pad, body}), lines[0]...))
	for _, l := range lines[1:] {
		p.raw(column, l)
	}
}

// command writes a shell command so that it can be copied: lines end with a
// backslash, at a space where there is one, inside a word (then the next line
// starts at the margin) where there is none.
func (p *page) command(indent int, s string) {
	s = strings.ReplaceAll(p.span(body, s).s, nbsp, " ")
	first := true
	for s != "" {
		lead := indent
		if !first {
			lead = indent + 2
		}
		if lead+width(s) <= p.width {
			p.raw(lead, text{{s, accent}})
			return
		}
		head := fit(s, p.width-lead-2)
		at := strings.LastIndex(head, " -") // rather before a flag than before its value
		if at < len(head)/2 {
			at = strings.LastIndexByte(head, ' ')
		}
		if at > 0 {
			p.raw(lead, text{{head[:at] + ` \`, accent}})
			s, first = strings.TrimLeft(s[at:], " "), false
			continue
		}
		s, first = p.commandWord(lead, s), false
	}
}

// commandWord writes the long first word of s over several lines and returns
// what follows it.
func (p *page) commandWord(lead int, s string) string {
	long, rest, _ := strings.Cut(s, " ")
	for long != "" {
		if lead+width(long)+2 <= p.width {
			end := ""
			if rest != "" {
				end = ` \`
			}
			p.raw(lead, text{{long + end, accent}})
			break
		}
		head := fit(long, p.width-lead-1)
		p.raw(lead, text{{head + `\`, accent}})
		long, lead = long[len(head):], 0
	}
	return strings.TrimLeft(rest, " ")
}
