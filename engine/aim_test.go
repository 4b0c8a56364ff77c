package engine

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

func TestMissedObjectivesAreSaid(t *testing.T) {
	d := &Diagnosis{Measured: []NamedQuantity{
		{Name: "ttft_p99_s", Quantity: Quantity{Value: stat.Some(1.2)}}, {Name: "itl_mean_s", Quantity: Quantity{Value: stat.Some(0.03)}}, {Name: "tpot_mean_s", Quantity: Quantity{Value: stat.Some(0.08)}},
	}}
	a := aim{objectives: []verdict.Objective{
		{Name: "ttft_p99", Metric: verdict.MetricTTFT, Quantile: 0.99, Limit: 0.5},
		{Name: "itl_mean", Metric: verdict.MetricITL, Limit: 0.06},
		{Name: "tpot_p50", Metric: verdict.MetricTPOT, Quantile: 0.5, Limit: 0.05},
		{Name: "e2e_p99", Metric: verdict.MetricE2E, Quantile: 0.99, Limit: 1},
	}}
	if got, want := strings.ReplaceAll(a.missed(d), figure.NBSP, " "), "missed now: ttft_p99 1.20 s against a limit of 500 ms; tpot_p50, of which tpot_mean 80.0 ms is known against a limit of 50.0 ms"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (&aim{}).missed(d); got != "" {
		t.Errorf("without objectives %q", got)
	}
}
