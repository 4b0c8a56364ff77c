package rules

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of token-budget: prompts queue while slots and KV blocks are free.
const (
	budgetQueue          = 1.0  // requests waiting for capacity, at least
	budgetKV             = 0.80 // peak KV usage, below
	budgetFull           = 0.70 // mean tokens of a step over the budget, at least
	budgetFlat           = 0.35 // coefficient of variation of a flat prompt rate, at most
	budgetAdvised        = 8192 // vLLM's own advice for throughput; more only if the server has it already
	budgetBound          = 4096 // tokens of a step from which on any GPU is compute bound: far above ridgeMost
	budgetBoundCPU       = 2048 // the same on a CPU: with 4096 a real server finished as many requests (docs/measurements.md)
	budgetConfidence     = 0.80 // with a flat prompt rate
	budgetLessConfidence = 0.60
	budgetLeastFlat      = 3 // windows needed to judge flatness

	// A server whose launch cannot be read shows a full budget if a prompt is always being computed,
	// each over several steps: prefills take budgetPrefills of the time, one after the other, and one
	// takes budgetChunks of the longest steps.
	budgetPrefills = 0.7
	budgetChunks   = 2
	budgetBelow    = 2 // how far the tokens of a mean step may lie below such a budget, as a ratio

	longSteps = 4 // full steps that a long prompt takes, at least
	// longParts is the divisor of the budget that a long prompt is advised to have of a step. Simulated servers with as much
	// had 0.01 to 0.19 of the p99 of the time to first token, and no less output but by chance.
	longParts = 16
	// usualBlock is the largest block of attention alone, in tokens: that of vLLM's CPU backend.
	usualBlock = 128
)

var tokenBudget = definition{engine.Rule{
	ID: engine.TokenBudget, Code: "beyond", Title: "Token budget", Group: engine.GroupSlots, Impact: 3,
	Infer: inferLongPrompt, Check: checkTokenBudget, Conclude: concludeTokenBudget,
}, Explanation{
	Condition: []string{
		"at least one request waits for capacity (deferred ones do not count: no capacity flag helps them)",
		"slots are free, the KV peak is below " + figure.PercentSign(budgetKV) + ", and no request was preempted",
		"the steps are full: at least " + figure.PercentSign(budgetFull) + " of max_num_batched_tokens on average; or no prompt is completed, while one of the run fills at least " + strconv.Itoa(longSteps) + " steps",
	},
	Thresholds: []Threshold{
		{"prefill time share, launch unknown", ">=", budgetPrefills, "ratio", fromJudgement},
		{"prefill / ITL p99, launch unknown", ">=", budgetChunks, "", fromVLLM},
		{"queued", ">=", budgetQueue, "req", fromDecision},
		{"kv_usage_peak", "<", budgetKV, "ratio", fromDecision},
		{"tokens per step / max_num_batched_tokens", ">=", budgetFull, "ratio", fromJudgement},
		{"tokens to compute of the longest prompt / max_num_batched_tokens, one prompt", ">=", longSteps, "", fromJudgement},
		{"variation of the prompt rate (confidence)", "<=", budgetFlat, "ratio", fromJudgement},
	},
	Formula: []string{
		"launch unknown: tokens of a step = tokens computed per second x mean inter-token latency; steps are full if prompts are always being computed, each over several steps; unknown if requests run one at a time, because no inter-token latency then has a prompt in it; they are not full if one step has more than twice as many tokens and one prompt",
		fmt.Sprintf("budget = the next power of two in which steps are at most %s full once the waiting requests run too, each with as many tokens per step as now; at least twice the current one and %d, because steps below that also waste part of the matrix units; at most %d, or %d if that is reached already",
			figure.PercentSign(budgetFull), lever.UsualBudget, budgetAdvised, lever.MostBudget),
		"one prompt is being computed: a window completes no prompt, and the pool fills by twice the generated tokens and a quarter of a step or more; its length is at least that of the longest prompt, or the tokens of the largest step less the budget",
		"gain: running grows with the budget until waiting requests, slots or pool are used up; throughput of that step by the physical model, over that of the current step",
	},
	Confidence: []string{fmt.Sprintf("%v if the prompt rate is flat, or one prompt fills the steps", budgetConfidence), fmt.Sprintf("%v otherwise", budgetLessConfidence)},
	Remedy: []string{
		"raise --max-num-batched-tokens: time to first token falls, inter-token latency has higher spikes",
		fmt.Sprintf("--long-prefill-token-threshold, 1/%d of the budget, if one prompt fills the steps: the rest of each step serves the others", longParts),
		fmt.Sprintf("not recommended if the physical model finds prefill compute bound, or without it for steps of %d tokens and more, on a CPU %d:", budgetBound, budgetBoundCPU) + " a larger step takes longer in proportion, requests finish at the same rate, and by Little's law the wait moves from before the first token to after it",
	},
	Limits: []string{"iteration_tokens_total counts a chunked prompt when its last chunk is done: single values can exceed the budget"},
}}

