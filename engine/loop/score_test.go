package loop

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

func TestScore(t *testing.T) {
	measured := func(dir verdict.Direction, goal verdict.Goal, gain float64, predicted ...engine.Prediction) Iteration {
		return Iteration{Predicted: predicted, Delta: &effect.Delta{Direction: dir, Verdict: &verdict.Result{Known: true, Goal: goal, Effect: verdict.Interval{Mid: gain}}}}
	}
	p := func(metric string, low, mid, high float64) engine.Prediction {
		return engine.Prediction{Metric: metric, Unit: "ratio", Low: stat.Some(low), Mid: stat.Some(mid), High: stat.Some(high)}
	}
	tokens := func(low, mid, high float64) engine.Prediction { return p(engine.QuantityThroughput, low, mid, high) }
	for _, c := range []struct {
		name string
		list []Iteration
		want Score
	}{
		{"none", nil, Score{}},
		{"hit and miss", []Iteration{
			measured(verdict.Better, verdict.Throughput, 0.5, tokens(0.4, 0.6, 0.8)),
			measured(verdict.Plateau, verdict.Throughput, 0.01, tokens(0.1, 0.21, 0.3)),
			measured(verdict.Better, verdict.Throughput, 0.25, tokens(0.1, 0.2, 0.3)),
		}, Score{Made: 3, Within: 2, Error: stat.Some(1 - 1.5/1.6)}},
		{"latency is turned around", []Iteration{measured(verdict.Better, verdict.Latency, 1, p(engine.QuantityE2E, -0.6, -0.5, -0.4))}, Score{Made: 1, Within: 1, Error: stat.Some(0)}},
		{"without a verdict the throughput", []Iteration{{Predicted: []engine.Prediction{tokens(0.1, 0.2, 0.3)}, Delta: &effect.Delta{Direction: verdict.Better, Throughput: stat.Some(0.25)}}}, Score{Made: 1, Within: 1, Error: stat.Some(1.25/1.2 - 1)}},
		{"not comparable", []Iteration{measured(verdict.NotComparable, verdict.Throughput, 0.5, tokens(0.4, 0.6, 0.8))}, Score{}},
		{"too wide to test it", []Iteration{{Predicted: []engine.Prediction{tokens(0.1, 0.2, 0.3)}, Delta: &effect.Delta{Direction: verdict.Inconclusive,
			Verdict: &verdict.Result{Known: true, Effect: verdict.Interval{Low: -0.61, Mid: 0.2, High: 2.03}}}}}, Score{}},
		{"not judged", []Iteration{{Predicted: []engine.Prediction{tokens(0.4, 0.6, 0.8)}}}, Score{}},
		{"nothing predicted", []Iteration{measured(verdict.Better, verdict.Throughput, 0.5)}, Score{}},
		{"a bound alone", []Iteration{measured(verdict.Better, verdict.Throughput, 0.5, engine.Prediction{Metric: engine.QuantityThroughput, Unit: "ratio", High: stat.Some(1)})}, Score{}},
	} {
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
		if diff := cmp.Diff(c.want, score(c.list), near); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
