package document_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

// provedResult is a verdict with every field set.
func provedResult() *verdict.Result {
	return &verdict.Result{
		Direction: verdict.Better, NamesEffect: true, Reason: "output +81 % (+75 to +88 %)", Cause: verdict.ByFlag, Settled: true, Goal: verdict.Throughput, Known: true,
		Effect: verdict.Interval{Low: .75, Mid: .8138, High: .88}, Measured: .012, Restart: .034,
		Spread:  verdict.Spread{SD: .012, Repeats: 3, DoF: 3, From: "3 repeats on this server"},
		Limited: [2]verdict.Limit{verdict.ByCapacity, verdict.ByDemand},
		Measures: []verdict.Measure{
			{Metric: verdict.MetricTokens, Before: stat.Some(3297), After: stat.Some(5980), Change: verdict.Interval{Low: .75, Mid: .8138, High: .88}, Known: true, Moved: true},
			{Metric: verdict.MetricTTFT, Quantile: .99, Before: stat.Some(78.4), After: stat.Some(7.84), Change: verdict.Interval{Low: -.93, Mid: -.9, High: -.86}, Known: true, Moved: true, Buckets: [2]stat.Bucket{{40, 80}, {7.5, 10}}, Count: 311},
			{Metric: verdict.MetricITL, Quantile: .99, Before: stat.Some(.0742), After: stat.Some(.0742), Change: verdict.Interval{Low: -.03, High: .04}, Known: true, Buckets: [2]stat.Bucket{{.05, .075}, {.05, .075}}, Count: 90_000},
			{Metric: verdict.MetricPower},
		},
		Traffic: []verdict.Shift{
			{Name: "prompt tokens", Before: stat.Some(512), After: stat.Some(671), Change: verdict.Interval{Low: .28, Mid: .31, High: .34}, Moved: true},
			{Name: "prefix hits"},
		},
		Objectives: []verdict.ObjectiveResult{
			{Objective: verdict.Objective{Name: "ttft_p99", Metric: verdict.MetricTTFT, Quantile: .99, Limit: 10}, Before: stat.Some(78.4), After: stat.Some(7.84), Low: stat.Some(7), High: stat.Some(9), Met: true},
			{Objective: verdict.Objective{Name: "itl_p99", Metric: verdict.MetricITL, Quantile: .99, Limit: .06}, Before: stat.Some(.0742), After: stat.Some(.0742), Broken: true, WasBroken: true},
		},
	}
}

// noGain is a verdict below the noise.
func noGain() *verdict.Result {
	return &verdict.Result{
		Direction: verdict.Inconclusive, NamesEffect: true, Reason: "output +4.1 % (−2.1 to +11 %); starts of one configuration differ by as much", Cause: verdict.ByNoise, Settled: true,
		Need: "more starts of both", Goal: verdict.Throughput, Known: true, Effect: verdict.Interval{Low: -.021, Mid: .041, High: .107}, Measured: .011, Restart: .062,
		Spread:   verdict.Spread{SD: .04, From: "assumed: six starts of one configuration differed by 3.8 %"},
		Measures: []verdict.Measure{{Metric: verdict.MetricTokens, Change: verdict.Interval{Low: -.021, Mid: .041, High: .107}, Known: true}},
	}
}

