package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// RankWindow is what a window says of one data-parallel rank.
type RankWindow struct {
	Name       string
	Running    stat.Opt // mean over the polls
	Waiting    stat.Opt // mean over the polls
	KVPeak     stat.Opt // ratio, maximum over the polls
	MaxNumSeqs stat.Opt // the seats gauge where the page has one
	Generation stat.Opt // output tokens gained
	StepsPerS  stat.Opt // engine steps with output per second
	// Untouched says that nothing ran on the rank since the server started: its
	// gauges are not on the page and known to be 0.
	Untouched bool
}

// GPUWindow is what a window says of one device.
type GPUWindow struct {
	Index      int
	Name, UUID string
	Mean       [NumGPUFields]stat.Opt // over the polls
	Last       [NumGPUFields]stat.Opt // last poll
	Peak       [NumGPUFields]stat.Opt // maximum over the polls
	Throttle   uint64                 // reasons seen at any poll
	ThrottleOK bool
}

// Window is about two seconds of polls (9 polls, 8 gaps; the last poll of one
// window is the first of the next, so no event is lost). Deltas run from the
// first to the last good page.
type Window struct {
	Index    int
	Start    time.Duration // first good page's completion
	Duration time.Duration // first to last good page; 0 where there are not two
	Polls    int           // good pages
	Failed   int           // scrapes that failed in it
	LastErr  string        // why the last of them did
	Missed   int           // ticks that rooftop itself missed

	Evaluable bool // tier 1: positive duration and a running gauge
	Active    bool // tier 2: the server was doing real work
	Restarted bool // the server restarted inside it: every delta is absent
	// AfterRestart says that the server restarted in a gap just before it.
	AfterRestart bool
	Why          string // why it is not evaluable

	Running     stat.Opt // requests, mean over the polls, all ranks
	RunningPeak stat.Opt
	RunningMin  stat.Opt
	// RunningMedian is the middle poll's value. Requests of equal length that
	// started together end together: a poll right after sees an almost empty
	// batch, which moves the mean and says nothing about the seats.
	RunningMedian stat.Opt
	Waiting       stat.Opt // mean over the polls
	WaitingPeak   stat.Opt
	Deferred      stat.Opt // of the waiting, not for capacity; mean
	Swapped       stat.Opt
	KV            stat.Opt // ratio, mean over the polls (and over ranks)
	KVPeak        stat.Opt // ratio, maximum over the polls, fullest rank
	KVLast        stat.Opt // ratio, last poll
	CPUKV         stat.Opt
	Asleep        bool // asleep or paused at any poll

	Rate      [NumCounters]stat.Opt // per second; absent on a fall
	Delta     [NumCounters]stat.Opt // gained in the window; absent on a fall
	Hist      [NumHists]stat.Delta  // gained in the window
	HistNames [NumHists]string      // wire names they came from: a fallback has another meaning
	// Lifetime is the cumulative mean at the last page, the documented fallback
	// where nothing completed in the window. It is "since start": it is never
	// pooled with window means.
	Lifetime [NumHists]stat.Opt
	Last     [NumCounters]stat.Opt // raw totals at the last page

	// Progress says that a token or step counter moved inside the window. Stall
	// is how long, at its end, requests had been in and none had moved (reaching
	// back over earlier windows); LongestStep is the longest such time so far in
	// the run that ended with progress, an upper bound on the longest step.
	Progress    bool
	Stall       time.Duration
	LongestStep time.Duration
	PrefixGauge stat.Opt // V0: hit-rate gauge at the last poll, 0..1

	Ranks []RankWindow
	GPUs  []GPUWindow

	// Scalars over GPUs: power summed, utilisation mean, VRAM the fullest GPU.
	GPUUtil   stat.Opt // mean over GPUs
	GPUBusy   stat.Opt // the busiest GPU's, which decides whether the server works
	MemUtil   stat.Opt
	DRAMUtil  stat.Opt
	Power     stat.Opt // W, all GPUs
	VRAMUsed  stat.Opt // bytes, fullest GPU, last poll
	VRAMPeak  stat.Opt // bytes, fullest GPU
	VRAMTotal stat.Opt // bytes, of that GPU
	// Skewed says that page and GPU were read more than a second apart: rules
	// that join both sources are switched off. No GPU is not skew.
	Skewed bool

	// StepTime is the mean engine step while busy, in seconds, with what it was
	// taken from: "steps" (iteration count), "itl" or "rate" (running/generation).
	StepTime     stat.Opt
	StepTimeFrom string
	CountedStep  stat.Opt // from the step counter alone, while a batch ran throughout
}

// Seconds returns the window's duration in seconds.
func (w *Window) Seconds() float64 { return w.Duration.Seconds() }

// QueueRatio returns waiting/(running+waiting), 0..1; absent without both or
// with neither.
func (w *Window) QueueRatio() stat.Opt {
	if !w.Running.OK || !w.Waiting.OK {
		return stat.None
	}
	return w.Waiting.Div(w.Running.Plus(w.Waiting))
}

// Mean returns the mean of a histogram over the window, without a fallback.
func (w *Window) Mean(h Hist) stat.Opt { return w.Hist[h].Mean() }
