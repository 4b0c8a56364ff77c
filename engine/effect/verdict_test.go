package effect

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

func proved(goal verdict.Goal, low, mid, high float64) Verdict {
	return Verdict{&verdict.Result{Direction: verdict.Better, Goal: goal, Known: true, Effect: verdict.Interval{Low: low, Mid: mid, High: high}}}
}

func words(s string) string { return strings.ReplaceAll(s, figure.NBSP, " ") }

func TestProofInWords(t *testing.T) {
	dominated := proved("", -0.02, 0.04, 0.1)
	dominated.Measured, dominated.Result.Restart = 0.011, 0.06
	dominated.Result.Spread = verdict.Spread{SD: 0.04, From: "assumed"}
	bound := proved("", 0.9, 1, 1.1)
	bound.LowerBound = true
	limited := proved("", 0, 0, 0)
	limited.Result.Limited = [2]verdict.Limit{verdict.ByCapacity, verdict.ByDemand}
	moved := proved("", 0.1, 0.2, 0.3)
	moved.Measures = []verdict.Measure{
		{Metric: verdict.MetricTokens, Known: true, Moved: true, Change: moved.Result.Effect},
		{Metric: verdict.MetricTTFT, Quantile: 0.99, Known: true, Moved: true, Change: verdict.Interval{Low: -0.5, Mid: -0.4, High: -0.3}},
		{Metric: verdict.MetricITL, Known: true, Change: verdict.Interval{Low: -0.5, Mid: -0.4, High: 0.3}},
		{Metric: verdict.MetricE2E, Quantile: 0.5, Moved: true},
	}
	moved.Traffic = []verdict.Shift{
		{Name: "prompt tokens", Before: stat.Some(512), After: stat.Some(671), Change: verdict.Interval{Mid: 0.31}, Moved: true},
		{Name: "prefix hits", Before: stat.Some(0.5), After: stat.Some(0.25), Change: verdict.Interval{Mid: -0.25}, Moved: true},
		{Name: "arrivals"},
	}
	for _, c := range []struct{ name, got, want string }{
		{"effect", proved("", 0.29, 0.31, 0.33).Effect(), "output +31 % (+29 to +33 %)"},
		{"effect on latency", proved(verdict.Latency, 0.29, 0.31, 0.33).Effect(), "the time of a request −24 % (−25 to −22 %)"},
		{"effect on cost", proved(verdict.Cost, -0.04, -0.03, -0.02).Effect(), "output per dollar −3 % (−4 to −2 %)"},
		{"nothing known", Verdict{&verdict.Result{}}.Effect(), "output –"},
		{"no number", proved("", math.NaN(), 1, 2).Effect(), "output –"},
		{"at least", bound.Effect(), "output +100 % (+90 to +110 %) or more"},
		{"width", dominated.Width(), "±6.1 %: ±6 % from restart noise, which longer measurement does not narrow, ±1.1 % from measurement noise"},
		{"width of a load in bursts", Verdict{&verdict.Result{Known: true, Measured: math.Log(4.5)}}.Width(), "a factor of 4.50 each way from measurement noise"},
		{"spread", dominated.Spread(), "restart spread 4 % (assumed)"},
		{"limited", limited.Limited(), "output was limited by server capacity before, by the load after"},
		{"unlimited", proved("", 0, 0, 0).Limited(), ""},
		{"moved", strings.Join(moved.OtherChanges(), "; "), "TTFT p99 −40 % (−50 to −30 %)"},
		{"traffic", strings.Join(moved.TrafficShifts(), "; "), "prompt tokens 512 → 671, +31 %; prefix hits 50 % → 25 %"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := words(c.got); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestAims(t *testing.T) {
	limit := verdict.Objective{Name: "ttft_p99", Metric: verdict.MetricTTFT, Quantile: 0.99, Limit: 0.5}
	for _, c := range []struct {
		held        verdict.ObjectiveResult
		text, state string
	}{
		{verdict.ObjectiveResult{Objective: limit, After: stat.Some(0.312), Met: true}, "ttft_p99 312 ms, limit 500 ms: kept", "kept"},
		{verdict.ObjectiveResult{Objective: limit, Before: stat.Some(0.6), After: stat.Some(0.7), Broken: true, WasBroken: true}, "ttft_p99 700 ms, limit 500 ms: broken, as before", "broken"},
		{verdict.ObjectiveResult{Objective: limit, Before: stat.Some(0.51), After: stat.Some(0.7), Broken: true}, "ttft_p99 700 ms, limit 500 ms: broken", "broken"},
		{verdict.ObjectiveResult{Objective: limit, After: stat.Some(0.45), Low: stat.Some(0.4), High: stat.Some(0.6), WasMet: true}, "ttft_p99 450 ms, limit 500 ms: not sure (400 ms to 600 ms)", "not sure"},
		{verdict.ObjectiveResult{Objective: limit}, "ttft_p99 –, limit 500 ms: not known", "not known"},
		{verdict.ObjectiveResult{Objective: limit, Low: stat.Some(0.1), High: stat.Some(0.25), Met: true}, "ttft_p99 at most 250 ms, limit 500 ms: kept", "kept"},
		{verdict.ObjectiveResult{Objective: limit, Low: stat.Some(5), Broken: true}, "ttft_p99 at least 5.00 s, limit 500 ms: broken", "broken"},
		{verdict.ObjectiveResult{Objective: limit, Low: stat.Some(0.1), High: stat.Some(1)}, "ttft_p99 –, limit 500 ms: not sure (100 ms to 1.00 s)", "not sure"},
	} {
		got := Verdict{&verdict.Result{Objectives: []verdict.ObjectiveResult{c.held}}}.ObjectiveLines()
		if len(got) != 1 || words(got[0].Text) != c.text || got[0].State != c.state {
			t.Errorf("got %+v, want %q", got, c.text)
		}
	}
}

// A prediction of cost is inverted: the goal is output per dollar.
func TestPredictionOfAGoal(t *testing.T) {
	list := []engine.Prediction{
		{Metric: "generation_tokens_per_s", Unit: "ratio", Low: stat.Some(0.2), Mid: stat.Some(0.3), High: stat.Some(0.4)},
		{Metric: "e2e_mean_s", Unit: "ratio", Low: stat.Some(-0.5), Mid: stat.Some(-0.2), High: stat.Some(0.25)},
		{Metric: "usd_per_million_tokens", Unit: "ratio", Low: stat.Some(-0.5), Mid: stat.Some(-0.2), High: stat.Some(0.25)},
	}
	for _, c := range []struct {
		goal           verdict.Goal
		low, mid, high float64
		ok             bool
	}{
		{verdict.Throughput, 0.2, 0.3, 0.4, true}, {verdict.Latency, -0.5, -0.2, 0.25, true}, {verdict.Cost, -0.2, 0.25, 1, true}, {"", 0.2, 0.3, 0.4, true},
	} {
		got, ok := PredictionOf(list, c.goal)
		near := func(o stat.Opt, v float64) bool { return !c.ok || o.OK && math.Abs(o.V-v) < 1e-9 }
		if ok != c.ok || !near(got.Low, c.low) || !near(got.Mid, c.mid) || !near(got.High, c.high) {
			t.Errorf("%s: %+v, %v", c.goal, got, ok)
		}
	}
	if held, known := proved("", 0.1, 0.15, 0.25).Outcome(list); held || !known {
		t.Error("a value below the prediction is not a miss")
	}
	other := proved("", 0.2, 0.3, 0.4)
	other.Direction = verdict.NotComparable
	if _, known := other.Outcome(list); known {
		t.Error("a prediction is held against what the traffic explains")
	}
	if _, known := proved("", -0.61, 0.3, 2.03).Outcome(list); known {
		t.Error("an effect of -61 to +203 % tests a prediction")
	}
}
