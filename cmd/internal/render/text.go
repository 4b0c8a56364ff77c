// Package render writes pages as text for terminals, as Markdown, and as HTML with embedded pictures. All words come
// from the page.
package render

import (
	"bufio"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// Options configure text output.
type Options struct {
	Width   int  // cells of a line; 0 is 80; limited to 40 to 120
	Color   bool // SGR colours; the words do not change
	ASCII   bool // seven-bit output
	Verbose bool // details, and every row of every table
}

// Bounds of the width in cells.
const (
	minWidth     = 40
	defaultWidth = 80
	maxWidth     = 120
)

// Cells returns the width of lines in cells.
func (o Options) Cells() int {
	if o.Width <= 0 {
		return defaultWidth
	}
	return min(max(o.Width, minWidth), maxWidth)
}

// Text writes a page as text. No line exceeds the width.
func Text(w io.Writer, p *page.Page, o Options) error {
	b := bufio.NewWriter(w)
	for _, line := range lines.Page(p, lines.Options{Width: o.Cells(), ASCII: o.ASCII, Everything: o.Verbose}) {
		if _, err := b.WriteString(terminalLine(line, o.Color)); err != nil {
			return err
		}
	}
	return b.Flush()
}

// terminalLine returns a line with its colours and a newline, without trailing spaces.
func terminalLine(line page.Text, color bool) string {
	if !color {
		return lines.Plain(line) + "\n"
	}
	var merged page.Text
	for _, s := range line {
		s.Text = strings.ReplaceAll(s.Text, figure.NBSP, " ")
		if n := len(merged); n > 0 && merged[n-1].Tone == s.Tone {
			merged[n-1].Text += s.Text
		} else {
			merged = append(merged, s)
		}
	}
	for i := len(merged) - 1; i >= 0; i-- {
		if merged[i].Text = strings.TrimRight(merged[i].Text, " "); merged[i].Text != "" {
			break
		}
	}
	var b strings.Builder
	for _, s := range merged {
		if code := sgr(s.Tone); code != "" && s.Text != "" {
			s.Text = code + s.Text + "\x1b[0m"
		}
		b.WriteString(s.Text)
	}
	b.WriteByte('\n')
	return b.String()
}

// sgr returns the ANSI 16-colour sequence of a tone; the terminal's theme determines the colours.
func sgr(t page.Tone) string {
	return [...]string{
		page.Body: "", page.Strong: "\x1b[1m", page.Muted: "\x1b[90m", page.Accent: "\x1b[1;36m", page.OK: "\x1b[32m", page.Warn: "\x1b[33m", page.Bad: "\x1b[31m",
	}[t]
}

// Lines wraps text to lines of at most width cells, without truncating it.
func Lines(s string, width int, ascii bool) []string {
	var out []string
	for _, l := range lines.Wrap(page.Toned(page.Body, lines.Safe(s, ascii)), width, width) {
		out = append(out, lines.Plain(l))
	}
	return out
}
