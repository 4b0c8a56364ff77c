package rules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R5.
const (
	slotQueueRatio = 0.30 // queued / (running + queued), at least
	slotKVHeadroom = 0.80 // peak KV usage below which there is room for more slots

	// computingGain is the minimum gain of more slots when compute limits the steps: each token
	// then takes longer in proportion to the batch.
	computingGain = 0.06

	slotConfidence      = 0.90 // TTFT and KV usage both present
	slotBlindConfidence = 0.60 // one or both absent

	// slotInferredConfidence is the confidence, at most, if the slots are inferred (inferSlots): the lower
	// 95 % bound of the chance that they are right; they were in 9 of 9 recordings whose launch states them.
	slotInferredConfidence = 0.70
)

var concurrencySaturation = definition{engine.Rule{
	ID: engine.ConcurrencySaturation, Code: "R5", Title: "Concurrency saturation", Group: engine.GroupSlots, Impact: 4,
	Check: checkConcurrencySaturation, Conclude: concludeConcurrencySaturation, Infer: inferSlots,
}, Explanation{
	Condition: []string{
		fmt.Sprintf("every data-parallel rank runs as many requests as it has slots, within %v requests; a window whose peak reached the slots may lie %s below them in the mean or median of its polls, with short outputs %v / mean output (at most %s), because vLLM counts running requests after it removed those that finished in the step",
			slotMargin, figure.PercentSign(slotSlack), finishSlack, figure.PercentSign(maxSlack)),
		"or as many slots are occupied by Little's law, within the same share: the gauge misses slots that are handed on at once, because it is written as a step ends and shown until the next one does",
		"at least " + figure.PercentSign(slotQueueRatio) + " of the requests are queued for capacity",
		"the rule is skipped if more requests run than there are slots: the slots are not the limit then",
		fmt.Sprintf("slots that cannot be read are inferred if, in %s of at least %d windows with a queue, as many requests run as ever did, the KV pool has room for %d more, none is preempted, adapters have places, and the prompts leave time or steps unused, so the token budget is not the limit",
			figure.PercentSign(inferredShare), inferredWindows, inferredRoom),
	},
	Thresholds: []Threshold{
		{"|running - max_num_seqs|", "<=", slotMargin, "req", fromProfile},
		{"1 - running / max_num_seqs, if the peak reached the slots", "<=", slotSlack, "ratio", fromVLLM},
		{"the same x mean output, with short outputs", "<=", finishSlack, "tok", fromVLLM},
		{"queued / (running + queued)", ">=", slotQueueRatio, "ratio", fromProfile},
		{"kv_usage_peak: raise the slots", "<", slotKVHeadroom, "ratio", fromProfile},
		{"slots inferred: seconds of prefill per second", "<", budgetPrefills, "ratio", fromJudgement},
		{"or prefill / ITL p99, with prompts in one step each", "<", budgetChunks, "", fromVLLM},
		{"and steps without a prompt", ">=", decodeSteps, "ratio", fromJudgement},
	},
	Formula: []string{
		"occupied slots = finished requests per second x mean seconds from first scheduling to last token, over this window and as many before it as needed; not with preemptions",
		"slots = running + queued per rank, rounded up to a size with a CUDA graph (1, 2, 4, steps of 8 to 256, then of 16)",
		"at most as many as fill the KV pool to " + figure.PercentSign(slotKVHeadroom) + " at the context they reach, and at most max_num_batched_tokens",
		"gain = X(min(slots, running + queued, pool)) / X(running) - 1, X being the throughput of the physical model",
	},
	Confidence: []string{
		fmt.Sprintf("%v with both time to first token and KV usage", slotConfidence),
		fmt.Sprintf("%v without one of them", slotBlindConfidence),
		fmt.Sprintf("%v if the slots are inferred", slotInferredConfidence),
	},
	Remedy: []string{
		"KV peak below " + figure.PercentSign(slotKVHeadroom) + ": raise --max-num-seqs",
		"KV peak at or above " + figure.PercentSign(slotKVHeadroom) + ": do not raise the slots; provide more KV memory or a replica",
		"pool without room for more sequences: more KV memory, and the slots that it then has room for, in one change",
		"not recommended if the physical model predicts no gain from more slots, or if compute limits the steps and the gain is below " + figure.PercentSign(computingGain),
	},
	Limits: []string{"no vLLM release exports max_num_seqs: pass -m if the launch command cannot be read and the slots cannot be inferred"},
}}

