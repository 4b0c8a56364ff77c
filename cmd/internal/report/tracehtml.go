package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

//go:embed trace.html
var tracePageHTML string

// TracePage is what WriteTraceHTML shows. All but the summary may be missing.
type TracePage struct {
	Trace
	Graph  *optrace.LiveGraph // a decode graph to draw, lane by lane
	Tables *optrace.Tables
	DAG    *optrace.DAG // the graph of the model
}

// WriteTraceHTML writes the figures of a trace as one HTML file with plots inside. It
// needs nothing else: no script, no font, no address; the reader's browser is told to
// load none. Texts of a model are escaped where they stand.
func WriteTraceHTML(w io.Writer, t *TracePage) error {
	page, err := template.New("page").Parse(runPageHTML) // its tables
	if err != nil {
		return err
	}
	if page, err = page.Parse(tracePageHTML); err != nil {
		return err
	}
	doc, err := t.document()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, "trace", doc); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// traceDocument is a page as its template takes it.
type traceDocument struct {
	Title, Headline, Tone, Command string
	About                          string // when, how long, with how many threads; "" where none is known
	Reasons                        []labelled
	Glance                         *grid
	Plates                         []*plate
	Grids                          []*grid
	Model                          template.URL
	Version, Started               string
}

type labelled struct{ Label, Text string }

func (t *TracePage) document() (*traceDocument, error) {
	s := t.Summary
	if s == nil {
		s = &optrace.Summary{}
	}
	r := &tracePage{page: newPage(io.Discard, Options{}), s: s}
	doc := &traceDocument{Title: plainText(targetTitle(s)), Version: plainText(t.Version), About: plainText(t.about(s))}
	if !t.Started.IsZero() {
		doc.Started = t.Started.UTC().Format(time.RFC3339)
	}
	doc.headline(r)
	doc.Glance = glanceGrid(r)
	doc.Plates = []*plate{
		sharePlate(s), spreadPlate(s), roofPlate(s), layerPlate(s), timelinePlate(t.Graph), tokenPlate(s), contextPlate(s),
	}
	if s.Experts != nil {
		doc.Plates = append(doc.Plates, expertPlate(s.Experts))
	}
	doc.Grids = []*grid{findingGrid(r), operatorGrid(s), coverageGrid(r), gapGrid(s)}
	if t.DAG != nil && t.Tables != nil {
		var svg bytes.Buffer
		if err := WriteDAGSVG(&svg, t.Tables, t.DAG, s); err != nil {
			return nil, err
		}
		doc.Model = template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(svg.Bytes())) //nolint:gosec // base64 of our own picture
	}
	return doc, nil
}

// about is when a trace was made, how long, and with how many threads, as far as it is
// known.
func (t *TracePage) about(s *optrace.Summary) string {
	var parts []string
	if !t.Started.IsZero() {
		parts = append(parts, t.Started.UTC().Format(time.DateTime)+" UTC")
	}
	if v := s.Coverage.Seconds; finiteAbove(v) {
		parts = append(parts, "traced for "+figure.Show(finite(stat.Some(v)), "s"))
	}
	if n := computing(s); n > 0 {
		parts = append(parts, plural(n, "thread"))
	}
	if n := s.Target.CPUs; n > 0 {
		parts = append(parts, plural(n, "CPU"))
	}
	return strings.Join(parts, " · ")
}

// plainText is text without what no page may hold.
func plainText(s string) string { return strings.ReplaceAll(safe(s), nbsp, "\u00a0") }

func targetTitle(s *optrace.Summary) string {
	t := &s.Target
	who := base(firstWord(t.Command))
	if t.PID > 0 {
		who = strings.TrimSpace(who + " PID " + strconv.Itoa(t.PID))
	}
	return strings.Join(nonEmpty(cmp.Or(who, "unknown target"), t.Runtime, base(t.Model)), " · ")
}

// headline is the one thing to change, or that there is none.
func (doc *traceDocument) headline(r *tracePage) {
	a := &r.s.Advice
	switch {
	case asked(a):
		doc.Headline, doc.Tone = plainText(a.Do), [...]string{ok: "ok", warn: "warn", bad: "bad"}[r.urgency()]
		if a.Flag != "" && !strings.Contains(a.Do, a.Flag) {
			doc.Command = plainText(strings.TrimSpace(a.Flag + " " + a.Value))
		}
		for _, x := range [...]labelled{{"Because", a.Why}, {"Evidence", sentences(r.evidence())}, {"Price", a.Price}, {"Gain", r.gain()}, {"Check", a.Check}} {
			if x.Text != "" {
				doc.Reasons = append(doc.Reasons, labelled{x.Label, plainText(x.Text)})
			}
		}
	case r.s.Empty():
		why, next := r.nothing()
		doc.Headline, doc.Reasons = plainText("No figures: "+why), []labelled{{"Next", plainText(next)}}
	case len(r.s.Kinds) == 0:
		doc.Headline = "No recommendation: no operator was seen"
	default:
		if doc.Headline, doc.Tone = "Nothing to change", "ok"; tooLittle(a) {
			doc.Headline, doc.Tone = "No recommendation", ""
		}
		if a.Why != "" {
			doc.Reasons = []labelled{{"Because", plainText(a.Why)}}
		}
	}
}

