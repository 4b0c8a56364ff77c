package rules

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of R3.
const (
	reuseHitRate    = 0.35 // prefix-cache hit rate, below
	reusePromptLen  = 20   // mean prompt tokens, at least
	reuseRequests   = 5    // finished requests per second, at least, in PROFILE's form
	reuseRunning    = 0.75 // running requests, above
	reuseConfidence = 0.90

	reuseBlocks       = 2    // blocks of a mean prompt, at least, to recommend reuse
	reusePrefillShare = 0.10 // share of prefill in engine time, at least, to recommend reuse

	// reuseInflated is the ratio of lookups to prompt tokens from which hit counters are
	// unreliable: vLLM counts the lookups of blocked admissions again.
	reuseInflated = 1.2
)

var lowPrefixReuse = definition{engine.Rule{
	ID: engine.LowPrefixReuse, Code: "R3", Title: "Low prefix reuse", Group: engine.GroupReuse, Impact: 2,
	Check: checkLowPrefixReuse, Conclude: concludeLowPrefixReuse, Profile: checkProfileReuse,
}, Explanation{
	Condition: []string{
		"the prefix-cache hit rate is below " + figure.PercentSign(reuseHitRate) + "; with caching off there is no hit rate, and the other conditions decide",
		fmt.Sprintf("prompts have at least %d tokens on average", reusePromptLen),
		fmt.Sprintf("more than %v requests run", reuseRunning),
		fmt.Sprintf("prefill takes at least %s of the engine's time, or its share is unknown, or PROFILE's form counts", figure.PercentSign(reusePrefillShare)),
	},
	Profile: []string{
		fmt.Sprintf("at least %d requests per second finish as well; without it, a few long prompts that share a prefix count too, and the share of prefill decides what is recommended", reuseRequests),
	},
	Thresholds: []Threshold{
		{"prefix_hit_rate", "<", reuseHitRate, "ratio", fromProfile},
		{"prompt_tokens_mean", ">=", reusePromptLen, "tok", fromProfile},
		{"requests_per_s, in PROFILE's form only", ">=", reuseRequests, "1/s", fromProfile},
		{"running", ">", reuseRunning, "req", fromProfile},
		{"recommended with caching on: mean prompt / block size", ">=", reuseBlocks, "", fromDecision},
		{"recommended: prefill share of engine time", ">=", reusePrefillShare, "ratio", fromDecision},
		{"a larger pool instead: seconds that a block stays cached", "<", reuseStay, "s", fromJudgement},
		{"a larger pool instead: spread of a request's cached tokens over windows / that of whole hits and misses", ">=", reuseUneven, "ratio", fromJudgement},
	},
	Formula: []string{
		fmt.Sprintf("hit rate = cached prompt tokens / prompt tokens if the page has them, else hits / lookups, unless there are %v or more lookups per prompt token; since the server's start in a window that counts no prompt", reuseInflated),
		"prefill share of engine time = the smallest of prefill seconds per second and rank (an upper bound, because prefills overlap), computed prompt tokens / (these + generated tokens) (an upper bound where steps mix both and prompts are about equally long: a generated token then takes no less time) and, by the physical model, 1 - step without prefill / step",
		"gain = unknown until tried, at most 1 / (1 - share) - 1",
		"time that a block stays cached = tokens of the pool that no running request holds / (computed prompt + generated tokens per second)",
		"spread = mean over windows of (cached tokens - requests x mean)^2 / requests, divided by mean x (mean prompt - mean), mean being the cached tokens of a request",
	},
	Confidence: []string{fmt.Sprintf("%v (fixed)", reuseConfidence)},
	Remedy: []string{
		"caching off: --enable-prefix-caching, then restructure the prompts",
		"caching on, blocks overwritten soon, and whole prompts hit or miss: the full size for a pool that --num-gpu-blocks-override or a low --gpu-memory-utilization makes small",
		"caching on: in the prompts, shared instructions first, standard templates, nothing unique at the beginning",
	},
	Limits: []string{
		"whether prompts share a prefix is unknown while caching is off", "only whole blocks are reused",
		"no counter separates evicted prefixes from prompts without a shared prefix: a mix of clients with and without one looks like eviction",
	},
}}

