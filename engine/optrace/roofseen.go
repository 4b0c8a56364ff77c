package optrace

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Sizes from which an operator counts for the roof that a trace itself reached. A
// smaller one is over before its threads are all awake, and its operands are those
// that caches hold: 1 MiB is a large second-level cache.
const (
	seenBytes = 1 << 20
	seenFlops = 1 << 20
)

// apart is how much further from memory, in operations for each byte, the fastest
// computing operator has to be than the one that moved most, for the two to be two
// sides of a roof and not the same thing.
const apart = 2.0

// seenOperators are the operators of a step in a row whose rate counts for the best that a
// trace reached: noise in one does not make it, and the prefill of one prompt has more
// layers.
const seenOperators = 8

// lostCPU is the share of an operator's time for which a lane was ready and without a CPU,
// above which its rate is not that of the machine.
const lostCPU = 0.01

// Operators by what is known of the CPUs of their lanes: an index of [group.paces].
const (
	cpusUnknown = iota // scheduling was not traced
	cpusKept
	numPaces
)

// pace is the best rates of a step over some of its operators in a row. It never falls.
type pace struct {
	n                int // operators since the last ones were full
	cost             costSum
	bytes, flops     float64 // the best, in a second
	ofBytes, ofFlops float64 // operations a byte of those that made either
}

// add adds an operator whose cost is exact.
func (p *pace) add(took time.Duration, c *Cost) {
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
	if v := rate(sum.bytes, sum.time); sum.bytes >= n*seenBytes && sum.weights > sum.bytes/2 && v.V > p.bytes {
		p.bytes, p.ofBytes = v.V, each
	}
	if v := rate(sum.flops, sum.time); sum.flops >= n*seenFlops && v.V > p.flops {
		p.flops, p.ofFlops = v.V, each
	}
}

// product says that the operators of a group multiply matrices with weights.
func (k *groupKey) product() bool {
	return k.weights != "" && (k.op == "MUL_MAT" || k.op == "MUL_MAT_ID")
}

// best is what products with weights reached at most. Bytes count in a decode, and where
// they are mostly weights, which come from memory: what other operators read was just
// written and lies in caches, and a prefill that computes reads weights at its leisure.
func (t *Tally) best(cpus int) (best pace) {
	for _, key := range t.steps.order() {
		if !key.product() {
			continue
		}
		p := &t.steps.of[key].paces[cpus]
		if key.phase == PhaseDecode && p.bytes > best.bytes {
			best.bytes, best.ofBytes = p.bytes, p.ofBytes
		}
		if p.flops > best.flops {
			best.flops, best.ofFlops = p.flops, p.ofFlops
		}
	}
	return best
}

// roofSeen is the best that products with weights reached in this trace, a lower bound.
// Where scheduling was traced it takes those whose lanes kept their CPUs: what is reached
// without them says nothing of the machine, and there is no roof where all lost them.
func (t *Tally) roofSeen() Roof {
	best, other := t.best(cpusKept), t.best(cpusUnknown)
	scheduled := t.lane0Graphs[watchedSched]+t.lane0Graphs[watchedSched|watchedBarriers] >= fewestGraphs
	if other.bytes > best.bytes && (best.bytes > 0 || !scheduled) {
		best.bytes, best.ofBytes = other.bytes, other.ofBytes
	}
	if other.flops > best.flops && (best.flops > 0 || !scheduled) {
		best.flops, best.ofFlops = other.flops, other.ofFlops
	}
	if best.ofFlops < apart*best.ofBytes {
		// Nothing in the trace was bound by computing: how fast that could go is unknown.
		best.flops = 0
	}
	if best.bytes <= 0 && best.flops <= 0 {
		return Roof{}
	}
	return Roof{BytesPerSecond: best.bytes, FlopsPerSecond: best.flops, Threads: t.mostLanes, From: RoofSeen}
}

// WithoutCPU is the share of the time of graphs for which the lane that lost most was
// ready and without a CPU, absent where it was little or not traced.
func (s *Summary) WithoutCPU() stat.Opt {
	p := lookAt(s).preempted()
	if !p.ok || p.max < preemptedLimit {
		return stat.None
	}
	return stat.Some(p.max)
}

// SeenRoof says in words what a roof that was seen is the best of.
func (s *Summary) SeenRoof() string {
	words := "the best that products with weights reached in this trace"
	for i := range s.Threads {
		if s.Threads[i].Preempted.OK {
			return words + " while their threads kept their CPUs"
		}
	}
	return words
}
