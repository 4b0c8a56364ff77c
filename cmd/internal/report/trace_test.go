package report

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func traceText(t testing.TB, s *optrace.Summary, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTrace(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTraceGoldens(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(traces())) {
		of := map[string]Options{"80": {Width: 80}}
		if name == "dense" || name == "moe" {
			of["60"], of["120"], of["80-ascii"], of["80-v"] = Options{Width: 60}, Options{Width: 120}, Options{Width: 80, ASCII: true}, Options{Width: 80, Verbose: true}
		}
		for _, v := range slices.Sorted(maps.Keys(of)) {
			t.Run(name+"-"+v, func(t *testing.T) {
				page := traceText(t, traces()[name](), of[v])
				checkWidth(t, page, of[v].Width)
				golden(t, "trace-"+name+"-"+v, []byte(page))
			})
		}
	}
}

// TestTraceColour holds that colour adds nothing but colour.
func TestTraceColour(t *testing.T) {
	for name, s := range traces() {
		plain, colored := traceText(t, s(), Options{}), traceText(t, s(), Options{Color: true})
		if plain == colored {
			t.Errorf("%s: no colour at all", name)
		}
		if diff := cmp.Diff(plain, escapes.ReplaceAllString(colored, "")); diff != "" {
			t.Errorf("%s: colour changes the text:\n%s", name, diff)
		}
	}
}

// TestTraceAnswersFirst holds that what to do, what it rests on and what it brings is
// on the first screen, 24 lines of 80 cells.
func TestTraceAnswersFirst(t *testing.T) {
	for name, want := range map[string][]string{
		"dense":      {"Compute with one thread", "--threads 1", "because", "41 %", "price", "+6.0 %", "28.4 tok/s", "163 tok/s", "decode by memory (est)", "costs the target"},
		"interfered": {"Keep stress-ng off", "3.90 s", "28.4 tok/s"},
		"counted":    {"nothing to change", "82 % of the roof"},
		"moe":        {"nothing to change", "2,620 tok/s", "costs the target 21 % of its"},
		"absent":     {"no recommendation", "no operator could be classified"},
		"idle":       {"nothing was computed"},
		"cut":        {"no figures: the file is cut short after 3 events", "record it again"},
	} {
		lines := strings.SplitAfter(traceText(t, traces()[name](), Options{Width: 80}), "\n")
		first := strings.Join(lines[:min(24, len(lines))], "")
		for _, w := range want {
			if !strings.Contains(first, w) {
				t.Errorf("%s: the first screen does not say %q:\n%s", name, w, first)
			}
		}
	}
}

// TestBoundOfAPhase holds that time which neither side of the roof holds up counts as
// that, and is not left to the next best.
func TestBoundOfAPhase(t *testing.T) {
	rows := []optrace.OperatorRow{
		{Phase: "decode", Time: 4, Bound: optrace.BoundMemory, BoundFrom: optrace.FromRoofline},
		{Phase: "decode", Time: 5, Bound: optrace.BoundNeither, BoundFrom: optrace.FromRoofline},
		{Phase: "decode", Time: 1},
		{Phase: "prefill", Time: 90, Bound: optrace.BoundCompute},
	}
	b, share, from := boundOf(rows, "decode")
	if b != optrace.BoundNeither || share != 0.5 || from != optrace.FromRoofline {
		t.Errorf("%q for %v, from %q", b, share, from)
	}
	if got := boundWords(b); got != "neither memory nor compute" {
		t.Error(got)
	}
	rows[1].Bound = optrace.BoundWaiting
	if b, share, _ := boundOf(rows, "decode"); b != optrace.BoundWaiting || share != 0.5 {
		t.Errorf("%q for %v of a phase whose lanes mostly wait", b, share)
	}
	page := &tracePage{s: &optrace.Summary{}}
	if got := page.ofRoof(&optrace.PhaseRow{BytesRate: stat.Some(1e9)}, optrace.BoundWaiting); got != "" {
		t.Errorf("%q: a share of a roof that does not bound it", got)
	}
}

// TestBoundOfNothingIsNotNamed holds that what bounds hardly any of the time is no bound of
// the phase, and that the reason for none is the reason.
func TestBoundOfNothingIsNotNamed(t *testing.T) {
	known := stat.Some(1e9)
	seen := optrace.Roof{BytesPerSecond: 1e9, From: optrace.RoofSeen}
	for name, c := range map[string]struct {
		kinds      []optrace.OperatorRow
		has, hasNo string
	}{
		"almost nothing":    {[]optrace.OperatorRow{{Phase: "decode", Time: 9999, Bytes: known, Flops: known}, {Phase: "decode", Time: 1, Bytes: known, Bound: optrace.BoundWaiting}}, "decode not known: <0.1 % of its time has a bound, the rest is", "waits of"},
		"no shapes, a wait": {[]optrace.OperatorRow{{Phase: "decode", Time: 9999}, {Phase: "decode", Time: 1, Bound: optrace.BoundWaiting}}, "shapes of operators were not read", "waits of"},
		"no shapes":         {[]optrace.OperatorRow{{Phase: "decode", Time: 10}}, "shapes of operators were not read", "roof was not measured"},
		"no roof":           {[]optrace.OperatorRow{{Phase: "decode", Time: 10, Bytes: known}}, "roof was not measured", "shapes"},
		"half":              {[]optrace.OperatorRow{{Phase: "decode", Time: 10}, {Phase: "decode", Time: 10, Bound: optrace.BoundWaiting}}, "decode by waits of", "not known"},
	} {
		page := &tracePage{s: &optrace.Summary{Kinds: c.kinds, Roof: seen, Phases: []optrace.PhaseRow{{Phase: "decode"}}}}
		got := strings.ReplaceAll(page.boundGlance(), nbsp, " ")
		if !strings.Contains(got, c.has) || strings.Contains(got, c.hasNo) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRoofOfAPhase holds the products of a prefill against the rate that says something
// about them, and names it.
func TestRoofOfAPhase(t *testing.T) {
	kinds := []optrace.OperatorRow{{Phase: "prefill", Type: "q8_0", Time: 9}}
	roof := optrace.Roof{BytesPerSecond: 37e9, FlopsPerSecond: 240e9, Int8PerSecond: 960e9, From: optrace.RoofMeasured}
	for rate, want := range map[float64]string{
		75e9:  "75.0 of 240 GFLOP/s (f32), 31 % of the roof, measured",
		480e9: "480 of 960 GFLOP/s (int8), 50 % of the roof, measured",
	} {
		page := &tracePage{s: &optrace.Summary{Kinds: kinds, Roof: roof}}
		got := strings.ReplaceAll(page.ofRoof(&optrace.PhaseRow{Phase: "prefill", FlopsRate: stat.Some(rate)}, optrace.BoundCompute), nbsp, " ")
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestSentencesAreNotGlued holds that pieces of evidence end as they were written.
func TestRateOfAnswersIsTold(t *testing.T) {
	s := denseTrace()
	for i := range s.Phases {
		if p := &s.Phases[i]; p.Phase == "decode" {
			p.Rate, p.Paced = some(3701), some(2770)
		}
	}
	page := strings.Join(strings.Fields(strings.ReplaceAll(traceText(t, s, Options{Width: 120}), "\u00a0", " ")), " ")
	for _, want := range []string{"decode 2,770 tok/s in answers · 3,700 tok/s in calls", "tok/s in answers – 2,770", "tok/s in calls"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}

// Operators that nobody watched are in no figure.
func TestBackendWithoutOperators(t *testing.T) {
	s := denseTrace()
	s.Backends = []optrace.BackendRow{{Name: "CPU", Splits: 1, Nodes: 10, Time: time.Second}}
	page := strings.Join(strings.Fields(strings.ReplaceAll(traceText(t, s, Options{Width: 120}), "\u00a0", " ")), " ")
	if !strings.Contains(page, "none of its operators was watched") || strings.Contains(page, "its operators are in the figures") {
		t.Error(page)
	}
}

func TestSentencesAreNotGlued(t *testing.T) {
	for want, list := range map[string][]string{
		"One is so. 2 are not.":        {"One is so.", "2 are not."},
		"lane 1 waits; decode reads":   {"lane 1 waits", "", "decode reads"},
		"It takes 3 %. as it were; so": {"It takes 3 %.", "as it were", "so"},
	} {
		if got := sentences(list); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestCoverageSaysWhatWasNotSeen holds that figures of nothing are no dashes in a
// sentence, and that a roof which was only seen is not taken for the machine's.
func TestCoverageSaysWhatWasNotSeen(t *testing.T) {
	s := absentTrace()
	s.Roof = optrace.Roof{FlopsPerSecond: 154e9, Threads: 2, From: optrace.RoofSeen}
	page := strings.Join(strings.Fields(traceText(t, s, Options{Width: 200})), " ")
	for _, want := range []string{"no operator and no graph of a call was seen", "the best that products with weights reached in this trace: no limit of the machine"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "operators cover –") {
		t.Error("operators cover nothing that is known, and it is said as a share")
	}
}

// TestNoRoofWithoutCPUs holds that where threads had no CPU and no roof was measured, that
// is the reason why nothing is judged, and that what passed the roof is no share of it.
func TestNoRoofWithoutCPUs(t *testing.T) {
	s := &optrace.Summary{
		Kinds:   []optrace.OperatorRow{{Phase: "decode", Time: 10, Bytes: stat.Some(1e9)}},
		Phases:  []optrace.PhaseRow{{Phase: "decode"}},
		Threads: []optrace.ThreadRow{{Preempted: stat.Some(0.48)}},
	}
	if got := strings.ReplaceAll((&tracePage{s: s}).boundGlance(), nbsp, " "); !strings.Contains(got, "not judged: the threads had no CPU for 48 % of the time") {
		t.Error(got)
	}
	for share, want := range map[float64]string{0.5: "50 %", 1: "100 %", 1.04: "above it", 2: "above it"} {
		if got := strings.ReplaceAll(shareOfRoof(&optrace.OperatorRow{OfRoof: stat.Some(share)}), nbsp, " "); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}

// What tracing costs is said with what it is reckoned from, so that hits, what one costs
// and the time of a token give it again, and whether it is more than it was to be.
func TestTraceSaysWhatItsCostIsReckonedFrom(t *testing.T) {
	s := denseTrace()
	s.Observer = optrace.Observer{
		HitsPerToken: 434, CostPerHit: 1640, Threads: 2, Expected: 0.047, GraphTime: 7184 * time.Microsecond, Graphs: 240, From: optrace.ExpectedTrace, Limit: 0.04,
	}
	said := func() string { return strings.Join(strings.Fields(traceText(t, s, Options{Width: 80})), " ") }
	for _, want := range []string{
		"costs the target 4.7 % of its speed (est), more than --max-overhead 4 Coverage",
		"217 hits a token on each of 2 threads at a mean of 1.64 µs take 356 µs of its 7.54 ms with them, by the middle one of 240 decode graphs of the trace",
	} {
		if !strings.Contains(said(), want) {
			t.Errorf("it does not say %q: %s", want, said())
		}
	}
	s.Observer.MeanGraph = 40 * time.Millisecond
	for _, want := range []string{
		"costs the target 4.7 % of its speed (est) by its median token, 0.9 % of its mean one of 40.0 ms, more than --max-overhead 4 Coverage",
		"expected 4.7 % of its speed (est) by its median token, 0.9 % of its mean one of 40.0 ms",
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
	if got := said(); !strings.Contains(got, "not reckoned") {
		t.Errorf("without hits: %s", got)
	}
}

// TestACutRecordingIsSaidFirst holds that a recording without an end says so before its
// figures.
func TestACutRecordingIsSaidFirst(t *testing.T) {
	s := denseTrace()
	s.Gaps = append(s.Gaps, cutTrace().Gaps[1])
	lines := strings.SplitAfter(traceText(t, s, Options{Width: 80}), "\n")
	if head := strings.Join(lines[:6], ""); !strings.Contains(head, "not whole: the file is cut short after 3 events") {
		t.Errorf("the first lines do not say it:\n%s", head)
	}
}
