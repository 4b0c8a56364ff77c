package ggml

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// A thread's total grows only by what its CPU counted while the thread stayed there.
func TestCountersOfAThread(t *testing.T) {
	const all = cpuCounters | 1<<optrace.ContextSwitches
	var r running
	for i, step := range []struct {
		tid, cpu      int
		switches, raw uint64
		known         bool
		total         uint64
	}{
		{1, 0, 5, 1000, false, 0},  // the first reading is the base
		{1, 0, 5, 1100, true, 100}, // it stayed
		{2, 0, 9, 1150, false, 0},  // another thread
		{1, 0, 6, 1500, false, 100},
		{1, 0, 6, 1520, true, 120},
		{1, 1, 6, 7000, false, 120}, // another CPU
		{1, 1, 6, 7005, true, 125},
		{2, 0, 9, 1160, true, 10},
	} {
		c := optrace.CounterSet{Have: all}
		c.Value[optrace.Cycles], c.Value[optrace.ContextSwitches] = step.raw, step.switches
		r.replaceCounts(int32(step.tid), uint32(step.cpu), &c)
		if known := c.Have&(1<<optrace.Cycles) != 0; known != step.known || c.Value[optrace.Cycles] != step.total {
			t.Errorf("step %d: known %v, total %d", i, known, c.Value[optrace.Cycles])
		}
		if c.Have&(1<<optrace.ContextSwitches) == 0 || c.Value[optrace.ContextSwitches] != step.switches {
			t.Errorf("step %d: switches %d", i, c.Value[optrace.ContextSwitches])
		}
	}
}

func TestCountersWithoutAPMU(t *testing.T) {
	var r running
	c := optrace.CounterSet{Have: 1 << optrace.TaskClock}
	r.replaceCounts(1, 0, &c)
	if c.Have != 1<<optrace.TaskClock || r.threads != nil {
		t.Errorf("%+v", c)
	}
}
