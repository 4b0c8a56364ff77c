package ggml

import "github.com/rooftop-dev/rooftop/engine/optrace"

// cpuCounters are counted per CPU instead of per thread.
const cpuCounters = 1<<optrace.Instructions | 1<<optrace.Cycles | 1<<optrace.LLCMisses | 1<<optrace.BranchMisses

// maxRunning is the number of threads whose counters are tracked; beyond it all start again.
const maxRunning = 1 << 14

// running converts counts of CPUs to totals of threads. The growth between two readings of a
// CPU belongs to the thread if the thread has not left the CPU in between, which its context
// switches show.
type running struct {
	threads map[int32]*runningThread
}

type runningThread struct {
	cpu      uint32
	switches uint64
	raw      [optrace.NumCounters]uint64 // counts of the CPU
	total    [optrace.NumCounters]uint64
}

// replaceCounts replaces the CPU's counts in a reading by the totals of the thread. If the
// thread was off the CPU since its last reading, they are removed: the growth is unknown.
func (r *running) replaceCounts(tid int32, cpu uint32, c *optrace.CounterSet) {
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
