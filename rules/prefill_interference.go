package rules

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of prefill-interference: streams that pause while a step computes a
// long prompt.
const (
	// pauseNoticed is the shortest pause of a stream that counts, in seconds: beyond
	// it a response is felt as interrupted (Doherty and Thadhani, IBM 1982), and it is
	// twice what MLPerf Inference allows for a token (Llama 2 70B server, 200 ms).
	pauseNoticed = 0.4
	// pauseSteps is how many times the median inter-token latency a pause takes at
	// least: below that all steps are long, and no single prompt is the reason.
	pauseSteps = 5.0
	// pausesPerS is how often each stream must pause: once in four seconds.
	pausesPerS = 0.25
	// pausePrompts is how many tokens the largest step has for each running request
	// at least: a step that long without prompts has another cause.
	pausePrompts = 4.0
	// pauseTarget is how long a step with a part of a prompt may take, in seconds:
	// half of a noticed pause, the other half for the error of the estimate.
	pauseTarget = 0.2
	// pauseExplained is how many times the time that the physical model expects of
	// the largest step a pause may take for that step to be its cause.
	pauseExplained = 3.0
	// pauseLeastGain is the part of the present pause that the smaller step must
	// save for the change to be worth a restart.
	pauseLeastGain = 0.5
	// leastBudget is the smallest budget proposed: below it a prompt's part computes
	// for less time than its weights take to read on every device in the catalog.
	leastBudget = 512

	pauseConfidence     = 0.80 // with the physical model
	pauseLessConfidence = 0.60
	// pauseCost is the loss of throughput up to which smaller steps are worth it,
	// and how far it may lie off the model's (physics.md section 10: about none).
	pauseCost = 0.05
)

func prefillInterference() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.PrefillInterference, Code: "beyond", Title: "Prefill interference", Group: engine.GroupSeats, Impact: 1,
			Check: checkPrefillInterference, Conclude: concludePrefillInterference,
		},
		explain: Explanation{
			Condition: []string{
				fmt.Sprintf("each running request pauses %s times a second and more: for %s and for %s times the median inter-token latency", number(pausesPerS), seconds(pauseNoticed), number(pauseSteps)),
				fmt.Sprintf("the largest steps have %s tokens and more for each running request: they carry long prompts", number(pausePrompts)),
				"no request waits for capacity and none was preempted: those stretch the time between tokens by themselves",
				"V1 engine with chunked prefill: without it vLLM refuses a budget below max_model_len",
				fmt.Sprintf("with a physical model: the pause is at most %s times what it expects of the largest step", number(pauseExplained)),
			},
			Thresholds: []Threshold{
				{"pauses of a stream", ">=", pausesPerS, "1/s", fromJudgement},
				{"time between two tokens", ">=", pauseNoticed, "s", "Doherty threshold"},
				{"the same / median", ">=", pauseSteps, "", fromJudgement},
				{"largest step / running", ">=", pausePrompts, "tok", fromVLLM},
				{"step with a part of a prompt afterwards", "<=", pauseTarget, "s", fromJudgement},
				{"pause saved", ">=", pauseLeastGain, "ratio", fromJudgement},
				{"loss of throughput by the physical model", "<=", pauseCost, "ratio", fromJudgement},
			},
			Formula: []string{
				"time of a full step = that of the physical model, calibrated by the measured step, for the last part of a prompt of the 99th percentile; without a model, median + pause x tokens of the step / tokens of the largest",
				fmt.Sprintf("budget = the largest power of two whose full step takes %s at most; at least the seats (where they are not known, the release's default on this hardware), %d, and what the prompts that come fill to %s", seconds(pauseTarget), leastBudget, percent(budgetFull)),
				"longer time to the first token = steps x time of a step for a prompt of the 99th percentile, or for the largest step where that is more, beside the running requests: with the new budget over the present one's",
			},
			Confidence: []string{number(pauseConfidence) + " with the physical model", number(pauseLessConfidence) + " otherwise"},
			Remedy: []string{
				"lower --max-num-batched-tokens: a prompt is cut into more steps, each of them short",
				"the price is the time to the first token of long prompts, and next to no throughput: it ranks below every change that gains throughput",
				"listed and not recommended: whether pauses or first tokens matter more is for the operator to say, and no goal of throughput gains by it",
			},
			Limits: []string{
				"the longer time to the first token is that of prompts that come alone: simulated servers whose prompts meet each other have waited 20 to 30 % longer where 4 to 8 % were estimated",
				"the longest pause falls, the p99 of inter-token latency may rise: more steps carry a part of a prompt",
				"iteration_tokens_total credits a chunked prompt with its last chunk: the largest step is the smaller of that and the budget",
			},
		},
	}
}

