package engine

import (
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// lookupsInflated is the ratio of prefix-cache lookups to prompt tokens above
// which the counters cannot be trusted: before vLLM 0.26 a waiting request's
// lookup was counted again in each step that failed to admit it (PR 48860).
const lookupsInflated = 1.2

// weighted is a time-weighted mean: sum of value times duration over durations.
type weighted struct{ sum, seconds float64 }

func (m *weighted) add(v stat.Opt, seconds float64) {
	if v.OK {
		m.sum += v.V * seconds
		m.seconds += seconds
	}
}

func (m *weighted) mean() stat.Opt {
	if m.seconds <= 0 {
		return stat.None
	}
	return stat.Some(m.sum / m.seconds)
}

// Combine aggregates the windows of a run in their order. Which windows count
// for which field follows the documented aggregation table.
func Combine(windows []Window, f *Facts) Aggregate {
	var a Aggregate
	var active struct {
		running, waiting, deferred, util, mem, dram, power, steps weighted
		rate                                                      [NumCounters]weighted
	}
	var kv weighted
	var evaluable [NumCounters]stat.Opt // summed deltas
	var held, ran weighted              // KV usage and running where both were read
	var prompt, output stat.Delta
	works := working(windows)
	a.Light = works != nil
	a.Ranks = 1
	var gauge stat.Opt
	for i := range windows {
		w := &windows[i]
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
		for c, v := range w.Last {
			if v.OK {
				a.Totals[c] = v
			}
		}
		if !w.Evaluable {
			continue
		}
		a.Windows.Evaluable++
		a.HistNames = w.HistNames
		a.Ranks = max(a.Ranks, len(w.Ranks))
		seconds := w.Seconds()
		kv.add(w.KV, seconds)
		a.KVPeak = a.KVPeak.Max(w.KVPeak)
		a.VRAMPeak = a.VRAMPeak.Max(w.VRAMPeak)
		for c := range w.Delta {
			evaluable[c] = evaluable[c].Plus(w.Delta[c])
		}
		prompt.Merge(&w.Hist[HistPromptTokens])
		output.Merge(&w.Hist[HistGenerationTokens])
		if w.PrefixGauge.OK {
			gauge = w.PrefixGauge
		}
		for h := range w.Lifetime {
			if w.Lifetime[h].OK {
				a.Lifetime[h] = w.Lifetime[h]
			}
		}
		if w.Active {
			a.Windows.Active++
		} else if !a.Light || !works(w) {
			continue
		}
		a.Working++
		a.Seconds += seconds
		if w.KV.OK && w.Running.OK {
			held.add(w.KV, seconds)
			ran.add(w.Running, seconds)
		}
		active.running.add(w.Running, seconds)
		active.waiting.add(w.Waiting, seconds)
		active.deferred.add(w.Deferred, seconds)
		active.util.add(w.GPUUtil, seconds)
		active.mem.add(w.MemUtil, seconds)
		active.dram.add(w.DRAMUtil, seconds)
		active.power.add(w.Power, seconds)
		for c := range w.Rate {
			active.rate[c].add(w.Rate[c], seconds)
		}
		for h := range w.Hist {
			a.Hist[h].Merge(&w.Hist[h])
		}
		if w.CountedStep.OK && w.CountedStep.V > 0 {
			active.steps.add(stat.Some(1/w.CountedStep.V), seconds)
		}
	}
	a.Running, a.Waiting, a.Deferred = active.running.mean(), active.waiting.mean(), active.deferred.mean()
	a.GPUUtil, a.MemUtil, a.DRAMUtil, a.Power = active.util.mean(), active.mem.mean(), active.dram.mean(), active.power.mean()
	for c := range a.Rate {
		a.Rate[c] = active.rate[c].mean()
	}
	a.KV = kv.mean()
	a.KVPeak = a.KVPeak.Max(lastKV(windows))
	a.PromptLen, a.OutputLen = prompt.Mean(), output.Mean()
	a.GPUs = combineGPUs(windows)
	a.combineStep(active.steps.mean())
	a.combineReuse(&evaluable, gauge)
	a.combinePrefill(f)
	a.KVPerRequest = held.mean().Times(float64(a.Ranks)).Div(ran.mean())
	return a
}

// working returns which windows count as work where none is active by the
// documented gate (a light load: KV and GPU both below their limits): those in
// which requests ran and tokens moved. Nil where a window is active, or where
// nothing moved in any.
func working(windows []Window) func(*Window) bool {
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

// combineStep settles the run's step time. Inter-token latencies are pooled by
// observation. The others are ratios of sums, not means of ratios: a window in
// which hardly a token came out would otherwise outweigh all others.
func (a *Aggregate) combineStep(stepsPerS stat.Opt) {
	if stepsPerS.OK && stepsPerS.V > 0 {
		a.CountedStep = stat.Some(1 / stepsPerS.V)
	}
	if itl := a.Mean(HistITL); itl.OK && itl.V > 0 {
		a.StepTime, a.StepTimeFrom = itl, "itl"
		return
	}
	if a.CountedStep.OK {
		a.StepTime, a.StepTimeFrom = a.CountedStep, "steps"
		return
	}
	if step := a.Running.Div(a.Rate[CounterGenerationTokens]); step.OK && step.V > 0 {
		a.StepTime, a.StepTimeFrom = step, "rate"
	}
}

// combineReuse works out the prefix-cache hit rate, or why there is none.
func (a *Aggregate) combineReuse(d *[NumCounters]stat.Opt, gauge stat.Opt) {
	prompt, cached := d[CounterPromptTokens], d[CounterPromptTokensCached]
	queries, hits := d[CounterPrefixQueries], d[CounterPrefixHits]
	a.LookupRatio = queries.Div(prompt)
	a.ExternalHit = d[CounterExternalHits].Div(d[CounterExternalQueries])
	switch {
	case queries.OK && queries.V <= 0 && prompt.Or(0) > 0:
		a.HitRateReason = "no prefix-cache lookup in the run: caching is off"
	case cached.OK && prompt.Or(0) > 0:
		a.HitRate, a.HitRateFrom = stat.Some(min(1, cached.V/prompt.V)), "prompt_tokens_cached/prompt_tokens"
	case !queries.OK && gauge.OK:
		a.HitRate, a.HitRateFrom = gauge, "hit-rate gauge (over the server's recent requests)"
	case !queries.OK:
		a.HitRateReason = "the page has no prefix-cache counters"
	case queries.V <= 0:
		a.HitRateReason = "no prompt was looked up in the run"
	case a.LookupRatio.Or(1) >= lookupsInflated:
		a.HitRateReason = "unreliable: blocked admissions were counted again (lookups far above prompt tokens)"
	case hits.OK:
		a.HitRate, a.HitRateFrom = stat.Some(min(1, hits.V/queries.V)), "prefix_cache_hits/prefix_cache_queries"
	default:
		a.HitRateReason = "the page counts lookups but no hits"
	}
}

// combinePrefill works out how fast prompts are computed (cached tokens left
// out) and which share of a request's engine time that is.
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
		a.PrefillBusy = stat.Some(prefill.Sum / a.Seconds / float64(a.Ranks))
	}
}

// lastKV is the landing value of the last evaluable window: an aggregate peak
// is never below what is shown as current.
func lastKV(windows []Window) stat.Opt {
	for i := len(windows) - 1; i >= 0; i-- {
		if windows[i].Evaluable {
			return windows[i].KVLast
		}
	}
	return stat.None
}

// combineGPUs keeps, for each device, the landing values of the last evaluable
// window, means over active windows and peaks over evaluable ones.
func combineGPUs(windows []Window) []GPUSummary {
	var out []GPUSummary
	var means [][NumGPUFields]weighted
	at := func(index int) int {
		for i := range out {
			if out[i].Index == index {
				return i
			}
		}
		out = append(out, GPUSummary{Index: index})
		means = append(means, [NumGPUFields]weighted{})
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
					means[k][f].add(g.Mean[f], w.Seconds())
				}
			}
			s.Throttle |= g.Throttle
			s.ThrottleOK = s.ThrottleOK || g.ThrottleOK
		}
	}
	for k := range out {
		for f := range out[k].Mean {
			out[k].Mean[f] = means[k][f].mean()
		}
	}
	return out
}
