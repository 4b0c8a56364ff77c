package report

import (
	"strings"
	"unicode"
)

// span is text of one tone. Its text is already safe for the terminal.
type span struct {
	s string
	t tone
}

// text is a line, or the words of a paragraph.
type text []span

func (t text) width() int {
	n := 0
	for _, s := range t {
		n += width(s.s)
	}
	return n
}

// String is the text without its tones.
func (t text) String() string {
	var b strings.Builder
	for _, s := range t {
		b.WriteString(s.s)
	}
	return b.String()
}

// width counts the cells of a string: two for East Asian wide characters and
// emoji, one for others. Safe text holds no marks without a cell.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth follows Unicode's East Asian Width (UAX 11), wide and fullwidth
// blocks.
func runeWidth(r rune) int {
	switch {
	case r < 0x1100:
		return 1
	case r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xa960 && r <= 0xa97f,
		r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xfe10 && r <= 0xfe19, r >= 0xfe30 && r <= 0xfe6f,
		r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x16fe0 && r <= 0x18d08, r >= 0x1b000 && r <= 0x1b2ff,
		r >= 0x1f000 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	case strings.ContainsRune("⌚⌛〈〉⏩⏪⏫⏬⏰⏳◽◾☔☕♈♉♊♋♌♍♎♏♐♑♒♓♿⚓⚡⚪⚫⚽⚾⛄⛅⛎⛔⛪⛲⛳⛵⛺⛽✅✊✋✨❌❎❓❔❕❗➕➖➗➰➿⬛⬜⭐⭕", r):
		return 2
	}
	return 1
}

// safe makes foreign text printable: controls (and with them every escape
// sequence) and bidirectional overrides are shown as a replacement, marks that
// have no cell of their own are left out, any space is a space.
func safe(s string) string {
	s = strings.ReplaceAll(s, " %", nbsp+"%")
	return strings.Map(func(r rune) rune {
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
	}, s)
}

// word is a run of spans without a break between them.
type word struct {
	parts text
	space bool // a space stood before it
}

// words splits a paragraph at its spaces; a no-break space stays inside.
func words(t text) []word {
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
		rest := s.s
		for rest != "" {
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
			current.parts = append(current.parts, span{piece, s.t})
		}
	}
	flush()
	return list
}

// wrap breaks a paragraph into lines of at most first cells, then rest cells. A
// word longer than a line is broken where the line ends: nothing is cut off.
func wrap(t text, first, rest int) []text {
	first, rest = max(first, 1), max(rest, 1)
	var lines []text
	var line text
	used, limit := 0, first
	end := func() {
		lines = append(lines, line)
		line, used, limit = nil, 0, rest
	}
	for _, w := range words(t) {
		n, gap := w.parts.width(), 0
		if used > 0 && w.space {
			gap = 1
		}
		if used > 0 && used+gap+n > limit {
			end()
			gap = 0
		}
		if gap > 0 {
			between := span{" ", body}
			if last := line[len(line)-1].t; last == w.parts[0].t {
				between.t = last
			}
			line = append(line, between)
			used++
		}
		for _, part := range w.parts {
			for part.s != "" {
				head := fit(part.s, limit-used)
				if head == "" && used > 0 {
					end()
					continue
				}
				if head == "" { // wider than the whole line
					head = string([]rune(part.s)[:1])
				}
				line = append(line, span{head, part.t})
				used += width(head)
				part.s = part.s[len(head):]
			}
		}
	}
	if line != nil || len(lines) == 0 {
		end()
	}
	return lines
}

// fit returns the longest start of s that takes at most cells.
func fit(s string, cells int) string {
	n := 0
	for i, r := range s {
		n += runeWidth(r)
		if n > cells {
			return s[:i]
		}
	}
	return s
}

// nonEmpty drops empty parts.
func nonEmpty(parts ...string) []string {
	var out []string
	for _, s := range parts {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}