func checkConcurrencySaturation(w *engine.Window, f *engine.Facts) engine.Check {
	if result, ok := underLoad(w); !ok {
		return result
	}
	slots := slotsOf(w, f)
	if !slots.OK {
		return lacks(inputSlots)
	}
	if !queued(w).OK {
		return lacks(inputWaiting)
	}
	least, most := runningRange(w)
	if aboveSlots(w, slots.V) {
		return notFired("more requests run than max_num_seqs, so it is not the limit: running", comparison{stat.Some(most), ">", slots.V, "req"})
	}
	if !slotsInUse(w, slots.V) {
		return notFired("running", comparison{stat.Some(least), "<", slots.V, "req"})
	}
	ratio := queueRatio(w)
	switch {
	case ratio.Or(0) >= slotQueueRatio:
		return above("all slots in use; requests queued", ratio, slotQueueRatio, "ratio")
	case w.Deferred.Or(0) > 0:
		return above("requests queued, without those deferred for another reason", ratio, slotQueueRatio, "ratio")
	}
	return above("requests queued", ratio, slotQueueRatio, "ratio")
}

func concludeConcurrencySaturation(r *engine.Run, t engine.Tally, f *engine.Finding) {
	in := firesIn(r, checkConcurrencySaturation)
	p := poolOf(r, in)
	slots := runSlots(r).V
	peak := stat.None
	for w := range windows(r, in) {
		peak = peak.Max(kvPeak(w))
	}
	ttft := r.Agg.Mean(engine.HistTTFT).Max(r.Agg.P99(engine.HistTTFT)).Max(r.Agg.Lifetime[engine.HistTTFT])
	f.Confidence = slotBlindConfidence
	if ttft.OK && peak.OK {
		f.Confidence = slotConfidence
	}
	ratio := stat.Some(p.queued).Div(stat.Some(p.running + p.queued))
	f.Reason = fmt.Sprintf("all %s in use, %s of requests queued", figure.Counted(slots, "slot"), figure.PercentSign(ratio.Or(0)))
	if fact := r.Facts.MaxNumSeqs; r.Facts.MaxNumSeqsInferred {
		f.Confidence = min(f.Confidence, slotInferredConfidence)
		f.Reason += "; the slots are inferred"
		f.Missing = append(f.Missing, inputSlots)
		addEvidence(f, sourced("max_num_seqs", stat.Some(slots), "req", fact.Source, fact.Note))
	}
	addEvidence(f,
		compared("running_mean", stat.Some(p.running), "req", ">=", slots-slotMargin, engine.FromMeasured,
			fmt.Sprintf("%s ran at once in %s%s", figure.Counted(p.running, "request"), figure.Counted(slots, "slot"), perRank(p.ranks))))
	if p.occupied.V = min(p.occupied.V, slots); p.running < slots-slotMargin {
		addKnownEvidence(f, compared("slots_occupied", p.occupied, "req", ">=", slots*(1-maxSlack), engine.FromDerived,
			fmt.Sprintf("%s of %s%s were occupied by Little's law (finished requests per second x their time in the engine): the running gauge misses slots that are handed on at once",
				figure.Count(p.occupied.V), figure.Counted(slots, "slot"), perRank(p.ranks))))
	}
	addEvidence(f,
		compared("queue_ratio", ratio, "ratio", ">=", slotQueueRatio, engine.FromMeasured,
			fmt.Sprintf("%s waited, %s of all requests in the server", figure.Count(p.queued*p.ranks), figure.PercentSign(ratio.Or(0)))))
	if !addKnownEvidence(f, compared("kv_usage_peak", peak, "ratio", "<", slotKVHeadroom, engine.FromMeasured, fullAtPeak(peak))) {
		f.Missing = append(f.Missing, inputKV)
	}
	q := r.Agg.Mean(engine.HistQueue)
	addKnownEvidence(f, measured("queue_mean_s", q, "s", "a request waited "+formatSeconds(q.V)+" for a slot"))
	addEvidence(f, poolEvidence(&p)...)
	if !ttft.OK {
		f.Missing = append(f.Missing, inputTTFT)
	}
	f.Fix = moreSlots(r, &p, int(slots), peak)
}

