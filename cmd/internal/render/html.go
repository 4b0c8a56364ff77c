package render

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

//go:embed page.html
var pageHTML string

// foldedRows is the least number of rows of a table that is collapsed at first.
const foldedRows = 25

// HTML writes a page as a single HTML file that contains its pictures and every row and detail. The file uses no
// scripts, fonts or external resources, and its policy forbids loading any. Foreign texts are escaped.
func HTML(w io.Writer, p *page.Page) error {
	t, err := template.New("page").Funcs(template.FuncMap{"safeText": safeText}).Parse(pageHTML)
	if err != nil {
		return err
	}
	doc := struct {
		Title, Foot string
		Sections    []htmlSection
	}{Title: p.Title, Foot: p.Foot}
	for i := range p.Sections {
		s := sectionOf(&p.Sections[i])
		if !p.Sections[i].Terminal && len(s.Nodes) > 0 {
			doc.Sections = append(doc.Sections, s)
		}
	}
	var b bytes.Buffer
	if err := t.Execute(&b, &doc); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// safeText removes characters that a document must not contain.
func safeText(s string) string { return lines.Safe(s, false) }

// htmlSection is a section for the template.
type htmlSection struct {
	Title, Note string
	Folded      bool
	Nodes       []htmlNode
}

// htmlNode is a node for the template; exactly one field is set.
type htmlNode struct {
	Prose   *page.Prose
	Command string
	Table   *htmlTable
	Picture *picture
}

type htmlTable struct {
	Title string
	*table
}

func sectionOf(s *page.Section) htmlSection {
	out := htmlSection{Title: s.Title, Note: s.Note}
	for _, n := range s.Nodes {
		switch n := n.(type) {
		case page.Prose:
			out.Nodes = append(out.Nodes, htmlNode{Prose: &n})
		case page.Command:
			out.Nodes = append(out.Nodes, htmlNode{Command: strings.ReplaceAll(string(n), figure.NBSP, " ")})
		case *page.Series:
			out.Nodes = append(out.Nodes, htmlNode{Picture: seriesPicture(n)})
		case *page.Timeline:
			out.Nodes = append(out.Nodes, htmlNode{Picture: timelinePicture(n)})
		case *page.Plot:
			out.Nodes = append(out.Nodes, htmlNode{Picture: plotPicture(n)})
		default:
			if t := tableOf(n); len(t.Rows) > 0 {
				_, columns := n.(*page.Table)
				out.Folded = out.Folded || columns && len(t.Rows) >= foldedRows
				out.Nodes = append(out.Nodes, htmlNode{Table: &htmlTable{s.Title, t}})
			}
		}
	}
	return out
}
