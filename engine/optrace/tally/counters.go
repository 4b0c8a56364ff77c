package tally

import (
	"github.com/rooftop-dev/rooftop/engine/stat"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// counts sums up the counters of an operator's spans, over those that have them.
type counts struct {
	ipc   [2]float64 // instructions, cycles
	miss  [2]float64 // misses, instructions
	whole bool       // all three were read
}

// add adds the counters of a span.
func (c *counts) add(s *optrace.Counted) {
	has := func(n optrace.Counter) bool { return s.Have&(1<<n) != 0 }
	value := func(n optrace.Counter) float64 { return float64(s.Value[n]) }
	if !has(optrace.Instructions) {
		return
	}
	if has(optrace.Cycles) {
		c.ipc[0] += value(optrace.Instructions)
		c.ipc[1] += value(optrace.Cycles)
	}
	if has(optrace.LLCMisses) {
		c.miss[0] += value(optrace.LLCMisses)
		c.miss[1] += value(optrace.Instructions)
	}
	c.whole = c.whole || has(optrace.Cycles) && has(optrace.LLCMisses)
}

// merge adds other sums.
func (c *counts) merge(d *counts) {
	for i := range c.ipc {
		c.ipc[i] += d.ipc[i]
		c.miss[i] += d.miss[i]
	}
	c.whole = c.whole || d.whole
}

// rates returns instructions per cycle and last-level cache misses per instruction.
func (c *counts) rates() (ipc, misses stat.Opt) {
	if c.ipc[1] > 0 {
		ipc = stat.Finite(c.ipc[0] / c.ipc[1])
	}
	if c.miss[1] > 0 {
		misses = stat.Finite(c.miss[0] / c.miss[1])
	}
	return ipc, misses
}

// bound returns the bound by the counters, unknown unless all three were read.
func (c *counts) bound() optrace.Bound {
	ipc, misses := c.rates()
	switch {
	case !c.whole || !ipc.OK || !misses.OK:
		return optrace.BoundUnknown
	case ipc.V < MemoryIPC && misses.V > MemoryMisses:
		return optrace.BoundMemory
	case ipc.V > ComputeIPC && misses.V < ComputeMiss:
		return optrace.BoundCompute
	}
	return optrace.BoundMixed
}

// work returns the work of the operators whose costs are known.
func (g *group) work() optrace.Work {
	return optrace.Work{Bytes: g.cost.bytes, Flops: g.cost.flops, Weights: g.key.weights, Took: g.cost.time}
}

// Limits by which counters determine what bounds an operator: ProfInfer, step 8 of its workflow
// (memory: fewer than one instruction per cycle and more than one last-level cache miss in a
// hundred instructions). For computing it says "more than 2.0 and a low rate of misses"; the
// limit of that rate is the one of its example.
const (
	MemoryIPC    = 1.0
	MemoryMisses = 0.01
	ComputeIPC   = 2.0
	ComputeMiss  = 0.005
)

// MostlyIdle is the share of an operator's time, on average over its threads, above which these
// waited for each other or were off their CPUs: its time is then due to neither memory nor
// computing.
const MostlyIdle = 0.5
