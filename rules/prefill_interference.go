package rules

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of prefill-interference: streams pause while a step computes a long prompt.
const (
	// pauseNoticed is the shortest pause of a stream that counts, in seconds: a longer one
	// feels like an interruption (Doherty and Thadhani, IBM 1982), and it is twice the limit of
	// MLPerf Inference for a token (Llama 2 70B server, 200 ms).
	pauseNoticed = 0.4
	// pauseSteps is the minimum pause in median inter-token latencies: below it all steps are
	// long, and no single prompt is the cause.
	pauseSteps = 5.0
	// pausesPerS is the minimum number of pauses of each stream per second.
	pausesPerS = 0.25
	// pausePrompts is the minimum number of tokens of the largest step per running request: a
	// long step without prompts has another cause.
	pausePrompts = 4.0
	// pauseTarget is the maximum time, in seconds, of a step with a part of a prompt: half of
	// pauseNoticed; the other half covers the error of the estimate.
	pauseTarget = 0.2
	// pauseExplained is the longest pause that the largest step explains, as a multiple of its
	// time by the physical model.
	pauseExplained = 3.0
	// minPauseSaved is the minimum share of the pause that a smaller step must save.
	minPauseSaved = 0.5
	// minBudget is the smallest budget to propose: below it, computing a part of a prompt takes
	// less time than reading the weights on every device in the catalog.
	minBudget = 512

	pauseConfidence     = 0.80 // with the physical model
	pauseLessConfidence = 0.60
	// pauseCost is the maximum relative loss of throughput by smaller steps, and the error of
	// its prediction.
	pauseCost = 0.05
)

var prefillInterference = definition{engine.Rule{
	ID: engine.PrefillInterference, Code: "beyond", Title: "Prefill interference", Group: engine.GroupSlots, Impact: 1,
	Check: checkPrefillInterference, Conclude: concludePrefillInterference,
}, Explanation{
	Condition: []string{
		fmt.Sprintf("each running request pauses at least %v times per second, for at least %v s and %v times the median inter-token latency", pausesPerS, pauseNoticed, pauseSteps),
		fmt.Sprintf("the largest steps have at least %v tokens per running request: they contain long prompts", pausePrompts),
		"no request waits for capacity and none was preempted: both lengthen the time between tokens by themselves",
		"V1 engine with chunked prefill: without it vLLM refuses a budget below max_model_len",
		fmt.Sprintf("with a physical model: the pause is at most %v times as long as it predicts for the largest step", pauseExplained),
	},
	Thresholds: []Threshold{
		{"pauses of a stream", ">=", pausesPerS, "1/s", fromJudgement},
		{"time between two tokens", ">=", pauseNoticed, "s", "Doherty threshold"},
		{"the same / median", ">=", pauseSteps, "", fromJudgement},
		{"largest step / running", ">=", pausePrompts, "tok", fromVLLM},
		{"step with a part of a prompt after the change", "<=", pauseTarget, "s", fromJudgement},
		{"pause saved", ">=", minPauseSaved, "ratio", fromJudgement},
		{"loss of throughput by the physical model", "<=", pauseCost, "ratio", fromJudgement},
	},
	Formula: []string{
		"time of a full step = by the physical model, calibrated with the measured step, for the last part of a prompt of the 99th percentile; without a model, median + pause x tokens of the step / tokens of the largest step",
		fmt.Sprintf("budget = the largest power of two whose full step takes at most %v s; at least the slots (if unknown, the default of the release on this hardware), %d, and what arriving prompts fill to %s", pauseTarget, minBudget, figure.PercentSign(budgetFull)),
		"increase of time to first token = steps x time of a step for a prompt of the 99th percentile (or for the largest step, if larger) with the new budget, over the same with the current budget",
	},
	Confidence: []string{fmt.Sprintf("%v with the physical model", pauseConfidence), fmt.Sprintf("%v otherwise", pauseLessConfidence)},
	Remedy: []string{
		"lower --max-num-batched-tokens: a prompt is split into more and shorter steps",
		"it costs time to first token of long prompts and almost no throughput, and ranks below every change that raises throughput",
		"listed, not recommended: the operator decides whether pauses or first tokens matter more, and throughput does not gain",
	},
	Limits: []string{
		"the estimate of time to first token is for prompts that arrive alone: on simulated servers with overlapping prompts it rose by 20 to 30 % where 4 to 8 % was estimated",
		"the longest pause falls, but the p99 of inter-token latency may rise: more steps contain a part of a prompt",
		"iteration_tokens_total counts a chunked prompt with its last chunk: the largest step is at most the budget; with a prompt of several steps, pauses that counted steps do not explain are not judged",
	},
}}

