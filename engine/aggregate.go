package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Aggregate combines the windows of a run. Which windows count for a field is
// part of its meaning: active (the server was working), evaluable (it
// answered) or all.
type Aggregate struct {
	Windows WindowCounts
	// Working is how many windows the figures of "active" windows are over. It is
	// Windows.Active, or with Light those in which tokens moved: at a load so
	// light that no window passes the documented gate.
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
	HistNames [NumHists]string // wire names, of the last evaluable window
	// Lifetime is the mean since the server's start at the last page, used and
	// labelled only where no window saw an observation.
	Lifetime [NumHists]stat.Opt

	// Evaluable windows.
	KV     stat.Opt // time-weighted mean, ratio
	KVPeak stat.Opt // at least the last landing value
	// KVPerRequest is the share of one rank's pool that a running request holds,
	// 0..1, over the same windows for both.
	KVPerRequest stat.Opt
	PromptLen    stat.Opt // mean prompt tokens of requests finished in any evaluable window
	OutputLen    stat.Opt // mean generated tokens, likewise
	VRAMPeak     stat.Opt
	GPUs         []GPUSummary

	// HitRate is the prefix-cache hit rate 0..1 over evaluable windows; absent
	// with HitRateReason where there were no queries or the counters are
	// inflated (vllm.md 5.3). HitRateFrom names the counters used.
	HitRate       stat.Opt
	HitRateFrom   string
	HitRateReason string
	// LookupRatio is prefix queries per prompt token: 1 when healthy, far above
	// where admissions are blocked.
	LookupRatio stat.Opt
	ExternalHit stat.Opt // external (connector) hit rate, 0..1

	// PrefillPerS is computed (not cached) prompt tokens per second over active
	// windows; absent where hits are unreliable.
	PrefillPerS stat.Opt
	// PrefillShare is prefill seconds of finished requests over prefill plus
	// decode seconds, 0..1.
	PrefillShare stat.Opt
	// PrefillBusy is prefill seconds of finished requests per second and rank: at
	// most that share of the time has a prefill in it. Prefills overlap, so it may
	// be above 1, and bounds nothing then.
	PrefillBusy stat.Opt

	StepTime     stat.Opt // s, mean engine step while busy, per rank
	StepTimeFrom string
	// CountedStep is the mean step from the engine's own step counter, in
	// seconds; it does not stretch when a request waits after a preemption.
	CountedStep stat.Opt

	// All windows.
	Totals       [NumCounters]stat.Opt // at the last collected window
	Missed       int                   // ticks rooftop itself missed
	Ticks        int                   // ticks due
	Failed       int                   // scrapes that failed
	LastErr      string                // why the last of them did
	Restarts     int
	LongestStall time.Duration // longest time in which requests were in and nothing moved
}

// P99 returns the 0.99 quantile of a histogram over the active windows, from
// merged bucket deltas.
func (a *Aggregate) P99(h Hist) stat.Opt { return a.Hist[h].Quantile(0.99) }

// Mean returns the pooled mean of a histogram over the active windows.
func (a *Aggregate) Mean(h Hist) stat.Opt { return a.Hist[h].Mean() }
