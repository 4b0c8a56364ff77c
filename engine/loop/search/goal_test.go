package search

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// TestGoalsNameTheQuantitiesOfPredictions compares the names that predictions and verdicts use.
func TestGoalsNameTheQuantitiesOfPredictions(t *testing.T) {
	for goal, want := range map[verdict.Goal]string{
		verdict.Throughput: engine.QuantityThroughput, verdict.Latency: engine.QuantityE2E, verdict.Cost: engine.QuantityCost,
	} {
		if goal.Quantity() != want {
			t.Errorf("goal %s is about %q, predictions call it %q", goal, goal.Quantity(), want)
		}
	}
}

func TestMissedObjectivesAreSaid(t *testing.T) {
	d := &engine.Diagnosis{Measured: []engine.NamedQuantity{
		{Name: "ttft_p99_s", Quantity: engine.Quantity{Value: stat.Some(1.2)}}, {Name: "itl_mean_s", Quantity: engine.Quantity{Value: stat.Some(0.03)}}, {Name: "tpot_mean_s", Quantity: engine.Quantity{Value: stat.Some(0.08)}},
	}}
	a := Goal{Objectives: []verdict.Objective{
		{Name: "ttft_p99", Metric: verdict.MetricTTFT, Quantile: 0.99, Limit: 0.5},
		{Name: "itl_mean", Metric: verdict.MetricITL, Limit: 0.06},
		{Name: "tpot_p50", Metric: verdict.MetricTPOT, Quantile: 0.5, Limit: 0.05},
		{Name: "e2e_p99", Metric: verdict.MetricE2E, Quantile: 0.99, Limit: 1},
	}}
	if got, want := strings.ReplaceAll(a.Missed(d), figure.NBSP, " "), "missed now: ttft_p99 1.20 s against a limit of 500 ms; tpot_p50, of which tpot_mean 80.0 ms is known against a limit of 50.0 ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&Goal{}).Missed(d); got != "" {
		t.Errorf("without objectives %q", got)
	}
}

// TestAGoalOfCostIsPredicted has a change of which only the throughput is predicted, and one of a rule, which
// predicts its cost.
func TestAGoalOfCostIsPredicted(t *testing.T) {
	tokens := engine.Prediction{Metric: engine.QuantityThroughput, Unit: "ratio", Mid: stat.Some(1), High: stat.Some(3)}
	cost := engine.Prediction{Metric: engine.QuantityCost, Unit: "ratio", High: stat.Some(-0.1)}
	goal := NewGoal(verdict.Cost, nil, 0)
	list := goal.complete(&engine.Diagnosis{}, []engine.Prediction{tokens})
	if p := engine.PredictionOf(list, engine.QuantityCost); len(list) != 2 || p.High.OK || p.Mid != stat.Some(-0.5) || p.Low != stat.Some(-0.75) {
		t.Errorf("%+v", list)
	}
	if list := goal.complete(&engine.Diagnosis{}, []engine.Prediction{tokens, cost}); len(list) != 2 || list[1] != cost {
		t.Errorf("what a rule predicts was replaced: %+v", list)
	}
	for _, other := range []verdict.Goal{verdict.Throughput, verdict.Latency} {
		goal := NewGoal(other, nil, 0)
		if list := goal.complete(&engine.Diagnosis{}, []engine.Prediction{tokens}); len(list) != 1 {
			t.Errorf("%s: %+v", other, list)
		}
	}
}
