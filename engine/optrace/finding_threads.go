package optrace

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// atRoof is the share of the measured read bandwidth from which on decode is said to
	// be at the roof. The roof is a plain streaming read; kernels that also unpack
	// weights and write results stay some 10 % below it, and a roof of a few seconds is
	// known within about 5 %.
	atRoof = 0.85
	// aboveRoof is where the figure cannot be memory's any more: the weights lie in the
	// caches, and the roof of memory says nothing.
	aboveRoof = 1.15
	// boundShare is the share of the decode time that memory-bound operators must have.
	boundShare = 0.6
	// sameRoof is the bandwidth of fewer threads that is still the same one.
	sameRoof = 0.97
	// kernelShare is how much of what one thread can stream a kernel that unpacks
	// quantised weights reads: fewer threads must still be able to fill the memory. One
	// thread of llama.cpp v0.5.0 read 20 GB/s of q4_0 and 22 of q8_0 where 37 can be
	// streamed (Zen 5, measured); the careful side of that.
	kernelShare = 0.45
	// computeRoom is the share of the machine's rate of operations above which fewer
	// threads would be bound by computing: kernels reach half of the rate of bare
	// multiply-adds.
	computeRoom = 0.5
	// mostSyncFreed caps what fewer threads can gain by fewer waits.
	mostSyncFreed = 0.2
)

// memoryBoundAtRoof says that decode is bound by memory and reads it as fast as it is.
func (v *view) memoryBoundAtRoof() (achieved, roof float64, ok bool) {
	achieved, roof, ok = v.ofRoof()
	if !ok || achieved < atRoof*roof || achieved > aboveRoof*roof {
		return 0, 0, false
	}
	return achieved, roof, v.memoryShare().Or(0) >= boundShare
}

// findManyThreads is a decode that fills the memory with more threads than it needs.
func findManyThreads(v *view) (cause, bool) {
	achieved, roof, ok := v.memoryBoundAtRoof()
	if !ok || v.lanes < 2 || !v.decode.FlopsRate.OK {
		return cause{}, false
	}
	fewer, ok := v.fewerThreads(achieved, roof)
	if !ok {
		return cause{}, false
	}
	r := &remedy{
		kind: remedyFlag, do: fmt.Sprintf("Run %s instead of %d for decoding.", spellThreads(fewer.Threads), v.lanes),
		why:   fmt.Sprintf("Decode waits for memory, and %s read it as fast. The CPUs that become free are of use to others, and barriers wait for fewer threads.", spellThreads(fewer.Threads)),
		price: "prefill is bound by computing: keep its threads (llama.cpp: --threads-batch " + strconv.Itoa(v.lanes) + ")",
		gain:  gainOf(-worthwhile, 0, worthwhile),
	}
	r.flag, r.value = v.names.spell(optThreads, strconv.Itoa(fewer.Threads))
	r.why += v.names.aside()
	cost := stat.None
	if s := v.barriers(); s.ok {
		cost = stat.Some(s.mean)
		// Waits shrink with the threads at most to nothing, at least not at all.
		top := min(freed(s.mean), mostSyncFreed)
		r.gain = gainOf(-worthwhile, top*(1-float64(fewer.Threads)/float64(v.lanes))/2, top)
	}
	return cause{
		Finding: Finding{ID: "threads-above-memory-roof", Severity: severityWarn, Title: "More threads than the memory can feed", Cost: cost, Evidence: []string{
			fmt.Sprintf("Decode reads %s, %s of the %s that %s of this machine can read (%s).", spellScaled(achieved, "B/s"), spellPercent(achieved/roof), spellScaled(roof, "B/s"), spellThreads(v.lanes), v.Roof.Origin()),
			fmt.Sprintf("%s read %s: as much.", spellThreads(fewer.Threads), spellScaled(fewer.BytesPerSecond, "B/s")),
			fmt.Sprintf("Operators that memory bounds take %s of the decode time.", spellPercent(v.memoryShare().V)),
		}},
		remedy: r,
	}, true
}

// fewerThreads is the least number of threads that was measured to read as much and
// that can also unpack and compute as much.
func (v *view) fewerThreads(achieved, roof float64) (RoofPoint, bool) {
	one, ok := v.point(1)
	if !ok {
		return RoofPoint{}, false
	}
	least := int(math.Ceil(achieved / (kernelShare * one.BytesPerSecond)))
	for _, p := range v.Roof.ByThreads {
		if p.Threads >= v.lanes {
			break
		}
		// The rate of f32 is the lower of the two rates of operations.
		if p.Threads >= least && p.BytesPerSecond >= sameRoof*roof && p.FlopsPerSecond > 0 && v.decode.FlopsRate.V <= computeRoom*p.FlopsPerSecond {
			return p, true
		}
	}
	return RoofPoint{}, false
}

