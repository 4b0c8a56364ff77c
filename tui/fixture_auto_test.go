package tui

import (
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

// autoBuilders returns the functions that build snapshots of runs with intervals, most of them automatic.
func autoBuilders() []builder {
	return []builder{
		{"trial-begins", func() *loop.Snapshot { return trialSnapshot(0) }},
		{"trial", func() *loop.Snapshot { return trialSnapshot(2) }},
		{"countdown", countdownSnapshot},
		{"held", heldSnapshot},
		{"better", betterSnapshot},
		{"lost", lostSnapshot},
		{"plateau", plateauSnapshot},
		{"inconclusive", inconclusiveSnapshot},
		{"incomparable", incomparableSnapshot},
		{"failed", failedSnapshot},
		{"done", doneSnapshot},
	}
}

// onAutopilot makes a run automatic.
func onAutopilot(s *loop.Snapshot) *loop.Snapshot {
	s.Auto = true
	s.CanApply = true
	s.RevertsFirst = len(s.Iterations) > 0 && slices.Contains([]loop.Phase{loop.PhaseApplying, loop.PhaseDown, loop.PhaseSettling, loop.PhaseMeasuring, loop.PhaseWorse, loop.PhaseReverting}, s.Phase)
	s.Limits = loop.Limits{Restarts: 5, Downtime: 10 * time.Minute, UsedStarts: 2, UsedOutages: 42 * time.Second}
	s.Score = loop.Score{Made: 1, Within: 1, Error: some(0.012)}
	s.Can[loop.CommandHold] = loop.Availability{OK: true}
	s.Can[loop.CommandApply] = loop.Availability{OK: s.Phase == loop.PhaseWaiting, Why: "A change is being measured."}
	s.Journal = nil
	return s
}

// judged returns a verdict on throughput with an interval. measured and restart are the parts of
// its width from measuring and from restarts.
func judged(d verdict.Direction, low, mid, high, measured, restart float64) *verdict.Result {
	return &verdict.Result{
		Direction: d, Cause: verdict.ByFlag, Settled: true, Goal: verdict.Throughput, Known: true,
		Effect: verdict.Interval{Low: low, Mid: mid, High: high}, Measured: measured, Restart: restart,
		Spread:  verdict.Spread{SD: 0.012, Repeats: 3, DoF: 3, From: "3 repeats on this server"},
		Limited: [2]verdict.Limit{verdict.ByCapacity, verdict.ByCapacity},
	}
}

// measures returns latencies that changed significantly with the output, and one that did not.
func measures(output verdict.Interval, ttft verdict.Interval) []verdict.Measure {
	return []verdict.Measure{
		{Metric: verdict.MetricTokens, Change: output, Known: true, Moved: true},
		{Metric: verdict.MetricTTFT, Quantile: 0.99, Change: ttft, Known: true, Moved: true, Count: 214},
		{Metric: verdict.MetricITL, Quantile: 0.99, Change: verdict.Interval{Low: -0.02, Mid: 0.069, High: 0.13}, Known: true, Count: 41_000},
	}
}

// trialSnapshot returns the first change on trial after a number of looks.
func trialSnapshot(looks int) *loop.Snapshot {
	s := onAutopilot(measuringSnapshot())
	s.Limits.UsedStarts, s.Limits.UsedOutages, s.Score = 1, 22*time.Second, loop.Score{}
	all := []verdict.Result{
		*judged(verdict.Inconclusive, 0.52, 0.91, 1.4, 0.22, 0.03), *judged(verdict.Inconclusive, 0.7, 0.86, 1.05, 0.09, 0.03),
	}
	for i := range all[:looks] {
		all[i].Settled = false
		all[i].Need = "the load of before"
		all[i].Measures = measures(all[i].Effect, verdict.Interval{Low: -0.7, Mid: -0.6, High: -0.42})
		soFar := effect.Compare(s.Iterations[0].Before, s.Live)
		s.Trial.Results = append(s.Trial.Results, *screentest.Complete(&soFar, &all[i]))
		s.Trial.Measured = s.Trial.Looks[i] + 7*time.Second
	}
	return s
}

// countdownSnapshot returns a run that is about to make the second change; the first one was
// better.
func countdownSnapshot() *loop.Snapshot {
	s := onAutopilot(waitingSnapshot())
	s.Iterations = s.Iterations[:1]
	s.Iterations[0].Downtime = 22 * time.Second
	s.Iterations[0].Text = "--max-num-seqs 8 → 16 as recommended, applied by rooftop"
	r := judged(verdict.Better, 0.84, 0.883, 0.92, 0.012, 0.017)
	r.NamesEffect, r.Reason = true, "output +88 % (+84 to +92 %)"
	r.Measures = measures(r.Effect, verdict.Interval{Low: -0.66, Mid: -0.6, High: -0.51})
	screentest.SetVerdict(&s.Iterations[0], r)
	s.Pending = loop.Pending{Text: "--max-num-seqs 16 → 40", At: s.Now + 8*time.Second}
	s.Limits.UsedStarts, s.Limits.UsedOutages = 1, 22*time.Second
	return s
}

func heldSnapshot() *loop.Snapshot {
	s := countdownSnapshot()
	s.Held = true
	s.Pending.At = 0
	return s
}

// betterSnapshot returns the verdict on 16 → 40 slots, which leaves no request waiting, with
// objectives.
func betterSnapshot() *loop.Snapshot {
	s := countdownSnapshot()
	r := judged(verdict.Better, 0.98, 1.06, 1.15, 0.031, 0.017)
	r.NamesEffect, r.Reason = true, "output +106 % (+98 to +115 %), and no queue is left: it may be more"
	r.LowerBound = true
	r.Limited[1] = verdict.ByDemand
	r.Measures = measures(r.Effect, verdict.Interval{Low: -0.98, Mid: -0.93, High: -0.9})
	r.Objectives = []verdict.ObjectiveResult{
		{Objective: verdict.Objective{Name: "ttft_p99", Metric: verdict.MetricTTFT, Quantile: 0.99, Limit: 1}, Before: some(9.66), After: some(0.56), Low: some(0.5), High: some(0.75), Met: true},
		{Objective: verdict.Objective{Name: "itl_p99", Metric: verdict.MetricITL, Quantile: 0.99, Limit: 0.03}, Before: some(0.0227), After: some(0.0271), Low: some(0.025), High: some(0.0375), WasMet: true},
	}
	changeSlots(s, 64, 0, r, loop.IterationKept)
	s.Live = healthySnapshot().Live
	s.Baseline, s.Facts = s.Live, s.Live.Facts
	s.Advice, s.Pending = nil, loop.Pending{}
	s.Quiet = "nothing predicted is worth a restart"
	s.Progress.Text = "watching the kept change for a while: crashes under load come late"
	return s
}

// changeSlots adds a second change: the slots, with its verdict.
func changeSlots(s *loop.Snapshot, to int, waiting float64, r *verdict.Result, end loop.IterationEnd) {
	it := loop.Iteration{
		N: 2, At: 170 * time.Second, Up: 190 * time.Second, Settled: 226 * time.Second, End: end, Downtime: 20 * time.Second,
		Noticed: loop.AsRecommended, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "16", To: fmt.Sprint(to)}},
		Text: fmt.Sprintf("--max-num-seqs 16 → %d as recommended, applied by rooftop", to), Command: fmt.Sprintf(fixtureLaunch, to),
		Predicted: diagnosisAt(16, 24).Recommendation.Predicted, Before: diagnosisAt(16, 24), After: diagnosisAt(to, waiting),
	}
	delta := effect.Compare(it.Before, it.After)
	it.Delta = &delta
	screentest.SetVerdict(&it, r)
	s.Iterations = append(s.Iterations[:1:1], it)
	s.Limits.UsedStarts, s.Limits.UsedOutages = 2, 42*time.Second
	s.Score = loop.Score{Made: 2, Within: 2, Error: some(0.03)}
	if held, known := (effect.Verdict{Result: r}).Outcome(it.Predicted); known && !held {
		s.Score = loop.Score{Made: 2, Within: 1, Error: some(0.31)}
	}
}

