package trace

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestBoundOfAPhase checks that time bound by neither memory nor compute counts as such, and is not assigned to the
// next bound.
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
	page := &builder{s: &optrace.Summary{}}
	if got := page.peakShareText(&optrace.PhaseRow{BytesRate: stat.Some(1e9)}, optrace.BoundWaiting); got != "" {
		t.Errorf("%q: a share of a roof that does not bound it", got)
	}
}

// TestBoundOfNothingIsNotNamed checks that a bound of hardly any of the time is not named for the phase, and that the
// reason is given.
func TestBoundOfNothingIsNotNamed(t *testing.T) {
	known := stat.Some(1e9)
	seen := optrace.Peak{BytesPerSecond: 1e9, From: optrace.PeakSeen}
	for name, c := range map[string]struct {
		kinds      []optrace.OperatorRow
		has, hasNo string
	}{
		"almost nothing":    {[]optrace.OperatorRow{{Phase: "decode", Time: 9999, Bytes: known, Flops: known}, {Phase: "decode", Time: 1, Bytes: known, Bound: optrace.BoundWaiting}}, "decode unknown: <0.1 % of its time has a bound, the rest is", "threads that wait"},
		"no shapes, a wait": {[]optrace.OperatorRow{{Phase: "decode", Time: 9999}, {Phase: "decode", Time: 1, Bound: optrace.BoundWaiting}}, "operator shapes were not read", "threads that wait"},
		"no shapes":         {[]optrace.OperatorRow{{Phase: "decode", Time: 10}}, "operator shapes were not read", "machine peak is not in the catalog"},
		"no roof":           {[]optrace.OperatorRow{{Phase: "decode", Time: 10, Bytes: known}}, "machine peak is not in the catalog", "shapes"},
		"half":              {[]optrace.OperatorRow{{Phase: "decode", Time: 10}, {Phase: "decode", Time: 10, Bound: optrace.BoundWaiting}}, "decode by threads that wait", "not known"},
	} {
		page := &builder{s: &optrace.Summary{Kinds: c.kinds, Peak: seen, Phases: []optrace.PhaseRow{{Phase: "decode"}}}}
		got := strings.ReplaceAll(page.bounds(), figure.NBSP, " ")
		if !strings.Contains(got, c.has) || strings.Contains(got, c.hasNo) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRoofOfAPhase compares the products of a prefill with the peak that applies to them, and checks its name.
func TestRoofOfAPhase(t *testing.T) {
	kinds := []optrace.OperatorRow{{Phase: "prefill", Type: "q8_0", Time: 9}}
	roof := optrace.Peak{BytesPerSecond: 37e9, FlopsPerSecond: 240e9, Int8PerSecond: 960e9, From: optrace.PeakMeasured}
	for rate, want := range map[float64]string{
		75e9:  "75.0 of 240 GFLOP/s (f32), 31 % of the machine peak, measured",
		480e9: "480 of 960 GFLOP/s (int8), 50 % of the machine peak, measured",
	} {
		page := &builder{s: &optrace.Summary{Kinds: kinds, Peak: roof}}
		got := strings.ReplaceAll(page.peakShareText(&optrace.PhaseRow{Phase: "prefill", FlopsRate: stat.Some(rate)}, optrace.BoundCompute), figure.NBSP, " ")
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNoRoofWithoutCPUs checks that missing CPU time and a missing machine peak are given as the reason, and that a rate
// above the peak is not a share of it.
func TestNoRoofWithoutCPUs(t *testing.T) {
	s := &optrace.Summary{
		Kinds:   []optrace.OperatorRow{{Phase: "decode", Time: 10, Bytes: stat.Some(1e9)}},
		Phases:  []optrace.PhaseRow{{Phase: "decode"}},
		Threads: []optrace.ThreadRow{{Preempted: stat.Some(0.48)}},
	}
	if got := strings.ReplaceAll((&builder{s: s}).bounds(), figure.NBSP, " "); !strings.Contains(got, "unknown: the threads had no CPU for 48 % of the time") {
		t.Error(got)
	}
	for share, want := range map[float64]string{0.5: "50 %", 1: "100 %", 1.04: "above it", 2: "above it"} {
		if got := strings.ReplaceAll(shareOfPeak(&optrace.OperatorRow{OfPeak: stat.Some(share)}).Text, figure.NBSP, " "); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
}

// TestPerToken checks that the time per token is shown only if a call has one token.
func TestPerToken(t *testing.T) {
	call := stat.Distribution{Count: 10, P50: 19600 * time.Microsecond, P95: 21400 * time.Microsecond}
	for _, c := range []struct {
		row  optrace.PhaseRow
		want string
	}{
		{optrace.PhaseRow{Phase: "decode", Calls: 10, Tokens: 10, Call: call}, "p50 19.6 ms a token, p95 21.4 ms"},
		{optrace.PhaseRow{Phase: "decode", Calls: 10, Tokens: 40, Call: call}, "p50 19.6 ms a call of 4 tokens, p95 21.4 ms"},
		{optrace.PhaseRow{Phase: "prefill", Calls: 10, Tokens: 5120, Call: call}, "p50 19.6 ms a call of 512 tokens, p95 21.4 ms"},
		{optrace.PhaseRow{Phase: "decode", Calls: 250, Tokens: 251, Call: call}, "p50 19.6 ms a call of 1 token, p95 21.4 ms"},
		{optrace.PhaseRow{Phase: "unknown", Calls: 10, Call: call}, "p50 19.6 ms a call, p95 21.4 ms"},
		{optrace.PhaseRow{Phase: "decode"}, ""},
	} {
		if got := strings.ReplaceAll(strings.Join(Times(&c.row), ", "), figure.NBSP, " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// If exports contain only a part of the trace, that part is stated in seconds.
func TestSecondsThatAreKept(t *testing.T) {
	if got := events(&optrace.Coverage{LeftOut: 3, KeptFrom: stat.Some(56), KeptTo: stat.Some(62.04)}); !strings.HasSuffix(got, ", which hold 56.0 to 62.0 s of the trace") {
		t.Errorf("%q", got)
	}
	if got := events(&optrace.Coverage{LeftOut: 3}); strings.Contains(got, "which hold") {
		t.Errorf("all are kept: %q", got)
	}
}

// A lane without traced operators is not idle.
func TestBusyOfNothingIsNotZero(t *testing.T) {
	g := &optrace.LiveGraph{Time: time.Second, Threads: []optrace.LiveThread{{}, {Index: 1}}}
	if got := busyShare(&g.Threads[0], g); got.OK {
		t.Errorf("graphs alone: %v", got)
	}
	g.Threads[1].Spans = []optrace.LiveSpan{{End: time.Second / 2}}
	if idle, busy := busyShare(&g.Threads[0], g), busyShare(&g.Threads[1], g); idle != stat.Some(0) || busy != stat.Some(0.5) {
		t.Errorf("%v and %v", idle, busy)
	}
}

// An unknown machine peak is not reported as a peak "with 0 threads".
func TestNoPeak(t *testing.T) {
	b := &builder{s: &optrace.Summary{}}
	if got := b.peak(); len(got) != 1 || !strings.Contains(got[0].Text.String(), "not known") {
		t.Errorf("%+v", got)
	}
}

// TestLayerOfGraphsWithItsOperators checks that the time of a layer covers only the graphs in which it was recorded, not
// those of less detail.
func TestLayerOfGraphsWithItsOperators(t *testing.T) {
	b := &builder{s: &optrace.Summary{Phases: []optrace.PhaseRow{{Phase: "decode", Graph: stat.Distribution{Count: 40}}}}}
	for graphs, want := range map[int]time.Duration{10: time.Millisecond, 0: time.Millisecond / 4} {
		if got := b.meanPerGraph(&optrace.LayerRow{Phase: "decode", Graphs: graphs}, 10*time.Millisecond); got != want {
			t.Errorf("of %d graphs: %v, want %v", graphs, got, want)
		}
	}
}
