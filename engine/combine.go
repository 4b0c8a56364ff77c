package engine

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// lookupsInflated is the ratio of prefix-cache lookups to prompt tokens above which the
// counters cannot be trusted: before vLLM 0.26 the lookup of a waiting request was counted
// again in each step that failed to admit it (PR 48860).
const lookupsInflated = 1.2

// Combine aggregates the windows of a run, which must be in order. [Aggregate] documents which
// windows count for which field.
func Combine(windows []Window, f *Facts) Aggregate {
	var c combining
	c.works = lightLoad(windows)
	c.a.Light = c.works != nil
	c.a.Ranks = 1
	inStep := 0 // windows from here on that lie in one step
	for i := range windows {
		w := &windows[i]
		c.collect(w)
		if !w.Evaluable {
			continue
		}
		c.evaluate(w)
		if i == 0 || windows[i-1].Active {
			inStep = windowsInStep(windows[i:], f, HungAfter(windows[len(windows)-1].LongestStep))
		}
		inStep--
		if w.Active || inStep >= 0 {
			c.a.Windows.Active++
		} else if !c.a.Light || !c.works(w) {
			continue
		}
		c.work(w)
	}
	a := &c.a
	a.Running, a.Waiting, a.Deferred = c.running.Mean(), c.waiting.Mean(), c.deferred.Mean()
	a.GPUUtil, a.MemUtil, a.DRAMUtil, a.Power = c.util.Mean(), c.mem.Mean(), c.dram.Mean(), c.power.Mean()
	for i := range a.Rate {
		a.Rate[i] = c.rate[i].Mean()
	}
	a.KV = c.kv.Mean()
	a.KVPeak = a.KVPeak.Max(lastKV(windows))
	a.PromptLen, a.OutputLen = c.prompt.Mean(), c.output.Mean()
	a.GPUs = combineGPUs(windows)
	a.combineStep(c.steps.Mean())
	a.combineReuse(&c.counted, c.prefixGauge)
	a.combinePrefill(f)
	a.KVPerRequest = c.kvRead.Mean().Times(float64(a.Ranks)).Div(c.ran.Mean())
	return *a
}

// windowsInStep returns the number of windows at the beginning that lie in a step which is longer than a window:
// requests certainly ran throughout, nothing moved, and then it did, or the run ended, after less than hung. Only
// without a readable GPU: a busy one shows the work already. A mean without these windows
// would be that of the ends of steps.
func windowsInStep(windows []Window, f *Facts, hung time.Duration) int {
	for i := range windows {
		w := &windows[i]
		switch {
		case w.Active:
			return i
		case !w.Evaluable, w.Asleep, w.RunningMin.Or(0) <= 0, w.GPUBusy.OK, w.Stall >= hung, w.Delta[CounterGenerationTokens] != stat.Some(0):
			return 0
		case standstill{w.Stall, w.RunningMin, w.Waiting, w.KV, max(1, len(w.Ranks))}.doubt(w, f) != "":
			return 0 // the requests that ran may be an idle server's stale gauge
		}
	}
	return len(windows)
}

// combining is the state of an aggregation.
type combining struct {
	a     Aggregate
	works func(*Window) bool // whether a window counts as working under a light load; nil otherwise

	// Evaluable windows.
	kv             stat.Average
	counted        [NumCounters]stat.Opt // summed deltas
	prompt, output stat.Delta
	prefixGauge    stat.Opt

	// Working windows.
	running, waiting, deferred, util, mem, dram, power, steps stat.Average

	rate        [NumCounters]stat.Average
	kvRead, ran stat.Average // KV usage and running requests of windows that have both
}

// collect adds the values that every window has.
func (c *combining) collect(w *Window) {
	a := &c.a
	a.Windows.Collected++
	a.Missed += w.Missed
	a.Failed += w.Failed
	if w.LastErr != "" {
		a.LastErr = w.LastErr
	}
	a.Ticks += w.Polls + w.Failed + w.Missed
	if w.Restarted || w.AfterRestart {
		a.Restarts++
	}
	a.LongestStall = max(a.LongestStall, w.Stall)
	for i, v := range w.Last {
		if v.OK {
			a.Totals[i] = v
		}
	}
}

