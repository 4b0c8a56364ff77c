package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Aggregate combines the windows of a run. Each field counts certain windows: active (the
// server was working), evaluable (it answered) or all.
type Aggregate struct {
	Windows WindowCounts
	// Working is the number of windows behind the fields of active windows. It is
	// Windows.Active or, if Light is set, the number of windows in which tokens moved: the
	// load was too light for any window to count as active.
	Working int
	Light   bool
	Seconds float64 // of these windows
	Ranks   int     // data-parallel ranks on the page, at least 1

	// Active windows, time-weighted.
	Running  stat.Opt // requests
	Waiting  stat.Opt // requests
	Deferred stat.Opt
	Rate     [NumCounters]stat.Opt // per second
	GPUUtil  stat.Opt
	MemUtil  stat.Opt
	DRAMUtil stat.Opt
	Power    stat.Opt // W, all GPUs

	// Active windows, pooled by observation.
	Hist      [NumHists]stat.Delta
	HistNames [NumHists]string // wire names in the last evaluable window
	// Lifetime is the mean since the server's start, from the last page. It is used, and
	// labelled, only if no window has an observation.
	Lifetime [NumHists]stat.Opt

	// Evaluable windows.
	KV     stat.Opt // time-weighted mean, ratio
	KVPeak stat.Opt // at least the last poll's value
	// KVPerRequest is the share of one rank's pool that a running request holds, 0..1, with
	// usage and running requests from the same windows.
	KVPerRequest stat.Opt
	PromptLen    stat.Opt // mean prompt tokens of requests finished in any evaluable window
	OutputLen    stat.Opt // mean generated tokens, likewise
	VRAMPeak     stat.Opt
	GPUs         []GPUSummary

	// HitRate is the prefix-cache hit rate 0..1 over evaluable windows. It is absent, with
	// HitRateReason, if there were no queries or the counters are inflated (docs/vllm.md
	// 5.3). HitRateFrom names the counters used.
	HitRate       stat.Opt
	HitRateFrom   string
	HitRateReason string
	// LookupRatio is prefix queries per prompt token: 1 when healthy, far above when
	// admissions are blocked.
	LookupRatio stat.Opt
	ExternalHit stat.Opt // external (connector) hit rate, 0..1

	// PrefillPerS is computed (not cached) prompt tokens per second over active windows. It
	// is absent if the hit counters are unreliable.
	PrefillPerS stat.Opt
	// PrefillShare is prefill seconds of finished requests over prefill plus
	// decode seconds, 0..1.
	PrefillShare stat.Opt
	// PrefillMost is an upper bound, 0..1, of the share of the engine's time that prefill takes: prefill
	// seconds of finished requests per second and rank, which overlap, or the share of computed prompt
	// tokens among these and the generated ones, if that is less, steps have both, and prompts are about
	// equally long. A prompt's token then takes no longer than a generated one: both pass through all
	// weights, and the latter attends to a longer context.
	PrefillMost stat.Opt

	StepTime       stat.Opt // s, mean engine step while busy, per rank
	StepTimeOrigin Origin
	StepTimeFrom   string // the source, in words
	// CountedStep is the mean step in seconds from the engine's own step counter. A request
	// that waits after a preemption does not lengthen it.
	CountedStep stat.Opt

	// All windows.
	Totals       [NumCounters]stat.Opt // at the last collected window
	Missed       int                   // ticks that rooftop missed
	Ticks        int                   // ticks due
	Failed       int                   // scrapes that failed
	LastErr      string                // error of the last failed scrape
	Restarts     int
	LongestStall time.Duration // longest time with requests in the server and no progress
}

// P99 returns the 0.99 quantile of a histogram over the active windows, from
// merged bucket deltas.
func (a *Aggregate) P99(h Hist) stat.Opt { return a.Hist[h].Quantile(0.99) }

// Mean returns the pooled mean of a histogram over the active windows.
func (a *Aggregate) Mean(h Hist) stat.Opt { return a.Hist[h].Mean() }
