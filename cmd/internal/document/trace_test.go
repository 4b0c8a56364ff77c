package document_test

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// tracePages are the pages and documents of traces.
var tracePages = subject[*optrace.Summary]{
	states: traces(), page: trace.Report, document: writeTrace, schema: "trace.v1.schema.json",
}

// traces are the recorded states of a trace, and one of a runtime that computed nothing.
func traces() map[string]func() *optrace.Summary {
	all := map[string]func() *optrace.Summary{"idle": func() *optrace.Summary { return &optrace.Summary{} }}
	for _, name := range []string{"dense", "moe", "absent", "hostile", "interfered", "counted", "cut"} {
		all[name] = func() *optrace.Summary { return recordedTrace(name) }
	}
	return all
}

func recordedTrace(name string) *optrace.Summary {
	text, err := os.ReadFile(testdataFile("recordings", "trace-"+name+".json"))
	if err != nil {
		panic(err)
	}
	s := &optrace.Summary{}
	if err := json.Unmarshal(text, s); err != nil {
		panic(err)
	}
	return s
}

func denseTrace() *optrace.Summary { return recordedTrace("dense") }

func writeTrace(w io.Writer, s *optrace.Summary) error { return document.WriteTrace(w, traceOf(s)) }

// traceOf is a trace with a fixed time.
func traceOf(s *optrace.Summary) *trace.Trace {
	return &trace.Trace{Version: "1.3.0", Started: traceBegan, Summary: s}
}

func traceText(t testing.TB, s *optrace.Summary, o render.Options) string {
	t.Helper()
	return tracePages.text(t, s, o)
}

func traceJSON(t testing.TB, s *optrace.Summary) []byte {
	t.Helper()
	return tracePages.json(t, s)
}

// TestRateOfAnswersIsReported checks that the rates in answers and in calls are both shown.
func TestRateOfAnswersIsReported(t *testing.T) {
	s := denseTrace()
	for i := range s.Phases {
		if p := &s.Phases[i]; p.Phase == "decode" {
			p.Rate, p.Paced = some(3701), some(2770)
		}
	}
	page := strings.Join(strings.Fields(strings.ReplaceAll(traceText(t, s, render.Options{Width: 120}), "\u00a0", " ")), " ")
	for _, want := range []string{"decode 2,770 tok/s in answers · 3,700 tok/s in calls", "tok/s in answers – 2,770", "tok/s in calls"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}

// Operators that were not watched are in no figure.
func TestBackendWithoutOperators(t *testing.T) {
	s := denseTrace()
	s.Backends = []optrace.BackendRow{{Name: "CPU", Splits: 1, Nodes: 10, Time: time.Second}}
	page := strings.Join(strings.Fields(strings.ReplaceAll(traceText(t, s, render.Options{Width: 120}), "\u00a0", " ")), " ")
	if !strings.Contains(page, "CPU 1 10 1.00 s not traced (--level operator and above trace them)") || strings.Contains(page, "in the figures Copies") {
		t.Error(page)
	}
}

// TestCoverageSaysWhatWasNotSeen checks that missing figures are not dashes within a sentence, and that the best rate seen is
// not taken for the machine peak.
func TestCoverageSaysWhatWasNotSeen(t *testing.T) {
	s := recordedTrace("absent")
	s.Peak = optrace.Peak{FlopsPerSecond: 154e9, Threads: 2, From: optrace.PeakSeen}
	page := strings.Join(strings.Fields(traceText(t, s, render.Options{Width: 200})), " ")
	for _, want := range []string{"no operator and no graph of a call was traced", "the best that products with weights reached in this trace; the machine may do more"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "operators cover –") {
		t.Error("operators cover nothing that is known, and it is said as a share")
	}
}

// The cost of tracing is shown with its basis, so that hits, cost per hit and time per token give it, and with whether it
// exceeds its limit.
func TestTraceSaysWhatItsCostIsReckonedFrom(t *testing.T) {
	s := denseTrace()
	s.Observer = optrace.Observer{
		HitsPerToken: 434, CostPerHit: 1640, Threads: 2, Expected: 0.047, GraphTime: 7184 * time.Microsecond, Graphs: 240, From: optrace.ExpectedTrace, Limit: 0.04,
	}
	said := func() string { return strings.Join(strings.Fields(traceText(t, s, render.Options{Width: 80})), " ") }
	for _, want := range []string{
		"costs the target 4.7 % of its speed (est), more than --max-overhead 4 Coverage",
		"217 probe hits a token on each of 2 threads at a mean of 1.64 µs take 356 µs of its 7.54 ms with them, by the middle one of 240 decode graphs of the trace",
	} {
		if !strings.Contains(said(), want) {
			t.Errorf("it does not say %q: %s", want, said())
		}
	}
	s.Observer.MeanGraph = 40 * time.Millisecond
	for _, want := range []string{
		"costs the target 4.7 % of its speed (est) by its median token, 0.9 % of its mean one of 40.0 ms, more than --max-overhead 4 Coverage",
		"expected to cost the target 4.7 % of its speed (est) by its median token, 0.9 % of its mean one of 40.0 ms",
	} {
		if !strings.Contains(said(), want) {
			t.Errorf("where others held tokens up, it does not say %q: %s", want, said())
		}
	}
	s.Observer.MeanGraph, s.Observer.Limit, s.Observer.Expected, s.Observer.Reader = 0, 0.06, 0.031, stat.Some(0.037)
	if want := "costs the target 6.8 % of its speed (est: probes 3.1 %, rooftop's own CPU 3.7 %), more than --max-overhead 6 Coverage"; !strings.Contains(said(), want) {
		t.Errorf("with rooftop's own CPU it does not say %q: %s", want, said())
	}
	s.Observer.Reader = stat.None
	s.Observer.Limit, s.Observer.Graphs, s.Observer.From = 0.05, 3, optrace.ExpectedBefore
	if got := said(); strings.Contains(got, "--max-overhead") || !strings.Contains(got, "by the fastest of only 3 decode graphs before the trace") {
		t.Errorf("within the limit, from few graphs: %s", got)
	}
	s.Observer.HitsPerToken = 0
	if got := said(); !strings.Contains(got, "not estimated") {
		t.Errorf("without hits: %s", got)
	}
}

// TestACutRecordingIsSaidFirst checks that an incomplete recording is reported before its figures.
func TestACutRecordingIsSaidFirst(t *testing.T) {
	s := denseTrace()
	s.Gaps = append(s.Gaps, recordedTrace("cut").Gaps[1])
	lines := strings.SplitAfter(traceText(t, s, render.Options{Width: 80}), "\n")
	if head := strings.Join(lines[:6], ""); !strings.Contains(head, "incomplete recording: the file is cut short after 3 events") {
		t.Errorf("the first lines do not say it:\n%s", head)
	}
}
