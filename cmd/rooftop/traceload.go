package main

import (
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	// loadEvery is how old what is known of other programs may get while a trace goes on: to
	// know it takes a look at every process of the machine.
	loadEvery = 5 * time.Second
	// loadFirst is the least time of which anything is known: the kernel counts in 10 ms.
	loadFirst = time.Second
)

// hostLoad tells who had the CPUs since it was made, nil where that cannot be read.
type hostLoad interface {
	Load() *optrace.HostLoad
}

// besides begins to measure on this machine.
func besides(pid int) (hostLoad, error) {
	fs, err := proc.Open("/proc")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return fs.NewLoadMeter(pid, func() time.Duration { return time.Since(began) })
}

// others is what is known of other programs while a trace goes on. The zero value knows
// nothing.
type others struct {
	meter  hostLoad
	newest *optrace.HostLoad
	read   time.Time
}

// begin begins to measure beside the target. Where that cannot be, findings say that it is
// not known: the trace needs it for nothing else.
func (t *others) begin(o *traceOptions, pid int) {
	if o.load == nil || pid == 0 {
		return
	}
	meter, err := o.load(pid)
	if err != nil {
		return
	}
	t.meter, t.newest, t.read = meter, nil, time.Now()
}

// look is who had the CPUs so far, looked at anew where what is known is too old.
func (t *others) look() *optrace.HostLoad {
	due := loadEvery
	if t.newest == nil {
		due = loadFirst
	}
	if t.meter != nil && time.Since(t.read) >= due {
		t.lookNow()
	}
	return t.newest
}

// lookNow is the same of this moment. What was known stays where it cannot be read any
// more.
func (t *others) lookNow() *optrace.HostLoad {
	if t.meter == nil {
		return nil
	}
	if now := t.meter.Load(); now != nil {
		t.newest = now
	}
	t.read = time.Now()
	return t.newest
}