// cachingOff reports whether prefix caching is off: according to the facts, or if they do not
// say, because lookups stay at zero while prompts arrive.
func cachingOff(w *engine.Window, f *engine.Facts) bool {
	if f.PrefixCaching.Known {
		return !f.PrefixCaching.Value
	}
	q := w.Delta[engine.CounterPrefixQueries]
	return q.OK && q.V == 0 && w.Delta[engine.CounterPromptTokens].Or(0) > 0
}

// hitRate returns the share of prompt tokens that the local cache served; absent, with what is
// missing, if the counters are missing or inflated. A window that counts no prompt, as with a few
// long ones, has the rate since the server's start.
func hitRate(w *engine.Window) (rate stat.Opt, why string) {
	counted := &w.Delta
	if counted[engine.CounterPromptTokens].Or(0) <= 0 && counted[engine.CounterPrefixQueries].Or(0) <= 0 {
		counted = &w.Last
	}
	prompt, cached := counted[engine.CounterPromptTokens], counted[engine.CounterPromptTokensCached]
	queries, hits := counted[engine.CounterPrefixQueries], counted[engine.CounterPrefixHits]
	switch {
	case cached.OK && prompt.Or(0) > 0:
		return stat.Some(min(1, cached.V/prompt.V)), ""
	case queries.Or(0) > 0 && prompt.Or(0) > 0 && queries.V/prompt.V >= reuseInflated:
		return stat.None, "reliable prefix-cache counters (blocked admissions are counted again)"
	case queries.Or(0) > 0 && hits.OK:
		return stat.Some(min(1, hits.V/queries.V)), ""
	case !queries.OK && w.PrefixGauge.OK:
		return w.PrefixGauge, ""
	case queries.OK:
		return stat.None, "a prompt looked up in the cache"
	}
	return stat.None, "prefix-cache counters"
}

// checkProfileReuse checks R3 as PROFILE defines it.
func checkProfileReuse(w *engine.Window, f *engine.Facts) engine.Check {
	c := checkLowPrefixReuse(w, f)
	if c.State != engine.Fired {
		return c
	}
	rate := w.Rate[engine.CounterRequestSuccess]
	if !rate.OK {
		return lacks("request_success")
	}
	if rate.V < reuseRequests {
		return above("requests per second", rate, reuseRequests, "1/s")
	}
	return c
}

func checkLowPrefixReuse(w *engine.Window, f *engine.Facts) engine.Check {
	if !w.Evaluable {
		return lacks(inputWindow)
	}
	if !working(w) {
		return idle()
	}
	if w.Running.V <= reuseRunning {
		return notFired("running", comparison{w.Running, "<=", reuseRunning, "req"})
	}
	prompt := meanOf(w, engine.HistPromptTokens)
	if !prompt.OK {
		prompt = w.Delta[engine.CounterPromptTokens].Div(w.Delta[engine.CounterRequestSuccess])
	}
	if !prompt.OK {
		return lacks(inputPromptLen)
	}
	if prompt.V < reusePromptLen {
		return above("mean prompt", prompt, reusePromptLen, "tok")
	}
	if cachingOff(w, f) {
		return above("prefix caching is off; mean prompt", prompt, reusePromptLen, "tok")
	}
	hit, why := hitRate(w)
	if !hit.OK {
		return lacks(why)
	}
	if hit.V >= reuseHitRate {
		return notFired("hit rate", comparison{hit, ">=", reuseHitRate, "ratio"})
	}
	return fired("hit rate", comparison{hit, "<", reuseHitRate, "ratio"})
}

