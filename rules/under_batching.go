package rules

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R1.
const (
	underOccupancy    = 0.25 // share of the slots in use, below
	underBacklog      = 2    // requests waiting, below
	underPrefillShare = 0.40 // seconds of prefill per second of a window, below
	underPrefillSum   = 4.0  // seconds of prefill in a window, below
	underConfidence   = 0.80

	// assumedSlots is assumed of a server whose slots are unknown: vLLM's own defaults are 128 and
	// more, and fewer than this show in a queue.
	assumedSlots           = 16
	underAssumedConfidence = 0.50 // the slots are assumed, at most
)

var underBatching = definition{engine.Rule{
	ID: engine.UnderBatching, Code: "R1", Title: "Under-batching", Group: engine.GroupLoad, Impact: 3,
	Check: checkUnderBatching, Conclude: concludeUnderBatching,
}, Explanation{
	Condition: []string{
		fmt.Sprintf("requests run, and the fullest data-parallel rank uses less than %s of its slots", figure.PercentSign(underOccupancy)),
		fmt.Sprintf("fewer than %d requests wait", underBacklog),
		fmt.Sprintf("prefill takes less than %s of the window and less than %v s, per rank; on pages without its histogram, time to first token or the prompt tokens at the speed of this hardware are upper bounds", figure.PercentSign(underPrefillShare), underPrefillSum),
		fmt.Sprintf("slots that cannot be read are assumed to be %d, at least: vLLM's defaults are 128 and more", assumedSlots),
		fmt.Sprintf("or, beyond PROFILE: all slots are in use, as few requests wait, and fewer run than %s of what KV pool and ridge batch allow", figure.PercentSign(underOccupancy)),
	},
	Thresholds: []Threshold{
		{"running / max_num_seqs", "<", underOccupancy, "ratio", fromProfile},
		{"waiting", "<", underBacklog, "req", fromProfile},
		{"prefill seconds / window seconds", "<", underPrefillShare, "ratio", fromProfile},
		{"prefill seconds in a window", "<", underPrefillSum, "s", fromProfile},
		{"running / what KV pool and ridge batch allow", "<", underOccupancy, "ratio", fromDecision},
	},
	Formula: []string{
		"target concurrency = the least of the slots, the sequences that fill the KV pool to " + figure.PercentSign(slotKVHeadroom) + " at the context they reach, and the ridge batch",
		"ridge batch = tokens per step at which computing the linear layers takes as long as reading their weights; dense: peak FLOP/s x bytes per weight / (2 x memory bandwidth)",
		"gain of the physical model in a closed loop: X(B) at the new concurrency over the current X(B)",
	},
	Confidence: []string{
		fmt.Sprintf("%v with known slots", underConfidence),
		fmt.Sprintf("%v if the slots are assumed", underAssumedConfidence),
	},
	Remedy: []string{
		"raise client concurrency: no server flag helps",
		"not recommended if the physical model finds the GPU already full at this batch, or if the KV pool fits no more",
		fmt.Sprintf("not recommended, without a model, if a request's own prompt takes %s of its time in the engine or more: on a CPU, or with %d tokens to compute, prompts are computed one at a time", figure.PercentSign(ownPrefill), ridgeMost),
	},
	Limits: []string{
		"needs, for the condition of PROFILE, the prefill histogram",
		"does not fire if, by Little's law, the limit is reached over all windows in which requests ran: the requests may come together",
		"suppressed by front-end: if the API server is the limit, few requests run as a consequence",
		"suppressed by low-prefix-reuse while prefix caching is off and turning it on is the advice",
	},
}}

func checkUnderBatching(w *engine.Window, f *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if !working(w) {
		return idle()
	}
	if frozen(w) {
		return stalled(w)
	}
	slots := slotsOf(w, f)
	known := slots.OK
	if !known {
		slots = stat.Some(assumedSlots)
	}
	if !w.Waiting.OK {
		return lacks(inputWaiting)
	}
	if w.Waiting.V >= underBacklog {
		return notFired("requests wait", comparison{w.Waiting, ">=", underBacklog, "req"})
	}
	_, busiest := runningRange(w)
	if !preempting(w) {
		busiest = max(busiest, w.Occupied.Or(0)/float64(ranks(w)))
	}
	occupancy := below("slots in use", busiest/slots.V, underOccupancy)
	if occupancy.State == engine.Fired {
		if c := prefillGate(w, f); c.State != engine.Fired {
			return c
		}
		return occupancy
	}
	if !known {
		return lacks(inputSlots)
	}
	if !slotsInUse(w, slots.V) {
		return occupancy
	}
	room := roomBeyondSlots(w, f)
	if !room.OK {
		occupancy.Why = "what KV pool and ridge batch allow is unknown; slots in use"
		return occupancy
	}
	share := below("running, of what KV pool and ridge batch allow", busiest/room.V, underOccupancy)
	if c := prefillGate(w, f); share.State == engine.Fired && c.State == engine.Suppressed {
		return c
	}
	return share
}