// inferLongPrompt infers from all windows that one prompt filled several steps: by the lengths of prompts, or because it
// counts as tokens of the step with its last part, which then exceeds its budget several times. A budget that is assumed
// may be too small. Both count cached tokens, of which it is taken to have as many as all prompts have.
func inferLongPrompt(windows []engine.Window, f *engine.Facts) {
	var steps, prompts stat.Delta
	var looked, cached stat.Opt
	for i := range windows {
		if w := &windows[i]; w.Evaluable {
			steps.Merge(&w.Hist[engine.HistIterationTokens])
			prompts.Merge(&w.Hist[engine.HistPromptTokens])
			if rate, _ := hitRate(w); rate.OK && w.Delta[engine.CounterPromptTokens].OK {
				n := w.Delta[engine.CounterPromptTokens]
				looked, cached = looked.Plus(n), cached.Plus(n.Times(rate.V))
			}
		}
	}
	budget := float64(f.MaxNumBatchedTokens.Value)
	step, _ := largestStep(&steps, math.Inf(1))
	prompt, _ := largestStep(&prompts, math.Inf(1))
	computed := 1 - cached.Div(looked).Or(0)
	if longest := computed * max(step-budget, prompt); !budgetAssumed(f) && budget > 0 && longest >= longSteps*budget {
		f.LongPrompt = stat.Some(longest)
	}
}

// onePromptRuns reports whether a prompt was computed in a window that completed none, where one of the run fills several
// steps: the pool filled by far more than the generated tokens, half of that after the window's mean. A step without an
// output token is in no histogram, and requests that wait for something else complete no prompt either.
func onePromptRuns(w *engine.Window, f *engine.Facts) bool {
	fetched := w.Delta[engine.CounterExternalQueries].Or(0) > 0 // blocks of a prompt that another server computes
	if !w.Evaluable || !f.LongPrompt.OK || !f.KVCapacityTokens.Known || fetched || w.Delta[engine.CounterPromptTokens] != stat.Some(0) {
		return false
	}
	filled := 2 * (w.KVLast.Or(0) - w.KV.Or(math.Inf(1))) * f.KVCapacityTokens.Value * float64(ranks(w))
	return filled >= 2*w.Delta[engine.CounterGenerationTokens].Or(0)+float64(f.MaxNumBatchedTokens.Value)/4
}

// longPromptTime returns the share of the time, 0..1, of windows in which one long prompt was computed and none completed:
// a lower bound of prefill, which the page counts nowhere meanwhile. It is absent if there are none: where each step has
// output tokens, all are counted.
func longPromptTime(r *engine.Run) stat.Opt {
	seconds, all := 0.0, 0.0
	for w := range windows(r, evaluable) {
		all += w.Seconds()
		if onePromptRuns(w, r.Facts) {
			seconds += w.Seconds()
		}
	}
	if seconds == 0 {
		return stat.None
	}
	return stat.Some(seconds).Div(stat.Some(all))
}