// piloted is an automatic run with a kept change, one below the noise, and one that did not start.
func piloted() *loop.Snapshot {
	s := tuned()
	s.Auto = true
	s.Limits = loop.Limits{Restarts: 5, Downtime: 10 * time.Minute, Allow: []string{"--kv-cache-dtype"}, UsedStarts: 4, UsedOutages: 95 * time.Second}
	s.Score = loop.Score{Made: 2, Within: 1, Error: stat.Some(.24)}
	screentest.SetVerdict(&s.Iterations[0], provedResult())
	s.Iterations[0].Downtime = 10 * time.Second
	s.Iterations[0].Predicted = []engine.Prediction{
		{Metric: "generation_tokens_per_s", Unit: "ratio", Low: stat.Some(.7), Mid: stat.Some(.8), High: stat.Some(.9)},
		{Metric: "ttft_p99_s", Unit: "ratio", Low: stat.Some(-.8), Mid: stat.Some(-.7), High: stat.Some(-.6)},
	}
	second := iteration(2, 256, 300, s.Baseline, scaledSlots(300, 6210, .1), loop.IterationNoGain)
	second.Predicted = []engine.Prediction{{Metric: "generation_tokens_per_s", Unit: "ratio", Low: stat.Some(.1), Mid: stat.Some(.15), High: stat.Some(.2)}}
	second.AnswerCheck = &loop.AnswerCheck{Prompts: 12, Same: 9, Drift: stat.Some(.031)}
	screentest.SetVerdict(&second, noGain())
	third := iteration(3, 256, 512, s.Baseline, nil, loop.IterationBroken)
	third.Predicted, third.Downtime = second.Predicted, 75*time.Second
	third.Failure = "the server did not come up within 60 s: torch.OutOfMemoryError: CUDA out of memory"
	s.Iterations = []loop.Iteration{s.Iterations[0], second, third}
	s.Finished = &loop.Finished{
		Limits: loop.Limits{Restarts: 5, UsedStarts: 4, UsedOutages: 95 * time.Second},
		Reason: "nothing predicted is worth a restart", Command: launchWith(256), Gain: stat.Some(.8138), GainWithin: verdict.Interval{Low: .75, Mid: .8138, High: .88}, GainKnown: true,
		Restarts: 4, Downtime: 95 * time.Second, Score: s.Score,
	}
	return s
}

// Values that are not finite or not measured are null and do no harm.
func TestStatisticalObjectOfNothing(t *testing.T) {
	r := &verdict.Result{
		Direction: verdict.Inconclusive, Effect: verdict.Interval{Mid: math.NaN(), High: math.Inf(1)}, Known: true, Measured: math.NaN(),
		Measures: []verdict.Measure{{Metric: "x", Change: verdict.Interval{Low: math.Inf(-1)}, Known: true}},
	}
	var b bytes.Buffer
	must(t, document.WriteLine(&b, document.Statistical(r)))
	for _, want := range []string{`"effect":{"low":0,"mid":null,"high":null}`, `"measured_half_width":null`, `"need":null`, `"objectives":[]`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
	if document.Statistical(nil) != nil {
		t.Error("a nil verdict has a statistical part")
	}
}

// A run that is read back has the intervals and the score.
func TestPilotedReadsBack(t *testing.T) {
	r, err := document.ReadRun([]byte(written(t, document.WriteRun, piloted())))
	must(t, err)
	if r.Made != 2 || r.Within != 1 || !r.Low.OK || r.Low.V != .75 || r.High.V != .88 {
		t.Errorf("score %d of %d, gain %v to %v", r.Within, r.Made, r.Low, r.High)
	}
	if c := r.Changes[1]; c.Direction != "inconclusive" || c.Gain.V != .041 || c.Low.V != -.021 {
		t.Errorf("change 2: %+v", c)
	}
}

func TestOutputsAreThoseThatWereJudged(t *testing.T) {
	s := piloted()
	it := &s.Iterations[0]
	result := *it.Delta.Verdict
	result.Measures = append([]verdict.Measure{{
		Metric: verdict.MetricTokens, Known: true, Moved: true, Before: stat.Some(3000), After: stat.Some(5430), Change: result.Effect,
	}}, result.Measures...)
	delta := *it.Delta
	delta.Verdict = &result
	it.Delta = &delta
	if before, after := tuning.Outputs(it); before.Value.V != 3000 || after.Value.V != 5430 {
		t.Errorf("outputs %v → %v, want the judged 3000 → 5430", before.Value, after.Value)
	}
	if _, headline := (tuning.Run{Snapshot: s}).Headline(); !strings.Contains(headline, "3,000") {
		t.Errorf("%q does not begin at the judged 3,000", headline)
	}
}
