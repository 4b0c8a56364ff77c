package report

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// tracePages are the states of a page that the writer is held against.
func tracePages() map[string]*TracePage {
	out := map[string]*TracePage{"none": {}}
	for name, s := range traces() {
		out[name] = &TracePage{Trace: Trace{Version: "1.3.0", Started: traceBegan, Summary: s()}}
	}
	for _, name := range []string{"dense", "hostile"} {
		p := out[name]
		p.Tables, p.DAG = llamaGraph(22)
		p.Graph = aDecodeGraph()
	}
	g := out["hostile"].Graph
	for i := range g.Lanes[0].Spans {
		g.Lanes[0].Spans[i].Name, g.Phase = hostile[i%len(hostile)]+"</title><script>", "<b>"
	}
	return out
}

// aDecodeGraph is one on two lanes, the second of which waits.
func aDecodeGraph() *optrace.LiveGraph {
	g := &optrace.LiveGraph{Index: 7, Phase: "decode", Tokens: 1}
	g.Lanes = []optrace.LiveLane{{Lane: 0, TID: 42}, {Lane: 1, TID: 51}}
	at := 10 * us
	for range 8 {
		for _, x := range []struct {
			op, name string
			us       int
		}{{"RMS_NORM", "attn_norm", 9}, {"MUL_MAT", "Qcur", 134}, {"ROPE", "Qcur", 6}, {"FLASH_ATTN_EXT", "__fattn__", 64}, {"MUL_MAT", "ffn_up", 352}, {"GLU", "ffn_swiglu", 7}, {"MUL_MAT", "ffn_out", 362}, {"ADD", "l_out", 3}} {
			d := time.Duration(x.us) * us
			end := at + d
			g.Lanes[0].Spans = append(g.Lanes[0].Spans, optrace.LiveSpan{Op: x.op, Name: x.name, Begin: at, End: end})
			g.Lanes[1].Spans = append(g.Lanes[1].Spans, optrace.LiveSpan{Op: x.op, Name: x.name, Begin: at + us, End: end, Sync: d * 2 / 5})
			at = end + us
		}
	}
	g.Time = at
	return g
}

func traceHTML(t testing.TB, p *TracePage) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTraceHTML(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// model is the picture of the graph, which is a document of its own within the page.
var model = regexp.MustCompile(`<img class="model" alt="[^"<>]*" src="data:image/svg(?:\+|&#43;)xml;base64,(?:[A-Za-z0-9+/=]|&#43;)*">`)

// TestTraceHTMLHoldsNothingForeign holds that pages have the elements that the report
// writes, and no address but that of the picture within.
func TestTraceHTMLHoldsNothingForeign(t *testing.T) {
	pages := tracePages()
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		t.Run(name, func(t *testing.T) {
			page := traceHTML(t, pages[name])
			if n := len(model.FindAllString(page, -1)); (n == 1) != (pages[name].DAG != nil) {
				t.Errorf("%d pictures of the graph", n)
			}
			page = model.ReplaceAllString(page, "")
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
			if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
				t.Error("a place is no number")
			}
			if name == "hostile" && !strings.Contains(page, "&lt;script&gt;alert(1)") {
				t.Error("the hostile text is not there: nothing was tested")
			}
		})
	}
}

