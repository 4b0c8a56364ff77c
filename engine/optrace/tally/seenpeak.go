package tally

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Least sizes of an operator that counts for the peak of a trace. A smaller one ends before all
// its threads are awake, and its operands are in caches: 1 MiB is a large second-level cache.
const (
	seenBytes = 1 << 20
	seenFlops = 1 << 20
)

// minApart is the ratio of operations per byte between the fastest computing operator and the
// one with the highest memory rate from which the two count as two sides of a peak.
const minApart = 2.0

// seenOperators is the number of consecutive operators of a step whose rate counts for the peak
// of a trace, so noise in one does not determine it. The prefill of one prompt has more layers.
const seenOperators = 8

// lostCPU is the share of an operator's time for which a thread was ready without a CPU, above
// which its rate is not that of the machine.
const lostCPU = 0.01

// pace is the best rates of a step over consecutive operators. They never decrease.
type pace struct {
	n                int // operators in cost
	cost             costSum
	bytes, flops     float64 // the best rates, per second
	ofBytes, ofFlops float64 // operations per byte of the operators with these rates
}

// add adds an operator if its cost is exact.
func (p *pace) add(took time.Duration, c *optrace.Cost) {
	if !c.Known || !c.Exact {
		return
	}
	p.n++
	p.cost.add(took, c)
	if p.n < seenOperators {
		return
	}
	n, sum := float64(p.n), p.cost
	p.n, p.cost = 0, costSum{}
	each := sum.flops / math.Max(sum.bytes, 1)
	if v := stat.PerSecond(sum.bytes, sum.time); sum.bytes >= n*seenBytes && sum.weights > sum.bytes/2 && v.V > p.bytes {
		p.bytes, p.ofBytes = v.V, each
	}
	if v := stat.PerSecond(sum.flops, sum.time); sum.flops >= n*seenFlops && v.V > p.flops {
		p.flops, p.ofFlops = v.V, each
	}
}

// product reports whether the operators of a group multiply matrices with weights.
func (k *groupKey) product() bool {
	return k.weights != "" && (k.op == "MUL_MAT" || k.op == "MUL_MAT_ID")
}

// best returns the highest rates of products with weights. Bytes count only in a decode, and if
// most of them are weights, which come from memory: other operators read what was just written
// and is in caches, and a compute-bound prefill reads weights more slowly than it could.
func (t *Tally) best() (best pace) {
	for _, key := range t.steps.order() {
		if !key.product() {
			continue
		}
		p := &t.steps.of[key].pace
		if key.phase == optrace.PhaseDecode && p.bytes > best.bytes {
			best.bytes, best.ofBytes = p.bytes, p.ofBytes
		}
		if p.flops > best.flops {
			best.flops, best.ofFlops = p.flops, p.ofFlops
		}
	}
	return best
}

// seenPeak returns the best that products with weights reached in this trace, a lower bound. If
// scheduling was traced, only operators whose threads kept their CPUs count, and there is no
// peak if all lost them.
func (t *Tally) seenPeak() optrace.Peak {
	best := t.best()
	if best.ofFlops < minApart*best.ofBytes {
		// Nothing in the trace was compute-bound, so the rate of operations is unknown.
		best.flops = 0
	}
	if best.bytes <= 0 && best.flops <= 0 {
		return optrace.Peak{}
	}
	return optrace.Peak{BytesPerSecond: best.bytes, FlopsPerSecond: best.flops, Threads: t.mostThreads, From: optrace.PeakSeen}
}
