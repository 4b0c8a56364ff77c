package tracing

import (
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

const (
	// loadEvery is the maximum age of the data on other programs during a trace: updating it reads
	// every process of the machine.
	loadEvery = 5 * time.Second
	// loadFirst is the minimum time before the first reading: the kernel counts in 10 ms.
	loadFirst = time.Second
)

// loadMeter measures the use of the CPUs since it was created.
type loadMeter interface {
	Load() *optrace.HostLoad
}

// newLoadMeter starts to measure on this machine.
func newLoadMeter(pid int) (loadMeter, error) {
	fs, err := proc.Open("/proc")
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return fs.NewLoadMeter(pid, func() time.Duration { return time.Since(began) })
}

// others has the data on other programs during a trace. The zero value has none.
type others struct {
	meter  loadMeter
	newest *optrace.HostLoad
	next   time.Time // when to read it again
}

// begin starts to measure other programs. If that is impossible, findings say that they are
// unknown; nothing else needs them.
func (t *others) begin(o *Options, pid int) {
	if o.load == nil || pid == 0 {
		return
	}
	if meter, err := o.load(pid); err == nil {
		*t = others{meter: meter, next: time.Now().Add(loadFirst)}
	}
}

// sample returns the use of the CPUs so far, updated if it is too old.
func (t *others) sample() *optrace.HostLoad {
	if time.Now().Before(t.next) {
		return t.newest
	}
	return t.final()
}

// final returns the use of the CPUs until now. If it can no longer be read, it returns the
// previous data.
func (t *others) final() *optrace.HostLoad {
	if t.meter == nil {
		return nil
	}
	if now := t.meter.Load(); now != nil {
		t.newest = now
	}
	t.next = time.Now().Add(loadEvery)
	return t.newest
}
