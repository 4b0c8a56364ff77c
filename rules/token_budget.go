package rules

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of token-budget: prefill queues while seats and KV are free.
const (
	budgetQueue     = 1.0   // requests waiting for capacity, at least
	budgetKV        = 0.80  // peak KV usage, below
	budgetFull      = 0.70  // mean tokens of a step over the budget, at least
	budgetFlat      = 0.35  // coefficient of variation of the prompt rate up to which it is called flat
	budgetAdvised   = 8192  // vLLM's own advice for throughput; beyond it only where it is reached already
	budgetMost      = 16384 // the largest default of any release
	budgetSure      = 0.80  // confidence where the prompt rate is flat
	budgetLessSure  = 0.60
	budgetLeastFlat = 3 // windows needed to judge flatness
)

func tokenBudget() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.TokenBudget, Code: "beyond", Title: "Token budget", Group: engine.GroupSeats, Impact: 3,
			Check: checkTokenBudget, Conclude: concludeTokenBudget,
		},
		explain: Explanation{
			Condition: []string{
				"at least one request waits for capacity (deferred ones do not count: no flag of capacity helps them)",
				"seats are free, the KV peak is below " + percent(budgetKV) + " and nothing was preempted",
				"the steps are full: " + percent(budgetFull) + " of max_num_batched_tokens and more on average",
			},
			Thresholds: []Threshold{
				{"queued", ">=", budgetQueue, "req", fromDecisions},
				{"kv_usage_peak", "<", budgetKV, "ratio", fromDecisions},
				{"tokens per step / max_num_batched_tokens", ">=", budgetFull, "ratio", fromJudgement},
				{"variation of the prompt rate (confidence)", "<=", budgetFlat, "ratio", fromJudgement},
			},
			Formula: []string{
				fmt.Sprintf("budget = the next power of two in which steps are %s full at most once the waiting requests run too, each with as many tokens a step as now; at least twice the present one, at most %d, or %d where that is reached already",
					percent(budgetFull), budgetAdvised, budgetMost),
				"gain: running grows with the budget until waiting requests, seats or pool are used up; tokens of that step over its modelled time, against the present one's",
			},
			Confidence: []string{number(budgetSure) + " where the prompt rate is flat", number(budgetLessSure) + " otherwise"},
			Remedy: []string{
				"raise --max-num-batched-tokens: time to first token falls, inter-token latency has higher spikes",
				"not recommended where the physical model shows that prefill is compute bound: a larger step takes longer in proportion, requests leave at the same rate, and by Little's law what they no longer wait before the first token they wait after it",
			},
			Limits: []string{"iteration_tokens_total credits a chunked prompt when its last chunk is done: single values can exceed the budget"},
		},
	}
}

func checkTokenBudget(w *engine.Window, f *engine.Facts) engine.Check {
	if c, ok := underLoad(w); !ok {
		return c
	}
	queue := queued(w)
	if !queue.OK {
		return lacks(inputWaiting)
	}
	if queue.V < budgetQueue {
		if w.Waiting.V >= budgetQueue {
			return quiet("requests that wait for capacity; the others are deferred, which no flag of capacity helps:", figure{queue, "<", budgetQueue, "req"})
		}
		return quiet("requests that wait for capacity", figure{queue, "<", budgetQueue, "req"})
	}
	if preempting(w) {
		return quiet("the KV pool is the limit: preemptions", figure{w.Delta[engine.CounterPreemptions], ">", 0, "req"})
	}
	if peak := kvPeak(w); peak.OK && peak.V >= budgetKV {
		return quiet("KV peak", figure{peak, ">=", budgetKV, "ratio"})
	}
	seats := seatsOf(w, f)
	if !seats.OK {
		return lacks(inputSeats)
	}
	if seatsTaken(w, seats.V) || aboveSeats(w, seats.V) {
		return quiet("the seats are all taken: running", figure{w.Running, ">=", seats.V * float64(ranks(w)), "req"})
	}
	if !f.MaxNumBatchedTokens.Known || f.MaxNumBatchedTokens.Value <= 0 {
		return lacks(inputBudget)
	}
	tokens := stepTokens(w)
	if !tokens.OK {
		return lacks(inputIterations)
	}
	filled := figure{stat.Some(tokens.V / float64(f.MaxNumBatchedTokens.Value)), ">=", budgetFull, "ratio"}
	if filled.value.V < budgetFull {
		filled.op = "<"
		return quiet("share of the token budget that a step uses", filled)
	}
	return fired("share of the token budget that a step uses", filled)
}

