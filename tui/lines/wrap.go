package lines

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

const unknown = "\ufffd"

// Safe returns untrusted text in printable form. Control characters, and with them escape
// sequences, bidirectional overrides, and characters whose width differs between terminals become a
// replacement character. Characters without width are removed. White space becomes a space, except
// that no-break spaces stay. If ascii is set, the result is 7-bit text.
func Safe(s string, ascii bool) string {
	s = strings.ReplaceAll(s, " %", figure.NBSP+"%")
	if ascii {
		s = figure.ASCII(strings.Map(printable, s))
	}
	if strings.IndexFunc(s, func(r rune) bool { return !cell.Plain(r) && r != '\u00a0' }) < 0 {
		return s
	}
	var b strings.Builder
	for rest := strings.Map(printable, strings.ToValidUTF8(s, unknown)); rest != ""; {
		g, w := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
		rest = rest[len(g):]
		switch {
		case w == 0:
		case g != figure.NBSP && ansi.StringWidthWc(g) != w:
			b.WriteString(unknown)
		default:
			b.WriteString(g)
		}
	}
	return b.String()
}

// printable maps characters that a line must not contain.
func printable(r rune) rune {
	switch {
	case r == '\u00a0':
		return r
	case unicode.IsSpace(r):
		return ' '
	case unicode.In(r, unicode.Mn, unicode.Me), r == '\u200b', r == '\u200d', r == '\ufeff', r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff:
		return -1
	case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Cs, unicode.Co):
		return '\ufffd'
	}
	return r
}

// SafeText applies [Safe] to every span.
func SafeText(t page.Text, ascii bool) page.Text {
	out := make(page.Text, len(t))
	for i, s := range t {
		out[i] = page.Span{Text: Safe(s.Text, ascii), Tone: s.Tone}
	}
	return out
}

// Width returns how many cells a safe text takes.
func Width(t page.Text) int {
	n := 0
	for _, s := range t {
		n += cell.Width(s.Text)
	}
	return n
}

// word is a run of spans without a space between them.
type word struct {
	parts page.Text
	space bool // preceded by a space
}

// words splits a paragraph at its spaces. No-break spaces do not split.
func words(t page.Text) []word {
	var list []word
	var current word
	space := false
	flush := func() {
		if len(current.parts) > 0 {
			list = append(list, current)
		}
		current = word{}
	}
	for _, s := range t {
		for rest := s.Text; rest != ""; {
			if rest[0] == ' ' {
				flush()
				space = true
				rest = strings.TrimLeft(rest, " ")
				continue
			}
			piece, _, _ := strings.Cut(rest, " ")
			rest = rest[len(piece):]
			if len(current.parts) == 0 {
				current.space = space && len(list) > 0
				space = false
			}
			current.parts = append(current.parts, page.Span{Text: piece, Tone: s.Tone})
		}
	}
	flush()
	return list
}

// Wrap breaks a paragraph of safe text into lines: the first of at most first cells, the others of
// at most rest cells. A word longer than a line is broken at the end of the line; no text is lost.
func Wrap(t page.Text, first, rest int) []page.Text {
	first, rest = max(first, 1), max(rest, 1)
	if Width(t) <= first && !strings.Contains(t.String(), "  ") {
		return []page.Text{t}
	}
	var lines []page.Text
	var line page.Text
	used, limit := 0, first
	end := func() {
		lines = append(lines, line)
		line, used, limit = nil, 0, rest
	}
	for _, w := range words(t) {
		n, gap := Width(w.parts), 0
		if used > 0 && w.space {
			gap = 1
		}
		if used > 0 && used+gap+n > limit {
			end()
			gap = 0
		}
		if gap > 0 {
			between := page.Span{Text: " "}
			if last := line[len(line)-1].Tone; last == w.parts[0].Tone {
				between.Tone = last
			}
			line = append(line, between)
			used++
		}
		for _, part := range w.parts {
			for part.Text != "" {
				head, _ := cell.Split(part.Text, limit-used)
				if head == "" && used > 0 {
					end()
					continue
				}
				if head == "" { // wider than the whole line
					head, _ = ansi.FirstGraphemeCluster(part.Text, ansi.GraphemeWidth)
				}
				line = append(line, page.Span{Text: head, Tone: part.Tone})
				used += cell.Width(head)
				part.Text = part.Text[len(head):]
			}
		}
	}
	if line != nil || len(lines) == 0 {
		end()
	}
	return lines
}

// Cut returns a safe text in at most w cells. Shortened text ends in the ellipsis.
func Cut(t page.Text, w int, ellipsis string) page.Text {
	if Width(t) <= w {
		return t
	}
	var out page.Text
	room := max(0, w-cell.Width(ellipsis))
	for _, s := range t {
		n := cell.Width(s.Text)
		if n > room {
			head, _ := cell.Split(s.Text, room)
			return append(out, page.Span{Text: strings.TrimRight(head, " ") + cell.Cut(ellipsis, w, ""), Tone: s.Tone})
		}
		out, room = append(out, s), room-n
	}
	return out
}

// Clip returns a name in at most the given cells. A longer name loses its middle.
func Clip(s string, cells int) string {
	if cell.Width(s) <= cells {
		return s
	}
	runes := []rune(s)
	tail := ""
	for i := len(runes) - 1; i > 0 && cell.Width(string(runes[i:])) <= cells/2-1; i-- {
		tail = string(runes[i:])
	}
	head, _ := cell.Split(s, max(0, cells-cell.Width(tail)-1))
	return head + "…" + tail
}
