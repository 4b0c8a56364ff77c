package screentest

import (
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// SetVerdict sets the verdict of an iteration that has been compared.
func SetVerdict(it *loop.Iteration, r *verdict.Result) {
	d := *it.Delta
	d.Verdict, d.Direction, d.Reason = Complete(&d, r), r.Direction, r.Reason
	it.Delta = &d
}

// Complete adds to a verdict the values that it lacks: those of the diagnoses, as if these were of the judged
// slices, and after the change what its interval says.
func Complete(d *effect.Delta, r *verdict.Result) *verdict.Result {
	full := *r
	full.Measures = slices.Clone(r.Measures)
	for _, m := range d.Metrics {
		name, quantile := strings.TrimSuffix(strings.TrimSuffix(m.Name, "_s"), "_mean"), 0.0
		if cut, ok := strings.CutSuffix(name, "_p99"); ok {
			name, quantile = cut, 0.99
		}
		one := verdict.Measure{Metric: verdict.Metric(name), Quantile: quantile, Before: m.Before.Value, After: m.After.Value}
		if one.Metric.Quantity(quantile) != m.Name { // it has no suffix to cut
			one.Metric = verdict.Metric(m.Name)
		}
		at := slices.IndexFunc(full.Measures, func(have verdict.Measure) bool { return have.Metric.Quantity(have.Quantile) == m.Name })
		if m.Name == "usd_per_million_tokens" {
			one.After = one.Before.Times(1 / (1 + r.Effect.Mid))
		}
		switch {
		case at < 0:
			full.Measures = append(full.Measures, one)
		case !full.Measures[at].Before.OK:
			have := &full.Measures[at]
			have.Before, have.After = one.Before, one.After
			if have.Known {
				have.After = one.Before.Times(1 + have.Change.Mid)
			}
		}
	}
	return &full
}