// pauseLimit returns the shortest time between two tokens that counts as a pause, in seconds.
func pauseLimit(itl *stat.Delta) float64 {
	return max(pauseNoticed, pauseSteps*itl.Quantile(0.5).Or(0))
}

// countAtLeast returns the number of observations in buckets entirely at or above a limit, and a
// lower bound of their mean.
func countAtLeast(d *stat.Delta, limit float64) (count, mean float64) {
	lower, sum := 0.0, 0.0
	for i, n := range d.Counts {
		if n > 0 && lower >= limit {
			count += n
			sum += n * lower
		}
		lower = d.Bounds[i]
	}
	if count > 0 {
		mean = sum / count
	}
	return count, mean
}

// largestStep returns the bounds of the highest non-empty bucket of tokens per step, at most
// the budget.
func largestStep(d *stat.Delta, budget float64) (least, most float64) {
	lower := 0.0
	for i, n := range d.Counts {
		if n > 0 {
			least, most = lower, d.Bounds[i]
		}
		lower = d.Bounds[i]
	}
	return min(least, budget), min(most, budget)
}

func checkPrefillInterference(w *engine.Window, f *engine.Facts) engine.Check {
	if result, ok := underLoad(w); !ok {
		return result
	}
	itl, steps := &w.Hist[engine.HistITL], &w.Hist[engine.HistIterationTokens]
	switch {
	case f.V0.Value:
		return lacks("vLLM's V1 engine: V0 schedules steps differently")
	case !f.ChunkedPrefill.Known || !f.ChunkedPrefill.Value:
		return lacks("chunked prefill (without it vLLM refuses a budget below max_model_len)")
	case !itl.OK || len(itl.Counts) == 0:
		return lacks("inter_token_latency_seconds")
	case w.Running.V <= 0 || itl.Count <= 0:
		return idle()
	}
	pauses, _ := countAtLeast(itl, pauseLimit(itl))
	often := above("noticeable pauses of a stream", stat.Some(pauses/w.Running.V/w.Seconds()), pausesPerS, "1/s")
	if often.State != engine.Fired {
		return often
	}
	if preempting(w) {
		return notFired("streams pause because they are preempted", comparison{w.Delta[engine.CounterPreemptions], ">", 0, "req"})
	}
	switch queue := queued(w); {
	case !queue.OK:
		return lacks(inputWaiting)
	case queue.V >= budgetQueue:
		return notFired("smaller steps would admit fewer requests; requests queued", comparison{queue, ">=", budgetQueue, "req"})
	}
	if !f.MaxNumBatchedTokens.Known || f.MaxNumBatchedTokens.Value <= 0 {
		return lacks(inputBudget)
	}
	if !steps.OK || len(steps.Counts) == 0 {
		return lacks(inputIterations)
	}
	perRank := w.Running.V / float64(ranks(w))
	if tokens, _ := largestStep(steps, float64(f.MaxNumBatchedTokens.Value)); tokens < pausePrompts*perRank {
		if f.LongPrompt.OK {
			return lacks(inputParts)
		}
		return above("streams pause, but not for a prompt; tokens of the largest step", stat.Some(tokens), pausePrompts*perRank, "tok")
	}
	return often
}

// pauses describes the pauses of streams in the selected windows.
type pauses struct {
	perS    float64 // of each stream
	seconds float64 // mean length, at least
	median  float64 // of the time between tokens
	tokens  float64 // of the largest step, at least
	most    float64 // of the largest step, at most
	context float64 // tokens of the longest prompts, which their last parts attend to
}

func pausesOf(r *engine.Run, selected func(*engine.Window) bool) pauses {
	var itl, steps stat.Delta
	streams := 0.0 // running x seconds
	for w := range windows(r, selected) {
		itl.Merge(&w.Hist[engine.HistITL])
		steps.Merge(&w.Hist[engine.HistIterationTokens])
		streams += w.Running.V * w.Seconds()
	}
	n, mean := countAtLeast(&itl, pauseLimit(&itl))
	least, most := largestStep(&steps, float64(r.Facts.MaxNumBatchedTokens.Value))
	return pauses{
		perS: n / streams, seconds: mean, median: itl.Quantile(0.5).Or(0),
		tokens: least, most: most,
		context: r.Agg.P99(engine.HistPromptTokens).Max(r.Agg.PromptLen).Or(0),
	}
}

