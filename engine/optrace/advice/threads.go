package advice

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// atPeak is the share of the measured read bandwidth from which decode counts as at the
	// peak. The peak is a plain streaming read; kernels that also unpack weights and write
	// results stay some 10 % below it, and a peak measured in a few seconds is known within
	// about 5 %.
	atPeak = 0.85
	// abovePeak is the share above which the bytes cannot come from memory: the weights are in
	// the caches, and the memory's peak does not apply.
	abovePeak = 1.15
	// boundShare is the share of the decode time that memory-bound operators must have.
	boundShare = 0.6
	// samePeak is the share of the bandwidth above which fewer threads read as much.
	samePeak = 0.97
	// kernelShare is the share of one thread's streaming rate at which a kernel that unpacks
	// quantised weights reads: fewer threads must still be able to saturate the memory. One
	// thread of llama.cpp v0.5.0 read 20 GB/s of q4_0 and 22 of q8_0 where 37 can be streamed
	// (Zen 5, measured); this is the conservative side.
	kernelShare = 0.45
	// computeRoom is the share of the machine's rate of operations above which fewer
	// threads would be bound by computing: kernels reach half of the rate of bare
	// multiply-adds.
	computeRoom = 0.5
	// mostSyncFreed caps the gain of fewer threads from shorter waits.
	mostSyncFreed = 0.2
)

// memoryBoundAtPeak returns the rate of decode and the memory's peak, in bytes per second, and
// whether decode is bound by memory and at that peak.
func (v *subject) memoryBoundAtPeak() (achieved, peak float64, ok bool) {
	achieved, peak, ok = v.OfPeak()
	if !ok || achieved < atPeak*peak || achieved > abovePeak*peak {
		return 0, 0, false
	}
	return achieved, peak, v.MemoryShare().Or(0) >= boundShare
}

// tooManyThreads is the id of the finding of more threads than memory can feed.
const tooManyThreads = "too-many-threads"

// findManyThreads finds a decode that fills the memory with more threads than it needs.
func findManyThreads(v *subject) *cause {
	achieved, peak, ok := v.memoryBoundAtPeak()
	if !ok || v.ThreadCount < 2 || !v.Decode.FlopsRate.OK {
		return nil
	}
	fewer, ok := v.fewerThreads(achieved, peak)
	if !ok {
		return nil
	}
	threads := figure.Counted(fewer.Threads, "thread")
	c := newCause(severityWarn, "More threads than the memory can feed", stat.None, v.readsAtPeak(achieved, peak),
		fmt.Sprintf("With %s it reads %s: as much.", threads, figure.Value(fewer.BytesPerSecond, "B/s")), v.memoryBoundShare())
	c.remedy = v.setting(optThreads, strconv.Itoa(fewer.Threads), remedy{
		do:    fmt.Sprintf("Run %s instead of %d for decoding.", threads, v.ThreadCount),
		why:   fmt.Sprintf("Decode waits for memory, and %s read it as fast. This leaves CPUs to other programs, and barriers wait for fewer threads.", threads),
		price: "computing bounds prefill: keep its threads (llama.cpp: --threads-batch " + strconv.Itoa(v.ThreadCount) + ")",
		gain:  gainOf(-worthwhile, 0, worthwhile),
	})
	if s := v.Barriers(); s.OK {
		c.Cost = stat.Some(s.Mean)
		// With fewer threads, waits shrink to nothing at most, and not at all at least.
		top := min(freed(s.Mean), mostSyncFreed)
		c.remedy.gain = gainOf(-worthwhile, top*(1-float64(fewer.Threads)/float64(v.ThreadCount))/2, top)
	}
	return c
}

// fewerThreads returns the least number of threads that was measured to read as much and can
// also unpack and compute as much; false if there is none.
func (v *subject) fewerThreads(achieved, peak float64) (optrace.PeakPoint, bool) {
	one, ok := v.PeakPoint(1)
	if !ok {
		return optrace.PeakPoint{}, false
	}
	least := int(math.Ceil(achieved / (kernelShare * one.BytesPerSecond)))
	for _, p := range v.Peak.ByThreads {
		if p.Threads >= v.ThreadCount {
			break
		}
		// The rate of f32 is the lower of the two rates of operations.
		if p.Threads >= least && p.BytesPerSecond >= samePeak*peak && p.FlopsPerSecond > 0 && v.Decode.FlopsRate.V <= computeRoom*p.FlopsPerSecond {
			return p, true
		}
	}
	return optrace.PeakPoint{}, false
}

