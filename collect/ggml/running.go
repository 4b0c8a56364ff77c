package ggml

import "github.com/rooftop-dev/rooftop/engine/optrace"

// cpuCounters are counted by CPU and not by thread.
const cpuCounters = 1<<optrace.Instructions | 1<<optrace.Cycles | 1<<optrace.LLCMisses | 1<<optrace.BranchMisses

// maxRunning is how many threads' counters are followed; then all begin anew.
const maxRunning = 1 << 14

// running makes totals of threads of what CPUs count. What a CPU counts between two
// readings is a thread's own where the thread has not left it in between, which the
// thread's context switches tell.
type running struct {
	threads map[int32]*runningThread
}

type runningThread struct {
	cpu      uint32
	switches uint64
	raw      [optrace.NumCounters]uint64 // as the CPU counted
	total    [optrace.NumCounters]uint64
}

// own replaces what the CPU counts in a reading by the totals of the thread. Where the
// thread was away since its last reading they are not in the reading: that stretch is
// not known.
func (r *running) own(tid int32, cpu uint32, c *optrace.CounterSet) {
	if c.Have&cpuCounters == 0 {
		return
	}
	if r.threads == nil || len(r.threads) >= maxRunning {
		r.threads = map[int32]*runningThread{}
	}
	t := r.threads[tid]
	switches := c.Value[optrace.ContextSwitches]
	away := t == nil || t.cpu != cpu || t.switches != switches
	if t == nil {
		t = &runningThread{}
		r.threads[tid] = t
	}
	t.cpu, t.switches = cpu, switches
	for i := range c.Value {
		if c.Have&cpuCounters&(1<<i) == 0 {
			continue
		}
		if !away {
			t.total[i] += c.Value[i] - t.raw[i]
		}
		t.raw[i], c.Value[i] = c.Value[i], t.total[i]
	}
	if away {
		c.Have &^= cpuCounters
	}
}