func concludeLowPrefixReuse(r *engine.Run, t engine.Tally, f *engine.Finding) {
	facts := r.Facts
	f.Confidence = reuseConfidence
	off := cachingOffInRun(r)
	prompt, _ := lengths(r)
	share, takes := prefillShare(r)
	if off {
		f.Reason = "prefix caching is off"
		addEvidence(f, sourced("prefix_hit_rate", stat.None, "ratio", facts.PrefixCaching.Source,
			"prefix caching is off, so there is no hit rate"))
	} else {
		addHitRate(r, t, f)
	}
	addKnownEvidence(f, compared("prompt_tokens_mean", prompt, "tok", ">=", reusePromptLen, engine.FromMeasured,
		"a prompt has "+figure.Count(prompt.V)+" tokens on average"))
	addKnownEvidence(f, sourced("prefill_tokens_per_s", r.Agg.PrefillPerS, "tok/s", engine.FromDerived,
		figure.Count(r.Agg.PrefillPerS.V)+" prompt tokens are computed per second"))
	if !addKnownEvidence(f, compared("prefill_time_share", share, "ratio", ">=", reusePrefillShare, engine.FromDerived,
		"prefill takes "+takes)) {
		f.Missing = append(f.Missing, inputPrefill)
	}
	external := r.Agg.ExternalHit
	addKnownEvidence(f, measured("external_hit_rate", external, "ratio",
		figure.PercentSign(external.V)+" of the lookups in the external cache (KV connector) hit; the hit rate above does not include them"))
	if off {
		f.Fix = enableCaching(r, prompt)
	} else {
		e := evictionOf(r)
		addEvidence(f, e.evidence(r)...)
		f.Fix = reuseMore(r, e, prompt)
	}
	profile := engine.Rule{Check: checkProfileReuse}
	switch {
	case !share.OK || share.V >= reusePrefillShare || engine.TallyChecks(&profile, r).Significant():
	case longPromptTime(r).OK:
		f.State, f.Missing = engine.NotEvaluable, append(f.Missing, inputParts)
		f.Reason += fmt.Sprintf(", and prefill takes %s: %s", takes, uncounted(facts))
	default:
		f.State = engine.NotFired
		f.Reason += fmt.Sprintf(", but prefill takes %s (limit %s)", takes, figure.PercentSign(reusePrefillShare))
	}
}

// cachingOffInRun reports whether prefix caching is off in a run in which R3 fired.
func cachingOffInRun(r *engine.Run) bool {
	for w := range windows(r, firesIn(r, checkLowPrefixReuse)) {
		if cachingOff(w, r.Facts) {
			return true
		}
	}
	return false
}

// cachingAdvised reports whether R3 advises to turn prefix caching on: a flag that comes before any
// advice to clients. The share of prefill must be known.
func cachingAdvised(r *engine.Run) bool {
	rule := lowPrefixReuse.rule
	share, _ := prefillShare(r)
	if !share.OK || !engine.TallyChecks(&rule, r).Significant() || !cachingOffInRun(r) {
		return false
	}
	prompt, _ := lengths(r)
	return enableCaching(r, prompt).Withheld == ""
}

// addHitRate adds the reason and the evidence of a hit rate: that of the windows in which the rule
// fired, beside that of the run if it fired in a part of them only.
func addHitRate(r *engine.Run, t engine.Tally, f *engine.Finding) {
	hit := r.Agg.HitRate
	text := figure.PercentSign(hit.Or(0)) + " of the prompt tokens were served from the prefix cache"
	f.Reason = "hit rate " + figure.PercentSign(hit.Or(0))
	if t.Fired < t.Evaluable {
		var of stat.Average
		for w := range windows(r, firesIn(r, checkLowPrefixReuse)) {
			rate, _ := hitRate(w)
			of.Add(rate, max(1, w.Delta[engine.CounterPromptTokens].Or(0)))
		}
		overall := hit
		hit = of.Mean()
		in := fmt.Sprintf(" in %d of %s", t.Fired, figure.Counted(t.Evaluable, "window"))
		f.Reason = "hit rate " + figure.PercentSign(hit.Or(0)) + in
		text = figure.PercentSign(hit.Or(0)) + " of the prompt tokens were served from the prefix cache" + in
		if overall.OK {
			text += ", " + figure.PercentSign(overall.V) + " over the run"
		}
	}
	addEvidence(f, compared("prefix_hit_rate", hit, "ratio", "<", reuseHitRate, engine.FromMeasured, text))
}

