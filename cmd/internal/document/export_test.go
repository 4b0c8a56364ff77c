package document_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// elements are the HTML elements of a report.
var elements = strings.Fields(`html head meta title style body main h1 h2 p strong pre code figure svg desc rect line text path circle ul li figcaption
	details summary section div span table thead tbody tr th td`)

// attributes are their attributes, none of which can contain an address or code.
var attributes = strings.Fields(`lang charset name content http-equiv class role id aria-labelledby aria-label aria-hidden viewBox x y x1 x2 y1 y2 cx cy r d
	dy width height text-anchor stroke-width tabindex scope`)

// checkHTML fails if a page has an element, attribute or comment that the report does not write, or an element that is
// not closed.
func checkHTML(t *testing.T, page string) {
	t.Helper()
	page = strings.TrimPrefix(page, "<!DOCTYPE html>\n")
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta"}, xml.HTMLEntity
	var open []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		switch v := token.(type) {
		case xml.StartElement:
			if !slices.Contains(elements, v.Name.Local) {
				t.Errorf("element %s", v.Name.Local)
			}
			for _, a := range v.Attr {
				if !slices.Contains(attributes, a.Name.Local) {
					t.Errorf("attribute %s of %s", a.Name.Local, v.Name.Local)
				}
			}
			open = append(open, v.Name.Local)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != v.Name.Local {
				t.Fatalf("%s ends within %v", v.Name.Local, open)
			}
			open = open[:len(open)-1]
		case xml.Comment, xml.ProcInst, xml.Directive:
			t.Errorf("%T in the page", v)
		}
	}
	if len(open) > 0 {
		t.Errorf("%v stay open", open)
	}
}

// checkForeign fails if a page has an element that the report does not write, a control character, or an address.
func checkForeign(t *testing.T, page string) {
	t.Helper()
	checkHTML(t, page)
	for _, r := range page {
		if r < ' ' && r != '\n' || r == '\u202e' {
			t.Fatalf("%q in the page", r)
		}
	}
	style := page[strings.Index(page, "<style>"):strings.Index(page, "</style>")]
	for _, way := range []string{"url(", "@import", "src:"} {
		if strings.Contains(style, way) {
			t.Errorf("the style names an address: %s", way)
		}
	}
}

func TestRunHTMLHoldsNothingForeign(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(runs())) {
		t.Run(name, func(t *testing.T) {
			page := written(t, WriteRunHTML, runs()[name]())
			checkForeign(t, page)
			if name == "hostile" && !strings.Contains(page, "&lt;script&gt;alert(1)") {
				t.Error("the hostile text is not there: nothing was tested")
			}
		})
	}
}

func FuzzRunReports(f *testing.F) {
	for _, s := range []string{"", `"><svg onload=x>`, "</style><script>", "-->", "]]>", "{{.}}", "&#60;b&#62;", "\xff\xfe", "`|\\", "javascript:x"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, model, text string) {
		s := tuned()
		s.Target.Model, s.Iterations[0].Text, s.Marks[2].Text, s.Finished.Reason = model, text, text, text
		s.Iterations[0].Changes = []engine.Change{{Flag: text, From: model, To: text}}
		s.Journal = append(s.Journal, loop.Entry{Text: text})
		s.Baseline.Ceiling.PhysicalReason, s.Baseline.Curve = text, nil
		checkHTML(t, written(t, WriteRunHTML, s))
		if !json.Valid([]byte(written(t, document.WriteRun, s))) {
			t.Error("the document is no JSON")
		}
		if out := written(t, WriteRunMarkdown, s); strings.Contains(strings.ReplaceAll(out, "```", ""), "<") && strings.Contains(text, "<") && strings.Contains(out, text) {
			t.Errorf("%q in Markdown", out)
		}
		var b bytes.Buffer
		must(t, WriteRun(&b, s, nil, render.Options{Width: 80}))
		checkWidth(t, b.String(), 80)
		if n := strings.Count(b.String(), "\n"); n > 24 {
			t.Errorf("%d lines", n)
		}
	})
}
