package tuning_test

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// TestAnObjectiveWithoutAPredictionIsUnknown checks that the prediction of a mean does not replace that of a
// quantile that has a limit, and that a prediction of the quantile itself is shown once.
func TestAnObjectiveWithoutAPredictionIsUnknown(t *testing.T) {
	mean := engine.Prediction{Metric: "ttft_mean_s", Unit: "ratio", Mid: stat.Some(-0.5)}
	tail := engine.Prediction{Metric: "ttft_p99_s", Unit: "ratio", Mid: stat.Some(-0.2)}
	p99 := verdict.Objective{Metric: verdict.MetricTTFT, Quantile: 0.99, Limit: 1}
	ofMean := verdict.Objective{Metric: verdict.MetricITL, Limit: 1}
	for _, c := range []struct {
		predicted  []engine.Prediction
		objectives []verdict.Objective
		want       string
	}{
		{[]engine.Prediction{mean}, nil, "TTFT mean"},
		{[]engine.Prediction{mean}, []verdict.Objective{ofMean}, "TTFT mean"},
		{[]engine.Prediction{mean}, []verdict.Objective{p99}, "TTFT mean, TTFT p99 unknown until tried"},
		{[]engine.Prediction{mean, tail}, []verdict.Objective{p99}, "TTFT mean, TTFT p99"},
	} {
		var got []string
		for _, e := range tuning.Expectations(c.predicted, nil, c.objectives...) {
			got = append(got, strings.TrimSpace(e.Metric+" "+e.Range))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("expects %q, want %q", text, c.want)
		}
	}
}

func TestNextNamesEveryFlag(t *testing.T) {
	pool := engine.Change{Flag: "--num-gpu-blocks-override", From: "64", To: "112"}
	advice := &engine.Recommendation{Fix: engine.Fix{
		Kind: engine.KindFlag, Flag: pool.Flag, From: pool.From, To: pool.To,
		Also: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "16"}}, Why: "Neither helps alone.",
	}}
	run := tuning.Run{Snapshot: &loop.Snapshot{Attached: true, Advice: advice}}
	if got, want := run.Next(), engine.JoinChanges(advice.Changes())+": Neither helps alone."; got != want || !strings.Contains(got, "--max-num-seqs") {
		t.Errorf("next is %q, want %q", got, want)
	}
}

// TestARecommendationThatMayNotHelpSaysSo has ranges of the output above zero, around it, and unknown.
func TestARecommendationThatMayNotHelpSaysSo(t *testing.T) {
	const restart = "one restart"
	for _, c := range []struct {
		low, mid stat.Opt
		says     bool
	}{
		{stat.Some(-0.035), stat.Some(0.15), true}, {stat.Some(0), stat.Some(0.02), true}, {stat.Some(0.01), stat.Some(0.15), false},
		{stat.Some(-0.3), stat.Some(-0.1), false}, {stat.None, stat.Some(0.15), false}, {stat.Some(-0.1), stat.None, false},
	} {
		r := &engine.Recommendation{Fix: engine.Fix{Costs: []string{restart}, Predicted: []engine.Prediction{
			{Metric: tuning.Output, Unit: "ratio", Low: c.low, Mid: c.mid, High: stat.Some(0.45)},
		}}}
		list := tuning.Costs(r)
		if said := strings.HasPrefix(list[0], "it may not help"); said != c.says || list[len(list)-1] != restart {
			t.Errorf("%v to %v: %q", c.low, c.mid, list)
		}
	}
}

// TestSlotsOfTheMeasuredRanks checks that the slots beside the running requests are those of the same ranks.
func TestSlotsOfTheMeasuredRanks(t *testing.T) {
	for ranks, want := range map[int]float64{0: 16, 1: 16, 2: 32} {
		f := engine.Facts{MaxNumSeqs: engine.Know(16, engine.FromCmdline, ""), DataParallel: engine.Know(4, engine.FromCmdline, ""), Ranks: ranks}
		if got := tuning.Slots(&f); got != stat.Some(want) {
			t.Errorf("%d of 4 ranks: %v slots, want %v", ranks, got.V, want)
		}
	}
}