// below fires if a ratio is below the limit.
func below(why string, ratio, limit float64) engine.Check {
	if ratio < limit {
		return fired(why, comparison{stat.Some(ratio), "<", limit, "ratio"})
	}
	return notFired(why, comparison{stat.Some(ratio), ">=", limit, "ratio"})
}

// prefillGate returns Suppressed if prefill fills the time of a rank, else Fired. Without the
// histogram of prefill, upper bounds decide; if none is below the limits, the result is
// NotEvaluable.
func prefillGate(w *engine.Window, f *engine.Facts) engine.Check {
	h := &w.Hist[engine.HistPrefill]
	if !h.OK {
		if prefillBelowLimits(w, f) {
			return engine.Check{State: engine.Fired}
		}
		return lacks(inputPrefill)
	}
	sum := h.Sum / float64(ranks(w))
	switch share := sum / w.Seconds(); {
	case share >= underPrefillShare:
		return suppressed("share of time in prefill", comparison{stat.Some(min(1, share)), ">=", underPrefillShare, "ratio"})
	case sum >= underPrefillSum:
		return suppressed("prefill in one window", comparison{stat.Some(sum), ">=", underPrefillSum, "s"})
	}
	return engine.Check{State: engine.Fired}
}

// prefillBelowLimits reports whether prefill certainly stays below R1's limits on a page
// without its histogram: time to first token contains it, and computing all prompt tokens at
// the achievable rate takes at least as long as those that were computed.
func prefillBelowLimits(w *engine.Window, f *engine.Facts) bool {
	belowLimits := func(sum float64) bool {
		return sum < underPrefillShare*w.Seconds() && sum < underPrefillSum
	}
	if h := &w.Hist[engine.HistTTFT]; h.OK && belowLimits(h.Sum/float64(ranks(w))) {
		return true
	}
	prompt := w.Delta[engine.CounterPromptTokens]
	if !prompt.OK || !f.GPUKnown || !f.ModelKnown {
		return false
	}
	budget := engine.FactOpt(f.MaxNumBatchedTokens).Or(lever.UsualBudget) // vLLM's default for most hardware
	_, rate := replica(f).PrefillRate(budget, 0, budget)
	return rate > 0 && belowLimits(prompt.V/float64(ranks(w))/rate)
}

// roomBeyondSlots returns the requests of one rank that both slotKVHeadroom of the KV pool and
// the ridge batch allow; absent if either is unknown.
func roomBeyondSlots(w *engine.Window, f *engine.Facts) stat.Opt {
	ridge := ridgeBatch(f)
	if !ridge.OK || !w.KV.OK || w.KV.V <= 0 {
		return stat.None
	}
	held := slotKVHeadroom * w.Running.V / float64(ranks(w)) / w.KV.V
	return stat.Some(min(held, ridge.V))
}

// ridgeBatch returns the tokens per step at which the linear layers of this model become compute
// bound: below it, one more sequence takes almost no time. It is absent if GPU or model are
// unknown.
func ridgeBatch(f *engine.Facts) stat.Opt {
	if !f.GPUKnown || !f.ModelKnown || !f.WeightDType.Known {
		return stat.None
	}
	ridge := replica(f).RidgeTokens()
	if ridge <= 0 {
		return stat.None
	}
	return stat.Some(ridge)
}

// replica returns the same as engine.ReplicaConfig, without the list of missing facts, which
// allocates.
func replica(f *engine.Facts) roofline.Config {
	return roofline.Config{
		GPU: f.GPU, Model: f.ModelSpec, TP: max(1, f.TensorParallel.Value), PP: 1, ExpertParallel: f.ExpertParallel.Value,
		Weight: catalog.DType(f.WeightDType.Value), KV: catalog.DType(f.KVCacheDType.Value), Compute: catalog.DType(f.ComputeDType.Value),
	}
}

