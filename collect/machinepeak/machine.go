package machinepeak

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// machine holds the CPUs, kernels and memory of a measurement.
type machine struct {
	cpus    []int // in the order of coresFirst
	kernels kernels
	buffer  []byte
	release func()
}

const (
	// overCache is the size of the buffer in last-level caches, large enough that the cache
	// has evicted each part before it is read again.
	overCache = 4
	// minBuffer is the smallest buffer in bytes, for a cache of unknown size; maxBuffer is
	// the largest, so that it fits and is filled in a second.
	minBuffer = 256 << 20
	maxBuffer = 4 << 30
	// chunk is the number of bytes read between two reads of the clock: tens of
	// microseconds.
	chunk = 1 << 20
)

// allocate allocates the buffer, of which each thread reads its own part. It fails if too
// little memory is free.
func (m *machine) allocate(threads int) error {
	size := min(max(overCache*lastCache(), minBuffer), maxBuffer)
	if free := freeMemory(); free > 0 && size > free/2 {
		size = free / 2
	}
	size = size / (chunk * threads) * chunk * threads
	if size < 2*chunk*threads {
		return errors.New("too little free memory to measure its bandwidth")
	}
	var err error
	m.buffer, m.release, err = pages(size)
	return err
}

func (m *machine) free() {
	if m.release != nil {
		m.release()
	}
	m.buffer = nil
}

// work does a piece of one thread's work and returns how much it was, in bytes or
// operations.
type work func() float64

// pace is the combined result of n threads in a round.
type pace struct {
	perSecond float64
	// onCPU is the share of the round that the threads were on a CPU, relative to the
	// CPUs available to them; 1 if unknown.
	onCPU float64
}

// best returns the highest rate of n threads in a few rounds; the rate is 0 if newWork is
// nil or ctx ends. newWork returns the work of thread i of n.
func (m *machine) best(ctx context.Context, n int, round time.Duration, newWork func(i, n int) work) pace {
	if newWork == nil {
		return pace{onCPU: 1}
	}
	var top pace
	for range rounds {
		if ctx.Err() != nil {
			return pace{}
		}
		if p := m.rate(n, round, newWork); p.perSecond > top.perSecond {
			top = p
		}
	}
	return top
}

// rate runs n threads in parallel, each bound to a CPU, and adds up their rates. The
// goroutines stay locked to their threads, which ends the threads and their bindings
// with them.
func (m *machine) rate(n int, round time.Duration, newWork func(i, n int) work) pace {
	paces := make([]pace, n)
	var ready, done sync.WaitGroup
	ready.Add(n)
	begin := make(chan struct{})
	var start time.Time // common to all: a thread that gets its CPU late loses that time
	for i := range n {
		done.Go(func() {
			runtime.LockOSThread()
			bind(m.cpus[i%len(m.cpus)])
			w := newWork(i, n)
			w() // warms up memory and vector units
			ready.Done()
			<-begin
			paces[i] = timed(start, round, w)
		})
	}
	ready.Wait()
	start = time.Now()
	close(begin)
	done.Wait()
	var sum pace
	for _, p := range paces {
		sum.perSecond += p.perSecond
		sum.onCPU += p.onCPU
	}
	sum.onCPU /= float64(min(n, len(m.cpus)))
	return sum
}

// timed repeats work until a round is over and returns its pace.
func timed(start time.Time, round time.Duration, w work) pace {
	amount := 0.0
	ran := threadTime()
	for {
		amount += w()
		took := time.Since(start)
		if took < round {
			continue
		}
		p := pace{perSecond: amount / took.Seconds(), onCPU: 1}
		if ran >= 0 {
			p.onCPU = (threadTime() - ran).Seconds() / took.Seconds()
		}
		return p
	}
}

// read returns the work of thread i of n: reading its part of the buffer repeatedly.
func (m *machine) read(i, n int) work {
	part := len(m.buffer) / n / chunk * chunk
	mine := m.buffer[i*part : (i+1)*part]
	at := 0
	return func() float64 {
		m.kernels.read(unsafe.Pointer(&mine[at]), chunk)
		at += chunk
		if at >= len(mine) {
			at = 0
		}
		return chunk
	}
}

// operations returns the constructor of the work that runs a kernel; nil if the CPU has
// no such kernel.
func operations(k kernel) func(i, n int) work {
	if k.run == nil {
		return nil
	}
	return func(int, int) work {
		return func() float64 {
			k.run(loops)
			return loops * k.each
		}
	}
}

// loops is the number of kernel loops between two reads of the clock: tens of
// microseconds.
const loops = 4096

// touch writes to each page, which gives it its own physical memory. Pages that were never
// written share one zero page.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 0
	}
}
