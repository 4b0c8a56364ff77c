package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R2, admission backlog: the scheduler holds requests back to protect
// the pool before its usage shows it.
const (
	admissionQueueRatio = 0.30 // queued / (running + queued), at least
	admissionConfidence = 0.85
)

func kvAdmission() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.KVAdmission, Code: "R2", Title: "KV cache pressure: admission backlog", Group: engine.GroupMemory, Impact: 4,
			Check: checkKVAdmission, Conclude: concludeKVAdmission,
		},
		explain: Explanation{
			Condition: []string{
				"at least " + percent(admissionQueueRatio) + " of the requests in the server wait for capacity",
				"the free KV tokens are fewer than the queued prompts need",
				"a seat is free: the scheduler is not at its cap",
				"page and GPU were read within a second of each other, where a GPU is readable",
			},
			Thresholds: []Threshold{
				{"queued / (running + queued)", ">=", admissionQueueRatio, "ratio", fromSeed},
			},
			Formula: []string{
				"free KV tokens = (1 - peak usage) x capacity, summed over the ranks; demand = queued x mean prompt tokens",
			},
			Confidence: []string{number(admissionConfidence) + " fixed"},
			Remedy:     append(moreKVRemedies(), "not fewer seats: the pool is too small for what waits"),
			Limits:     []string{"suppressed while kv-pressure is significant: it is the same pool"},
		},
	}
}

func checkKVAdmission(w *engine.Window, f *engine.Facts) engine.Check {
	if w.Evaluable && w.Skewed {
		return lacks(inputOneClock)
	}
	if c, ok := underLoad(w); !ok {
		return c
	}
	queue := queued(w)
	if !queue.OK {
		return lacks(inputWaiting)
	}
	ratio := figure{queueRatio(w), ">=", admissionQueueRatio, "ratio"}
	if ratio.value.Or(0) < admissionQueueRatio {
		ratio.op = "<"
		return quiet("queue ratio", ratio)
	}
	seats := seatsOf(w, f)
	if !seats.OK {
		return lacks(inputSeats)
	}
	if seatsTaken(w, seats.V) {
		return quiet("the seats are all taken: running", figure{w.Running, ">=", seats.V * float64(ranks(w)), "req"})
	}
	peak := kvPeak(w)
	if !peak.OK {
		return lacks(inputKV)
	}
	if !f.KVCapacityTokens.Known {
		return lacks(inputCapacity)
	}
	prompt := meanOf(w, engine.HistPromptTokens)
	if !prompt.OK {
		return lacks(inputPromptLen)
	}
	free, demand := freeTokens(w, f.KVCapacityTokens.Value), queue.V*prompt.V
	if free >= demand {
		return quiet("free KV tokens", figure{stat.Some(free), ">=", demand, "tok"})
	}
	return fired("free KV tokens", figure{stat.Some(free), "<", demand, "tok"})
}

// freeTokens returns the tokens that were free in all ranks' pools at their
// peaks; capacity is that of one rank.
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
	facts := r.Facts
	in := func(w *engine.Window) bool { return checkKVAdmission(w, facts).State == engine.Fired }
	p := poolOf(r, in)
	f.Confidence = admissionConfidence
	ratio := stat.Some(p.queued).Div(stat.Some(p.running + p.queued))
	f.Evidence = append(f.Evidence, evidence("queue_ratio", ratio, "ratio", ">=", stat.Some(admissionQueueRatio), engine.FromMeasured,
		fmt.Sprintf("%s ran and %s waited although seats were free", number(p.running*p.ranks), number(p.queued*p.ranks))))
	if p.usage.OK && p.capacity.OK && p.prompt.OK {
		demand := p.queued * p.prompt.V
		f.Evidence = append(f.Evidence, evidence("kv_free_tokens", stat.Some((1-p.usage.V)*p.capacity.V), "tok", "<", stat.Some(demand), engine.FromDerived,
			fmt.Sprintf("%s tokens of the pool were free on average; the queued prompts need %s", number((1-p.usage.V)*p.capacity.V), number(demand))))
	}
	f.Evidence = append(f.Evidence, poolEvidence(&p)...)
	f.Reason = "queue ratio " + percent(ratio.Or(0)) + " with too few free KV tokens for what waits"
	f.Fix = moreKV(r, &p, p.wanted(facts), false, "").withheldIfPointless()
	setImpact(f, 4)
}