// lostSnapshot returns a change that was worse and is reverted at once.
func lostSnapshot() *loop.Snapshot {
	s := countdownSnapshot()
	r := judged(verdict.Worse, -0.765, -0.73, -0.69, 0.03, 0.017)
	r.NamesEffect, r.Reason = true, "output −73 % (−77 to −69 %)"
	r.Measures = measures(r.Effect, verdict.Interval{Low: 3.9, Mid: 4.46, High: 5.2})
	changeSlots(s, 4, 36, r, loop.IterationReverted)
	s.Pending = loop.Pending{Text: "revert to the kept configuration", At: s.Now + 3*time.Second}
	s.Advice = nil
	return s
}

func plateauSnapshot() *loop.Snapshot {
	s := countdownSnapshot()
	r := judged(verdict.Plateau, -0.012, 0.004, 0.021, 0.009, 0.013)
	r.NamesEffect, r.Reason = true, "output +0.4 % (−1.2 to +2.1 %), within 3 %"
	r.Measures = measures(r.Effect, verdict.Interval{Low: -0.1, Mid: -0.07, High: -0.04})
	r.Cause = verdict.ByNoise
	changeSlots(s, 17, 24, r, loop.IterationNoGain)
	return s
}

func inconclusiveSnapshot() *loop.Snapshot {
	s := countdownSnapshot()
	r := judged(verdict.Inconclusive, -0.021, 0.041, 0.107, 0.011, 0.062)
	r.NamesEffect, r.Reason = true, "output +4.1 % (−2.1 to +11 %); starts of one configuration differ by as much"
	r.Measures = measures(r.Effect, verdict.Interval{})[:1]
	r.Spread = verdict.Spread{SD: 0.04, From: "assumed: six starts of one configuration differed by 3.8 %"}
	r.Cause = verdict.ByNoise
	changeSlots(s, 17, 24, r, loop.IterationNoGain)
	return s
}

