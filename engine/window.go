package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// RankWindow is the activity of one data-parallel rank in a window.
type RankWindow struct {
	Name       string
	Running    stat.Opt // mean over the polls
	Waiting    stat.Opt // mean over the polls
	KVPeak     stat.Opt // ratio, maximum over the polls
	MaxNumSeqs stat.Opt // the slots gauge, if the page has one
	Generation stat.Opt // increase of output tokens
	StepsPerS  stat.Opt // engine steps with output per second
	// Stall and LongestStep are those of the window, for this rank.
	Stall       time.Duration
	LongestStep time.Duration
	// Untouched marks a rank on which nothing has run since the server's start: its gauges are
	// missing from the page and known to be 0.
	Untouched bool
}

// GPUWindow is the activity of one device in a window.
type GPUWindow struct {
	Index      int
	Name, UUID string
	Mean       [NumGPUFields]stat.Opt // over the polls
	Last       [NumGPUFields]stat.Opt // last poll
	Peak       [NumGPUFields]stat.Opt // maximum over the polls
	Throttle   uint64                 // union of the reasons of all polls
	ThrottleOK bool
}

// LoRAWindow counts the LoRA adapters of a window's requests; all are absent without LoRA.
type LoRAWindow struct {
	Max     stat.Opt // adapters that one step takes, last poll
	Running stat.Opt // adapters of the running requests, mean over the polls
	Waiting stat.Opt // adapters of waiting requests that no running request uses, mean
	Wanted  stat.Opt // adapters of all requests, maximum over the polls
}

// Window covers about two seconds of polls (9 polls, 8 gaps). The last poll of one window is
// the first of the next, so no event is lost. Deltas run from the first to the last good page.
type Window struct {
	Index    int
	Start    time.Duration // completion of the first good page
	Duration time.Duration // first to last good page; 0 with fewer than two
	Polls    int           // good pages
	Failed   int           // failed scrapes
	LastErr  string        // error of the last failed scrape
	Missed   int           // ticks that rooftop missed

	Evaluable bool // tier 1: positive duration and a running gauge
	Active    bool // tier 2: the server was doing real work
	Restarted bool // the server restarted within the window: every delta is absent
	// AfterRestart marks a restart in the gap just before the window.
	AfterRestart bool
	Why          string // why the window is not evaluable

	Running     stat.Opt // requests, mean over the polls, all ranks
	RunningPeak stat.Opt
	RunningMin  stat.Opt
	// RunningMedian is the median over the polls. Requests of equal length that started
	// together end together: a poll right after that sees an almost empty batch, which moves
	// the mean but says nothing about the slots.
	RunningMedian stat.Opt
	// Occupied is the mean number of occupied slots of all ranks by Little's law, over this window
	// and as many before it as it needs; absent if too few requests finished for it.
	Occupied    stat.Opt
	Waiting     stat.Opt // mean over the polls
	WaitingPeak stat.Opt
	Deferred    stat.Opt // of the waiting, those not waiting for capacity; mean
	LoRAs       LoRAWindow
	Swapped     stat.Opt
	KV          stat.Opt // ratio, mean over the polls (and over ranks)
	KVPeak      stat.Opt // ratio, maximum over the polls, fullest rank
	KVLast      stat.Opt // ratio, last poll
	CPUKV       stat.Opt
	Asleep      bool // asleep or paused at any poll

	Rate      [NumCounters]stat.Opt // per second; absent if the counter fell
	Delta     [NumCounters]stat.Opt // increase in the window; absent if the counter fell
	Hist      [NumHists]stat.Delta  // increase in the window
	HistNames [NumHists]string      // wire names; a fallback has another meaning
	// Lifetime is the cumulative mean since the server's start, from the last page: the
	// documented fallback if nothing completed in the window. It is never pooled with window
	// means.
	Lifetime [NumHists]stat.Opt
	Last     [NumCounters]stat.Opt // totals on the last page

	// Progress reports whether a number that an engine step moves changed within the window.
	// Stall is the time up to the window's end with requests in the server and no progress,
	// reaching back over earlier windows. LongestStep is the longest such time in the run so
	// far that ended with progress: an upper bound on the longest step.
	Progress    bool
	Stall       time.Duration
	LongestStep time.Duration
	// Dead is the time up to the window's end for which the health readings failed without any
	// progress, 0 if they do not; HealthWhy is what the latest reading found wrong.
	Dead      time.Duration
	HealthWhy string
	// Answers are the HTTP requests answered in the latest windows, without client errors, and
	// those among them answered with a 5xx error that was no refusal by an admission limit.
	// Finishes are the requests that the engine finished, and those with an error.
	Answers, Finishes Endings

	PrefixGauge stat.Opt // V0: hit-rate gauge at the last poll, 0..1

	Ranks []RankWindow
	GPUs  []GPUWindow

	// Scalars over GPUs: power summed, utilization averaged, VRAM of the fullest GPU.
	GPUUtil   stat.Opt // mean over GPUs
	GPUBusy   stat.Opt // of the busiest GPU, which decides whether the server is working
	MemUtil   stat.Opt
	DRAMUtil  stat.Opt
	Power     stat.Opt // W, all GPUs
	VRAMUsed  stat.Opt // bytes, fullest GPU, last poll
	VRAMPeak  stat.Opt // bytes, fullest GPU
	VRAMTotal stat.Opt // bytes, of that GPU
	// Skewed marks a page and a GPU reading more than a second apart: rules that combine both
	// sources are disabled. A missing GPU is not a skew.
	Skewed bool

	StepTime    stat.Opt // s, mean engine step while busy
	CountedStep stat.Opt // s, from the step counter alone, if a batch ran throughout
}

// Seconds returns the window's duration in seconds.
func (w *Window) Seconds() float64 { return w.Duration.Seconds() }

// End returns the end of the window, since the start of the session.
func (w *Window) End() time.Duration { return w.Start + w.Duration }

// Mean returns the mean of a histogram over the window; there is no lifetime fallback.
func (w *Window) Mean(h Hist) stat.Opt { return w.Hist[h].Mean() }
