package stat

import (
	"math"
	"testing"
	"time"
)

func TestWhatCannotBeComputedIsAbsent(t *testing.T) {
	for name, o := range map[string]Opt{
		"NaN": Finite(math.NaN()), "infinity": Finite(math.Inf(-1)), "an absent value": None.Finite(),
		"a share of nothing": Ratio(3, 0), "a rate over no time": PerSecond(3, 0),
		"the mean of nothing": Mean(nil), "the median of nothing": Median(nil), "a quantile of nothing": NearestRank(nil, 0.5),
	} {
		if o.OK {
			t.Errorf("%s: %v, want absent", name, o.V)
		}
	}
}

func TestCentres(t *testing.T) {
	values := []float64{9, 1, 2, 4}
	if got := Median(values); got != Some(3) {
		t.Errorf("median %v, want 3", got)
	}
	if values[0] != 9 {
		t.Error("Median changed the order of its values")
	}
	if got := Mean(values); got != Some(4) {
		t.Errorf("mean %v, want 4", got)
	}
	if got := Ratio(time.Second, 4*time.Second); got != Some(0.25) {
		t.Errorf("ratio %v, want 0.25", got)
	}
	sorted := []float64{1, 2, 4, 9}
	for q, want := range map[float64]float64{0: 1, 0.25: 1, 0.26: 2, 0.99: 9, 1: 9} {
		if got := NearestRank(sorted, q); got != Some(want) {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
}
