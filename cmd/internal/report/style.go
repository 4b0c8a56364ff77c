package report

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// tone is what a piece of text means. Colour only repeats what the words and
// symbols say.
type tone uint8

const (
	body tone = iota
	strong
	muted
	accent
	ok
	warn
	bad
)

// sgr returns the ANSI-16 sequence of a tone: the terminal's own theme decides
// how it looks. "" is plain.
func (t tone) sgr() string {
	switch t {
	case strong:
		return "\x1b[1m"
	case muted:
		return "\x1b[90m"
	case accent:
		return "\x1b[1;36m"
	case ok:
		return "\x1b[32m"
	case warn:
		return "\x1b[33m"
	case bad:
		return "\x1b[31m"
	}
	return ""
}

const sgrReset = "\x1b[0m"

// symbol returns the mark of a tone that stands before its word.
func (t tone) symbol() string {
	switch t {
	case ok:
		return "●"
	case warn:
		return "▲"
	case bad:
		return "✖"
	}
	return absent
}

// absent stands for a value that is not there.
const absent = figure.Absent

// nbsp holds a number and its unit together in a wrapped line.
const nbsp = figure.NBSP

// Lines sets a paragraph in lines of at most width cells, as the report does:
// control characters are made harmless, and with ascii it is spelled in seven
// bits. Nothing is cut off.
func Lines(s string, width int, ascii bool) []string {
	s = safe(s)
	if ascii {
		s = figure.ASCII(s)
	}
	var out []string
	for _, l := range wrap(text{{s, body}}, width, width) {
		var b strings.Builder
		for _, part := range l {
			b.WriteString(strings.ReplaceAll(part.s, nbsp, " "))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}
