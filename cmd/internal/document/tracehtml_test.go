package document_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
)

const us = time.Microsecond

// traceSources are the states of a page for the writer's tests.
func traceSources() map[string]*trace.Source {
	out := map[string]*trace.Source{"none": {}}
	for name, s := range traces() {
		out[name] = &trace.Source{Trace: *traceOf(s())}
	}
	for _, name := range []string{"dense", "hostile"} {
		p := out[name]
		p.Graph = aDecodeGraph()
	}
	g := out["hostile"].Graph
	for i := range g.Threads[0].Spans {
		g.Threads[0].Spans[i].Name, g.Phase = hostile[i%len(hostile)]+"</title><script>", "<b>"
	}
	return out
}

// aDecodeGraph is a graph on two lanes, the second of which waits.
func aDecodeGraph() *optrace.LiveGraph {
	g := &optrace.LiveGraph{Index: 7, Phase: "decode", Tokens: 1}
	g.Threads = []optrace.LiveThread{{Index: 0, TID: 42}, {Index: 1, TID: 51}}
	at := 10 * us
	for range 8 {
		for _, x := range []struct {
			op, name string
			us       int
		}{{"RMS_NORM", "attn_norm", 9}, {"MUL_MAT", "Qcur", 134}, {"ROPE", "Qcur", 6}, {"FLASH_ATTN_EXT", "__fattn__", 64}, {"MUL_MAT", "ffn_up", 352}, {"GLU", "ffn_swiglu", 7}, {"MUL_MAT", "ffn_out", 362}, {"ADD", "l_out", 3}} {
			d := time.Duration(x.us) * us
			end := at + d
			g.Threads[0].Spans = append(g.Threads[0].Spans, optrace.LiveSpan{Op: x.op, Name: x.name, Begin: at, End: end})
			g.Threads[1].Spans = append(g.Threads[1].Spans, optrace.LiveSpan{Op: x.op, Name: x.name, Begin: at + us, End: end, Sync: d * 2 / 5})
			at = end + us
		}
	}
	g.Time = at
	return g
}

func traceHTML(t testing.TB, p *trace.Source) string {
	t.Helper()
	var b bytes.Buffer
	if err := render.HTML(&b, trace.Document(p)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTraceHTMLHoldsNothingForeign checks that pages have only the elements that the report writes, and no address.
func TestTraceHTMLHoldsNothingForeign(t *testing.T) {
	pages := traceSources()
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		t.Run(name, func(t *testing.T) {
			page := traceHTML(t, pages[name])
			checkForeign(t, page)
			if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
				t.Error("a position is not a number")
			}
			if name == "hostile" && !strings.Contains(page, "&lt;script&gt;alert(1)") {
				t.Error("the hostile text is not there: nothing was tested")
			}
		})
	}
}

// A cost that was not computed is unknown, not 0 %.
func TestTraceHTMLHasNoCostOfNothing(t *testing.T) {
	page := traceSources()["dense"]
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

// TestPlotsScrollOnNarrowPages checks that a picture is not scaled until its texts are unreadable: on screens it keeps its
// width in a box that scrolls.
func TestPlotsScrollOnNarrowPages(t *testing.T) {
	page := traceHTML(t, &trace.Source{Trace: trace.Trace{Summary: denseTrace()}})
	if plots, boxes := strings.Count(page, `<svg role="img"`), strings.Count(page, `<div class="scroll plot" `); plots == 0 || plots != boxes {
		t.Errorf("%d pictures in %d boxes", plots, boxes)
	}
	screen, paper, ok := strings.Cut(page, "@media print")
	if !ok || !strings.Contains(screen, ".plot svg { min-width: 42rem; }") || !strings.Contains(paper, ".plot svg { min-width: 0; }") {
		t.Error("pictures have no least width, or keep it on paper")
	}
}

// TestHeadOfAPage checks that a page states time, duration and threads of the trace, as far as known.
func TestHeadOfAPage(t *testing.T) {
	s := &optrace.Summary{Target: optrace.Target{CPUs: 4}, Coverage: optrace.Coverage{Seconds: 12}, Threads: make([]optrace.ThreadRow, 2)}
	page := traceHTML(t, &trace.Source{Trace: trace.Trace{Summary: s, Started: time.Date(2026, 11, 22, 11, 21, 26, 0, time.UTC)}})
	if want := "2026-11-22 11:21:26 UTC · traced for 12.0 s · 2 threads · 4 CPUs"; !strings.Contains(strings.ReplaceAll(page, "\u00a0", " "), want) {
		t.Errorf("the head does not say %q", want)
	}
	if page := traceHTML(t, &trace.Source{Trace: trace.Trace{Summary: &optrace.Summary{}}}); strings.Contains(page, "0001-01-01") {
		t.Error("a time that is not known is the year 1")
	}
}
