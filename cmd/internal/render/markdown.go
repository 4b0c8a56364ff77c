package render

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// Markdown writes a page as GitHub Flavored Markdown with every row and detail. It leaves out pictures, whose
// figures are also in tables.
func Markdown(w io.Writer, p *page.Page) error {
	m := &markdown{w: bufio.NewWriter(w)}
	if p.Title != "" {
		m.block("# " + escapeMarkdown(p.Title))
	}
	for i := range p.Sections {
		if s := &p.Sections[i]; !s.Terminal {
			m.section(s)
		}
	}
	if p.Foot != "" {
		m.block(escapeParagraph(p.Foot))
	}
	return m.w.Flush()
}

// markdown writes blocks. Its writer keeps the first error.
type markdown struct{ w *bufio.Writer }

func (m *markdown) block(s string) {
	if s != "" {
		fmt.Fprint(m.w, s, "\n\n")
	}
}

// section writes a section that has something to show in Markdown.
func (m *markdown) section(s *page.Section) {
	var body bytes.Buffer
	nodes := &markdown{w: bufio.NewWriter(&body)}
	nodes.nodes(s.Nodes)
	_ = nodes.w.Flush() // a buffer takes everything
	if body.Len() == 0 {
		return
	}
	if s.Title != "" {
		m.block("## " + escapeMarkdown(s.Title))
		m.block(escapeParagraph(s.Note))
	}
	_, _ = body.WriteTo(m.w) // an error is kept by the writer
}

func (m *markdown) nodes(list []page.Node) {
	for _, n := range list {
		switch n := n.(type) {
		case page.Prose:
			text := escapeParagraph(n.Text.String())
			if n.Lead {
				text = "**" + escapeMarkdown(n.Text.String()) + "**"
			}
			m.block(text)
		case page.Command:
			m.code(string(n))
		default:
			m.table(tableOf(n))
		}
	}
}

// code writes a code block. Its fence is longer than any run of backticks in s.
func (m *markdown) code(s string) {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	m.block(fence + "\n" + strings.ReplaceAll(s, figure.NBSP, " ") + "\n" + fence)
}

func (m *markdown) table(t *table) {
	if len(t.Rows) == 0 {
		return
	}
	m.row(t.Heads)
	var rule []string
	for _, r := range t.Right {
		rule = append(rule, map[bool]string{true: "---:", false: "---"}[r])
	}
	fmt.Fprint(m.w, "| ", strings.Join(rule, " | "), " |\n")
	for _, row := range t.Rows {
		m.row(row)
	}
	fmt.Fprintln(m.w)
}

func (m *markdown) row(cells []string) {
	var out []string
	for _, c := range cells {
		out = append(out, escapeMarkdown(c))
	}
	fmt.Fprint(m.w, "| ", strings.Join(out, " | "), " |\n")
}

// marks escapes the characters with a meaning inside a line, in any dialect of Markdown.
var marks = func() *strings.Replacer {
	list := []string{figure.NBSP, " ", "<", "&lt;", "&", "&amp;"}
	for _, c := range "\\`*[]|~$" {
		list = append(list, string(c), `\`+string(c))
	}
	return strings.NewReplacer(list...)
}()

// leading are the characters that start something other than a paragraph at the beginning of a line.
const leading = "#>+-=_"

// escapeParagraph escapes text as a separate paragraph.
func escapeParagraph(s string) string {
	out := escapeMarkdown(s)
	if out != "" && strings.ContainsRune(leading, rune(out[0])) {
		return `\` + out
	}
	return out
}

// escapeMarkdown escapes text within a line, so that foreign text contains no emphasis, link, image or tag.
func escapeMarkdown(s string) string {
	return underscores(marks.Replace(strings.Trim(lines.Safe(s, false), " \t\n")))
}

// underscores escapes underscores that may mean emphasis: those not between two letters or digits, as in names.
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