// pauseLimit is the shortest time between two tokens that counts as a pause.
func pauseLimit(itl *stat.Delta) float64 {
	return max(pauseNoticed, pauseSteps*itl.Quantile(0.5).Or(0))
}

// atLeast counts the observations of buckets that lie at or above a limit as a
// whole, with a lower bound of their mean.
func atLeast(d *stat.Delta, limit float64) (count, mean float64) {
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

// largestStep returns the bounds of the highest bucket of a step's tokens that was
// seen, at most the budget.
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
	if c, ok := underLoad(w); !ok {
		return c
	}
	itl, steps := &w.Hist[engine.HistITL], &w.Hist[engine.HistIterationTokens]
	switch {
	case f.V0.Value:
		return lacks(inputV1)
	case !f.ChunkedPrefill.Known || !f.ChunkedPrefill.Value:
		return lacks(inputChunked)
	case !itl.OK || len(itl.Counts) == 0:
		return lacks(inputITL)
	case w.Running.V <= 0 || itl.Count <= 0:
		return idle()
	}
	pauses, _ := atLeast(itl, pauseLimit(itl))
	often := figure{stat.Some(pauses / w.Running.V / w.Seconds()), ">=", pausesPerS, "1/s"}
	if often.value.V < pausesPerS {
		often.op = "<"
		return quiet("noticeable pauses of a stream", often)
	}
	if preempting(w) {
		return quiet("streams pause because they are preempted", figure{w.Delta[engine.CounterPreemptions], ">", 0, "req"})
	}
	switch queue := queued(w); {
	case !queue.OK:
		return lacks(inputWaiting)
	case queue.V >= budgetQueue:
		return quiet("requests wait, and smaller steps would take in fewer of them:", figure{queue, ">=", budgetQueue, "req"})
	}
	if !f.MaxNumBatchedTokens.Known || f.MaxNumBatchedTokens.Value <= 0 {
		return lacks(inputBudget)
	}
	if !steps.OK || len(steps.Counts) == 0 {
		return lacks(inputIterations)
	}
	perRank := w.Running.V / float64(ranks(w))
	if tokens, _ := largestStep(steps, float64(f.MaxNumBatchedTokens.Value)); tokens < pausePrompts*perRank {
		return quiet("tokens of the largest step: streams pause, and no prompt is the reason", figure{stat.Some(tokens), "<", pausePrompts * perRank, "tok"})
	}
	return fired("noticeable pauses of a stream", often)
}

// pauses is what the windows that count say of streams that pause.
type pauses struct {
	perS    float64 // of each stream
	seconds float64 // mean length, at least
	median  float64 // of the time between tokens
	tokens  float64 // of the largest step, at least
	most    float64 // of the largest step, at most
	context float64 // of the longest prompts, tokens: their last parts look back on all of it
}

func pausesOf(r *engine.Run, count func(*engine.Window) bool) pauses {
	var itl, steps stat.Delta
	streams := 0.0 // running x seconds
	for i := range r.Windows {
		if w := &r.Windows[i]; count(w) {
			itl.Merge(&w.Hist[engine.HistITL])
			steps.Merge(&w.Hist[engine.HistIterationTokens])
			streams += w.Running.V * w.Seconds()
		}
	}
	n, mean := atLeast(&itl, pauseLimit(&itl))
	least, most := largestStep(&steps, float64(r.Facts.MaxNumBatchedTokens.Value))
	return pauses{
		perS: n / streams, seconds: mean, median: itl.Quantile(0.5).Or(0),
		tokens: least, most: most,
		context: r.Agg.P99(engine.HistPromptTokens).Max(r.Agg.PromptLen).Or(0),
	}
}

