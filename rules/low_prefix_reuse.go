package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R3.
const (
	reuseHitRate    = 0.35 // prefix-cache hit rate, below
	reusePromptLen  = 20   // mean prompt tokens, at least
	reuseRequests   = 5    // finished requests per second, at least
	reuseRunning    = 0.75 // running requests, above
	reuseConfidence = 0.90

	reuseBlocks       = 2    // blocks that a mean prompt must have for reuse to be recommended
	reusePrefillShare = 0.10 // share of prefill in engine time, at least, likewise

	// reuseInflated is the ratio of lookups to prompt tokens from which hit
	// counters cannot be trusted (vllm.md section 5.3).
	reuseInflated = 1.2
)

func lowPrefixReuse() definition {
	return definition{
		rule: engine.Rule{
			ID: engine.LowPrefixReuse, Code: "R3", Title: "Low prefix reuse", Group: engine.GroupReuse, Impact: 2,
			Check: checkLowPrefixReuse, Conclude: concludeLowPrefixReuse,
		},
		explain: Explanation{
			Condition: []string{
				"the prefix-cache hit rate is below " + percent(reuseHitRate) + "; with caching off there is no rate, and the other conditions decide",
				fmt.Sprintf("prompts have %d tokens and more on average", reusePromptLen),
				fmt.Sprintf("%d requests per second and more finish", reuseRequests),
				fmt.Sprintf("more than %s requests run", number(reuseRunning)),
			},
			Thresholds: []Threshold{
				{"prefix_hit_rate", "<", reuseHitRate, "ratio", fromSeed},
				{"prompt_tokens_mean", ">=", reusePromptLen, "tok", fromSeed},
				{"requests_per_s", ">=", reuseRequests, "1/s", fromSeed},
				{"running", ">", reuseRunning, "req", fromSeed},
				{"recommended with caching on: mean prompt / block size", ">=", reuseBlocks, "", fromDecisions},
				{"recommended with caching on: prefill share of engine time", ">=", reusePrefillShare, "ratio", fromDecisions},
				{"recommended: gain at most", ">=", gainFloor, "ratio", fromDecisions},
				{"a larger pool instead: seconds that a block stays cached", "<", reuseStay, "s", fromJudgement},
				{"a larger pool instead: spread of a request's cached tokens over windows / that of whole hits and misses", ">=", reuseUneven, "ratio", fromJudgement},
			},
			Formula: []string{
				"hit rate = cached prompt tokens / prompt tokens where the page has them, else hits / lookups unless lookups are inflated (" + number(reuseInflated) + " per prompt token and more)",
				"prefill share of engine time = the smaller of prefill seconds per second and rank (prefills overlap, so it may be all the time) and, of the physical model, 1 - step without prefill / step",
				"gain = unknown until tried, at most 1 / (1 - share) - 1",
				"a block stays cached for: tokens of the pool that no running request holds / (computed prompt + generated tokens per second)",
				"spread = mean over windows of (cached tokens - requests x mean)^2 / requests, over mean x (mean prompt - mean), mean being a request's cached tokens",
			},
			Confidence: []string{number(reuseConfidence) + " fixed"},
			Remedy: []string{
				"caching off: --enable-prefix-caching, then restructure the prompts",
				"caching on, blocks soon overwritten and whole prompts hit or miss: the pool that --num-gpu-blocks-override or a low --gpu-memory-utilization makes small at its full size",
				"caching on: shared instructions first, standard templates, nothing unique at the beginning",
			},
			Limits: []string{
				"whether prompts share a beginning cannot be seen while caching is off", "only whole blocks are reused",
				"no counter tells evicted beginnings from prompts that share none: clients of which some share and others do not look like eviction",
			},
		},
	}
}

// cachingOff says whether prefix caching is off: by the facts, else by lookups
// that stay at zero while prompts come in.
func cachingOff(w *engine.Window, f *engine.Facts) bool {
	if f.PrefixCaching.Known {
		return !f.PrefixCaching.Value
	}
	q := w.Delta[engine.CounterPrefixQueries]
	return q.OK && q.V == 0 && w.Delta[engine.CounterPromptTokens].Or(0) > 0
}

// hitRate returns the share of prompt tokens that the local cache served.
// Absent where the counters are missing or inflated; why names the reason.
func hitRate(w *engine.Window) (rate stat.Opt, why string) {
	prompt := w.Delta[engine.CounterPromptTokens]
	cached := w.Delta[engine.CounterPromptTokensCached]
	queries, hits := w.Delta[engine.CounterPrefixQueries], w.Delta[engine.CounterPrefixHits]
	switch {
	case cached.OK && prompt.Or(0) > 0:
		return stat.Some(min(1, cached.V/prompt.V)), ""
	case queries.Or(0) > 0 && prompt.Or(0) > 0 && queries.V/prompt.V >= reuseInflated:
		return stat.None, "reliable prefix-cache counters (blocked admissions were counted again)"
	case queries.Or(0) > 0 && hits.OK:
		return stat.Some(min(1, hits.V/queries.V)), ""
	case !queries.OK && w.PrefixGauge.OK:
		return w.PrefixGauge, ""
	case queries.OK:
		return stat.None, "a prompt that was looked up"
	}
	return stat.None, inputHits
}