// evaluate adds the values of an evaluable window.
func (c *combining) evaluate(w *Window) {
	a := &c.a
	a.Windows.Evaluable++
	a.HistNames = w.HistNames
	a.Ranks = max(a.Ranks, len(w.Ranks))
	c.kv.Add(w.KV, w.Seconds())
	a.KVPeak = a.KVPeak.Max(w.KVPeak)
	a.VRAMPeak = a.VRAMPeak.Max(w.VRAMPeak)
	for i := range w.Delta {
		c.counted[i] = c.counted[i].Plus(w.Delta[i])
	}
	c.prompt.Merge(&w.Hist[HistPromptTokens])
	c.output.Merge(&w.Hist[HistGenerationTokens])
	if w.PrefixGauge.OK {
		c.prefixGauge = w.PrefixGauge
	}
	for i := range w.Lifetime {
		if w.Lifetime[i].OK {
			a.Lifetime[i] = w.Lifetime[i]
		}
	}
}

// work adds the values of a working window.
func (c *combining) work(w *Window) {
	a, seconds := &c.a, w.Seconds()
	a.Working++
	a.Seconds += seconds
	if w.KV.OK && w.Running.OK {
		c.kvRead.Add(w.KV, seconds)
		c.ran.Add(w.Running, seconds)
	}
	c.running.Add(w.Running, seconds)
	c.waiting.Add(w.Waiting, seconds)
	c.deferred.Add(w.Deferred, seconds)
	c.util.Add(w.GPUUtil, seconds)
	c.mem.Add(w.MemUtil, seconds)
	c.dram.Add(w.DRAMUtil, seconds)
	c.power.Add(w.Power, seconds)
	for i := range w.Rate {
		c.rate[i].Add(w.Rate[i], seconds)
	}
	for i := range w.Hist {
		a.Hist[i].Merge(&w.Hist[i])
	}
	if w.CountedStep.OK && w.CountedStep.V > 0 {
		c.steps.Add(stat.Some(1/w.CountedStep.V), seconds)
	}
}

// lightLoad returns the condition for a window to count as working if none is active (a light
// load: KV and GPU both below their limits): requests ran and tokens moved. It returns nil
// if a window is active, or if no tokens moved in any.
func lightLoad(windows []Window) func(*Window) bool {
	moved := func(w *Window) bool {
		return w.Evaluable && w.Running.Or(0) > 0 && !w.Asleep &&
			(w.Delta[CounterGenerationTokens].Or(0) > 0 || w.Delta[CounterPromptTokens].Or(0) > 0)
	}
	any := false
	for i := range windows {
		if windows[i].Active {
			return nil
		}
		any = any || moved(&windows[i])
	}
	if !any {
		return nil
	}
	return moved
}

// combineStep sets the run's step time. Inter-token latencies are pooled by observation. The
// others are ratios of sums, not means of ratios: a window with hardly any tokens would
// otherwise outweigh all others.
func (a *Aggregate) combineStep(stepsPerS stat.Opt) {
	if stepsPerS.OK && stepsPerS.V > 0 {
		a.CountedStep = stat.Some(1 / stepsPerS.V)
	}
	step := a.Running.Div(a.Rate[CounterGenerationTokens])
	switch itl := a.Mean(HistITL); {
	case itl.Or(0) > 0:
		a.StepTime, a.StepTimeOrigin, a.StepTimeFrom = itl, Measured, "mean inter-token latency"
	case a.CountedStep.OK:
		a.StepTime, a.StepTimeOrigin, a.StepTimeFrom = a.CountedStep, Derived, "counted engine steps"
	case step.Or(0) > 0:
		a.StepTime, a.StepTimeOrigin, a.StepTimeFrom = step, Derived, "running / generated tokens per s"
	default:
		a.StepTimeOrigin = Derived
	}
}

// combineReuse sets the prefix-cache hit rate, or the reason for its absence.
func (a *Aggregate) combineReuse(d *[NumCounters]stat.Opt, gauge stat.Opt) {
	prompt, cached := d[CounterPromptTokens], d[CounterPromptTokensCached]
	queries, hits := d[CounterPrefixQueries], d[CounterPrefixHits]
	a.LookupRatio = queries.Div(prompt)
	a.ExternalHit = d[CounterExternalHits].Div(d[CounterExternalQueries])
	switch {
	case queries.OK && queries.V <= 0 && prompt.Or(0) > 0:
		a.HitRateReason = "no prefix-cache lookup in the run: caching is off"
	case cached.OK && prompt.Or(0) > 0:
		a.HitRate, a.HitRateFrom = stat.Some(min(1, cached.V/prompt.V)), "prompt_tokens_cached / prompt_tokens"
	case !queries.OK && gauge.OK:
		a.HitRate, a.HitRateFrom = gauge, "hit-rate gauge (over the server's recent requests)"
	case !queries.OK:
		a.HitRateReason = "the page has no prefix-cache counters"
	case queries.V <= 0:
		a.HitRateReason = "no prompt was looked up in the run"
	case a.LookupRatio.Or(1) >= lookupsInflated:
		a.HitRateReason = "unreliable: blocked admissions were counted again (lookups far above prompt tokens)"
	case hits.OK:
		a.HitRate, a.HitRateFrom = stat.Some(min(1, hits.V/queries.V)), "prefix_cache_hits / prefix_cache_queries"
	default:
		a.HitRateReason = "the page counts lookups but no hits"
	}
}

