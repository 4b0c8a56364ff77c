package rules

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R2, admission backlog: the scheduler holds requests back to protect
// the pool before its usage shows it.
const (
	admissionQueueRatio = 0.30 // queued / (running + queued), at least
	admissionConfidence = 0.85
	// admissionHeads is how many of the longest prompts must find room in the pool
	// at its fullest for it not to be what holds the queue back. vLLM admits the
	// head of the queue alone, once its own blocks are free: what all that wait
	// need together says how long the queue is, not what it waits for. One would
	// do, but polls see the pool four times a second and not between.
	admissionHeads = 8
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
				{"free KV tokens / longest prompt: suppressed", ">=", admissionHeads, "req", fromVLLM},
			},
			Formula: []string{
				"longest prompt = 99th percentile of the finished ones; where only their mean is known nothing is suppressed: the head of the queue may be many times longer",
				"free KV tokens = (1 - peak usage) x capacity, summed over the ranks; demand = queued x mean prompt tokens",
			},
			Confidence: []string{number(admissionConfidence) + " fixed"},
			Remedy:     append(moreKVRemedies(), "not fewer seats: the pool is too small for what waits"),
			Limits: []string{
				"suppressed while kv-pressure is significant: it is the same pool",
				"suppressed where the pool has room for the next requests all the time: something else holds them back",
			},
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

// longPrompt is the quantile that stands for the longest prompts.
const longPrompt = 0.99

// room returns how many of the longest prompts fit into what one rank's pool had
// free at its fullest in the windows that count says yes to; absent where it
// cannot be told.
func room(r *engine.Run, p *pool, count func(w *engine.Window) bool) stat.Opt {
	least := stat.None
	longest := stat.None
	for i := range r.Windows {
		w := &r.Windows[i]
		if !w.Evaluable || !count(w) {
			continue
		}
		if free := freeTokens(w, p.capacity.Or(0)) / float64(ranks(w)); !least.OK || free < least.V {
			least = stat.Some(free)
		}
		longest = longest.Max(w.Hist[engine.HistPromptTokens].Quantile(longPrompt))
	}
	if !p.capacity.OK || !longest.OK || longest.V <= 0 {
		return stat.None
	}
	return least.Div(longest)
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
	if heads := room(r, &p, in); heads.Or(0) >= admissionHeads {
		f.State, f.Fix = engine.Suppressed, nil
		f.Reason = fmt.Sprintf("the pool had room for %s of the longest prompts at its fullest, and vLLM admits one after the other: it is not what they wait for", number(math.Floor(heads.V)))
	}
}