func checkLowPrefixReuse(w *engine.Window, f *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if !working(w) {
		return idle()
	}
	if w.Running.V <= reuseRunning {
		return quiet("running", figure{w.Running, "<=", reuseRunning, "req"})
	}
	rate := w.Rate[engine.CounterRequestSuccess]
	if !rate.OK {
		return lacks(inputFinished)
	}
	if rate.V < reuseRequests {
		return quiet("requests per second", figure{rate, "<", reuseRequests, "1/s"})
	}
	prompt := meanOf(w, engine.HistPromptTokens)
	if !prompt.OK {
		prompt = w.Delta[engine.CounterPromptTokens].Div(w.Delta[engine.CounterRequestSuccess])
	}
	if !prompt.OK {
		return lacks(inputPromptLen)
	}
	if prompt.V < reusePromptLen {
		return quiet("mean prompt", figure{prompt, "<", reusePromptLen, "tok"})
	}
	if cachingOff(w, f) {
		return fired("prefix caching is off; mean prompt", figure{prompt, ">=", reusePromptLen, "tok"})
	}
	hit, why := hitRate(w)
	if !hit.OK {
		return lacks(why)
	}
	if hit.V >= reuseHitRate {
		return quiet("hit rate", figure{hit, ">=", reuseHitRate, "ratio"})
	}
	return fired("hit rate", figure{hit, "<", reuseHitRate, "ratio"})
}

func concludeLowPrefixReuse(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	f.Confidence = reuseConfidence
	off := false
	for i := range r.Windows {
		if w := &r.Windows[i]; w.Evaluable && checkLowPrefixReuse(w, facts).State == engine.Fired {
			off = off || cachingOff(w, facts)
		}
	}
	prompt, _ := lengths(r)
	share := prefillShare(r)
	if off {
		f.Evidence = append(f.Evidence, evidence("prefix_hit_rate", stat.None, "ratio", "", stat.None, facts.PrefixCaching.Source,
			"prefix caching is off, so there is no hit rate"))
		f.Reason = "prefix caching is off"
	} else {
		f.Evidence = append(f.Evidence, evidence("prefix_hit_rate", r.Agg.HitRate, "ratio", "<", stat.Some(reuseHitRate), engine.FromMeasured,
			percent(r.Agg.HitRate.Or(0))+" of the prompt tokens were served from the prefix cache"))
		f.Reason = "hit rate " + percent(r.Agg.HitRate.Or(0))
	}
	if prompt.OK {
		f.Evidence = append(f.Evidence, evidence("prompt_tokens_mean", prompt, "tok", ">=", stat.Some(reusePromptLen), engine.FromMeasured,
			"a prompt has "+number(prompt.V)+" tokens on average"))
	}
	f.Evidence = append(f.Evidence, evidence("requests_per_s", r.Agg.Rate[engine.CounterRequestSuccess], "req/s", ">=", stat.Some(reuseRequests), engine.FromMeasured,
		number(r.Agg.Rate[engine.CounterRequestSuccess].Or(0))+" requests finished per second"))
	if share.OK {
		f.Evidence = append(f.Evidence, evidence("prefill_time_share", share, "ratio", "", stat.None, engine.FromDerived, "the engine spends "+percent(share.V)+" of its time on prefill at most"))
	} else {
		f.Missing = append(f.Missing, inputPrefill)
	}
	if e := r.Agg.ExternalHit; e.OK {
		f.Evidence = append(f.Evidence, measured("external_hit_rate", e, "ratio",
			percent(e.V)+" of the lookups in the external cache (KV connector) hit; they are not in the rate above"))
	}
	if off {
		f.Fix = enableCaching(r, prompt, share)
	} else {
		e := evictionOf(r)
		f.Evidence = append(f.Evidence, e.evidence(r)...)
		f.Fix = reuseMore(r, e, prompt, share)
	}
	setImpact(f, 2)
}

// prefillShare is the part of the engine's time, 0..1, that prefill takes at
// most: the seconds with a prefill in them, and what the physical model says of
// the step. Seconds of requests are no such share: their decode seconds run side
// by side and contain the prefills of others. Absent without either.
func prefillShare(r *engine.Run) stat.Opt {
	share := stat.None
	if busy := r.Agg.PrefillBusy; busy.OK {
		share = stat.Some(min(1, busy.V))
	}
	if r.Perf == nil {
		return share
	}
	if model := r.Perf.PrefillShare(); model.OK && (!share.OK || model.V < share.V) {
		share = model
	}
	return share
}

// reuseBound is the gain that reuse cannot exceed: all prefill saved. Without a
// bound, or with one that says nothing, the gain is unknown until tried.
func reuseBound(share stat.Opt) []engine.Prediction {
	p := engine.Prediction{Metric: metricThroughput, Unit: "ratio"}
	if share.OK && share.V < 1 {
		p.High = stat.Some(1/(1-share.V) - 1)
	}
	if p.High.V > mostBound {
		p.High = stat.None
	}
	return []engine.Prediction{p}
}