// moreSlots returns the fix of R5: more slots if the KV pool has room for them, else more KV
// memory. peak is the highest KV usage of the run, 0..1.
func moreSlots(r *engine.Run, p *pool, slots int, peak stat.Opt) *engine.Fix {
	need := max(engine.SlotsFor(p.running+p.queued), engine.SlotsFor(float64(slots)+1))
	to, limits := slotLimits(r.Facts, p, need)
	noRoom, room := "", p.room()
	switch {
	case peak.OK && peak.V >= slotKVHeadroom:
		noRoom = fmt.Sprintf("the KV pool is %s full at its peak, and more slots would only preempt each other", figure.PercentSign(peak.V))
	case room.OK && engine.SlotsWithin(room.V) <= slots:
		noRoom = poolFillsAt(room.V)
	}
	if noRoom != "" {
		return poolBeforeSlots(r, p, slots, need, noRoom, peak.Or(0) >= slotKVHeadroom)
	}
	inUse := fmt.Sprintf("All %s%s are in use while %s", figure.Counted(slots, "slot"), perRank(p.ranks), requestsQueued(p.queuedInRun*p.ranks))
	if slots == 1 {
		inUse = fmt.Sprintf("The one slot%s is in use while %s", perRank(p.ranks), requestsQueued(p.queuedInRun*p.ranks))
	}
	if r.Facts.MaxNumSeqsInferred {
		inUse = fmt.Sprintf("Running stays at %d%s while %s and the KV pool has room, from which the slots are inferred", slots, perRank(p.ranks), requestsQueued(p.queuedInRun*p.ranks))
	}
	fix := flagFixFrom(r.Facts, lever.Slots, strconv.Itoa(slots), strconv.Itoa(to), "")
	switch {
	case to <= slots:
		fix.To, fix.Withheld = fix.From, figure.List(limits...)
		fix.Command = "raise --max-num-batched-tokens before --max-num-seqs"
		fix.Why = inUse + ", but they cannot be raised: " + figure.List(limits...) + "."
		return fix
	case to < need:
		fix.Why = fmt.Sprintf("%s; at most %s can be used: %s.", inUse, figure.Counted(to, "slot"), figure.List(limits...))
	default:
		fix.Why = fmt.Sprintf("%s; %s fit all running and queued requests.", inUse, figure.Counted(to, "slot"))
	}
	g := raiseSlots(r, p, to)
	fix.Predicted = g.predictions()
	fix.Why += g.sentence()
	fix.Costs = append(fix.Costs, slotCosts(p, g, to)...)
	if g.worthless() {
		fix.Withheld = g.because(fmt.Sprintf("more slots gain nothing here: the physical model predicts %s with %d slots", g.predictedThroughput(), to))
	} else if computeBound(r) && g.Throughput.Mid.V < computingGain {
		fix.Withheld = fmt.Sprintf("compute takes most of each step: %d slots gain at most %s throughput, and %s", to, figure.ChangeSign(max(0, g.Throughput.Mid.V)), slowerTokens(g))
	}
	reject(fix, "a replica", "this server still has room: slots cost a restart, a replica costs a GPU")
	return fix
}

// requestsQueued formats a mean number of queued requests: "1 request is queued", "12 requests
// are queued", "63.7 requests are queued on average".
func requestsQueued(n float64) string {
	if n == 1 {
		return "1 request is queued"
	}
	count := figure.Counted(n, "request")
	if strings.Contains(count, ".") {
		return count + " are queued on average"
	}
	return count + " are queued"
}

// poolFillsAt states how many sequences fill the KV pool to slotKVHeadroom.
func poolFillsAt(sequences float64) string {
	return fmt.Sprintf("%s at the context they reach fill the KV pool to %s", figure.Counted(sequences, "sequence"), figure.PercentSign(slotKVHeadroom))
}

// computeBound reports whether compute limits the run's steps: a larger batch then takes longer
// in proportion.
func computeBound(r *engine.Run) bool {
	return r.Perf != nil && r.Perf.Now.Achievable.Binding() == "compute"
}

