package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// What a bound was judged by.
const (
	FromCounters = "counters"
	FromRoofline = "roofline (est)"
	FromLanes    = "waits of its lanes"
)

// Limits by which counters tell what bounds an operator: ProfInfer, step 8 of its
// workflow (memory: fewer than one instruction a cycle and more than one miss of the
// last cache in a hundred instructions). For computing it says "more than 2.0 and a low
// rate of misses"; the limit of the rate is that of its example.
const (
	memoryIPC    = 1.0
	memoryMisses = 0.01
	computeIPC   = 2.0
	computeMiss  = 0.005
)

// nearRidge is how far from the ridge of a roofline an operator has to be to be bound by
// one thing: the rates of a roof are each known to about a tenth (runs of the same probe
// differ by that much), so their ratio is to about a quarter.
const nearRidge = 1.25

// farBelow is the share of the roof below which an operator is bound by neither side of
// it: what takes three times as long as the slower of moving and computing would is held
// up by something else, such as starting, waiting for single values of memory, or code
// without vector instructions. Kernels that unpack weights of four bits, which memory
// does hold up, reached 0.54 of what one thread could stream (Zen 5, measured).
const farBelow = 1.0 / 3

// mostlyIdle is the share of an operator's time, in the mean of its lanes, above which
// these waited for each other or were off their CPUs more than they computed: neither
// memory nor computing is then what it took its time for.
const mostlyIdle = 0.5

// counts are the counters of an operator's spans, added up over those that had them.
type counts struct {
	ipc   [2]float64 // instructions, cycles
	miss  [2]float64 // misses, instructions
	whole bool       // all three were there
}

// add adds a span's.
func (c *counts) add(s *Counted) {
	has := func(n Counter) bool { return s.Have&(1<<n) != 0 }
	value := func(n Counter) float64 { return float64(s.Value[n]) }
	if !has(Instructions) {
		return
	}
	if has(Cycles) {
		c.ipc[0] += value(Instructions)
		c.ipc[1] += value(Cycles)
	}
	if has(LLCMisses) {
		c.miss[0] += value(LLCMisses)
		c.miss[1] += value(Instructions)
	}
	c.whole = c.whole || has(Cycles) && has(LLCMisses)
}

// merge adds those of another.
func (c *counts) merge(d *counts) {
	for i := range c.ipc {
		c.ipc[i] += d.ipc[i]
		c.miss[i] += d.miss[i]
	}
	c.whole = c.whole || d.whole
}

// rates are instructions a cycle and misses of the last cache an instruction.
func (c *counts) rates() (ipc, misses stat.Opt) {
	if c.ipc[1] > 0 {
		ipc = finite(c.ipc[0] / c.ipc[1])
	}
	if c.miss[1] > 0 {
		misses = finite(c.miss[0] / c.miss[1])
	}
	return ipc, misses
}

// bound is what the counters say, unknown where not all three were read.
func (c *counts) bound() Bound {
	ipc, misses := c.rates()
	switch {
	case !c.whole || !ipc.OK || !misses.OK:
		return BoundUnknown
	case ipc.V < memoryIPC && misses.V > memoryMisses:
		return BoundMemory
	case ipc.V > computeIPC && misses.V < computeMiss:
		return BoundCompute
	}
	return BoundMixed
}

// unpacks is the share of the rate of f32 that a kernel which does nothing but unpack and
// multiply quantised weights is taken to reach: 0.31 with q8_0 (node-llama-cpp 3.22.1 on
// Zen 5, measured), and less with types that take tables to unpack; an assumption.
const unpacks = 0.25

// work is bytes and operations with weights of a type, and the time that they took.
type work struct {
	bytes, flops float64
	weights      string
	took         time.Duration
}

// work is what a group did, of the operators whose costs are known.
func (g *group) work() work {
	return work{g.cost.bytes, g.cost.flops, g.key.weights, g.cost.time}
}

// rates are bytes and operations in a second, 0 where no time passed.
func (w work) rates() (bytes, flops float64) {
	return rate(w.bytes, w.took).V, rate(w.flops, w.took).V
}

// bound is what a roofline says of some work (Williams, Waterman & Patterson, CACM 52(4),
// 2009): below the ridge, where both take equally long, memory bounds, above it computing
// does.
func (r Roof) bound(w work) Bound {
	moving, computing := r.times(w)
	switch {
	case !moving.OK || !computing.OK || moving.V+computing.V <= 0:
		return BoundUnknown
	case moving.V > nearRidge*computing.V:
		return BoundMemory
	case computing.V > nearRidge*moving.V:
		return BoundCompute
	}
	return BoundMixed
}

// times are the seconds that a roof allows for moving and for computing.
func (r Roof) times(w work) (moving, computing stat.Opt) {
	if r.BytesPerSecond > 0 {
		moving = finite(w.bytes / r.BytesPerSecond)
	}
	_, reached := w.rates()
	if of, _ := r.Computing(w.weights, reached); of > 0 {
		computing = finite(w.flops / of)
	}
	return moving, computing
}

// shares are the shares of both sides of a roof that some work reached.
func (r Roof) shares(w work) (memory, compute stat.Opt) {
	bytes, flops := w.rates()
	if r.BytesPerSecond > 0 {
		memory = finite(bytes / r.BytesPerSecond)
	}
	if of, _ := r.Computing(w.weights, flops); of > 0 {
		compute = finite(flops / of)
	}
	return memory, compute
}

// nearest is the share of the side of the roof that some work comes nearest to. What is
// bound by computing with quantised weights counts by what kernels that unpack reach.
func (r Roof) nearest(w work, b Bound) float64 {
	memory, compute := r.shares(w)
	if b != BoundMemory && Quantised(w.weights) && r.From != RoofSeen {
		compute.V /= unpacks
	}
	return memory.Max(compute).V
}

// share is how much of the roof that bounds it some work reached, none of a roof that was
// measured beside other load: its rates are too low, and the share would be too high.
func (r Roof) share(w work, b Bound, estimated bool) stat.Opt {
	if r.From == RoofDisturbed {
		return stat.None
	}
	memory, compute := r.shares(w)
	var of stat.Opt
	switch b {
	case BoundMemory:
		of = memory
	case BoundCompute:
		of = compute
	case BoundMixed, BoundNeither:
		of = memory.Max(compute)
	}
	// What is reckoned is the most that it can be: GGML skips what a mask shuts out. What
	// passed the best of the trace's products is no part of it.
	if !of.OK || of.V > 1 && (estimated || r.From == RoofSeen) {
		return stat.None
	}
	return of
}
