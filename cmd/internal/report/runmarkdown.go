package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
)

// WriteRunMarkdown writes the whole run as Markdown with tables, which renderers of
// GitHub's dialect show and people can read as it is.
func WriteRunMarkdown(w io.Writer, s *engine.Snapshot) error { return newDossier(s).markdown(w) }

func (d *dossier) markdown(w io.Writer) error {
	m := &markdown{w: bufio.NewWriter(w)}
	m.block("# " + escaped(d.Title))
	if d.Simulated {
		m.block("**" + Simulated + " server**: it shows how rooftop works, not what hardware does.")
	}
	m.block("**" + escaped(d.Headline) + "**")
	m.block(paragraph(d.Reason))
	if d.Left != "" {
		m.block("**Not undone:** " + escaped(d.Left))
	}
	if d.Next != "" && d.Next != d.Reason {
		m.block("Next: " + escaped(d.Next))
	}
	if d.Best != "" {
		m.block("The kept launch command:")
		m.code(d.Best)
	}
	m.grid(&d.About)
	for i := range d.Grids {
		m.grid(&d.Grids[i])
	}
	return m.w.Flush()
}

// markdown writes blocks. A write error is kept by its writer.
type markdown struct{ w *bufio.Writer }

func (m *markdown) block(s string) {
	if s != "" {
		fmt.Fprint(m.w, s, "\n\n")
	}
}

// code writes a block whose fence is longer than any run of backticks in it.
func (m *markdown) code(s string) {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	m.block(fence + "\n" + strings.ReplaceAll(s, nbsp, " ") + "\n" + fence)
}

func (m *markdown) grid(g *grid) {
	if len(g.Rows) == 0 && g.Note == "" {
		return
	}
	m.block("## " + escaped(g.Title))
	m.block(paragraph(g.Note))
	if len(g.Rows) == 0 {
		return
	}
	m.row(g.Heads)
	var rule []string
	for i := range g.Heads {
		if g.Numeric(i) {
			rule = append(rule, "---:")
		} else {
			rule = append(rule, "---")
		}
	}
	fmt.Fprint(m.w, "| ", strings.Join(rule, " | "), " |\n")
	for _, row := range g.Rows {
		m.row(row)
	}
	fmt.Fprintln(m.w)
}

func (m *markdown) row(cells []string) {
	var out []string
	for _, c := range cells {
		out = append(out, escaped(c))
	}
	fmt.Fprint(m.w, "| ", strings.Join(out, " | "), " |\n")
}

// marks are the signs that mean something inside a line of Markdown, in any of its
// dialects.
var marks = func() *strings.Replacer {
	list := []string{nbsp, " ", "<", "&lt;", "&", "&amp;"}
	for _, c := range "\\`*[]|~$" {
		list = append(list, string(c), `\`+string(c))
	}
	return strings.NewReplacer(list...)
}()

// leading are the signs that make a line something other than a paragraph.
const leading = "#>+-=_"

// paragraph is text as a paragraph of its own.
func paragraph(s string) string {
	out := escaped(s)
	if out != "" && strings.ContainsRune(leading, rune(out[0])) {
		return `\` + out
	}
	return out
}

// escaped is text that Markdown shows as it is within a line: no emphasis, link,
// image or tag of a server's comes out of it.
func escaped(s string) string { return underscores(marks.Replace(strings.TrimSpace(safe(s)))) }

// underscores escapes those that may emphasise: the ones that do not stand between
// two letters or digits, as in a name.
func underscores(s string) string {
	inName := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || s[i] >= '0' && s[i] <= '9')
	}
	var b strings.Builder
	for i := range len(s) {
		if s[i] == '_' && (!inName(i-1) || !inName(i+1)) && (i == 0 || s[i-1] != '\\') {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