// poolBeforeSlots returns the fix for a pool without room for more slots. A pool that is full already
// comes first, and slots in a later change; else the pool alone gains nothing, and both are one change.
func poolBeforeSlots(r *engine.Run, p *pool, slots, need int, noRoom string, full bool) *engine.Fix {
	why := "Do not raise the slots alone: " + noRoom + "."
	alone := moreKV(r, p, p.running+p.queued, false, why)
	fix := alone.fix
	with := 0
	if room := p.room(); fix.Kind == engine.KindFlag && room.OK && alone.growth.OK {
		with = min(need, engine.SlotsWithin(room.V*alone.growth.V))
	}
	both := remedy{}
	if with > slots {
		both = moreKV(withSlots(r, with), p, p.running+p.queued, false, why)
	}
	switch {
	case both.fix == nil:
		fix = alone.withheldIfPointless(r)
	case both.gain.pointless():
		fix.Withheld = both.gain.because(fmt.Sprintf("a larger pool gains nothing here, not even with %d slots", with))
	case full:
		fix.Command += "; with the larger pool, and only then, --max-num-seqs " + slotsFlag(r.Facts, with)
		fix.Why += fmt.Sprintf(" The pool alone does not end the queue; %d slots are the next change.", with)
	default:
		fix = both.fix
		fix.Also = []engine.Change{{Flag: lever.Slots.Flag, From: strconv.Itoa(slots), To: strconv.Itoa(with)}}
		fix.Command += fmt.Sprintf("; in the same restart change --max-num-seqs %s to %s", slotsFlag(r.Facts, slots), slotsFlag(r.Facts, with))
		fix.Why += fmt.Sprintf(" The pool alone does not end the queue; %d slots use it.", with)
		fix.Costs = append(fix.Costs, slowerTokens(both.gain))
	}
	fix.Rejected = append([]engine.Rejected{{What: "--max-num-seqs " + slotsFlag(r.Facts, need) + " alone", Why: noRoom}}, fix.Rejected...)
	return fix
}

// slotsFlag formats the value of --max-num-seqs with which a rank has a number of slots.
func slotsFlag(f *engine.Facts, slots int) string {
	return f.FlagValue(lever.Slots.Flag, strconv.Itoa(slots))
}

// withSlots returns a run whose server has another number of slots.
func withSlots(r *engine.Run, slots int) *engine.Run {
	open := *r
	facts := *r.Facts
	facts.MaxNumSeqs.Value, open.Facts = slots, &facts
	if r.Perf != nil {
		perf := *r.Perf
		perf.Measured.MaxNumSeqs = stat.Some(float64(slots))
		open.Perf = &perf
	}
	return &open
}

// slotLimits bounds the needed slots by what the server can take, and returns the reasons of
// the bounds that apply.
func slotLimits(f *engine.Facts, p *pool, need int) (to int, limits []string) {
	to = need
	if room := p.room(); room.OK && float64(to) > room.V {
		to = engine.SlotsWithin(room.V)
		limits = append(limits, poolFillsAt(room.V))
	}
	if b := f.MaxNumBatchedTokens; b.Known && to > b.Value && f.Dialect().ID == catalog.VLLM {
		to = engine.SlotsWithin(float64(b.Value))
		limits = append(limits, fmt.Sprintf("--max-num-batched-tokens is %d and must not be below the slots", b.Value))
	}
	return to, limits
}

// slowerTokens states what a larger batch costs each request, with a figure where the prediction has one.
func slowerTokens(g gain) string {
	if mid := g.known().ITL.Mid; mid.OK && mid.V > 0 {
		return "each request gets its tokens more slowly: inter-token latency " + figure.ChangeSign(mid.V)
	}
	return "each request gets its tokens more slowly as more requests share a step"
}

// slotCosts states what fuller steps cost.
func slotCosts(p *pool, g gain, to int) []string {
	slower := slowerTokens(g)
	if !p.usage.OK {
		return []string{slower, "the KV usage to expect is unknown: its current value cannot be read"}
	}
	then := min(1, p.usage.V*min(float64(to), p.running+p.queued)/max(p.running, 1))
	return []string{slower, fmt.Sprintf("KV usage rises from %s to about %s", figure.PercentSign(p.usage.V), figure.PercentSign(then))}
}
