package tui

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// span is text of one meaning.
type span struct {
	token cell.Token
	text  string
}

// prose is a line, or the words of a paragraph. Its text is already spelled for
// the terminal (look.say); a no-break space stands until it is drawn.
type prose []span

// nbsp holds a figure and its unit together where lines are broken.
const nbsp = '\u00a0'

// say makes a text ready to be laid out: any other space is a space, signs
// without a cell are left out, and where the screen is ASCII so is the text.
func (u *look) say(t cell.Token, s string) prose {
	if s == "" {
		return nil
	}
	return prose{{t, u.spell(s)}}
}

func (u *look) spell(s string) string {
	s = strings.ReplaceAll(s, " %", string(nbsp)+"%")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == nbsp:
			return r
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		}
		return r
	}, s)
	if u.glyphs.ASCII {
		return figure.ASCII(s)
	}
	return s
}

// line joins pieces into one.
func line(parts ...prose) prose {
	var all prose
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func (p prose) width() int {
	n := 0
	for _, s := range p {
		n += cell.Width(s.text)
	}
	return n
}

// with gives the whole text another meaning: what is old is muted.
func (p prose) with(t cell.Token) prose {
	out := make(prose, len(p))
	for i, s := range p {
		out[i] = span{t, s.text}
	}
	return out
}

// draw writes the line at x, y and returns the column after it.
func (p prose) draw(to cell.Pane, x, y int) int {
	for _, s := range p {
		x = to.Text(x, y, s.token, s.text)
	}
	return x
}

// cut returns the text in at most w cells; what was left out is marked.
func (p prose) cut(w int, ellipsis string) prose {
	if p.width() <= w {
		return p
	}
	var out prose
	room := max(0, w-cell.Width(ellipsis))
	for _, s := range p {
		n := cell.Width(s.text)
		if n > room {
			head := strings.TrimRight(cell.Cut(s.text, room, ""), " ")
			return append(out, span{s.token, head}, span{s.token, cell.Cut(ellipsis, w, "")})
		}
		out, room = append(out, s), room-n
	}
	return out
}

// wrap sets a paragraph in lines of at most w cells, broken at spaces; words
// longer than a line are broken where it ends. Nothing is lost.
func (p prose) wrap(w int) []prose {
	w = max(1, w)
	var lines []prose
	var current prose
	used := 0
	flush := func() { lines, current, used = append(lines, current), nil, 0 }
	for _, word := range p.words() {
		n := word.width()
		if used > 0 && used+n > w {
			flush()
		}
		if used == 0 {
			word = word.trimLeft()
			n = word.width()
		}
		for n > w-used { // longer than a line
			head, tail := word.split(w - used)
			current = append(current, head...)
			flush()
			word, n = tail, tail.width()
		}
		current = append(current, word...)
		used += n
	}
	if len(current) > 0 || len(lines) == 0 {
		flush()
	}
	return lines
}

// words splits a paragraph before its spaces: each word but the first begins with
// the space that parts it from the one before.
func (p prose) words() []prose {
	var list []prose
	var word prose
	for _, s := range p {
		rest := s.text
		for rest != "" {
			if rest[0] == ' ' {
				if len(word) > 0 {
					list = append(list, word)
				}
				rest = strings.TrimLeft(rest, " ")
				word = prose{{s.token, " "}}
				continue
			}
			end := strings.IndexByte(rest, ' ')
			if end < 0 {
				end = len(rest)
			}
			word = append(word, span{s.token, rest[:end]})
			rest = rest[end:]
		}
	}
	if len(word) > 0 {
		list = append(list, word)
	}
	return list
}

func (p prose) trimLeft() prose {
	if len(p) > 0 && p[0].text == " " {
		return p[1:]
	}
	return p
}

// split cuts a word after w cells, at least one grapheme.
func (p prose) split(w int) (head, tail prose) {
	for i, s := range p {
		n := cell.Width(s.text)
		if n <= w {
			head, w = append(head, s), w-n
			continue
		}
		part := firstCells(s.text, w)
		if part == "" && len(head) == 0 {
			part, _ = ansi.FirstGraphemeCluster(s.text, ansi.GraphemeWidth)
		}
		if part != "" {
			head = append(head, span{s.token, part})
		}
		if rest := s.text[len(part):]; rest != "" {
			tail = prose{{s.token, rest}}
		}
		return head, append(tail, p[i+1:]...)
	}
	return head, nil
}

// firstCells is the longest start of s that takes at most w cells.
func firstCells(s string, w int) string {
	at := 0
	for at < len(s) {
		g, _ := ansi.FirstGraphemeCluster(s[at:], ansi.GraphemeWidth)
		n := cell.Width(g)
		if n > w {
			break
		}
		w, at = w-n, at+len(g)
	}
	return s[:at]
}