// stepTokens returns the mean tokens of an engine step: as observed, else from
// the rates of tokens and steps.
func stepTokens(w *engine.Window) stat.Opt {
	if m := w.Mean(engine.HistIterationTokens); m.OK {
		return m
	}
	steps := stat.None
	for i := range w.Ranks {
		steps = steps.Plus(w.Ranks[i].StepsPerS)
	}
	computed := w.Rate[engine.CounterPromptTokensComputed]
	if !computed.OK {
		computed = w.Rate[engine.CounterPromptTokens]
	}
	if !computed.OK {
		return stat.None
	}
	return computed.Plus(w.Rate[engine.CounterGenerationTokens]).Div(steps)
}

func concludeTokenBudget(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	in := func(w *engine.Window) bool { return checkTokenBudget(w, facts).State == engine.Fired }
	p := poolOf(r, in)
	budget := facts.MaxNumBatchedTokens.Value
	var tokens, rate []float64
	for i := range r.Windows {
		w := &r.Windows[i]
		if !in(w) {
			continue
		}
		tokens = append(tokens, stepTokens(w).V)
		if v := w.Rate[engine.CounterPromptTokens]; v.OK {
			rate = append(rate, v.V)
		}
	}
	f.Confidence = budgetLessSure
	varies := variation(rate)
	if varies.OK && len(rate) >= budgetLeastFlat && varies.V <= budgetFlat {
		f.Confidence = budgetSure
		f.Evidence = append(f.Evidence, evidence("prompt_rate_variation", varies, "ratio", "<=", stat.Some(budgetFlat), engine.FromDerived,
			"prompts are taken in at a flat rate while others wait"))
	}
	mean := average(tokens)
	f.Evidence = append(f.Evidence,
		evidence("step_tokens", stat.Some(mean), "tok", ">=", stat.Some(budgetFull*float64(budget)), engine.FromMeasured,
			fmt.Sprintf("a step has %s tokens on average of at most %d", number(mean), budget)),
		evidence("waiting_mean", stat.Some(p.queued*p.ranks), "req", ">=", stat.Some(budgetQueue), engine.FromMeasured,
			fmt.Sprintf("%s requests waited although seats and KV blocks were free", number(p.queued*p.ranks))))
	if p.usage.OK {
		f.Evidence = append(f.Evidence, measured("kv_usage_mean", p.usage, "ratio", "the KV pool is "+percent(p.usage.V)+" full"))
	}
	f.Reason = fmt.Sprintf("steps use %s of the token budget while %s requests wait", percent(mean/float64(budget)), number(p.queued*p.ranks))
	f.Fix = raiseBudget(r, &p, budget, mean)
	if f.Fix.Withheld != "" {
		setImpact(f, 3)
		return
	}
	setLatencyImpact(f, 3)
}

// raiseBudget proposes the budget in which steps have room again once the waiting
// requests run: each running one brings as many tokens to a step as now.
func raiseBudget(r *engine.Run, p *pool, budget int, tokens float64) *engine.Fix {
	most := budgetAdvised
	if budget >= budgetAdvised {
		most = budgetMost
	}
	demand := tokens
	if p.running > 0 {
		demand *= max(p.running, min(p.wanted(r.Facts), p.holds.Or(math.Inf(1)))) / p.running
	}
	want := max(2*float64(budget), demand/budgetFull)
	to := min(most, int(math.Exp2(math.Ceil(math.Log2(want)))))
	from := strconv.Itoa(budget)
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: "--max-num-batched-tokens", From: from, To: strconv.Itoa(to),
		Command: setFlag(r.Facts, "--max-num-batched-tokens", from, strconv.Itoa(to), r.Facts.MaxNumBatchedTokens.Source),
		Price:   []string{priceRestart, "higher spikes of inter-token latency while a prompt shares the step", "a larger activation peak: a slightly smaller KV pool"},
		Risk:    1,
	}
	if to <= budget {
		fix.To, fix.Withheld = from, fmt.Sprintf("the budget is at %d already: prompts arrive faster than this hardware computes them", budget)
		return fix
	}
	g := biggerBudget(r, to)
	fix.Why = fmt.Sprintf("Prompts queue for the %d tokens of a step while seats and KV blocks are free; with the %s waiting requests running as well, a step would have about %s.",
		budget, number(p.queued), number(demand)) + g.sentence()
	fix.Predicted = g.predictions()
	if g.worthless() {
		fix.Withheld = "prefill is compute bound: the physical model expects that a larger step takes longer in proportion, so that requests would wait between their tokens instead of before the first"
	}
	return fix
}

// variation returns the coefficient of variation; absent without two values or
// with a mean of zero.
func variation(v []float64) stat.Opt {
	m := average(v)
	if len(v) < 2 || m <= 0 {
		return stat.None
	}
	sum := 0.0
	for _, x := range v {
		sum += (x - m) * (x - m)
	}
	return stat.Some(math.Sqrt(sum/float64(len(v)-1)) / m)
}

func average(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
