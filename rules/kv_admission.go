package rules

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R2, admission backlog: the scheduler holds requests back to protect the pool
// before its usage shows it.
const (
	admissionQueueRatio = 0.30 // queued / (running + queued), at least
	admissionConfidence = 0.85
	// admissionHeads is how many of the longest prompts must fit into the pool at its fullest
	// to rule the pool out as the cause. vLLM admits the head of the queue once enough blocks
	// for it are free, so one would suffice; but polls see the pool only four times a second.
	admissionHeads = 8
	// longPrompt is the quantile that stands for the longest prompts.
	longPrompt = 0.99
)

var kvAdmission = definition{engine.Rule{
	ID: engine.KVAdmission, Code: "R2", Title: "KV cache pressure: admission backlog", Group: engine.GroupMemory, Impact: 4,
	Check: checkKVAdmission, Conclude: concludeKVAdmission,
}, Explanation{
	Condition: []string{
		"at least " + figure.PercentSign(admissionQueueRatio) + " of the requests are queued for capacity",
		"the queued prompts need more KV tokens than are free",
		"a slot is free: the scheduler is not at its limit",
		"metrics page and GPU were read within a second of each other, if a GPU can be read",
	},
	Thresholds: []Threshold{
		{"queued / (running + queued)", ">=", admissionQueueRatio, "ratio", fromProfile},
		{"free KV tokens / longest prompt: suppressed", ">=", admissionHeads, "req", fromVLLM},
	},
	Formula: []string{
		"longest prompt = 99th percentile of finished requests; nothing is suppressed if only their mean is known, because the head of the queue may be many times longer",
		"free KV tokens = (1 - peak usage) x capacity, summed over the ranks; demand = queued x mean prompt tokens",
	},
	Confidence: []string{fmt.Sprintf("%v (fixed)", admissionConfidence)},
	Remedy:     append(moreKVRemedies(), "not fewer slots: the pool is too small for what waits"),
	Limits: []string{
		"suppressed while kv-pressure is significant: both concern the same pool",
		"suppressed if the pool always has room for the next requests: something else holds them back",
	},
}}

func checkKVAdmission(w *engine.Window, f *engine.Facts) engine.Check {
	if w.Evaluable && w.Skewed {
		return lacks(inputOneClock)
	}
	if result, ok := underLoad(w); !ok {
		return result
	}
	queue := queued(w)
	if !queue.OK {
		return lacks(inputWaiting)
	}
	if ratio := queueRatio(w); ratio.Or(0) < admissionQueueRatio {
		return above("requests queued", ratio, admissionQueueRatio, "ratio")
	}
	slots := slotsOf(w, f)
	if !slots.OK {
		return lacks(inputSlots)
	}
	if slotsInUse(w, slots.V) {
		return allSlotsInUse(w, slots.V)
	}
	prompt := meanOf(w, engine.HistPromptTokens)
	switch {
	case !kvPeak(w).OK:
		return lacks(inputKV)
	case !f.KVCapacityTokens.Known:
		return lacks("the size of the KV pool")
	case !prompt.OK:
		return lacks(inputPromptLen)
	}
	free, demand := freeTokens(w, f.KVCapacityTokens.Value), queue.V*prompt.V
	if free >= demand {
		return notFired("free KV tokens", comparison{stat.Some(free), ">=", demand, "tok"})
	}
	return fired("free KV tokens", comparison{stat.Some(free), "<", demand, "tok"})
}

// promptsThatFit returns how many of the longest prompts fit into the free part of one rank's
// pool at its fullest in the selected windows; absent if unknown.
func promptsThatFit(r *engine.Run, p *pool, selected func(w *engine.Window) bool) stat.Opt {
	least, longest := stat.None, stat.None
	for w := range windows(r, selected) {
		if free := freeTokens(w, p.capacity.Or(0)) / float64(ranks(w)); !least.OK || free < least.V {
			least = stat.Some(free)
		}
		longest = longest.Max(w.Hist[engine.HistPromptTokens].Quantile(longPrompt))
	}
	if !p.capacity.OK {
		return stat.None
	}
	return least.Div(longest)
}

// freeTokens returns the sum of free tokens in the pools of all ranks at their peak usage;
// capacity is the size of one rank's pool in tokens.
func freeTokens(w *engine.Window, capacity float64) float64 {
	if len(w.Ranks) <= 1 {
		return (1 - kvPeak(w).V) * capacity
	}
	free := 0.0
	for i := range w.Ranks {
		free += (1 - w.Ranks[i].KVPeak.Or(kvPeak(w).V)) * capacity
	}
	return free
}

func concludeKVAdmission(r *engine.Run, t engine.Tally, f *engine.Finding) {
	in := firesIn(r, checkKVAdmission)
	p := poolOf(r, in)
	f.Confidence = admissionConfidence
	ratio := stat.Some(p.queued).Div(stat.Some(p.running + p.queued))
	addEvidence(f, compared("queue_ratio", ratio, "ratio", ">=", admissionQueueRatio, engine.FromMeasured,
		fmt.Sprintf("%s ran and %s waited although slots were free", figure.Counted(p.running*p.ranks, "request"), figure.Count(p.queued*p.ranks))))
	if p.usage.OK && p.capacity.OK && p.prompt.OK {
		free, demand := (1-p.usage.V)*p.capacity.V, p.queued*p.prompt.V
		addEvidence(f, compared("kv_free_tokens", stat.Some(free), "tok", "<", demand, engine.FromDerived,
			fmt.Sprintf("%s tokens of the pool were free on average; the queued prompts need %s", figure.Count(free), figure.Count(demand))))
	}
	addEvidence(f, poolEvidence(&p)...)
	f.Reason = figure.PercentSign(ratio.Or(0)) + " of requests queued, with too few free KV tokens for them"
	f.Fix = moreKV(r, &p, p.wanted(r.Facts), false, "").withheldIfPointless(r)
	if heads := promptsThatFit(r, &p, in); heads.Or(0) >= admissionHeads {
		setImpact(f)
		f.State, f.Fix = engine.Suppressed, nil
		f.Reason = fmt.Sprintf("the queued requests do not wait for the pool: at its fullest it had room for %s of the longest prompts, and vLLM admits one after the other", figure.Whole(math.Floor(heads.V)))
	}
}