// atMost withholds a fix whose bound is not worth a change.
func atMost(fix *engine.Fix) {
	if high := fix.Predicted[0].High; high.OK && high.V < gainFloor && fix.Withheld == "" {
		fix.Withheld = fmt.Sprintf("so little of the engine's time is prefill that reuse gains %s at most", change(high.V))
	}
}

func enableCaching(r *engine.Run, prompt, share stat.Opt) *engine.Fix {
	facts := r.Facts
	from := "off"
	if s := facts.PrefixCaching.Source; s == engine.FromDefault || s == engine.FromMetrics && facts.V0.Value {
		from = "" // nobody switched it off, and old releases have no --no- form
	}
	fix := &engine.Fix{
		Kind: engine.KindFlag, Flag: "--enable-prefix-caching", From: from, To: "on",
		Command: setFlag(facts, "--enable-prefix-caching", "", "", facts.PrefixCaching.Source),
		Why:     "Prefix caching is off: a beginning that prompts share is computed again for each. Whether they share one cannot be seen before it is on.",
		Price:   []string{priceRestart, "no memory: cached blocks are given up when they are needed"},
		Risk:    1,
	}
	if mentions(facts.Launch, "--no-enable-prefix-caching") {
		fix.Command = "in the launch command replace --no-enable-prefix-caching by --enable-prefix-caching, and restart"
	}
	fix.Predicted = reuseBound(share)
	if high := fix.Predicted[0].High; high.OK {
		fix.Why += fmt.Sprintf(" The gain is unknown until tried, at most %s.", change(high.V))
	} else {
		fix.Why += " The gain is unknown until tried, and nothing bounds it: some prefill runs at every moment, or prefill was not measured."
	}
	fix.Rejected = append(fix.Rejected, engine.Rejected{
		What: "restructuring the prompts first", Why: "has no effect while caching is off; it is the step after",
	})
	if b := facts.BlockSize; b.Known && prompt.OK && prompt.V < float64(b.Value) {
		fix.Withheld = fmt.Sprintf("a mean prompt of %s tokens does not fill one block of %d: it can never hit", number(prompt.V), b.Value)
	}
	atMost(fix)
	return fix
}

// reuseMore is the remedy where caching is on: a pool that keeps what is shared
// where it seems to be evicted, else prompts that share more. Where the page
// cannot tell, the fix says so, and what would.
func reuseMore(r *engine.Run, e eviction, prompt, share stat.Opt) *engine.Fix {
	var fix *engine.Fix
	if e.likely() {
		fix = keepPrefixes(r, e, share)
	}
	if fix == nil {
		fix = reshapePrompts(r, e, share)
	}
	b := r.Facts.BlockSize
	switch {
	case !prompt.OK || !b.Known:
		fix.Withheld = "mean prompt or block size is not known: whether a prompt fills two blocks cannot be told"
	case prompt.V < reuseBlocks*float64(b.Value):
		fix.Withheld = fmt.Sprintf("a mean prompt of %s tokens is less than %d blocks of %d: there is next to nothing to reuse", number(prompt.V), reuseBlocks, b.Value)
	case !share.OK:
		fix.Withheld = "the prefill share was not measured: what reuse could gain is not known"
	case share.V < reusePrefillShare:
		fix.Withheld = fmt.Sprintf("prefill is only %s of the engine time: reuse would gain next to nothing", percent(share.V))
	}
	atMost(fix)
	return fix
}

func reshapePrompts(r *engine.Run, e eviction, share stat.Opt) *engine.Fix {
	fix := &engine.Fix{
		Kind:      engine.KindClient,
		Command:   "in the prompts: shared instructions first, standard templates, nothing unique at the beginning",
		Why:       fmt.Sprintf("Prefix caching is on, yet only %s of the prompt tokens are reused: the prompts differ from their beginning on. No flag of the server helps.", percent(r.Agg.HitRate.Or(0))),
		Price:     []string{"a change of the clients' prompts"},
		Predicted: reuseBound(share),
	}
	if e.possible() && !e.excluded() {
		fix.Why = fmt.Sprintf("Prefix caching is on, yet only %s of the prompt tokens are reused. Either the prompts differ from their beginning on, or what they share is evicted before it comes again: a block stays cached for about %s after its request, and the page cannot tell the two apart.",
			percent(r.Agg.HitRate.Or(0)), seconds(e.stay.V))
		fix.Command += "; where they are so already, a larger KV pool or fewer different beginnings for each server"
		fix.Rejected = append(fix.Rejected, engine.Rejected{
			What: "a larger KV pool first", Why: "helps only where prompts that share a beginning come within the time that it stays cached: " + evictionTest(r.Facts),
		})
	}
	return fix
}

// evictionTest is how to tell evicted beginnings from prompts that share none.
func evictionTest(f *engine.Facts) string {
	if f.EngineVersion.Known && flagMissing(f, "--kv-cache-metrics") != "" {
		return "send one prompt twice, at once and again after that time, and compare its time to the first token"
	}
	return "--kv-cache-metrics shows it (vllm:kv_block_reuse_gap_seconds against vllm:kv_block_idle_before_evict_seconds)"
}
