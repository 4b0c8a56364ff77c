package engine

import (
	"cmp"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// MeasuredNames are the names of a diagnosis's quantities, in the order of its document
// (docs/interfaces.md section 3).
var MeasuredNames = [...]string{
	"generation_tokens_per_s", "prompt_tokens_per_s", "requests_per_s",
	"running_mean", "waiting_mean", "kv_usage_mean", "kv_usage_peak", "preemptions_per_s",
	"prefix_hit_rate", "prompt_tokens_mean",
	"ttft_mean_s", "ttft_p99_s", "tpot_mean_s", "tpot_p99_s", "itl_mean_s", "itl_p99_s", "e2e_mean_s",
	"queue_mean_s", "prefill_mean_s", "decode_mean_s", "front_end_mean_s", "preemption_lost_s",
	"step_time_s", "missed_ticks",
	"gpu_util", "mem_util", "dram_util", "power_w", "power_limit_w", "throttled",
	"vram_total_bytes", "vram_used_bytes", "vram_peak_bytes", "temperature_c", "sm_clock_mhz",
	"tokens_per_watt", "joules_per_token", "usd_per_million_tokens", "recoverable_usd_per_hour",
	// Not part of the documented interface.
	"output_tokens_mean", "waiting_deferred_mean", "swapped_mean", "cpu_kv_usage_mean",
	"external_hit_rate", "lookup_ratio", "prefill_tokens_per_s", "prefill_share",
	"total_generation_tokens", "total_requests", "temperature_peak_c", "api_server_cpu",
	"http_4xx_per_s", "rejections_per_s", "http_5xx_per_s", "spec_acceptance",
}

// quantities collects the quantities of a diagnosis, each with its unit and, if absent, the
// reason.
type quantities struct{ list []NamedQuantity }

func (q *quantities) put(name, unit string, v stat.Opt, from Origin, reason string) {
	if v.OK {
		reason = ""
	} else {
		reason = cmp.Or(reason, "not on the page")
	}
	q.list = append(q.list, NamedQuantity{Name: name, Quantity: Quantity{Value: v, Unit: unit, Source: from, Reason: reason}})
}

// note adds a remark to the last quantity, if that is known.
func (q *quantities) note(text string) {
	last := &q.list[len(q.list)-1]
	if !last.Value.OK {
		return
	}
	last.Note = strings.TrimPrefix(last.Note+"; "+text, "; ")
}

// Shared reasons for absence.
const (
	whyNoActive = "no window in which the server was working"
	whyNoPage   = "the page does not have it"
	whyNoGPU    = "no GPU is readable"
	whyNoFinish = "no request finished while it was measured"
	whyFell     = "the counter fell or is not on the page"
)

// measure returns the quantities of a run in the order of MeasuredNames.
func measure(r *Run, windows []Window, gpuWhy string) []NamedQuantity {
	a, f := &r.Agg, r.Facts
	var q quantities
	rate := func(name, unit string, c Counter) { q.put(name, unit, a.Rate[c], Measured, a.whenWorking(whyFell)) }
	rate("generation_tokens_per_s", "tok/s", CounterGenerationTokens)
	rate("prompt_tokens_per_s", "tok/s", CounterPromptTokens)
	rate("requests_per_s", "req/s", CounterRequestSuccess)

	q.put("running_mean", "req", a.Running, Measured, a.whenWorking(whyNoPage))
	q.put("waiting_mean", "req", a.Waiting, Measured, a.whenWorking(whyNoPage))
	q.put("kv_usage_mean", "ratio", a.KV, Measured, whyNoPage)
	q.put("kv_usage_peak", "ratio", a.KVPeak, Measured, whyNoPage)
	rate("preemptions_per_s", "1/s", CounterPreemptions)
	q.put("prefix_hit_rate", "ratio", a.HitRate, Measured, a.HitRateReason)
	q.note(a.HitRateFrom)
	q.put("prompt_tokens_mean", "tok", a.PromptLen, Measured, whyNoFinish)

	a.latencies(&q)
	q.put("step_time_s", "s", a.StepTime, a.StepTimeOrigin, "no step was seen")
	q.note(a.StepTimeFrom)
	q.put("missed_ticks", "", stat.Some(float64(a.Missed)), Measured, "")

	a.hardware(&q, gpuWhy)
	a.economy(&q, r, f)
	a.extra(&q, windows, f)
	return q.list
}

// whenWorking returns why a figure of working windows is absent: the given reason, or that
// there was no such window.
func (a *Aggregate) whenWorking(reason string) string {
	if a.Working == 0 {
		return whyNoActive
	}
	return reason
}

// latencies adds the latencies pooled over active windows. If none of them has an observation,
// a mean falls back to the server's lifetime and is marked "since start". A quantile has no
// fallback: a stale p99 is worse than none.
func (a *Aggregate) latencies(q *quantities) {
	why := func(h Hist) string {
		if a.Working > 0 && !a.Hist[h].OK && !a.Lifetime[h].OK {
			return whyNoPage
		}
		if h == HistITL && a.Rate[CounterRequestSuccess].Or(0) > 0 {
			return "no request generated a second token"
		}
		return whyNoFinish
	}
	mean := func(name string, h Hist) {
		v := a.Mean(h)
		if v.OK || !a.Lifetime[h].OK || a.Windows.Evaluable == 0 {
			q.put(name, "s", v, Measured, why(h))
			return
		}
		q.put(name, "s", a.Lifetime[h], Measured, "")
		q.note(sinceStart + ": nothing was observed in the run")
	}
	p99 := func(name string, h Hist) {
		reason := why(h)
		if a.Hist[h].OK && len(a.Hist[h].Counts) == 0 {
			reason = "the page has no histogram of it"
		}
		q.put(name, "s", a.P99(h), Measured, reason)
		switch bucket := a.Hist[h].Bucket(0.99); {
		case a.Hist[h].Overflows(0.99):
			q.list[len(q.list)-1].AtLeast = true
			q.note("in the overflow bucket: above the page's last bound")
		case bucket.Width() > 0:
			q.list[len(q.list)-1].Bucket = bucket
			q.note("bucket width " + formatSeconds(bucket.Width()))
		}
	}
	// Pages before vLLM 0.11 have no time per output token of whole requests. An
	// inter-token latency stands in, with a note.
	fallback := func() {
		if name := a.HistNames[HistTPOT]; name != "" && !strings.Contains(name, "request_time_per_output_token") {
			q.note("from time_per_output_token_seconds, which is an inter-token latency")
		}
	}
	mean("ttft_mean_s", HistTTFT)
	p99("ttft_p99_s", HistTTFT)
	mean("tpot_mean_s", HistTPOT)
	fallback()
	p99("tpot_p99_s", HistTPOT)
	fallback()
	mean("itl_mean_s", HistITL)
	p99("itl_p99_s", HistITL)
	mean("e2e_mean_s", HistE2E)
	if e2e, ttft := a.Mean(HistE2E), a.Mean(HistTTFT); e2e.OK && e2e.V < ttft.V {
		q.note(ofEnded + ": less than the mean time to first token, which more requests had")
	}
	mean("queue_mean_s", HistQueue)
	// By Little's law as many wait as arrive while one waits. The gauge does not show a wait of a step.
	rate, wait := a.Rate[CounterRequestSuccess], a.Mean(HistQueue)
	if implied := wait.Times(rate.Or(0)); implied.Or(0) >= leastQueued && a.Waiting.OK && a.Waiting.V < implied.V/4 && wait.V > 2*a.StepTime.Or(0) {
		q.note(ofBefore + ": at " + figure.Show(rate, "req/s") + " this wait would mean " + figure.Count(implied.V) + " waiting, and " + figure.Count(a.Waiting.V) + " wait")
	}
	mean("prefill_mean_s", HistPrefill)
	mean("decode_mean_s", HistDecode)
	front, absent := a.frontEnd()
	q.put("front_end_mean_s", "s", front, Derived, a.whenWorking(absent))
	lost, absent := a.preemptionLost()
	q.put("preemption_lost_s", "s", lost, Derived, a.whenWorking(absent))
}

// leastQueued is the number of waiting requests from which a queue time that the gauge does not show is marked.
const leastQueued = 1.0

// frontEnd returns the time a request spent outside the engine, in seconds; see OutsideEngine.
// On pages that lack one of its histograms, TTFT minus queue and prefill stands in. TTFT is
// observed at the first token and the others at the end, so in a short run they may describe
// different requests. A negative difference is treated as absent.
func (a *Aggregate) frontEnd() (stat.Opt, string) {
	d, _ := OutsideEngine(&a.Hist)
	if !d.OK {
		ttft, queue, prefill := a.Mean(HistTTFT), a.Mean(HistQueue), a.Mean(HistPrefill)
		if !ttft.OK || !queue.OK || !prefill.OK {
			return stat.None, "needs end-to-end, queue and inference times of finished requests"
		}
		d = stat.Some(ttft.V - queue.V - prefill.V)
	}
	if d.V < 0 {
		return stat.None, "its parts are of different requests in so short a run"
	}
	return d, ""
}

// preemptionLost returns the mean time a request lost to preemption, in seconds: its decode
// time minus one engine step for each token after the first. It is 0 if nothing was preempted,
// and absent if steps are not counted.
func (a *Aggregate) preemptionLost() (stat.Opt, string) {
	preempted := a.Rate[CounterPreemptions]
	if !preempted.OK {
		return stat.None, "the page has no preemption counter"
	}
	if preempted.V == 0 {
		return stat.Some(0), ""
	}
	decode, out, steps := a.Mean(HistDecode), a.Mean(HistGenerationTokens), a.CountedStep
	if !decode.OK || !out.OK || !steps.OK || out.V <= 1 {
		return stat.None, "needs decode times, output lengths and counted steps"
	}
	lost := decode.V - (out.V-1)*steps.V
	if lost < 0 {
		return stat.None, "too small to tell from noise"
	}
	return stat.Some(lost), ""
}

func (a *Aggregate) hardware(q *quantities, why string) {
	why = cmp.Or(why, whyNoGPU)
	fullest, limit, throttled := -1, stat.None, stat.None
	var temperature, clock stat.Opt
	for i := range a.GPUs {
		g := &a.GPUs[i]
		limit = limit.Plus(g.Last[GPUPowerLimitW])
		temperature = temperature.Max(g.Last[GPUTemperatureC])
		if c := g.Last[GPUSMClockMHz]; c.OK && (!clock.OK || c.V < clock.V) {
			clock = c
		}
		if g.ThrottleOK {
			throttled = stat.Some(throttled.Or(0))
			if g.Throttle&catalog.Harmful != 0 {
				throttled = stat.Some(1)
			}
		}
		u, t := g.Last[GPUVRAMUsed], g.Last[GPUVRAMTotal]
		if u.OK && t.OK && t.V > 0 && (fullest < 0 || u.V/t.V > a.GPUs[fullest].Last[GPUVRAMUsed].V/a.GPUs[fullest].Last[GPUVRAMTotal].V) {
			fullest = i
		}
	}
	var total, used, top stat.Opt
	if fullest >= 0 {
		g := &a.GPUs[fullest]
		total, used, top = g.Last[GPUVRAMTotal], g.Last[GPUVRAMUsed], g.Peak[GPUVRAMUsed]
	}
	put := func(name, unit string, v stat.Opt, of string) {
		q.put(name, unit, v, Measured, why)
		if len(a.GPUs) > 1 {
			q.note(of)
		}
	}
	put("gpu_util", "ratio", a.GPUUtil, "mean of all GPUs")
	put("mem_util", "ratio", a.MemUtil, "mean of all GPUs")
	put("dram_util", "ratio", a.DRAMUtil, "mean of all GPUs")
	put("power_w", "W", a.Power, "sum of all GPUs")
	put("power_limit_w", "W", limit, "sum of all GPUs")
	put("throttled", "bool", throttled, "any GPU, at any poll")
	put("vram_total_bytes", "B", total, "the fullest GPU")
	put("vram_used_bytes", "B", used, "the fullest GPU")
	put("vram_peak_bytes", "B", top, "the fullest GPU")
	put("temperature_c", "C", temperature, "the hottest GPU")
	q.note("last poll")
	put("sm_clock_mhz", "MHz", clock, "the slowest GPU")
	q.note("last poll")
}

// perOutput says what the cost of a token is divided by.
const perOutput = "of output tokens: it is high where prompts are most of the work"

func (a *Aggregate) economy(q *quantities, r *Run, f *Facts) {
	powerWhy := "needs generated tokens and the power of every GPU"
	if len(a.GPUs) == 0 {
		powerWhy = whyNoGPU
	}
	var cost stat.Opt
	from, why := Derived, "no price is known: give --cost-per-hour"
	if f.CostPerHour.Known {
		cost, why = stat.Some(f.CostPerHour.Value), "no token was generated"
		if f.CostEst {
			from = Estimate
		}
	}
	e := roofline.NewEconomics(a.Rate[CounterGenerationTokens], a.Power, cost)
	q.put("tokens_per_watt", "tok/s/W", e.TokensPerWatt, Derived, powerWhy)
	q.put("joules_per_token", "J", e.JoulesPerToken, Derived, powerWhy)
	q.note(perOutput)
	q.put("usd_per_million_tokens", "USD", e.USDPerMillionTokens, from, why)
	q.note(perOutput)
	var recoverable stat.Opt
	if r.Ceiling != nil && r.Ceiling.Classic != nil {
		recoverable = r.Ceiling.Classic.RecoverableUSDPerHour
	}
	q.put("recoverable_usd_per_hour", "USD/h", recoverable, Estimate, "needs a price and the PROFILE efficiency")
	if recoverable.OK {
		q.note("PROFILE formula: cost x (1 - PROFILE efficiency); not what a change is predicted to save")
	}
}

// extra adds the quantities that are not part of the documented interface.
func (a *Aggregate) extra(q *quantities, windows []Window, f *Facts) {
	page, cached := a.whenWorking(whyNoPage), a.whenWorking("which prompt tokens were cached is not known")
	q.put("output_tokens_mean", "tok", a.OutputLen, Measured, whyNoFinish)
	q.put("waiting_deferred_mean", "req", a.Deferred, Measured, page)
	var swapped, cpuKV stat.Average
	for i := range windows {
		if w := &windows[i]; w.Active {
			swapped.Add(w.Swapped, w.Seconds())
			cpuKV.Add(w.CPUKV, w.Seconds())
		}
	}
	noSwap, noCPUKV := "only the V0 engine swaps", "only the V0 engine has it"
	if e := f.Dialect(); e.ID != catalog.VLLM {
		noSwap = e.Name + " does not swap"
		noCPUKV = noSwap
	}
	q.put("swapped_mean", "req", swapped.Mean(), Measured, noSwap)
	q.put("cpu_kv_usage_mean", "ratio", cpuKV.Mean(), Measured, noCPUKV)
	q.put("external_hit_rate", "ratio", a.ExternalHit, Measured, "no KV connector in use")
	q.put("lookup_ratio", "ratio", a.LookupRatio, Derived, "needs prefix-cache lookups and prompt tokens")
	q.put("prefill_tokens_per_s", "tok/s", a.PrefillPerS, Derived, cached)
	q.put("prefill_share", "ratio", a.PrefillShare, Derived, whyNoFinish)
	if a.PrefillShare.OK {
		q.note("of a request's time in the engine")
	}
	q.put("total_generation_tokens", "tok", a.Totals[CounterGenerationTokens], Measured, whyNoPage)
	q.put("total_requests", "req", a.Totals[CounterRequestSuccess], Measured, whyNoPage)
	var hottest stat.Opt
	for i := range a.GPUs {
		hottest = hottest.Max(a.GPUs[i].Peak[GPUTemperatureC])
	}
	q.put("temperature_peak_c", "C", hottest, Measured, whyNoGPU)
	q.put("api_server_cpu", "cores", a.Rate[CounterProcessCPUSeconds], Measured, page)
	q.put("http_4xx_per_s", "1/s", a.Rate[CounterHTTP4xx], Measured, page)
	q.put("rejections_per_s", "1/s", a.Rate[CounterAdmissionRejections], Measured, "no admission limit refused anything, or this release has none")
	q.put("http_5xx_per_s", "1/s", a.Rate[CounterHTTP5xx], Measured, page)
	q.put("spec_acceptance", "ratio", a.Rate[CounterSpecAccepted].Div(a.Rate[CounterSpecDraftTokens]), Derived, "no speculative decoding")
}