// prefillShare returns the share, 0..1, of the engine's time that prefill takes, and that in words: by the
// physical model, or the measured bound if that is lower. It is absent without either. While one long prompt
// is computed the page counts nothing, and the share is a lower bound.
func prefillShare(r *engine.Run) (share stat.Opt, words string) {
	model := stat.None
	if r.Perf != nil {
		model = r.Perf.PrefillShare()
	}
	share, words = r.Agg.PrefillMost, "at most "
	switch {
	case longPromptTime(r).OK:
		share, words = model.Max(longPromptTime(r)), "at least "
	case model.OK && (!share.OK || model.V < share.V):
		share, words = model, "about "
	}
	return share, words + figure.PercentSign(share.V) + " of the engine's time"
}

// reuseBound returns the upper bound of the gain of reuse: all prefill saved. Without a useful bound
// the prediction has no upper end.
func reuseBound(r *engine.Run) []engine.Prediction {
	p := engine.Prediction{Metric: engine.QuantityThroughput, Unit: "ratio"}
	if share, _ := reuseMost(r); share.OK && share.V < 1 {
		p.High = stat.Some(1/(1-share.V) - 1)
	}
	if p.High.V > maxBound {
		p.High = stat.None
	}
	return []engine.Prediction{p}
}

func enableCaching(r *engine.Run, prompt stat.Opt) *engine.Fix {
	facts := r.Facts
	fix := flagFixFrom(facts, lever.PrefixCaching, "", "",
		"Prefix caching is off: a shared prompt prefix is computed again for each request. Whether prompts share one is unknown until caching is on.")
	fix.From, _ = lever.PrefixCaching.Now(facts)
	fix.To = "on"
	if mentions(facts.Launch, "--no-enable-prefix-caching") {
		fix.Command = "in " + launchCommand(facts) + " replace --no-enable-prefix-caching with --enable-prefix-caching, and restart"
	}
	fix.Predicted = reuseBound(r)
	_, unbounded := reuseMost(r)
	fix.Why += unknownGain(r, fix, ", and has no upper bound: "+unbounded)
	reject(fix, "restructuring the prompts first", "has no effect while caching is off; it is the next step")
	if b := facts.BlockSize; b.Known && prompt.OK && prompt.V < float64(b.Value) {
		fix.Withheld = fmt.Sprintf("a mean prompt of %s tokens does not fill one block of %d, so it can never hit", figure.Count(prompt.V), b.Value)
	}
	withholdSmallShare(r, fix)
	return fix
}

// withholdSmallShare withholds a fix if prefill takes so little of the engine's time that reuse has
// little to save.
func withholdSmallShare(r *engine.Run, fix *engine.Fix) {
	share, takes := prefillShare(r)
	if !share.OK || share.V >= reusePrefillShare || fix.Withheld != "" {
		return
	}
	if longPromptTime(r).OK {
		fix.Withheld = "prefill takes " + takes + ", and the possible gain of reuse is unknown: " + uncounted(r.Facts)
		return
	}
	fix.Withheld = "prefill takes " + takes + ": reuse would gain almost nothing"
	if high := fix.Predicted[0].High; high.OK {
		if most := figure.PercentSign(high.V / (1 + high.V)); most != figure.PercentSign(share.V) {
			takes += ", and at most " + most
		}
		fix.Withheld = "prefill takes " + takes + ": reuse gains at most " + figure.ChangeSign(high.V)
	}
}

// unknownGain returns a sentence with the upper bound of a gain that is unknown until tried, or
// with unbounded, the reason why there is none.
// If arrivals do not depend on the server, it says how much of the gain can be output.
func unknownGain(r *engine.Run, fix *engine.Fix, unbounded string) string {
	text, high := " The gain is unknown until tried"+unbounded+".", fix.Predicted[0].High
	if high.OK {
		text = fmt.Sprintf(" The gain is unknown until tried, at most %s.", figure.ChangeSign(high.V))
	}
	switch d := r.Offered.Demand; {
	case !d.OK || high.OK && high.V <= d.V-1:
		return text
	case d.V <= 1:
		return text + " Requests seem to arrive at their own rate, and all are served: the gain is in latency and capacity, not in output."
	default:
		return text + fmt.Sprintf(" Requests seem to arrive at their own rate: output rises by at most %s, the rest is capacity.", figure.ChangeSign(d.V-1))
	}
}