const (
	// busyLanes is the share of the time of graphs that lanes must compute, and
	// waitingLanes the share that they may wait: more threads help those that compute.
	busyLanes    = 0.85
	waitingLanes = 0.10
	// moreGain is the predicted gain from which on more threads are advised: what is
	// predicted from the roof of more threads is an upper end.
	moreGain = 0.25
	// Of the predicted gain this much is expected, and this much at least: every
	// barrier waits for more threads, and clocks fall with busy cores. Assumptions.
	expectedOfGain = 0.7
	leastOfGain    = 0.3
)

// findFewThreads is lanes that all compute, below the memory's roof, while CPUs that
// would do more are there. It needs the machine's rates with more threads: two logical
// CPUs of one core do not compute twice as much.
func findFewThreads(v *view) (cause, bool) {
	achieved, roof, ok := v.ofRoof()
	busy, sync, off := v.busy(), v.barriers(), v.off()
	if v.lanes > 1 && !sync.ok {
		return cause{}, false // waits that are not traced look like computing
	}
	if !off.ok {
		return cause{}, false // and so do threads that wait for a CPU: more of them would wait too
	}
	if !ok || v.lanes < 1 || achieved > aboveRoof*roof || !busy.ok || busy.mean < busyLanes || sync.mean > waitingLanes || off.mean > preemptedLimit {
		return cause{}, false
	}
	here, _ := v.point(v.lanes)
	more, predicted := v.moreThreads(here, achieved)
	// What neither memory nor computing holds up, such as starting small operators, takes
	// as long with more threads.
	scales := v.judgedShare()
	predicted = 1 / (1 - scales + scales/max(predicted, 1))
	if predicted-1 < moreGain || v.othersShare() > preemptedLimit {
		return cause{}, false
	}
	g := predicted - 1
	r := &remedy{
		kind: remedyFlag, do: fmt.Sprintf("Run %d threads instead of %d.", more.Threads, v.lanes),
		why:   fmt.Sprintf("The threads that there are compute all the time, and decode reads %s of what memory gives to %d.", spellPercent(achieved/more.BytesPerSecond), more.Threads),
		price: "the CPUs are no longer free for others; too many on a busy machine are slower than too few",
		gain:  gainOf(leastOfGain*g, expectedOfGain*g, g),
	}
	r.flag, r.value = v.names.spell(optThreads, strconv.Itoa(more.Threads))
	r.why += v.names.aside()
	evidence := []string{
		fmt.Sprintf("%s compute for %s of the time of graphs; the target may use %d CPUs.", spellThreads(v.lanes), spellPercent(busy.mean), v.Target.CPUs),
		fmt.Sprintf("Decode reads %s. This machine reads %s with %s and %s with %d (%s).", spellScaled(achieved, "B/s"), spellScaled(here.BytesPerSecond, "B/s"), spellThreads(v.lanes), spellScaled(more.BytesPerSecond, "B/s"), more.Threads, v.Roof.Origin()),
	}
	return cause{
		Finding: Finding{ID: "too-few-threads", Severity: severityWarn, Title: "CPUs that could compute are not used", Evidence: evidence, Cost: stat.Some(1 - 1/predicted)},
		remedy:  r,
	}, true
}

// moreThreads is the least number of threads that comes near the best prediction: as
// much faster as the machine multiplies faster with them, up to what its memory gives,
// of which they get the share that they get now, and atRoof at least.
func (v *view) moreThreads(here RoofPoint, achieved float64) (RoofPoint, float64) {
	if here.FlopsPerSecond <= 0 {
		return RoofPoint{}, 0
	}
	share := max(atRoof, achieved/here.BytesPerSecond)
	predict := func(p RoofPoint) float64 {
		if p.Threads <= v.lanes || p.Threads > v.Target.CPUs || p.FlopsPerSecond <= 0 || p.BytesPerSecond <= 0 {
			return 0
		}
		return min(p.FlopsPerSecond/here.FlopsPerSecond, share*p.BytesPerSecond/achieved)
	}
	best := 0.0
	for _, p := range v.Roof.ByThreads {
		best = max(best, predict(p))
	}
	for _, p := range v.Roof.ByThreads {
		if g := predict(p); g > 0 && g >= sameRoof*best {
			return p, g
		}
	}
	return RoofPoint{}, 0
}

// judgedShare is the share of the decode time in operators that memory or computing
// bounds.
func (v *view) judgedShare() float64 {
	sum := 0.0
	for i := range v.Kinds {
		k := &v.Kinds[i]
		if k.Phase == PhaseDecode.String() && (k.Bound == BoundMemory || k.Bound == BoundCompute || k.Bound == BoundMixed) {
			sum += k.Share.Or(0)
		}
	}
	return min(sum, 1)
}

// othersShare is what other processes had of the lanes' CPUs.
func (v *view) othersShare() float64 {
	sum := 0.0
	for _, o := range v.takers() {
		sum += o.Share.Or(0)
	}
	return sum
}