// uncounted returns why figures of prefill are lower bounds on a server with a long prompt.
func uncounted(f *engine.Facts) string {
	return fmt.Sprintf("a prompt of at least %s counts in the step of its last part alone", figure.Counted(f.LongPrompt.V, "token"))
}

func checkTokenBudget(w *engine.Window, f *engine.Facts) engine.Check {
	if result, ok := underLoad(w); !ok && !onePromptRuns(w, f) {
		return result
	}
	queue := queued(w)
	if !queue.OK {
		return lacks(inputWaiting)
	}
	if queue.V < budgetQueue {
		if w.Waiting.V >= budgetQueue {
			return above("no capacity flag helps deferred requests; requests queued for capacity", queue, budgetQueue, "req")
		}
		return above("requests queued for capacity", queue, budgetQueue, "req")
	}
	if preempting(w) {
		return notFired("the KV pool is the limit: preemptions", comparison{w.Delta[engine.CounterPreemptions], ">", 0, "req"})
	}
	if peak := kvPeak(w); peak.OK && peak.V >= budgetKV {
		return notFired("KV peak", comparison{peak, ">=", budgetKV, "ratio"})
	}
	slots := slotsOf(w, f)
	if slots.OK && (slotsInUse(w, slots.V) || aboveSlots(w, slots.V)) {
		return allSlotsInUse(w, slots.V)
	}
	if budgetAssumed(f) {
		if seen := seenBudget(w); seen.OK {
			return fired("steps are full: tokens of a step", comparison{seen, ">=", w.Running.V / float64(ranks(w)), "tok"})
		}
	}
	if !slots.OK {
		return lacks(inputSlots)
	}
	if !f.MaxNumBatchedTokens.Known || f.MaxNumBatchedTokens.Value <= 0 {
		return lacks(inputBudget)
	}
	if onePromptRuns(w, f) {
		return fired("steps complete no prompt; the longest one", comparison{f.LongPrompt, ">=", longSteps * float64(f.MaxNumBatchedTokens.Value), "tok"})
	}
	tokens := stepTokens(w)
	if !tokens.OK {
		return lacks(inputIterations)
	}
	return above("share of the token budget that a step uses", stat.Some(tokens.V/float64(f.MaxNumBatchedTokens.Value)), budgetFull, "ratio")
}

// budgetAssumed reports whether the token budget is unknown, or only vLLM's default of a server whose
// launch cannot be read.
func budgetAssumed(f *engine.Facts) bool {
	b := f.MaxNumBatchedTokens
	return !b.Known || b.Source == engine.FromDefault && f.Launch == ""
}

// seenBudget returns the tokens of a step in a window that shows the budget to be full: a prompt is
// always being computed, and each takes several steps. vLLM starts the next prompt only with what the
// budget leaves, so that the two run at once. Where requests run one at a time, no step with a prompt is
// among the inter-token latencies, and a prompt of one step looks as if it took several. The result is
// absent if the window does not show a full budget.
func seenBudget(w *engine.Window) stat.Opt {
	if w.RunningPeak.Max(w.Running).Or(0) <= float64(ranks(w)) {
		return stat.None
	}
	prefill, itl := meanOf(w, engine.HistPrefill), &w.Hist[engine.HistITL]
	longest := itl.Quantile(0.99)
	busy := w.Hist[engine.HistPrefill].Sum / w.Seconds() / float64(ranks(w))
	if !prefill.OK || !longest.OK || busy < budgetPrefills || prefill.V < budgetChunks*longest.V {
		return stat.None
	}
	tokens := stepTokensPerS(w).Times(1 / float64(ranks(w)))
	if !tokens.OK || !itl.Mean().OK {
		return stat.None
	}
	seen := tokens.Times(itl.Mean().V)
	if seen.V <= w.Running.Or(0)/float64(ranks(w))+1 || stepsExceed(w, budgetBelow*seen.V) {
		return stat.None // no more than the running requests' own tokens, or steps of several prompts
	}
	return seen
}