// TestTraceHTMLShows holds that a page says first what to do, and has each picture.
func TestTraceHTMLShows(t *testing.T) {
	pages := tracePages()
	page := traceHTML(t, pages["dense"])
	for _, want := range []string{
		"Compute with one thread instead of two", "--threads 1", "28.4", `id="share-title"`, `id="spread-title"`, `id="roofline-title"`, `id="layers-title"`, `id="timeline-title"`,
		`id="tokens-title"`, `id="context-title"`, "curve roof memory", "curve roof compute", "Not known", "lane 1",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if moe := traceHTML(t, pages["moe"]); !strings.Contains(moe, `id="experts-title"`) || !strings.Contains(moe, "Nothing to change") {
		t.Error("the page of a mixture has no experts, or no answer")
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "http://") || strings.Contains(page, "https://") {
		t.Error("the page has a script or an address")
	}
}

// A cost that was not reckoned is not known, and not 0 %.
func TestTraceHTMLHasNoCostOfNothing(t *testing.T) {
	page := tracePages()["dense"]
	if with := traceHTML(t, page); !strings.Contains(with, "of its speed (est") {
		t.Error("the page has no expected cost")
	}
	page.Summary.Observer = optrace.Observer{}
	for _, zero := range []string{"of its speed (est", "hits a token"} {
		if without := traceHTML(t, page); strings.Contains(without, zero) {
			t.Errorf("the page says %q of what was not reckoned", zero)
		}
	}
}

func TestTraceHTMLSamples(t *testing.T) {
	dir := os.Getenv("ROOFTOP_SAMPLES")
	if dir == "" {
		t.Skip("NOT CHECKED: how pages look to a person (ROOFTOP_SAMPLES names no directory)")
	}
	for name, p := range tracePages() {
		if err := os.WriteFile(dir+"/"+name+".html", []byte(traceHTML(t, p)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPageSaysWhichGraphAndCallsItDraws holds that a picture of a part says of what.
func TestPageSaysWhichGraphAndCallsItDraws(t *testing.T) {
	g := &optrace.LiveGraph{Index: 7, Phase: "decode", Tokens: 1, Time: time.Millisecond, Lanes: []optrace.LiveLane{{}}}
	if got := timelinePlate(g).Desc; !strings.Contains(got, "newest") {
		t.Error(got)
	}
	g.Of = 156
	if got := timelinePlate(g).Desc; !strings.Contains(got, "the median by time of 156 whole graphs") {
		t.Error(got)
	}
	s := &optrace.Summary{Tokens: []optrace.TokenRow{{Phase: "decode", Time: time.Millisecond}, {Phase: "decode", Time: 2 * time.Millisecond}}}
	s.Coverage.Calls = 2
	if got := tokenPlate(s).Desc; !strings.Contains(got, "Every one of 2 calls") {
		t.Error(got)
	}
	s.Coverage.Calls = 9000
	if got := tokenPlate(s).Desc; !strings.Contains(got, "The last 2 calls of 9,000") {
		t.Error(got)
	}
}

// TestLabelsAreNotCut holds that a label which is centred at the edge ends there.
func TestLabelsAreNotCut(t *testing.T) {
	p := newPlate("x", "x", 10)
	p.label("", frameWidth-frameRight, 5, "middle", "600 µs")
	p.label("", 100, 5, "middle", "600 µs")
	if a, b := p.Labels[0], p.Labels[1]; a.Anchor != "end" || b.Anchor != "middle" {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestPlotsScrollOnNarrowPages holds that a picture is not made so small that its texts
// cannot be read: each is in a box that scrolls and keeps its width, but for paper.
func TestPlotsScrollOnNarrowPages(t *testing.T) {
	page := traceHTML(t, &TracePage{Trace: Trace{Summary: denseTrace()}})
	if plots, boxes := strings.Count(page, `<svg role="img"`), strings.Count(page, `<div class="scroll plot" `); plots == 0 || plots != boxes {
		t.Errorf("%d pictures in %d boxes", plots, boxes)
	}
	screen, paper, ok := strings.Cut(page, "@media print")
	if !ok || !strings.Contains(screen, ".plot svg { min-width: 42rem; }") || !strings.Contains(paper, ".plot svg { min-width: 0; }") {
		t.Error("pictures have no least width, or keep it on paper")
	}
}

// TestBarsLeaveRoomForTheirLabels holds that the label behind the longest bar is not cut,
// and that operators which wait have a colour and a word of their own.
func TestBarsLeaveRoomForTheirLabels(t *testing.T) {
	s := &optrace.Summary{Steps: []optrace.OperatorRow{
		{Phase: "decode", Op: "FLASH_ATTN_EXT", Name: "flash_attn_ext", Share: stat.Some(0.082), Time: 2, Bound: optrace.BoundWaiting},
		{Phase: "decode", Op: "MUL_MAT", Name: "ffn_up", Type: "q8_0", Share: stat.Some(0.08), Time: 1, Bound: optrace.BoundMemory},
	}}
	p := sharePlate(s)
	found := false
	for _, l := range p.Labels {
		x, err := strconv.ParseFloat(l.X, 64)
		if err != nil {
			t.Fatal(err)
		}
		if end := x + 7*float64(width(l.Text)); l.Anchor == "start" && end > frameWidth {
			t.Errorf("%q ends at %.0f of %.0f", l.Text, end, frameWidth)
		}
		found = found || strings.HasSuffix(l.Text, "flash_attn_ext") && l.Anchor == "start"
	}
	if !found {
		t.Errorf("no label is whole: %+v", p.Labels)
	}
	if p.Rects[0].Class != "waiting" || !slices.ContainsFunc(p.Keys, func(k keyOf) bool { return k.Class == "waiting" }) {
		t.Errorf("what waits is %q: %+v", p.Rects[0].Class, p.Keys)
	}
	if !strings.Contains(tracePageHTML, "svg .waiting { fill: var(--waiting)") || strings.Count(tracePageHTML, "--waiting: #") != 2 {
		t.Error("what waits has no colour in both schemes")
	}
}

// TestHeadOfAPage holds that a page says when, how long and with how many threads was
// traced, as far as it is known.
func TestHeadOfAPage(t *testing.T) {
	s := &optrace.Summary{Target: optrace.Target{CPUs: 4}, Coverage: optrace.Coverage{Seconds: 12}, Threads: make([]optrace.ThreadRow, 2)}
	page := traceHTML(t, &TracePage{Trace: Trace{Summary: s, Started: time.Date(2026, 11, 22, 11, 21, 26, 0, time.UTC)}})
	if want := "2026-11-22 11:21:26 UTC · traced for 12.0 s · 2 threads · 4 CPUs"; !strings.Contains(strings.ReplaceAll(page, "\u00a0", " "), want) {
		t.Errorf("the head does not say %q", want)
	}
	if page := traceHTML(t, &TracePage{Trace: Trace{Summary: &optrace.Summary{}}}); strings.Contains(page, "0001-01-01") {
		t.Error("a time that is not known is the year 1")
	}
}
