package roof

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// machine is what the figures are measured on.
type machine struct {
	cpus    []int // of different cores first
	kernels kernels
	buffer  []byte
	release func()
}

const (
	// overCache is how many times the last cache the buffer is: what is read has been
	// pushed out by the time that it comes again.
	overCache = 4
	// The buffer is at least so large, where the size of the cache is not known, and at
	// most so large, so that it fits and is filled in a second.
	leastBuffer = 256 << 20
	mostBuffer  = 4 << 30
	// chunk is read between two looks at the clock: tens of microseconds.
	chunk = 1 << 20
)

// allocate makes the buffer. Each thread reads a part of its own.
func (m *machine) allocate(threads int) error {
	size := min(max(overCache*lastCache(), leastBuffer), mostBuffer)
	if free := freeMemory(); free > 0 && size > free/2 {
		size = free / 2
	}
	size = size / (chunk * threads) * chunk * threads
	if size < 2*chunk*threads {
		return errors.New("too little memory is free to measure its rate")
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

// pace is what n threads reached together in a round.
type pace struct {
	perSecond float64
	// onCPU is the share of the round that the threads had a CPU, as far as there are as
	// many CPUs; 1 where that cannot be told.
	onCPU float64
}

// best is the highest rate of n threads in a few rounds, 0 without a kernel.
func (m *machine) best(ctx context.Context, n int, round time.Duration, of func(i, n int) work) pace {
	if of == nil {
		return pace{onCPU: 1}
	}
	var top pace
	for range rounds {
		if ctx.Err() != nil {
			return pace{}
		}
		if p := m.rate(n, round, of); p.perSecond > top.perSecond {
			top = p
		}
	}
	return top
}

// rate runs n threads side by side, each on a CPU of its own, and adds up their rates.
// A goroutine that ends while it is locked takes its thread with it, and so the
// binding to a CPU.
func (m *machine) rate(n int, round time.Duration, of func(i, n int) work) pace {
	paces := make([]pace, n)
	var ready, done sync.WaitGroup
	ready.Add(n)
	begin := make(chan struct{})
	var start time.Time // of all: a thread that comes onto its CPU late has lost that time
	for i := range n {
		done.Go(func() {
			runtime.LockOSThread()
			bind(m.cpus[i%len(m.cpus)])
			w := of(i, n)
			w() // touches its memory, wakes the vector units
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

// timed does work until a round is over and returns it per second.
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

// read is the work of thread i of n: its part of the buffer, over and over.
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

// operations is the work of a kernel that computes; nil where there is none.
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

// loops of a kernel between two looks at the clock: tens of microseconds.
const loops = 4096

// touch writes to each page, so that it is memory of its own: pages that were never
// written are all the same one.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 0
	}
}
