//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// A counter of a CPU is converted to a thread's total. The kernel's CPU clock replaces the
// hardware, which this machine may lack: it counts the time of the thread on the CPU between
// two operators.
func TestE2ECountersOfCPUs(t *testing.T) {
	b := build(t)
	k := start(t, b.program)
	before := hardware
	defer func() { hardware = before }()
	hardware = nil
	for _, e := range before {
		hardware = append(hardware, event{e.counter, unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_CPU_CLOCK})
	}
	s := open(t, runtimeOf(t, k.pid()), Options{}, optrace.LevelTensor|optrace.DetailCounters)
	k.decode(t, 200, 5, 1, 0)
	events := drained(t, s)
	var last *optrace.CounterSet
	var at, walls time.Duration
	var counted uint64
	known := 0
	for _, e := range of(events, optrace.CountersRead) {
		c := &s.Tables().Counters[e.Ref-1]
		if c.Have&kernelCounters != kernelCounters {
			t.Fatalf("%+v", c)
		}
		if last != nil && c.Have&(1<<optrace.Cycles) != 0 {
			known++
			walls += e.At - at
			counted += c.Value[optrace.Cycles] - last.Value[optrace.Cycles]
			if c.Value[optrace.ContextSwitches] != last.Value[optrace.ContextSwitches] {
				t.Fatal("the thread was off the CPU, but its counters are reported")
			}
		}
		last, at = c, e.At
	}
	if n := 200 * len(sequence); known < n/2 {
		t.Errorf("%d of %d readings are known", known, n)
	}
	if ratio := float64(counted) / float64(walls); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("the clock counted %v of %v", time.Duration(counted), walls)
	}
	t.Logf("%d readings known, %v of %v", known, time.Duration(counted), walls)
	if s.decoder.malformed != 0 || s.Dropped() != 0 {
		t.Errorf("malformed %d, dropped %d", s.decoder.malformed, s.Dropped())
	}
}