// combinePrefill sets the rate at which prompts are computed, without cached tokens, and the
// share of prefill in a request's engine time.
func (a *Aggregate) combinePrefill(f *Facts) {
	prompt, queries := a.Rate[CounterPromptTokens], a.Rate[CounterPrefixQueries]
	switch {
	case a.Rate[CounterPromptTokensComputed].OK:
		a.PrefillPerS = a.Rate[CounterPromptTokensComputed]
	case !prompt.OK:
	case a.Rate[CounterPromptTokensCached].OK:
		a.PrefillPerS = stat.Some(max(0, prompt.V-a.Rate[CounterPromptTokensCached].V))
	case queries.OK && queries.V == 0, f != nil && f.PrefixCaching.Known && !f.PrefixCaching.Value:
		a.PrefillPerS = prompt
	case queries.OK && a.LookupRatio.Or(1) < lookupsInflated && a.Rate[CounterPrefixHits].OK:
		a.PrefillPerS = stat.Some(max(0, prompt.V-a.Rate[CounterPrefixHits].V))
	}
	prefill, decode := &a.Hist[HistPrefill], &a.Hist[HistDecode]
	if prefill.OK && decode.OK && prefill.Sum+decode.Sum > 0 {
		a.PrefillShare = stat.Some(prefill.Sum / (prefill.Sum + decode.Sum))
	}
	if prefill.OK && a.Seconds > 0 {
		a.PrefillMost = stat.Some(min(1, prefill.Sum/a.Seconds/float64(a.Ranks)))
	}
	ofTokens := a.PrefillPerS.Div(a.PrefillPerS.Plus(a.Rate[CounterGenerationTokens]))
	if f != nil && ofTokens.V < a.PrefillMost.Or(1) && ofTokens.OK && f.mixesSteps() && !f.LongPrompt.OK && a.evenPrompts() {
		a.PrefillMost = ofTokens
	}
}

// mixesSteps reports whether steps have prompts and generated tokens together, and nothing but those.
func (f *Facts) mixesSteps() bool {
	return f.Dialect().ID == catalog.VLLM && !f.V0.Value && f.ChunkedPrefill.Value && f.ModelSpec.VisionParams == 0
}

// evenPrompts reports whether no prompt is far longer than the mean: attention to a long one takes more than its share.
func (a *Aggregate) evenPrompts() bool {
	longest := a.Hist[HistPromptTokens].Bucket(1)
	return a.PromptLen.OK && longest[1] > 0 && longest[0] <= longPrompt*a.PromptLen.V
}

// longPrompt is how many times longer than the mean a prompt is that takes more than its tokens' share of the time.
const longPrompt = 4

// lastKV returns the last KV usage of the last evaluable window, so that an aggregate peak is
// never below the current value.
func lastKV(windows []Window) stat.Opt {
	for i := len(windows) - 1; i >= 0; i-- {
		if windows[i].Evaluable {
			return windows[i].KVLast
		}
	}
	return stat.None
}

// combineGPUs returns, for each device, the last values of the last evaluable window, means
// over active windows and peaks over evaluable ones.
func combineGPUs(windows []Window) []GPUSummary {
	var out []GPUSummary
	var means [][NumGPUFields]stat.Average
	at := func(index int) int {
		if i := slices.IndexFunc(out, func(g GPUSummary) bool { return g.Index == index }); i >= 0 {
			return i
		}
		out = append(out, GPUSummary{Index: index})
		means = append(means, [NumGPUFields]stat.Average{})
		return len(out) - 1
	}
	for i := range windows {
		w := &windows[i]
		if !w.Evaluable {
			continue
		}
		for j := range w.GPUs {
			g := &w.GPUs[j]
			k := at(g.Index)
			s := &out[k]
			s.Name, s.UUID, s.Last = g.Name, g.UUID, g.Last
			for f := range g.Peak {
				s.Peak[f] = s.Peak[f].Max(g.Peak[f])
				if w.Active {
					means[k][f].Add(g.Mean[f], w.Seconds())
				}
			}
			s.Throttle |= g.Throttle
			s.ThrottleOK = s.ThrottleOK || g.ThrottleOK
		}
	}
	for k := range out {
		for f := range out[k].Mean {
			out[k].Mean[f] = means[k][f].Mean()
		}
	}
	return out
}
