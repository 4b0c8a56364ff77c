package frame

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// Lines formats sections of a page with all details. The heading of a table's sort column is in
// brackets.
func (u *Settings) Lines(list []page.Section, width int) *lines.Lines {
	return lines.Sections(list, lines.Options{Width: width, ASCII: u.Glyphs.ASCII, Everything: true, Mark: [2]string{"[", "]"}, Bars: cell.Baseline})
}

// Spell returns foreign text as this terminal can show it.
func (u *Settings) Spell(s string) string { return lines.Safe(s, u.Glyphs.ASCII) }

// Width returns how many cells a text takes on this terminal.
func (u *Settings) Width(t page.Text) int { return lines.Width(u.safe(t)) }

// Wrap splits a text into lines of at most w cells. Nothing is lost.
func (u *Settings) Wrap(t page.Text, w int) []page.Text { return lines.Wrap(u.safe(t), w, w) }

// wrap splits a sentence into lines of at most w cells.
func (u *Settings) wrap(s string, w int) []string {
	var list []string
	for _, l := range u.Wrap(page.Toned(page.Body, strings.TrimSpace(s)), w) {
		list = append(list, l.String())
	}
	return list
}

// Write writes a paragraph from line y on, wrapped to the width between column x and the edge of the pane. It returns
// the line after it.
func (u *Settings) Write(p cell.Pane, x, y int, t cell.Token, s string) int {
	for _, l := range u.wrap(s, p.Width()-x) {
		p.Text(x, y, t, l)
		y++
	}
	return y
}

// Cut returns a text in at most w cells. Shortened text ends in an ellipsis.
func (u *Settings) Cut(t page.Text, w int) page.Text {
	return lines.Cut(u.safe(t), w, u.Glyphs.Ellipsis)
}

func (u *Settings) safe(t page.Text) page.Text { return lines.SafeText(t, u.Glyphs.ASCII) }

// Text draws as many lines as fit, from column left on.
func (u *Settings) Text(p cell.Pane, left int, list []page.Text) {
	for y := range min(len(list), max(0, p.Height())) {
		p.Line(left, y, list[y])
	}
}

// Sign returns the symbol of a tone.
func (u *Settings) Sign(t page.Tone) string {
	switch t {
	case page.OK:
		return u.Glyphs.Good
	case page.Warn:
		return u.Glyphs.Warn
	case page.Bad:
		return u.Glyphs.Bad
	}
	return u.Glyphs.Info
}