const (
	// busyThreads is the least share of the time of graphs that threads compute, and
	// waitingThreads the largest that they wait: more threads help those that compute.
	busyThreads    = 0.85
	waitingThreads = 0.10
	// moreGain is the predicted gain from which more threads are advised: the prediction from
	// the peak of more threads is an upper bound.
	moreGain = 0.25
	// expectedOfGain and leastOfGain are the assumed shares of the predicted gain that are
	// expected, and the least: every barrier waits for more threads, and clocks fall with busy
	// cores.
	expectedOfGain = 0.7
	leastOfGain    = 0.3
)

// findFewThreads finds threads that compute all the time, below the memory's peak, while
// CPUs that would help are idle. It needs the machine's rates with more threads: two logical
// CPUs of one core do not compute twice as much.
func findFewThreads(v *subject) *cause {
	achieved, peak, ok := v.OfPeak()
	busy, sync, off := v.Busy(), v.Barriers(), v.Off()
	switch {
	case v.ThreadCount > 1 && !sync.OK, !off.OK:
		return nil // waits, for other threads or for a CPU, look like computing
	case !ok || v.ThreadCount < 1 || achieved > abovePeak*peak || !busy.OK || busy.Mean < busyThreads || sync.Mean > waitingThreads || off.Mean > evidence.PreemptedLimit:
		return nil
	}
	here, _ := v.PeakPoint(v.ThreadCount)
	more, predicted := v.moreThreads(here, achieved)
	// Operators that neither memory nor computing bounds, such as small ones, do not get faster
	// with more threads.
	scales := v.judgedShare()
	predicted = 1 / (1 - scales + scales/max(predicted, 1))
	g := predicted - 1
	if g < moreGain || v.othersShare() > evidence.PreemptedLimit {
		return nil
	}
	c := newCause(severityWarn, "CPUs that could compute are idle", stat.Some(1-1/predicted),
		fmt.Sprintf("%s compute for %s of the time of graphs; the target may use %s.", figure.Counted(v.ThreadCount, "thread"), figure.PercentSign(busy.Mean), figure.Counted(v.Target.CPUs, "CPU")),
		fmt.Sprintf("Decode reads %s. This machine reads %s with %s and %s with %d (%s).", figure.Value(achieved, "B/s"), figure.Value(here.BytesPerSecond, "B/s"), figure.Counted(v.ThreadCount, "thread"), figure.Value(more.BytesPerSecond, "B/s"), more.Threads, v.Peak.Origin()))
	c.remedy = v.setting(optThreads, strconv.Itoa(more.Threads), remedy{
		do:    fmt.Sprintf("Run %d threads instead of %d.", more.Threads, v.ThreadCount),
		why:   fmt.Sprintf("The present threads compute all the time, and decode reads %s of what memory delivers to %d.", figure.PercentSign(achieved/more.BytesPerSecond), more.Threads),
		price: "fewer CPUs for other programs; on a busy machine too many threads are slower than too few",
		gain:  gainOf(leastOfGain*g, expectedOfGain*g, g),
	})
	return c
}

// moreThreads returns the least number of threads that comes near the best prediction, with
// that prediction. The speedup is that of the machine's arithmetic with more threads, up to
// what its memory allows, of which the threads get their present share, and atPeak at least. It
// returns 0 if there is no prediction.
func (v *subject) moreThreads(here optrace.PeakPoint, achieved float64) (optrace.PeakPoint, float64) {
	if here.FlopsPerSecond <= 0 {
		return optrace.PeakPoint{}, 0
	}
	share := max(atPeak, achieved/here.BytesPerSecond)
	predict := func(p optrace.PeakPoint) float64 {
		if p.Threads <= v.ThreadCount || p.Threads > v.Target.CPUs || p.FlopsPerSecond <= 0 || p.BytesPerSecond <= 0 {
			return 0
		}
		return min(p.FlopsPerSecond/here.FlopsPerSecond, share*p.BytesPerSecond/achieved)
	}
	best := 0.0
	for _, p := range v.Peak.ByThreads {
		best = max(best, predict(p))
	}
	for _, p := range v.Peak.ByThreads {
		if g := predict(p); g > 0 && g >= samePeak*best {
			return p, g
		}
	}
	return optrace.PeakPoint{}, 0
}

// judgedShare returns the share of the decode time in operators that memory or computing
// bounds.
func (v *subject) judgedShare() float64 {
	sum := 0.0
	for k := range v.DecodeKinds() {
		if k.Bound == optrace.BoundMemory || k.Bound == optrace.BoundCompute || k.Bound == optrace.BoundMixed {
			sum += k.Share.Or(0)
		}
	}
	return min(sum, 1)
}

// othersShare returns the share of the threads' CPU time that other processes took.
func (v *subject) othersShare() float64 {
	sum := 0.0
	for _, o := range v.Takers() {
		sum += o.Share.Or(0)
	}
	return sum
}