// reuseMore returns the fix with caching on: a larger pool if shared prefixes seem to be evicted,
// else prompts that share more. If the page does not show which is the cause, the fix says so.
func reuseMore(r *engine.Run, e eviction, prompt stat.Opt) *engine.Fix {
	var fix *engine.Fix
	if e.likely() {
		fix = keepPrefixes(r, e)
	}
	if fix == nil {
		fix = reshapePrompts(r, e)
	}
	b := r.Facts.BlockSize
	known, _ := prefillShare(r)
	switch {
	case !prompt.OK || !b.Known:
		fix.Withheld = "mean prompt or block size is unknown: a prompt must fill two blocks"
	case prompt.V < reuseBlocks*float64(b.Value):
		fix.Withheld = fmt.Sprintf("a mean prompt of %s tokens is less than %d blocks of %d: there is almost nothing to reuse", figure.Count(prompt.V), reuseBlocks, b.Value)
	case !known.OK:
		fix.Withheld = "the prefill share was not measured, so the possible gain of reuse is unknown"
	}
	withholdSmallShare(r, fix)
	if fix.Withheld == "" && queueUnexplained(r) {
		fix.Withheld = "requests wait although slots and KV pool have room: find out why before changing prompts"
	}
	return fix
}

// queueUnexplained reports whether requests wait as in R5, and no rule about capacity explains it.
func queueUnexplained(r *engine.Run) bool {
	if r.Agg.Waiting.Div(r.Agg.Running.Plus(r.Agg.Waiting)).Or(0) < slotQueueRatio {
		return false
	}
	for _, d := range []*definition{&concurrencySaturation, &kvPressure, &kvAdmission, &tokenBudget, &loraSlots} {
		if t := engine.TallyChecks(&d.rule, r); t.Significant() {
			return false
		}
	}
	return true
}

func reshapePrompts(r *engine.Run, e eviction) *engine.Fix {
	few := "none"
	if share := figure.PercentSign(r.Agg.HitRate.Or(0)); share != figure.PercentSign(0) {
		few = "only " + share
	}
	fix := &engine.Fix{
		Kind:      engine.KindClient,
		Command:   "in the prompts: shared instructions first, standard templates, nothing unique at the beginning",
		Why:       fmt.Sprintf("Prefix caching is on, but %s of the prompt tokens are reused: the prompts differ from their first tokens on. No server flag helps.", few),
		Costs:     []string{"a change of the clients' prompts"},
		Predicted: reuseBound(r),
	}
	if e.stay.OK && !e.excluded() {
		// No limit decides on these words: how soon a prefix comes again is not measured, and next to a limit they would change
		// with every window.
		fix.Why = fmt.Sprintf("Prefix caching is on, but %s of the prompt tokens are reused: the prompts differ from their first tokens on, or come again later than blocks stay (about %s).", few, formatSeconds(e.stay.V))
		why := "helps only if shared prefixes come again later than that: " + evictionTest(r.Facts)
		if busy := busyWithPrompts(r); busy != "" {
			why = busy + "; it " + why
		}
		reject(fix, "a larger KV pool first", why)
	}
	return fix
}

// evictionTest returns how to distinguish evicted prefixes from prompts without a shared one.
func evictionTest(f *engine.Facts) string {
	if f.EngineVersion.Known && flagMissing(f, "--kv-cache-metrics") != "" {
		return "send one prompt twice at once and again after that time, and compare the times to first token"
	}
	return "--kv-cache-metrics shows it (vllm:kv_block_reuse_gap_seconds against vllm:kv_block_idle_before_evict_seconds)"
}