// incomparableSnapshot has different traffic after the change, and different answers.
func incomparableSnapshot() *loop.Snapshot {
	s := countdownSnapshot()
	r := judged(verdict.NotComparable, -0.12, -0.08, -0.04, 0.02, 0.017)
	r.NamesEffect, r.Reason = true, "output −8 % (−12 to −4 %), but the load differs (prompt tokens +31 %): that may be all"
	r.Measures = measures(r.Effect, verdict.Interval{})[:1]
	r.Cause, r.Bias = verdict.ByTraffic, 0.19
	r.Limited = [2]verdict.Limit{verdict.ByDemand, verdict.ByCapacity}
	r.Traffic = []verdict.Shift{
		{Name: "prompt tokens", Before: some(512), After: some(671), Change: verdict.Interval{Low: 0.28, Mid: 0.31, High: 0.34}, Moved: true},
		{Name: "prefix hits", Before: some(0.034), After: some(0.012), Change: verdict.Interval{Low: -0.03, Mid: -0.022, High: -0.01}, Moved: true},
		{Name: "output tokens", Before: some(256), After: some(255), Change: verdict.Interval{Low: -0.02, Mid: 0, High: 0.02}},
	}
	changeSlots(s, 40, 12, r, loop.IterationNoGain)
	s.Iterations[1].AnswerCheck = &loop.AnswerCheck{Prompts: 12, Same: 9, Drift: some(0.031)}
	return s
}

// failedSnapshot has a change after which the server did not start.
func failedSnapshot() *loop.Snapshot {
	s := countdownSnapshot()
	changeSlots(s, 40, 0, judged(verdict.Better, 1, 1, 1, 0, 0), loop.IterationBroken)
	it := &s.Iterations[1]
	it.Delta, it.After, it.Up, it.Settled = nil, nil, 0, 0
	it.Failure = "the server did not come up within 2 min: torch.OutOfMemoryError: CUDA out of memory; what was kept is back"
	it.Downtime = 131 * time.Second
	s.Limits.UsedStarts, s.Limits.UsedOutages = 3, 153*time.Second
	s.Score = loop.Score{Made: 1, Within: 1, Error: some(0.012)}
	s.Advice = nil
	s.Pending = loop.Pending{Text: "--max-num-seqs 16 → 28", At: s.Now + 10*time.Second}
	return s
}

// doneSnapshot returns the end of an automatic run.
func doneSnapshot() *loop.Snapshot {
	s := betterSnapshot()
	s.Phase, s.Pending, s.Score = loop.PhaseDone, loop.Pending{}, loop.Score{Made: 4, Within: 3, Error: some(0.06)}
	s.Finished = &loop.Finished{
		Reason: "nothing predicted is worth a restart", Command: fmt.Sprintf(fixtureLaunch, 64), Gain: some(2.88), Restarts: 2, GainWithin: verdict.Interval{Low: 2.71, Mid: 2.88, High: 3.07}, GainKnown: true, Downtime: 42 * time.Second, Score: s.Score,
	}
	return s
}
