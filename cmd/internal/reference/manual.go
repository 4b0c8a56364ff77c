package reference

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// Manual returns a page of docs/, from its Markdown: headings, paragraphs, lists, tables and blocks of code.
// Other marks stay as they are.
func Manual(markdown string) *page.Page {
	m := manual{page: &page.Page{}}
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			m.block(paragraph)
		}
		paragraph = nil
	}
	fenced := false
	for line := range strings.Lines(comments.ReplaceAllString(markdown, "")) {
		line = strings.TrimRight(line, "\n")
		title := strings.TrimLeft(line, "#")
		switch {
		case strings.HasPrefix(line, "```"):
			end()
			if fenced = !fenced; fenced {
				m.space()
			}
		case fenced:
			// Indentation and columns stay; a line that is too long breaks between words.
			line = columns.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat(figure.NBSP, len(s)) })
			m.add(page.Inset(page.Toned(page.Accent, cmp.Or(line, figure.NBSP))))
		case title != line && strings.HasPrefix(title, " "):
			end()
			m.heading(strings.TrimSpace(title))
		case strings.TrimSpace(line) == "":
			end()
		case listItem.MatchString(line) && len(paragraph) > 0 && !strings.HasPrefix(paragraph[0], "|"):
			end()
			m.tight = true
			paragraph = []string{line}
		default:
			paragraph = append(paragraph, line)
		}
	}
	end()
	return m.page
}

var (
	comments = regexp.MustCompile(`(?m)^<!--.*-->\n`)
	columns  = regexp.MustCompile(`^ +| {2,}`)
	listItem = regexp.MustCompile(`^ *(-|\d+\.) `)
	// links match a link or a picture: its text and its address.
	links = regexp.MustCompile(`!?\[([^\]]*)\]\(([^)]*)\)`)
	rule  = regexp.MustCompile(`^\|[-:| ]+\|$`)
)

// manual collects the nodes of a page.
type manual struct {
	page  *page.Page
	tight bool // no blank line before the next block
}

func (m *manual) heading(title string) {
	if m.page.Title == "" {
		m.page.Title = title
	}
	m.page.Sections = append(m.page.Sections, page.Section{ID: fmt.Sprintf("section-%d", len(m.page.Sections)), Title: inline(title).String()})
}

func (m *manual) add(n page.Node) {
	if len(m.page.Sections) == 0 {
		m.heading("")
	}
	m.page.Sections[len(m.page.Sections)-1].Add(n)
}

// space leaves a line blank between two blocks.
func (m *manual) space() {
	if n := len(m.page.Sections); n > 0 && len(m.page.Sections[n-1].Nodes) > 0 && !m.tight {
		m.add(page.Paragraph(page.Toned(page.Body, figure.NBSP)))
	}
	m.tight = false
}

// block adds a paragraph, an item of a list, or a table.
func (m *manual) block(lines []string) {
	m.space()
	if !strings.HasPrefix(lines[0], "|") {
		nested := strings.HasPrefix(lines[0], "  ")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		m.add(page.Prose{Text: inline(strings.Join(lines, " ")), Inset: nested})
		return
	}
	t := &page.Table{}
	for _, cell := range cells(lines[0]) {
		t.Columns = append(t.Columns, page.Column{Head: cell.Text, Left: true})
	}
	for _, line := range lines[1:] {
		if !rule.MatchString(line) {
			row := append(cells(line), make([]page.Cell, len(t.Columns))...)
			t.Rows = append(t.Rows, row[:len(t.Columns)])
		}
	}
	if len(t.Columns) < 3 || slices.IndexFunc(t.Rows, func(row []page.Cell) bool { return utf8.RuneCountInString(row[1].Text) > wordy }) < 0 {
		m.add(t)
		return
	}
	for _, row := range t.Rows {
		m.add(page.Paragraph(page.Toned(page.Strong, row[0].Text)))
		for i, cell := range row[1:] {
			m.add(page.Inset(page.Toned(page.Muted, t.Columns[i+1].Head+": "), page.Toned(page.Body, cell.Text)))
		}
	}
}

// wordy is the length of a cell, in characters, from which rows of sentences are written below each other.
const wordy = 60

// cells returns the cells of a row of a table.
func cells(line string) []page.Cell {
	var row []page.Cell
	for _, text := range strings.Split(strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00"), "|") {
		row = append(row, page.Cell{Text: inline(strings.ReplaceAll(strings.TrimSpace(text), "\x00", "|")).String()})
	}
	return row
}

// inline returns text without its marks: strong and code are tones, and a link is its text, with the address
// if that says more.
func inline(s string) page.Text {
	s = links.ReplaceAllStringFunc(s, func(link string) string {
		parts := links.FindStringSubmatch(link)
		if text, address := parts[1], parts[2]; !strings.Contains(text, strings.SplitN(address, "#", 2)[0]) && !strings.HasPrefix(address, "#") {
			return text + " (" + address + ")"
		}
		return parts[1]
	})
	var text page.Text
	strong := false
	for i, code := range strings.Split(s, "`") {
		if i%2 == 1 {
			text = append(text, page.Span{Text: code, Tone: page.Accent})
			continue
		}
		for j, part := range strings.Split(code, "**") {
			strong = strong != (j > 0)
			if tone := page.Body; part != "" {
				if strong {
					tone = page.Strong
				}
				text = append(text, page.Span{Text: part, Tone: tone})
			}
		}
	}
	return text
}