func concludeUnderBatching(r *engine.Run, t engine.Tally, f *engine.Finding) {
	f.Confidence = underConfidence
	p := poolOf(r, firesIn(r, checkUnderBatching))
	slots := runSlots(r)
	bound, available := "the slots", "there are %s"
	if !slots.OK {
		slots = stat.Some(assumedSlots)
		bound, available = fmt.Sprintf("the %d slots that are assumed", assumedSlots), "the slots are unknown, and at least %s are assumed (vLLM's defaults are 128 and more)"
		f.Confidence = underAssumedConfidence
		f.Missing = append(f.Missing, inputSlots)
	}
	full := p.running >= slots.V*(1-slotSlack)-slotMargin
	if used := poolUse(r, always).occupied.Div(slots); !full && used.Or(0) >= underOccupancy {
		// Requests that come together leave windows between them.
		f.State, f.Reason = engine.NotFired, fmt.Sprintf("%s of %s in use over the run (limit %s)", figure.PercentSign(used.V), bound, figure.PercentSign(underOccupancy))
		return
	}

	op := ""
	if p.running < slots.V {
		op = "<"
	}
	addEvidence(f,
		engine.Evidence{Name: "running_mean", Value: stat.Some(p.running), Unit: "req", Limit: slots, Op: op, Source: engine.FromMeasured,
			Text: fmt.Sprintf("%s ran at once%s; "+available, figure.Counted(p.running, "request"), perRank(p.ranks), figure.Counted(slots.V, "slot"))},
		compared("waiting_mean", stat.Some(p.queued*p.ranks), "req", "<", underBacklog, engine.FromMeasured,
			fmt.Sprintf("fewer than %d waited: the clients do not send more requests", underBacklog)))
	f.Reason = fmt.Sprintf("%s of %s in use (limit %s)", figure.PercentSign(p.running/slots.V), bound, figure.PercentSign(underOccupancy))

	room := slots
	if full {
		room = stat.None
		f.Reason = "all slots are in use, but they are less than a quarter of what KV pool and ridge batch allow"
	}
	if held := p.room(); held.OK && (!room.OK || held.V < room.V) {
		room, bound = held, figure.PercentSign(slotKVHeadroom)+" of the KV pool"
	}
	if ridge := ridgeBatch(r.Facts); ridge.OK && (!room.OK || ridge.V < room.V) {
		room, bound = stat.Some(math.Floor(ridge.V)), "the ridge batch"
	}
	if !room.OK {
		room = slots
	}
	addKnownEvidence(f, measured("kv_usage_mean", p.usage, "ratio", "the KV pool is "+figure.PercentSign(p.usage.V)+" full"))
	f.Fix = moreClients(r, &p, room.V, bound, full)
	if f.Fix.Withheld == "" && cachingAdvised(r) {
		f.State, f.SuppressedBy = engine.Suppressed, string(engine.LowPrefixReuse)
		_, takes := prefillShare(r)
		f.Reason = fmt.Sprintf("prefix caching is off, and prefill takes %s: turn it on before sending more requests", takes)
	}
}

// ownPrefill is the share of its own prefill in a request's time in the engine from which more requests at once gain little
// without a physical model: prompts that compute for longer than the weights are read take as long however many come.
const ownPrefill = 0.5

// ridgeMost is the number of tokens from which a step computes for longer than it reads weights, on any GPU of the catalog.
const ridgeMost = 600

// moreClients returns the fix of R1, on the client side; if all slots are in use (full), it
// includes more slots. room is the number of requests of one rank that bound allows.
func moreClients(r *engine.Run, p *pool, room float64, bound string, full bool) *engine.Fix {
	now, to := p.runningInRun*p.ranks, float64(engine.SlotsWithin(room))*p.ranks
	fix := &engine.Fix{
		Kind: engine.KindClient,
		From: fmt.Sprint(math.Round(now)), To: fmt.Sprint(to),
		Command: fmt.Sprintf("send more requests at once: about %s run now, up to %s fit", figure.Count(now), figure.Count(to)),
		Why: fmt.Sprintf("The server has unused room: %s would fit %s at once, but the server runs %s. No server flag helps.",
			bound, figure.Counted(to, "request"), figure.Count(now)),
	}
	if full {
		slots := slotsFlag(r.Facts, engine.SlotsWithin(room))
		fix.Command += "; raise --max-num-seqs to " + slots + " with it"
		reject(fix, "--max-num-seqs "+slots+" alone", "no request waits for a slot: more slots stay empty until the clients send more at once")
	}
	if to <= now*(1+gainFloor) {
		fix.To, fix.Command = fix.From, "send more requests at once"
		fix.Why = fmt.Sprintf("Slots are free, but %s fits no more than the %s.", bound, figure.Counted(now, "running request"))
		fix.Costs = []string{slowerTokens(gain{})}
		fix.Withheld = fmt.Sprintf("%s fits no more requests than run already", bound)
		return fix
	}
	g := moreConcurrency(r, p, to/p.ranks, full)
	fix.Costs = []string{slowerTokens(g)}
	fix.Predicted = g.predictions()
	fix.Why += g.sentence()
	prompt, _ := lengths(r)
	computeBound := r.Facts.OnCPU() || prompt.Or(0)*(1-r.Agg.HitRate.Or(0)) >= ridgeMost
	switch own := r.Agg.PrefillShare; {
	case r.Perf == nil && computeBound && own.Or(0) >= ownPrefill:
		fix.Withheld = fmt.Sprintf("a request's own prompt takes %s of its time in the engine: concurrent requests compute their prompts one at a time", figure.PercentSign(own.V))
	case g.worthless():
		fix.Withheld = g.because(fmt.Sprintf("the GPU is full although slots are free: the physical model predicts %s with %s at once",
			g.predictedThroughput(), figure.Counted(to, "request")))
	}
	return fix
}