func concludePrefillInterference(r *engine.Run, t engine.Tally, f *engine.Finding) {
	p := pausesOf(r, firesIn(r, checkPrefillInterference))
	f.Confidence = pauseLessConfidence
	if r.Perf != nil {
		if full := r.Perf.FullStep(p.most, p.context); p.seconds > pauseExplained*full {
			if r.Facts.LongPrompt.OK {
				f.State, f.Missing = engine.NotEvaluable, append(f.Missing, inputParts)
				f.Reason = fmt.Sprintf("streams pause for at least %s; which steps computed a prompt is unknown: %s", formatSeconds(p.seconds), uncounted(r.Facts))
				return
			}
			f.State = engine.NotFired
			f.Reason = fmt.Sprintf("streams pause for at least %s, but the largest step, with %s tokens, takes only about %s: prompts are not the cause", formatSeconds(p.seconds), figure.Count(p.most), formatSeconds(full))
			return
		}
		f.Confidence = pauseConfidence
	}
	f.Reason = fmt.Sprintf("each stream pauses for at least %s, %s times per second, while a step computes a prompt", formatSeconds(p.seconds), figure.Significant(p.perS))
	addEvidence(f,
		compared("pauses_per_s", stat.Some(p.perS), "1/s", ">=", pausesPerS, engine.FromMeasured,
			fmt.Sprintf("%s times per second, each running request waits at least %s for its next token", figure.Significant(p.perS), formatSeconds(p.seconds))),
		measured("itl_median_s", stat.Some(p.median), "s", "half of all tokens arrive within "+formatSeconds(p.median)),
		engine.Evidence{Name: "largest_step_tokens", Value: stat.Some(p.tokens), Unit: "tok", Op: ">=", Source: engine.FromMeasured,
			Text: fmt.Sprintf("the largest steps have at least %s tokens", figure.Count(p.tokens))})
	f.Fix = shorterSteps(r, &p)
}

// fullStep estimates the longest and the mean time, in seconds, of a step with the given tokens.
func (p *pauses) fullStep(r *engine.Run, tokens float64) (longest, mean float64) {
	if r.Perf != nil {
		return r.Perf.FullStep(tokens, p.context), r.Perf.FullStep(tokens, r.Perf.Measured.PrefillContext)
	}
	t := p.median + p.seconds*tokens/p.tokens
	return t, t
}

// admits reports whether steps with the given tokens keep up with the arriving prompts and have a
// token for every slot: vLLM refuses a budget below the slots.
func (p *pauses) admits(r *engine.Run, tokens, slots float64) bool {
	_, step := p.fullStep(r, tokens)
	arriving := r.Agg.PrefillPerS.Or(0) / float64(r.Agg.Ranks)
	return tokens >= slots && arriving*step <= budgetFull*tokens
}

// promptTokens returns the maximum prompt tokens that are computed together: of one prompt, or of
// several that share a step with the current budget.
func (p *pauses) promptTokens() float64 { return max(p.context, p.tokens) }

// longerWait estimates the relative increase of time to first token of the longest prompts with
// steps of the given tokens, if no other prompt arrives meanwhile; absent without a model.
func (p *pauses) longerWait(r *engine.Run, tokens float64) stat.Opt {
	if r.Perf == nil {
		return stat.None
	}
	decode := r.Perf.Measured.Batch * r.Perf.Measured.PerSequence
	alone := func(budget float64) float64 {
		n := math.Ceil(p.promptTokens() / max(1, budget-decode))
		return n * r.Perf.FullStep(p.promptTokens()/n+decode, p.context/2)
	}
	now := alone(float64(r.Facts.MaxNumBatchedTokens.Value))
	return stat.Some(alone(tokens)).Div(stat.Some(now)).Plus(stat.Some(-1))
}

