package optrace

import "testing"

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
