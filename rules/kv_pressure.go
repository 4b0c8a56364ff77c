package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R2, main path.
const (
	kvPressureUsage   = 0.88 // peak share of the KV pool, at least
	cutOffShare       = 0.98 // share of its part of a divided pool that a request reaches on average, at least
	kvCriticalUsage   = 0.95 // peak share from which kvCriticalWindows windows are enough
	kvCriticalWindows = 2
	// againSmall is the ratio of recomputed tokens to prompt tokens below which preemptions cost little.
	againSmall = 0.10

	vramCorroborates = 0.78 // share of GPU memory that is shown as support, never required

	kvPreemptingConfidence = 0.95
	kvCriticalConfidence   = 0.85
	kvPressureConfidence   = 0.70

	// emptyQueue is the mean number of queued requests below which none waits: every request
	// passes through the queue for a moment.
	emptyQueue = 0.5
	// lookupsBlocked is the ratio of prefix lookups to prompt tokens from which admissions were
	// blocked: vLLM looks a waiting prompt up again in every step.
	lookupsBlocked = 1.5
)

var kvPressure = definition{engine.Rule{
	ID: engine.KVPressure, Code: "R2", Title: "KV cache pressure", Group: engine.GroupMemory, Impact: 5,
	Infer: inferCutOff, Check: checkKVPressure, Significant: kvSignificant, Conclude: concludeKVPressure,
	// Slots that stay empty because the pool is full do not mean that load is missing.
	Suppresses: []engine.FindingID{engine.KVAdmission, engine.UnderBatching},
}, Explanation{
	Condition: []string{
		"the peak KV usage of the window reaches " + figure.PercentSign(kvPressureUsage) + ", or a request was preempted (which is enough: a V0 server on a CPU always reports 0 %)",
		"metrics page and GPU were read within a second of each other, if a GPU can be read",
	},
	Thresholds: []Threshold{
		{"kv_usage_peak", ">=", kvPressureUsage, "ratio", fromProfile},
		{"preemptions", ">", 0, "req", fromProfile},
		{"vram_peak / vram_total (support only)", ">=", vramCorroborates, "ratio", fromProfile},
	},
	Formula: []string{
		"context of a sequence = the larger of usage x capacity / running and mean prompt + mean output",
		"sequences that fit = capacity / context",
		"blocks needed = sequences x blocks of one context / " + figure.PercentSign(kvPressureUsage) + ", plus one null block",
	},
	Gate: fmt.Sprintf("one window with preemptions, or %d windows at %s or more, or else: %s", kvCriticalWindows, figure.PercentSign(kvCriticalUsage), standardGate),
	Confidence: []string{
		fmt.Sprintf("%v with preemptions", kvPreemptingConfidence),
		fmt.Sprintf("%v from %s usage", kvCriticalConfidence, figure.PercentSign(kvCriticalUsage)),
		fmt.Sprintf("%v from %s usage", kvPressureConfidence, figure.PercentSign(kvPressureUsage)),
	},
	Remedy: append(moreKVRemedies(),
		"fewer slots, as many as the pool fits: a latency fix, recommended only if no more KV memory is available and requests are preempted",
		"not a lower --max-model-len: V1 allocates blocks on demand, so it frees nothing",
		fmt.Sprintf("nothing, if preempted requests compute again less than %s of what prompts compute, and no gain is predicted: by the model, or because prompts take %s of the engine's time", figure.PercentSign(againSmall), figure.PercentSign(promptsSaturate))),
	Limits: []string{"usage counts unreferenced cached blocks as free: low usage does not mean an empty cache"},
}}

func checkKVPressure(w *engine.Window, f *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if w.Skewed {
		return lacks(inputOneClock)
	}
	if !loaded(w) {
		return idle()
	}
	if preempting(w) {
		c := fired("preemptions", comparison{w.Delta[engine.CounterPreemptions], ">", 0, "req"})
		c.Critical = 1
		return c
	}
	peak := kvPeak(w)
	c := lacks(inputKV)
	switch {
	case f.CutOffAt.OK:
		c = fired("tokens of a request at its end", comparison{f.CutOffAt, ">=", cutOffShare * slotPart(f).V, "tok"})
	case peak.OK:
		c = above("KV peak", peak, kvPressureUsage, "ratio")
	}
	if peak.Or(0) >= kvCriticalUsage {
		c.Critical = 2
	}
	return c
}

// inferCutOff infers from the lengths of all requests of the run that they end at their slot's part of the pool: slots
// that fill their parts one after the other never fill the whole. One window is not enough: a prompt and the end of its
// request may be counted in different ones.
func inferCutOff(windows []engine.Window, f *engine.Facts) {
	part := slotPart(f)
	var prompts, outputs stat.Delta
	for i := range windows {
		if w := &windows[i]; w.Evaluable {
			prompts.Merge(&w.Hist[engine.HistPromptTokens])
			outputs.Merge(&w.Hist[engine.HistGenerationTokens])
		}
	}
	if ends := prompts.Mean().Plus(outputs.Mean()); part.OK && ends.OK && ends.V >= cutOffShare*part.V {
		f.CutOffAt = ends
	}
}

// kvSignificant reports whether a tally of R2 is significant: one window with preemptions,
// kvCriticalWindows windows at kvCriticalUsage, or the standard gate.
func kvSignificant(t engine.Tally) bool {
	return t.Critical1 >= 1 || t.Critical2 >= kvCriticalWindows || t.Significant()
}