func concludePrefillInterference(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	in := func(w *engine.Window) bool { return checkPrefillInterference(w, facts).State == engine.Fired }
	p := pausesOf(r, in)
	f.Confidence = pauseLessConfidence
	if r.Perf != nil {
		if full := r.Perf.FullStep(p.most, p.context); p.seconds > pauseExplained*full {
			f.State = engine.NotFired
			f.Reason = fmt.Sprintf("streams pause for %s and more, and a step of %s tokens, the largest that there was, takes about %s: prompts are not the reason", seconds(p.seconds), number(p.most), seconds(full))
			return
		}
		f.Confidence = pauseConfidence
	}
	f.Reason = fmt.Sprintf("each stream pauses for %s and more, %s times a second, while a step computes a prompt", seconds(p.seconds), number(p.perS))
	f.Evidence = append(f.Evidence,
		evidence("pauses_per_s", stat.Some(p.perS), "1/s", ">=", stat.Some(pausesPerS), engine.FromMeasured,
			fmt.Sprintf("each running request waits %s times a second for its next token for %s and more", number(p.perS), seconds(p.seconds))),
		evidence("itl_median_s", stat.Some(p.median), "s", "", stat.None, engine.FromMeasured,
			"half of all tokens come within "+seconds(p.median)),
		evidence("largest_step_tokens", stat.Some(p.tokens), "tok", ">=", stat.None, engine.FromMeasured,
			fmt.Sprintf("the largest steps have %s tokens and more", number(p.tokens))))
	f.Fix = shorterSteps(r, &p)
	setImpact(f, 1)
}

// fullStep estimates the seconds of the longest step with so many tokens, and of
// the mean one.
func (p *pauses) fullStep(r *engine.Run, tokens float64) (longest, mean float64) {
	if r.Perf != nil {
		return r.Perf.FullStep(tokens, p.context), r.Perf.FullStep(tokens, r.Perf.Measured.PrefillContext)
	}
	t := p.median + p.seconds*tokens/p.tokens
	return t, t
}

// takesIn says whether steps of so many tokens take in the prompts that come and
// seat every request: vLLM refuses a budget below the seats
// (config/scheduler.py, SchedulerConfig.verify_max_model_len).
func (p *pauses) takesIn(r *engine.Run, tokens, seats float64) bool {
	_, step := p.fullStep(r, tokens)
	come := r.Agg.PrefillPerS.Or(0) / float64(r.Agg.Ranks)
	return tokens >= seats && come*step <= budgetFull*tokens
}

// prompts returns the prompt tokens that are computed together at the longest: of
// one prompt, or of several that share a step now.
func (p *pauses) prompts() float64 { return max(p.context, p.tokens) }

// longerWait estimates how much longer the first token of the longest prompts
// takes where a step has so many tokens instead of the present budget and no
// other prompt comes meanwhile, as a ratio; absent without a physical model.
func (p *pauses) longerWait(r *engine.Run, tokens float64) stat.Opt {
	if r.Perf == nil {
		return stat.None
	}
	decode := r.Perf.Measured.Batch * r.Perf.Measured.PerSequence
	alone := func(budget float64) float64 {
		n := math.Ceil(p.prompts() / max(1, budget-decode))
		return n * r.Perf.FullStep(p.prompts()/n+decode, p.context/2)
	}
	now := alone(float64(r.Facts.MaxNumBatchedTokens.Value))
	return stat.Some(alone(tokens)).Div(stat.Some(now)).Plus(stat.Some(-1))
}