// stepsExceed reports whether a step computed more than a budget of so many tokens allows. A step counts a whole prompt
// once it computes its last part, and at most one prompt has parts in several steps, so that a step counts no more than
// the budget and one prompt.
func stepsExceed(w *engine.Window, budget float64) bool {
	longest := w.Hist[engine.HistPromptTokens].Bucket(1)
	most := w.Hist[engine.HistIterationTokens].Bucket(1)
	return longest[1] > 0 && most[0] > budget+longest[1]
}

// stepTokens returns the mean tokens of an engine step: from the histogram, else from the rates
// of tokens and steps; absent without either.
func stepTokens(w *engine.Window) stat.Opt {
	if m := w.Mean(engine.HistIterationTokens); m.OK {
		return m
	}
	steps := stat.None
	for i := range w.Ranks {
		steps = steps.Plus(w.Ranks[i].StepsPerS)
	}
	return stepTokensPerS(w).Div(steps)
}

// stepTokensPerS returns the tokens that all steps compute per second.
func stepTokensPerS(w *engine.Window) stat.Opt {
	computed := w.Rate[engine.CounterPromptTokensComputed]
	if !computed.OK {
		computed = w.Rate[engine.CounterPromptTokens]
	}
	if !computed.OK {
		return stat.None
	}
	return computed.Plus(w.Rate[engine.CounterGenerationTokens])
}

func concludeTokenBudget(r *engine.Run, t engine.Tally, f *engine.Finding) {
	in := firesIn(r, checkTokenBudget)
	p := poolOf(r, in)
	budget, assumed := r.Facts.MaxNumBatchedTokens.Value, budgetAssumed(r.Facts)
	var seen, tokens, rate []float64
	for w := range windows(r, in) {
		if v := seenBudget(w); assumed && v.OK {
			seen = append(seen, v.V)
		} else if v := stepTokens(w); v.OK {
			tokens = append(tokens, v.V)
		}
		if v := w.Rate[engine.CounterPromptTokens]; v.OK {
			rate = append(rate, v.V)
		}
	}
	f.Confidence = budgetLessConfidence
	n := float64(len(rate))
	varies := stat.Variation(rate).Times(math.Sqrt(n / max(1, n-1))) // the sample's, as stat.Variation is the population's
	if varies.OK && len(rate) >= budgetLeastFlat && varies.V <= budgetFlat {
		f.Confidence = budgetConfidence
		addEvidence(f, compared("prompt_rate_variation", varies, "ratio", "<=", budgetFlat, engine.FromDerived,
			"prompts are computed at a flat rate while others wait"))
	}
	mean := stat.Mean(tokens).Or(0)
	counted, used := "", figure.Count(mean)
	if math.Abs(mean-float64(budget)) < 0.01*float64(budget) { // three digits could put it on the other side
		used = figure.Whole(math.Round(mean))
	}
	if math.Round(mean) > float64(budget) {
		counted = " (a prompt counts when its last part is computed)"
	}
	waiting := figure.Counted(p.queued*p.ranks, "request")
	one := func(w *engine.Window) bool { return in(w) && onePromptRuns(w, r.Facts) }
	if blocked := slices.Collect(windows(r, one)); 2*len(blocked) > t.Fired {
		concludeLongPrompt(r, poolOf(r, one), f)
		return
	}
	if len(seen) > 0 {
		concludeSeenBudget(r, &p, f, stat.Mean(seen).V)
		return
	}
	addEvidence(f,
		compared("step_tokens", stat.Some(mean), "tok", ">=", budgetFull*float64(budget), engine.FromMeasured,
			fmt.Sprintf("a step has %s of at most %s on average%s", used, figure.Counted(budget, "token"), counted)),
		compared("waiting_mean", stat.Some(p.queued*p.ranks), "req", ">=", budgetQueue, engine.FromMeasured,
			waiting+" waited although slots and KV blocks were free"))
	addKnownEvidence(f, measured("kv_usage_mean", p.usage, "ratio", "the KV pool is "+figure.PercentSign(p.usage.V)+" full"))
	f.Reason = fmt.Sprintf("steps use %s of the token budget, with %s queued", figure.PercentSign(min(1, mean/float64(budget))), waiting)
	f.Fix = raiseBudget(r, &p, budget, mean,
		fmt.Sprintf("Prompts queue for the %s-token step budget (--max-num-batched-tokens) while slots and KV blocks are free", figure.Whole(float64(budget))))
}