func concludeKVPressure(r *engine.Run, t engine.Tally, f *engine.Finding) {
	p := poolOf(r, firesIn(r, checkKVPressure))
	peak, preempted := r.Agg.KVPeak, stat.None
	for w := range windows(r, evaluable) {
		if !w.Skewed {
			peak = peak.Max(kvPeak(w))
			preempted = preempted.Plus(w.Delta[engine.CounterPreemptions])
		}
	}
	switch {
	case t.Critical1 > 0:
		f.Confidence = kvPreemptingConfidence
	case peak.Or(0) >= kvCriticalUsage:
		f.Confidence = kvCriticalConfidence
	default:
		f.Confidence = kvPressureConfidence
	}
	if ends := r.Facts.CutOffAt; ends.OK {
		part := slotPart(r.Facts).V
		f.Reason = "requests end at the " + figure.Counted(part, "token") + " of their slot"
		addEvidence(f, compared("request_tokens_at_end", ends, "tok", ">=", cutOffShare*part, engine.FromMeasured, f.Reason))
	}
	if peak.Or(0) >= kvPressureUsage {
		f.Reason = "KV peak " + figure.PercentSign(peak.V)
		addEvidence(f, compared("kv_usage_peak", peak, "ratio", ">=", kvPressureUsage, engine.FromMeasured, fullAtPeak(peak)))
	}
	if preempted.Or(0) > 0 {
		f.Reason = figure.Counted(preempted.V, "preemption")
		addEvidence(f, compared("preemptions", preempted, "req", ">", 0, engine.FromMeasured,
			f.Reason+": running requests lost their blocks and compute their context again"))
	}
	addEvidence(f, measured("running_mean", stat.Some(p.running*p.ranks), "req",
		fmt.Sprintf("%s ran and %s waited on average", figure.Counted(p.running*p.ranks, "request"), figure.Count(p.queued*p.ranks))))
	addEvidence(f, poolEvidence(&p)...)
	if used := lever.MemoryInUse(r.Agg.GPUs); used.OK && used.V >= vramCorroborates {
		addEvidence(f, compared("vram_peak", used, "ratio", ">=", vramCorroborates, engine.FromGPU,
			"GPU memory was "+figure.PercentSign(used.V)+" full at its peak"))
	}
	if l := r.Agg.LookupRatio; l.OK && l.V >= lookupsBlocked {
		addEvidence(f, compared("lookup_ratio", l, "", ">=", lookupsBlocked, engine.FromMeasured,
			"each prompt token was looked up "+figure.Count(l.V)+" times: waiting requests failed to get blocks in step after step"))
	}
	m := moreKV(r, &p, p.wanted(r.Facts), preempted.Or(0) > 0, "")
	f.Fix = m.fix
	again := stat.Some(0)
	if preempted.Or(0) > 0 {
		again = p.context.Times(r.Agg.Rate[engine.CounterPreemptions].Or(0)).Div(r.Agg.Rate[engine.CounterPromptTokens])
	}
	heldBack := r.Agg.LookupRatio.Or(0) >= lookupsBlocked
	if again.OK && again.V < againSmall && (r.Perf == nil || !heldBack) { // a model may miss what holds requests back
		f.Fix = m.withheldIfPointless(r)
	}
	if preempted.Or(0) == 0 && !heldBack && p.queued*p.ranks < emptyQueue && !cutOff(r.Facts, peak) {
		f.Fix.Withheld = "the pool is nearly full, but no request waits for it and none was preempted: a larger pool would hold the same requests"
	}
}

// cutOff reports whether requests may be cut off: where slots do not share a pool, what fills it ends at its limit.
func cutOff(f *engine.Facts, peak stat.Opt) bool {
	return f.CutOffAt.OK || f.Dialect().Divided != "" && peak.Or(0) >= kvCriticalUsage
}

// slotPart returns the tokens that one request may have where the pool is divided among the slots, absent where they
// share it.
func slotPart(f *engine.Facts) stat.Opt {
	if f.Dialect().Divided == "" || !f.MaxModelLen.Known || !f.KVCapacityTokens.Known || float64(f.MaxModelLen.Value) >= f.KVCapacityTokens.Value {
		return stat.None
	}
	return stat.Some(float64(f.MaxModelLen.Value))
}

// fullAtPeak returns a sentence about the highest usage of the pool.
func fullAtPeak(peak stat.Opt) string {
	return "the KV pool was " + figure.PercentSign(peak.V) + " full at its peak"
}

// poolEvidence returns the known evidence about the pool: its size, the context of a sequence,
// and how many sequences fit.
func poolEvidence(p *pool) []engine.Evidence {
	var out []engine.Evidence
	if p.capacity.OK {
		text := "the pool has room for " + figure.Count(p.capacity.V) + " tokens" + perRank(p.ranks)
		if p.est {
			text = "(est) " + text
		}
		out = append(out, sourced("kv_capacity_tokens", p.capacity, "tok", p.from, text))
	}
	if p.context.OK {
		text := fmt.Sprintf("one sequence holds %s tokens of the pool by its end", figure.Count(p.context.V))
		if p.shared {
			text += fmt.Sprintf(", its part of shared prefixes included; it reads %s", figure.Count(p.prompt.V+p.output.V))
		}
		out = append(out, sourced("kv_tokens_per_sequence", p.context, "tok", engine.FromDerived, text))
	}
	if n := p.wholeSequences(); n.OK {
		out = append(out, sourced("sequences_held", n, "req", engine.FromDerived,
			fmt.Sprintf("%s fit into the pool at the context they reach%s%s", figure.Counted(n.V, "sequence"), perRank(p.ranks), p.notAtTheirEnd(n.V))))
	}
	return out
}