// seatFloor returns the seats below which vLLM may refuse a budget: those that are
// known, else the default of this release on this hardware, and then what was seen
// to run at once if that is more. Absent where there is no default to go by.
func seatFloor(r *engine.Run) (seats stat.Opt, assumed bool) {
	if s := runSeats(r); s.OK {
		return s, false
	}
	f := r.Facts
	hw := catalog.Hardware{
		Device: f.Device.Value, GPUName: f.GPUName.Value, VRAMGiB: f.GPU.VRAMGiB, APIServer: true,
		WorldSize: max(1, f.TensorParallel.Value) * max(1, f.PipelineParallel.Value),
	}
	text, _, ok := catalog.Default().FlagDefault("max_num_seqs", f.EngineVersion.Value, hw)
	n, err := strconv.Atoi(text)
	if !ok || err != nil {
		return stat.None, true
	}
	seats = stat.Some(float64(n))
	for i := range r.Windows {
		seats = seats.Max(r.Windows[i].RunningPeak.Div(stat.Some(float64(ranks(&r.Windows[i])))))
	}
	return seats, true
}

func shorterSteps(r *engine.Run, p *pauses) *engine.Fix {
	facts := r.Facts
	budget := facts.MaxNumBatchedTokens.Value
	to := leastBudget
	for 2*to < budget {
		if longest, _ := p.fullStep(r, float64(2*to)); longest > pauseTarget {
			break
		}
		to *= 2
	}
	seats, assumed := seatFloor(r)
	for to < budget && !p.takesIn(r, float64(to), seats.Or(0)) {
		to *= 2
	}
	from, text := strconv.Itoa(budget), strconv.Itoa(to)
	then, _ := p.fullStep(r, float64(to))
	longer := p.longerWait(r, float64(to))
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: "--max-num-batched-tokens", From: from, To: text,
		Command: setFlag(facts, "--max-num-batched-tokens", from, text, facts.MaxNumBatchedTokens.Source),
		Why: fmt.Sprintf("A step that computes a long prompt keeps every stream waiting for %s and more; cut to %s tokens it takes about %s, and the prompt a few steps more.",
			seconds(p.seconds), text, seconds(then)),
		Price: []string{
			priceRestart, p.priceOfWait(longer),
			"a little throughput at most; a pool that is slightly larger",
		},
		Risk: 1,
		Rejected: []engine.Rejected{{
			What: "--long-prefill-token-threshold " + text,
			Why:  "bounds one prompt's part of a step; several prompts together would still fill it",
		}},
	}
	if assumed && seats.OK {
		fix.Price = append(fix.Price, fmt.Sprintf("vLLM refuses a budget below max_num_seqs, which is not known: %s are assumed, give -m", number(seats.V)))
	}
	// Smaller steps gain no throughput: where the model sees any, it is the shape of
	// its mixed step.
	cost := min(0, modelled(r, func(m *roofline.Performance) roofline.Gain { return m.TokenBudget(to) }).Throughput.Mid.Or(0))
	fix.Predicted = gain{Gain: roofline.Gain{Throughput: roofline.Range{
		Low: stat.Some(cost - pauseCost), Mid: stat.Some(cost), High: stat.Some(cost + pauseCost),
	}}}.predictions()
	switch {
	case !seats.OK:
		fix.Withheld = "max_num_seqs is not known, and vLLM refuses a budget below it: give -m"
	case to >= budget:
		fix.To = from
		fix.Withheld = fmt.Sprintf("steps of fewer than the present %d tokens would not take in the prompts that come, or not seat every request", budget)
	case then > p.seconds*(1-pauseLeastGain):
		fix.Withheld = fmt.Sprintf("steps of %s tokens still take about %s: too little is gained", text, seconds(then))
	case cost < -pauseCost:
		fix.Withheld = fmt.Sprintf("steps of %s tokens read the weights so often for so few tokens that the physical model expects %s tokens per second", text, change(cost))
	default:
		price := ""
		if longer.OK {
			price = fmt.Sprintf(" (about %s for long prompts that come alone)", change(longer.V))
		}
		fix.Withheld = fmt.Sprintf("a latency fix: %s %s costs time to first token%s and gains no throughput; apply it where pauses of the streams matter", fix.Flag, text, price)
	}
	return fix
}

// priceOfWait says what shorter steps cost the longest prompts.
func (p *pauses) priceOfWait(longer stat.Opt) string {
	if !longer.OK {
		return "a longer time to the first token of long prompts: they take more steps"
	}
	return fmt.Sprintf("a longer time to the first token of long prompts, which take more steps: about %s for %s tokens that come alone, more where others come meanwhile", change(longer.V), number(p.prompts()))
}