// slotFloor returns the number of slots below which vLLM may refuse a budget: the known slots,
// else (assumed) the default of this release on this hardware, or the requests that ran at once
// if more. It is absent without a default.
func slotFloor(r *engine.Run) (slots stat.Opt, assumed bool) {
	if s := runSlots(r); s.OK {
		return s, false
	}
	f := r.Facts
	hw := catalog.Hardware{
		Device: f.Device.Value, GPUName: f.GPUName.Value, VRAMGiB: f.GPU.VRAMGiB, APIServer: true,
		WorldSize: max(1, f.TensorParallel.Value) * max(1, f.PipelineParallel.Value),
	}
	text, _, ok := f.Dialect().Default("max_num_seqs", f.EngineVersion.Value, hw)
	n, err := strconv.Atoi(text)
	if !ok || err != nil {
		return stat.None, true
	}
	slots = stat.Some(float64(n))
	for w := range windows(r, always) {
		slots = slots.Max(w.RunningPeak.Div(stat.Some(float64(ranks(w)))))
	}
	return slots, true
}

func shorterSteps(r *engine.Run, p *pauses) *engine.Fix {
	facts := r.Facts
	budget := facts.MaxNumBatchedTokens.Value
	to := minBudget
	for 2*to < budget {
		if longest, _ := p.fullStep(r, float64(2*to)); longest > pauseTarget {
			break
		}
		to *= 2
	}
	slots, assumed := slotFloor(r)
	for to < budget && !p.admits(r, float64(to), slots.Or(0)) {
		to *= 2
	}
	text := strconv.Itoa(to)
	then, _ := p.fullStep(r, float64(to))
	longer := p.longerWait(r, float64(to))
	fix := flagFix(facts, lever.TokenBudget, text,
		fmt.Sprintf("A step that computes a long prompt delays every stream by at least %s. With %s tokens it takes about %s, and the prompt takes a few steps more.",
			formatSeconds(p.seconds), text, formatSeconds(then)),
		p.costOfWait(longer), "at most a little throughput; the KV pool becomes slightly larger")
	fix.Rejected = []engine.Rejected{{
		What: "--long-prefill-token-threshold " + text,
		Why:  "limits one prompt's part of a step; several prompts together would still fill it",
	}}
	if assumed && slots.OK {
		fix.Costs = append(fix.Costs, fmt.Sprintf("vLLM refuses a budget below max_num_seqs, which is unknown (assumed: %s): pass -m", figure.Count(slots.V)))
	}
	// Smaller steps gain no throughput: a gain is an artifact of the model's mixed step.
	cost := min(0, tokenBudgetGain(r, to).Throughput.Mid.Or(0))
	fix.Predicted = gain{Gain: roofline.Gain{Throughput: roofline.Range{
		Low: stat.Some(cost - pauseCost), Mid: stat.Some(cost), High: stat.Some(cost + pauseCost),
	}}}.predictions()
	switch {
	case !slots.OK:
		fix.Withheld = "vLLM refuses a budget below max_num_seqs, which is unknown: pass -m"
	case to >= budget:
		fix.To = fix.From
		fix.Withheld = fmt.Sprintf("steps below the current %d tokens could not compute the arriving prompts, or lack a token for every slot", budget)
	case then > p.seconds*(1-minPauseSaved):
		fix.Withheld = fmt.Sprintf("steps of %s tokens still take about %s, which saves too little", text, formatSeconds(then))
	case cost < -pauseCost:
		fix.Withheld = fmt.Sprintf("steps of %s tokens read the weights so often for so few tokens that the physical model predicts %s throughput", text, figure.ChangeSign(cost))
	default:
		increase := ""
		if longer.OK {
			increase = fmt.Sprintf(" (about %s for long prompts that arrive alone)", figure.ChangeSign(longer.V))
		}
		fix.Withheld = fmt.Sprintf("a latency fix: %s %s costs time to first token%s and gains no throughput; apply it if pauses of streams matter", fix.Flag, text, increase)
	}
	return fix
}

// costOfWait returns a phrase about the cost of shorter steps for the longest prompts.
func (p *pauses) costOfWait(longer stat.Opt) string {
	if !longer.OK {
		return "a longer time to first token for long prompts, which take more steps"
	}
	return fmt.Sprintf("a longer time to first token for long prompts, which take more steps: about %s for a prompt of %s tokens that arrives alone, more if prompts overlap", figure.ChangeSign(longer.V), figure.Count(p.promptTokens()))
}
