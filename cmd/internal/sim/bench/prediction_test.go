package bench

import (
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

func TestScore(t *testing.T) {
	nan := math.NaN()
	list := []ScoredPrediction{
		{Finding: "a", Scores: []Scored{{metricGoal, 0.5, 1, 1.5, 0.6}}},    // held, 25 % too high
		{Finding: "a", Scores: []Scored{{metricGoal, 0.5, 1, 1.5, 0.25}}},   // below, 60 %
		{Finding: "a", Scores: []Scored{{metricGoal, 0.05, 0.1, 0.2, 1}}},   // above, -45 %
		{Finding: "a", Scores: []Scored{{metricGoal, 0, nan, 0.5, 0.6}}},    // a bound, broken
		{Finding: "a", Scores: []Scored{{metricTTFT, -0.5, -0.4, 0, -0.5}}}, // of another metric
		{Finding: "b", Scores: []Scored{{metricGoal, 0, 1, 2, 1}}},          // not counted
	}
	got := Score(list, metricGoal, func(f *ScoredPrediction) bool { return f.Finding == "a" })
	want := Scoreboard{N: 3, Bounds: 1, Error: 0.45, Bias: 0.25, Coverage: 1. / 3, Below: 1. / 3, Above: 1. / 3, Width: 2.5/1.5 - 1}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if none := Score(nil, metricGoal, nil); none.N != 0 || !math.IsNaN(none.Error) || !math.IsNaN(none.Coverage) {
		t.Errorf("of nothing: %+v", none)
	}
}

func TestVary(t *testing.T) {
	list, err := settings.All()
	if err != nil {
		t.Fatal(err)
	}
	halves := map[bool]int{}
	for i := range list {
		sc := &list[i]
		halves[heldOut(sc)]++
		v := vary(sc, 1, 0)
		if heldOut(&v) != heldOut(sc) {
			t.Errorf("%s: a variant is in the other half", sc.Name)
		}
		if len(sc.Load) > 0 && cmp.Equal(v.Load, sc.Load) {
			t.Errorf("%s: the variant has the same load", sc.Name)
		}
		for j := range v.Load {
			s := &v.Load[j]
			if s.Prompt.Most < s.Prompt.Least || s.Output.Most < 1 || s.Prefix.Tokens > s.Prompt.Most {
				t.Errorf("%s: %+v cannot be offered", sc.Name, s)
			}
		}
	}
	if halves[true] < len(list)/3 || halves[false] < len(list)/3 {
		t.Errorf("halves of %v", halves)
	}
}

// A server with too few slots is followed: the slots are raised first, then later recommendations are applied.
func TestForetell(t *testing.T) {
	list, err := settings.Select("slot-capped/8b-a100")
	if err != nil {
		t.Fatal(err)
	}
	told, err := ScorePredictions(t.Context(), []Case{{list[0], 1}}, Options{})
	if err != nil || len(told) == 0 {
		t.Fatalf("%d predictions, %v", len(told), err)
	}
	f := &told[0]
	s := f.Score(metricGoal)
	if f.Advice != "--max-num-seqs" || f.Step != 1 || s == nil || !s.Whole() || !(s.Measured > 0.5) {
		t.Errorf("%s by %s: %v", f.Advice, f.Finding, s)
	}
}

// TestPredictionsOfTheLibrary scores the predictions for scenarios, variants and 400 random servers. The table
// is for a reader: SIMBENCH_PREDICTIONS is the seed.
func TestPredictionsOfTheLibrary(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("SIMBENCH_PREDICTIONS"), 10, 64)
	if err != nil {
		t.Skip("NOT CHECKED without SIMBENCH_PREDICTIONS: predictions of all simulated servers")
	}
	list, err := settings.All()
	if err != nil {
		t.Fatal(err)
	}
	told, err := ScorePredictions(t.Context(), Cases(list, seed), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + writePredictions(told))
	if goal := Score(told, metricGoal, nil); goal.Error > 0.12 || goal.Coverage < 0.6 {
		t.Errorf("output: %+v", goal)
	}
}
