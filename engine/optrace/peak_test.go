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
