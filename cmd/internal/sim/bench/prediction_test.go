package bench

import (
	"os"
	"strconv"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

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