// concludeLongPrompt concludes for a server on which requests wait until one long prompt is computed. p is the pool
// meanwhile.
func concludeLongPrompt(r *engine.Run, p pool, f *engine.Finding) {
	f.Confidence = budgetConfidence
	budget, long := float64(r.Facts.MaxNumBatchedTokens.Value), r.Facts.LongPrompt
	length, waiting := "at least "+figure.Counted(long.V, "token"), figure.Counted(p.queued*p.ranks, "request")
	f.Reason = fmt.Sprintf("one prompt of %s fills the steps, with %s queued", length, waiting)
	addEvidence(f,
		compared("longest_prompt_tokens", long, "tok", ">=", longSteps*budget, engine.FromDerived,
			fmt.Sprintf("the longest prompt has %s to compute, at least %s of %s", length, figure.Counted(math.Floor(long.V/budget), "step"), figure.Count(budget))),
		compared("waiting_mean", stat.Some(p.queued*p.ranks), "req", ">=", budgetQueue, engine.FromMeasured,
			waiting+" waited meanwhile, although slots and KV blocks were free, and no prompt was completed"))
	addKnownEvidence(f, measured("kv_usage_mean", p.usage, "ratio", "the KV pool is "+figure.PercentSign(p.usage.V)+" full"))
	when := ", even when it runs alone"
	if v := r.Facts.EngineVersion; v.Known && !engine.OlderThan(v.Value, "0.32") {
		when = " while others run or wait" // vllm/v1/core/sched/scheduler.py: no threshold for the only request
	}
	to := max(1, int(budget)/longParts)
	if b := r.Facts.BlockSize; b.Known && b.Value > usualBlock {
		to = max(to, b.Value) // vLLM refuses less where blocks of state-space layers are aligned
	}
	fix := flagFix(r.Facts, lever.LongPrefill, strconv.Itoa(to),
		fmt.Sprintf("A prompt of %s takes all of each step's %s until it is computed, and no other prompt starts. With the threshold it takes %s of each, and the others continue.", length, figure.Counted(budget, "token"), figure.Whole(float64(to))),
		fmt.Sprintf("a prompt of more than %d tokens takes up to %s times the steps%s", to, figure.Count(budget/float64(to)), when),
		"more steps have a part of a prompt: the mean inter-token latency rises")
	fix.Predicted = []engine.Prediction{{Metric: engine.QuantityThroughput, Unit: "ratio"}}
	fix.Why += " Time to first token falls; the gain of output is unknown until tried."
	reject(fix, "--max-num-batched-tokens", "a larger step gives the long prompt a larger part of it, and every stream a longer pause")
	switch set := r.Facts.LongPrefillThreshold.Value; {
	case set > 0:
		fix.Withheld = fmt.Sprintf("%s is %d already: a smaller one, or a server of their own for such prompts, leaves more to the others", fix.Flag, set)
	case longSteps*float64(to) > budget:
		fix.Withheld = fmt.Sprintf("blocks of %d tokens leave no smaller part of a step", to)
	}
	f.Fix = fix
}

