package optrace

import (
	"testing"
	"time"
)

func TestOperationsPerSecond(t *testing.T) {
	r := Roof{FlopsPerSecond: 100, Int8PerSecond: 400}
	for weights, want := range map[string]float64{
		"q4_0": 400, "q6_K": 400, "q8_0": 400, "iq4_nl": 400, "tq1_0": 400, "mxfp4": 400,
		"f32": 100, "f16": 100, "bf16": 100, "i32": 100, "": 100, "q": 100, "iq": 100, "quiet": 100,
	} {
		if got := r.OperationsPerSecond(weights); got != want {
			t.Errorf("%q: %v, want %v", weights, got, want)
		}
	}
	if got := (Roof{FlopsPerSecond: 100}).OperationsPerSecond("q4_0"); got != 100 {
		t.Errorf("no rate of integers: %v, want that of floats", got)
	}
}

// TestRoofWith takes a roof that was kept to another number of threads.
func TestRoofWith(t *testing.T) {
	kept := Roof{BytesPerSecond: 40, FlopsPerSecond: 800, Int8PerSecond: 1600, Threads: 8, From: RoofMeasured, MeasuredOn: "2026-11-22", ByThreads: []RoofPoint{
		{Threads: 1, BytesPerSecond: 10, FlopsPerSecond: 100, Int8PerSecond: 200},
		{Threads: 4, BytesPerSecond: 40, FlopsPerSecond: 400, Int8PerSecond: 800},
		{Threads: 8, BytesPerSecond: 40, FlopsPerSecond: 800, Int8PerSecond: 1600},
	}}
	for threads, want := range map[int]RoofPoint{
		0: {8, 40, 800, 1600}, 1: {1, 10, 100, 200}, 2: {2, 20, 200, 400}, 4: {4, 40, 400, 800}, 8: {8, 40, 800, 1600},
	} {
		r, ok := kept.With(threads)
		if got := (RoofPoint{r.Threads, r.BytesPerSecond, r.FlopsPerSecond, r.Int8PerSecond}); !ok || got != want {
			t.Errorf("%d threads: %v, %v, want %v", threads, got, ok, want)
		}
		if r.Origin() != "measured 2026-11-22 on this machine" || len(r.ByThreads) != 3 {
			t.Errorf("%d threads: %q, %d points", threads, r.Origin(), len(r.ByThreads))
		}
	}
	if r, ok := kept.With(9); ok {
		t.Errorf("more threads than were measured: %v", r)
	}
	for _, from := range []string{RoofSeen, RoofDisturbed, ""} {
		if _, ok := (Roof{BytesPerSecond: 1, Threads: 1, From: from}).With(1); ok {
			t.Errorf("%q is a roof to compare with", from)
		}
	}
	if got := (Roof{From: RoofCatalog}).Origin(); got != "catalog (est)" {
		t.Errorf("origin %q", got)
	}
}

// TestCeilingByOrigin has a measured roof and one of the catalog give ceilings, and the
// best that was seen, or was measured beside other load, none.
func TestCeilingByOrigin(t *testing.T) {
	for from, want := range map[string]bool{RoofMeasured: true, RoofPlain: true, RoofCatalog: true, RoofSeen: false, RoofDisturbed: false} {
		m := newModel()
		tally := NewTally(m.tables)
		decode := run(m.decoder(2, 1, 64), 1, 0, each(time.Millisecond))
		decode.Phase, decode.Tokens = PhaseDecode, 1
		tally.Graph(decode)
		s := tally.Summary(Settings{Roof: Roof{BytesPerSecond: 20e9, FlopsPerSecond: 100e9, From: from}})
		if len(s.Phases) == 0 || s.Phases[len(s.Phases)-1].Ceiling.OK != want {
			t.Errorf("%s: %+v", from, s.Phases)
		}
	}
}