// glanceGrid is what each phase does, and what watching costs.
func glanceGrid(r *tracePage) *grid {
	g := &grid{Title: "At a glance", Heads: []string{"", "now"}}
	for i := range r.s.Phases {
		p := &r.s.Phases[i]
		g.Rows = append(g.Rows, []string{plainText(cmp.Or(p.Phase, "unknown")), plainText(strings.Join(phaseGlance(r.s, p), " · "))})
	}
	g.Rows = append(g.Rows, []string{"bound", plainText(r.boundGlance())},
		[]string{"watched", plainText(strings.Join(nonEmpty(r.coverageGlance(), r.observerGlance()), " · "))})
	return g
}

func findingGrid(r *tracePage) *grid {
	g := &grid{Title: "Findings", Heads: []string{"", "what", "of graph time", "evidence"}, Figures: []int{2}}
	for i := range r.s.Findings {
		f := &r.s.Findings[i]
		g.Rows = append(g.Rows, []string{plainText(f.Severity), plainText(f.Title), percent(f.Cost), plainText(sentences(f.Evidence))})
	}
	return g
}

// operatorGrid is every operator by the tensor that it computes.
func operatorGrid(s *optrace.Summary) *grid {
	g := &grid{
		Title: "Operators", Folded: true, Note: "Each row is a group of operators by the tensor that they compute, without its layer.",
		Heads:   []string{"phase", "tensor", "operator", "type", "count", "share", "each", "p95", "GB/s", "GFLOP/s", "of roof", "bound"},
		Figures: []int{4, 5, 6, 7, 8, 9, 10},
	}
	for _, phase := range phasesByTime(s) {
		for _, o := range of(s.Steps, phase) {
			g.Rows = append(g.Rows, []string{
				plainText(o.Phase), plainText(o.Name), plainText(kindName(o)), plainText(cmp.Or(o.Type, absent)), figure.Whole(float64(o.Count)), percent(o.Share),
				phaseTime(&o.Each, meanOf), phaseTime(&o.Each, p95Of), about(o) + inBillions(o.BytesRate), about(o) + inBillions(o.FlopsRate), shareOfRoof(o), plainText(shownBound(o)),
			})
		}
	}
	return g
}

func coverageGrid(r *tracePage) *grid {
	c, o := &r.s.Coverage, &r.s.Observer
	expected, from := absent, absent
	if o.Reckoned() {
		expected, from = plainText(expectedCost(o)), plainText(hitWords(o))
	}
	measured := "not measured"
	if o.Windows > 0 {
		measured = percent(stat.Some(o.Measured)) + " (" + percent(stat.Some(o.MeasuredLow)) + " to " + percent(stat.Some(o.MeasuredHigh)) + ") over " + plural(o.Windows, "window")
	}
	rows := [][]string{
		{"recorded", figure.Show(finite(stat.Some(c.Seconds)), "s") + " at " + plainText(cmp.Or(c.Detail, absent))},
		{"graphs", plural(c.Graphs, "whole graph") + " of " + plural(c.Calls, "call") + ", " + figure.Whole(float64(c.Partial)) + " partial left out"},
		{"events", figure.Whole(float64(c.Events)) + ", " + figure.Whole(float64(c.Dropped)) + " lost"},
		{"operators of graph time", percent(c.OpShare)}, {"graphs of call time", percent(c.GraphOf)},
		{"watching, expected", expected}, {"what that is reckoned from (est)", from}, {"watching, measured, of the speed", measured},
		{"rooftop had a compute thread's CPU, of graph time", percent(o.Reader)},
		{"machine", plainText(strings.Join(nonEmpty(r.s.Target.CPU, after("kernel ", r.s.Target.Kernel), r.s.Target.Arch), " · "))},
	}
	return &grid{Title: "Coverage and observer effect", Heads: []string{"", ""}, Rows: rows}
}

func gapGrid(s *optrace.Summary) *grid {
	g := &grid{Title: "Not known", Heads: []string{"what", "why", "next"}}
	for _, x := range s.Gaps {
		g.Rows = append(g.Rows, []string{plainText(x.What), plainText(x.Why), plainText(cmp.Or(x.Next, absent))})
	}
	return g
}
