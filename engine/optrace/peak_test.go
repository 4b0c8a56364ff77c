package optrace

import (
	"testing"
)

// TestComputing checks that products are compared with the f32 rate, and with that of integers
// only if they exceeded it.
func TestComputing(t *testing.T) {
	r := Peak{FlopsPerSecond: 100, Int8PerSecond: 400}
	for weights, integers := range map[string]bool{
		"q4_0": true, "q6_K": true, "q8_0": true, "iq4_nl": true, "tq1_0": true, "mxfp4": true,
		"f32": false, "f16": false, "bf16": false, "i32": false, "": false, "q": false, "iq": false, "quiet": false,
	} {
		if got, int8 := r.ComputeRate(weights, 31); got != 100 || int8 {
			t.Errorf("%q at 31: %v, %v, want 100 of f32", weights, got, int8)
		}
		want := 100.0
		if integers {
			want = 400
		}
		if got, int8 := r.ComputeRate(weights, 150); got != want || int8 != integers {
			t.Errorf("%q at 150: %v, %v, want %v", weights, got, int8, want)
		}
	}
	if got, int8 := (Peak{FlopsPerSecond: 100}).ComputeRate("q4_0", 150); got != 100 || int8 {
		t.Errorf("no rate of integers: %v, %v, want that of floats", got, int8)
	}
	if got, int8 := (Peak{Int8PerSecond: 400}).ComputeRate("q4_0", 31); got != 400 || !int8 {
		t.Errorf("no rate of floats: %v, %v, want that of integers", got, int8)
	}
}

// TestRoofWith converts a stored peak to another number of threads.
func TestRoofWith(t *testing.T) {
	kept := Peak{BytesPerSecond: 40, FlopsPerSecond: 800, Int8PerSecond: 1600, Threads: 8, From: PeakMeasured, MeasuredOn: "2026-11-22", ByThreads: []PeakPoint{
		{Threads: 1, BytesPerSecond: 10, FlopsPerSecond: 100, Int8PerSecond: 200},
		{Threads: 4, BytesPerSecond: 40, FlopsPerSecond: 400, Int8PerSecond: 800},
		{Threads: 8, BytesPerSecond: 40, FlopsPerSecond: 800, Int8PerSecond: 1600},
	}}
	for threads, want := range map[int]PeakPoint{
		0: {8, 40, 800, 1600}, 1: {1, 10, 100, 200}, 2: {2, 20, 200, 400}, 4: {4, 40, 400, 800}, 8: {8, 40, 800, 1600},
	} {
		r, ok := kept.WithThreads(threads)
		if got := (PeakPoint{r.Threads, r.BytesPerSecond, r.FlopsPerSecond, r.Int8PerSecond}); !ok || got != want {
			t.Errorf("%d threads: %v, %v, want %v", threads, got, ok, want)
		}
		if r.Origin() != "measured 2026-11-22 on this machine" || len(r.ByThreads) != 3 {
			t.Errorf("%d threads: %q, %d points", threads, r.Origin(), len(r.ByThreads))
		}
	}
	if r, ok := kept.WithThreads(9); ok {
		t.Errorf("more threads than were measured: %v", r)
	}
	for _, from := range []string{PeakSeen, PeakDisturbed, ""} {
		if _, ok := (Peak{BytesPerSecond: 1, Threads: 1, From: from}).WithThreads(1); ok {
			t.Errorf("%q is a roof to compare with", from)
		}
	}
	if got := (Peak{From: PeakCatalog}).Origin(); got != "catalog (est)" {
		t.Errorf("origin %q", got)
	}
}