// concludeSeenBudget concludes for a server whose launch cannot be read: tokens is what a step has, as
// the run shows it, about the budget.
func concludeSeenBudget(r *engine.Run, p *pool, f *engine.Finding, tokens float64) {
	f.Confidence = budgetLessConfidence
	waiting := figure.Counted(p.queued*p.ranks, "request")
	prefill, itl := r.Agg.Mean(engine.HistPrefill), r.Agg.Mean(engine.HistITL)
	addEvidence(f,
		measured("step_tokens", stat.Some(tokens), "tok", fmt.Sprintf("a step has about %s tokens: the rate of prompt and output tokens times the inter-token latency", figure.Count(tokens))),
		compared("waiting_mean", stat.Some(p.queued*p.ranks), "req", ">=", budgetQueue, engine.FromMeasured, waiting+" waited although KV blocks were free"))
	addKnownEvidence(f, measured("prefill_mean_s", prefill, "s",
		fmt.Sprintf("a prompt takes %s, several steps of %s, and one is always being computed", formatSeconds(prefill.V), formatSeconds(itl.Or(0)))))
	f.Missing = append(f.Missing, inputBudget)
	f.Reason = fmt.Sprintf("prompts are computed over several steps of about %s tokens, with %s queued", figure.Count(tokens), waiting)
	seen := *r
	if r.Perf != nil {
		perf := *r.Perf
		perf.Measured.TokenBudget = stat.Some(tokens)
		seen.Perf = &perf
	}
	f.Fix = raiseBudget(&seen, p, int(math.Round(tokens)), tokens, fmt.Sprintf(
		"Prompts are computed over several steps of about %s tokens while others wait and KV blocks are free: that is the step budget (--max-num-batched-tokens), although the launch cannot be read", figure.Count(tokens)))
	f.Fix.From = ""
	f.Fix.Command = setFlag(r.Facts, f.Fix.Flag, "", f.Fix.To, r.Facts.MaxNumBatchedTokens.Source)
}

// raiseBudget proposes the budget that has room again once the waiting requests run, each with
// as many tokens per step as now. cause begins its reason.
func raiseBudget(r *engine.Run, p *pool, budget int, tokens float64, cause string) *engine.Fix {
	most := budgetAdvised
	switch {
	case r.Facts.OnCPU() && budget < budgetBoundCPU:
		most = budgetBoundCPU
	case r.Perf == nil && budget < budgetBound:
		most = budgetBound
	case budget >= budgetAdvised:
		most = lever.MostBudget
	}
	demand := tokens
	if p.running > 0 {
		demand *= max(p.running, min(p.wanted(r.Facts), p.holds.Or(math.Inf(1)))) / p.running
	}
	want := max(2*float64(budget), demand/budgetFull, lever.UsualBudget)
	to := min(most, int(math.Exp2(math.Ceil(math.Log2(want)))))
	fix := flagFixFrom(r.Facts, lever.TokenBudget, strconv.Itoa(budget), strconv.Itoa(to), "",
		"higher spikes of inter-token latency while a prompt shares the step", "a larger activation peak: a slightly smaller KV pool")
	if 2*to < 3*budget { // a budget that is inferred is a little below the server's own
		fix.To, fix.Withheld = fix.From, fmt.Sprintf("the budget is already %d: prompts arrive faster than this hardware computes them", budget)
		return fix
	}
	g := tokenBudgetGain(r, to)
	fix.Why = fmt.Sprintf("%s; with the waiting requests running as well, a step would have about %s tokens.", cause, figure.Count(demand)) + g.sentence()
	fix.Predicted = g.predictions()
	if r.Perf == nil {
		fix.Predicted = []engine.Prediction{{Metric: engine.QuantityThroughput, Unit: "ratio"}}
		fix.Why += unknownGain(r, fix, ": "+unmodelled(r))
	}
	const bound = "steps of %s tokens are compute bound on %s: a larger step takes longer in proportion"
	switch {
	case r.Facts.OnCPU() && budget >= budgetBoundCPU:
		fix.Withheld = fmt.Sprintf(bound, figure.Whole(float64(budget)), "a CPU")
	case r.Perf == nil && budget >= budgetBound:
		fix.Withheld = fmt.Sprintf(bound, figure.Whole(float64(budget)), "any GPU")
	case g.worthless():
		fix.Withheld = "prefill is compute bound: the physical model predicts that a larger step takes longer in proportion, so requests would wait between their tokens instead of before the first"
	}
	return fix
}
