package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func written(t testing.TB, write func(io.Writer, *engine.Snapshot) error, s *engine.Snapshot) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRunJSONMatchesSchema(t *testing.T) {
	s, inner := schema(t, "run.v1.schema.json"), schema(t, "diagnosis.v1.schema.json")
	cases := runs()
	cases["empty"] = func() *engine.Snapshot { return &engine.Snapshot{} }
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			doc := written(t, WriteRunJSON, cases[name]())
			v := decoded(t, []byte(doc))
			if err := s.Validate(v); err != nil {
				t.Error(err)
			}
			for _, key := range []string{"baseline", "live"} {
				if d := v.(map[string]any)[key]; d != nil {
					if err := inner.Validate(d); err != nil && name != "hostile" { // whose flag is none
						t.Errorf("%s: %v", key, err)
					}
				}
			}
			if doc != written(t, WriteRunJSON, cases[name]()) {
				t.Error("two documents of one run differ")
			}
		})
	}
}

func TestRunSchemaRejects(t *testing.T) {
	s := schema(t, "run.v1.schema.json")
	good := written(t, WriteRunJSON, tuned())
	for _, c := range []struct{ name, from, to string }{
		{"another schema", `"rooftop.run/v1"`, `"rooftop.run/v2"`},
		{"an unknown phase", `"phase": "done"`, `"phase": "lost"`},
		{"an unknown end", `"end": "kept"`, `"end": "won"`},
		{"an unknown direction", `"direction": "better"`, `"direction": "up"`},
		{"no iterations", `"iterations": [`, `"changes": [`},
		{"an iteration without what was measured before", `"before": {`, `"earlier": {`},
		{"a text that is empty and not null", `"left_reason": null`, `"left_reason": ""`},
		{"a number in quotes", `"restarts": 3`, `"restarts": "3"`},
		{"a diagnosis of another kind", `"rooftop.diagnosis/v1"`, `"rooftop.event/v1"`},
		{"a point in words", `"t_s":[2`, `"t_s":["2"`},
		{"null without its reason", `"reason": "no GPU is readable"`, `"cause": "no GPU is readable"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong := strings.Replace(good, c.from, c.to, 1)
			if wrong == good {
				t.Fatalf("the document has no %s", c.from)
			}
			if s.Validate(decoded(t, []byte(wrong))) == nil {
				t.Error("the schema accepts it")
			}
		})
	}
}

// Every point has a row in every column; what a window lacks is null.
func TestRunJSONPoints(t *testing.T) {
	s := tuned()
	s.Points[3].Tokens, s.Points[4].KV = stat.Some(math.NaN()), stat.Some(.5)
	var doc struct {
		Points map[string][]*float64
		Gain   *float64
		Left   []engine.Change
	}
	if err := json.Unmarshal([]byte(written(t, WriteRunJSON, s)), &doc); err != nil {
		t.Fatal(err)
	}
	for name, column := range doc.Points {
		if len(column) != len(s.Points) {
			t.Errorf("%s has %d rows of %d", name, len(column), len(s.Points))
		}
	}
	if doc.Points["generation_tokens_per_s"][3] != nil || *doc.Points["kv_usage_peak"][4] != .5 || doc.Points["kv_usage_peak"][5] != nil {
		t.Error("absent values are not null, or values are lost")
	}
	if doc.Gain == nil || *doc.Gain != .8138 || len(doc.Left) != 0 {
		t.Errorf("gain %v, left %v", doc.Gain, doc.Left)
	}
}

func TestRunMarkdownGolden(t *testing.T) {
	golden(t, "run-tuned.md", []byte(written(t, WriteRunMarkdown, tuned())))
}

// cellBreak is a bar that ends a cell of a Markdown table.
var cellBreak = regexp.MustCompile(`(?:^|[^\\])\|`)

func TestRunMarkdownTables(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(runs())) {
		doc := written(t, WriteRunMarkdown, runs()[name]())
		columns, fences := 0, 0
		for _, l := range strings.Split(doc, "\n") {
			if strings.HasPrefix(l, "```") {
				fences++
			}
			if fences%2 == 1 {
				continue
			}
			if strings.Contains(l, "<") {
				t.Errorf("%s: a tag can open in %q", name, l)
			}
			if !strings.HasPrefix(l, "|") {
				columns = 0
				continue
			}
			n := len(cellBreak.FindAllString(strings.ReplaceAll(l, `\\`, ""), -1))
			if columns != 0 && n != columns {
				t.Errorf("%s: %d bars where the table has %d: %q", name, n, columns, l)
			}
			columns = n
		}
		if fences%2 != 0 {
			t.Errorf("%s: a code block stays open", name)
		}
	}
}

func TestEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"max_num_seqs":              "max_num_seqs",
		"_a_ __b__ c_":              `\_a\_ \_\_b\_\_ c\_`,
		"a|b":                       `a\|b`,
		"--max-num-seqs 4":          "--max-num-seqs 4",
		"![x](http://h) [y](z)":     `!\[x\](http://h) \[y\](z)`,
		"<b>&lt;":                   "&lt;b>&amp;lt;",
		"`rm` **now** $x$ ~~z~~ \\": "\\`rm\\` \\*\\*now\\*\\* \\$x\\$ \\~\\~z\\~\\~ \\\\",
		"a\nb\x1b[2J":               "a b\ufffd\\[2J",
	} {
		if got := escaped(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestParagraph(t *testing.T) {
	for in, want := range map[string]string{"# title": `\# title`, "- item": `\- item`, "+1 %": `\+1 %`, "one - two": "one - two", "": "", "  # x": `\# x`, "_a_": `\_a\_`} {
		if got := paragraph(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// elements are those that a report may hold; it needs no others.
var elements = strings.Fields(`html head meta title style body main h1 h2 p strong pre code figure svg desc rect line text path circle ul li figcaption
	details summary section div table thead tbody tr th td`)

// attributes of those, none of which can name an address or run anything.
var attributes = strings.Fields(`lang charset name content http-equiv class role id aria-labelledby aria-label aria-hidden viewBox x y x1 x2 y1 y2 cx cy r d
	dy width height text-anchor stroke-width tabindex scope`)

// checkHTML fails where a page has an element, attribute or comment that the
// report does not write itself, or leaves an element open.
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
		if err != nil {
			t.Fatal(err)
		}
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

func TestRunHTMLHoldsNothingForeign(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(runs())) {
		t.Run(name, func(t *testing.T) {
			page := written(t, WriteRunHTML, runs()[name]())
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
		s.Journal = append(s.Journal, engine.Entry{Text: text})
		s.Baseline.Ceiling.PhysicalReason, s.Baseline.Curve = text, nil
		checkHTML(t, written(t, WriteRunHTML, s))
		if !json.Valid([]byte(written(t, WriteRunJSON, s))) {
			t.Error("the document is no JSON")
		}
		if out := escaped(text); strings.Contains(out, "<") || strings.Contains(out, "\n") {
			t.Errorf("%q in Markdown", out)
		}
		var b bytes.Buffer
		if err := WriteRun(&b, s, nil, Options{Width: 80}); err != nil {
			t.Fatal(err)
		}
		checkWidth(t, b.String(), 80)
		if n := strings.Count(b.String(), "\n"); n > runLines {
			t.Errorf("%d lines", n)
		}
	})
}

// Each picture is XML by itself, and has a title and a description that its label
// names; each table names its columns.
func TestRunHTMLIsAccessible(t *testing.T) {
	page := written(t, WriteRunHTML, tuned())
	pictures := regexp.MustCompile(`(?s)<svg role="img" aria-labelledby="(\S+) (\S+)".*?</svg>`).FindAllStringSubmatch(page, -1)
	if len(pictures) != 3 {
		t.Fatalf("%d pictures", len(pictures))
	}
	for _, m := range pictures {
		if err := xml.Unmarshal([]byte(m[0]), new(struct{})); err != nil {
			t.Error(err)
		}
		for _, want := range []string{`<title id="` + m[1] + `">`, `<desc id="` + m[2] + `">`} {
			if !strings.Contains(m[0], want) {
				t.Errorf("no %s", want)
			}
		}
	}
	if tables, heads := strings.Count(page, "<table>"), strings.Count(page, "<thead><tr><th scope=\"col\""); tables == 0 || tables != heads {
		t.Errorf("%d tables, %d with headed columns", tables, heads)
	}
	if !strings.Contains(page, `<html lang="en">`) || !strings.Contains(page, "prefers-color-scheme: dark") {
		t.Error("no language, or no dark colours")
	}
}

// luminance is the relative luminance of a colour #rrggbb or #rgb (WCAG 2.2).
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	if len(colour) == 4 {
		colour = "#" + strings.Repeat(colour[1:2], 2) + strings.Repeat(colour[2:3], 2) + strings.Repeat(colour[3:4], 2)
	}
	sum := 0.0
	for i, weight := range []float64{.2126, .7152, .0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// Texts have a contrast of at least 4.5 to their ground, lines of a plot 3, in the
// light and in the dark (WCAG 2.2, 1.4.3 and 1.4.11).
func TestRunHTMLContrast(t *testing.T) {
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(runPageHTML, -1)
	if len(themes) != 2 {
		t.Fatalf("%d themes", len(themes))
	}
	for i, theme := range themes {
		colours := map[string]string{}
		for _, m := range regexp.MustCompile(`--(\w+): (#\w+)`).FindAllStringSubmatch(theme[1], -1) {
			colours[m[1]] = m[2]
		}
		for name, least := range map[string]float64{"ink": 4.5, "muted": 4.5, "ok": 4.5, "warn": 4.5, "bad": 4.5, "baseline": 4.5, "trial": 4.5, "ideal": 3, "achievable": 3} {
			for _, ground := range []string{"paper", "panel"} {
				a, b := luminance(t, colours[name]), luminance(t, colours[ground])
				if ratio := (max(a, b) + .05) / (min(a, b) + .05); ratio < least {
					t.Errorf("theme %d: %s on %s: contrast %.2f, want %.1f", i, name, ground, ratio, least)
				}
			}
		}
	}
}
