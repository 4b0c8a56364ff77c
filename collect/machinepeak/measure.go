package machinepeak

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Options configures Measure.
type Options struct {
	// Threads is the number of threads of the target, for which the peak is reported.
	// 0 means one for each CPU; the maximum is 1024.
	Threads int
	// Duration is the approximate total time; 0 means 3 s. Results below 300 ms are
	// unreliable.
	Duration time.Duration
}

const (
	defaultDuration = 3 * time.Second
	// rounds is the number of rounds for each rate. The highest counts, because
	// disturbances only lower a rate.
	rounds = 5
	// minRound is the shortest round: long compared with starting and stopping threads.
	minRound = 5 * time.Millisecond
	// readShare is the length of a memory round relative to a round of operations. The
	// memory rate matters more and varies more.
	readShare = 2
	// undisturbed is the smallest share of the best round that its threads must be on a
	// CPU. Below it other programs, such as the target, used the CPUs and the rates are too
	// low.
	undisturbed = 0.95
	// maxThreads is the largest number of threads that can be measured.
	maxThreads = 1024
)

// Measure measures the peak with Options.Threads threads, each on its own CPU if there are
// enough, and with fewer and more (Peak.ByThreads). Rates without a kernel for this CPU
// are 0. If other programs used the CPUs, Peak.From is optrace.PeakDisturbed and the
// rates are too low to judge anything by.
//
// Measure raises GOMAXPROCS while it runs if that is smaller than the number of threads.
// It fails if the context ends, the options are invalid, there is too little memory for
// the buffer, or the CPUs of this process cannot be read.
func Measure(ctx context.Context, o Options) (optrace.Peak, error) {
	cpus, err := allowedCPUs()
	if err != nil {
		return optrace.Peak{}, fmt.Errorf("the CPUs of this process: %w", err)
	}
	if o.Threads < 0 || o.Threads > maxThreads {
		return optrace.Peak{}, fmt.Errorf("%d threads: a number from 1 to %d, or 0 for one on each CPU", o.Threads, maxThreads)
	}
	if o.Threads == 0 {
		o.Threads = min(len(cpus), maxThreads)
	}
	if o.Duration <= 0 {
		o.Duration = defaultDuration
	}
	m := machine{cpus: cpus, kernels: kernelsHere()}
	counts := threadCounts(o.Threads, len(cpus))
	most := counts[len(counts)-1]
	if old := runtime.GOMAXPROCS(0); old < most {
		runtime.GOMAXPROCS(most)
		defer runtime.GOMAXPROCS(old)
	}
	if err := m.allocate(most); err != nil {
		return optrace.Peak{}, err
	}
	defer m.free()

	shares := readShare + 2
	round := max(minRound, o.Duration/time.Duration(shares*rounds*len(counts)))
	out := optrace.Peak{Threads: o.Threads, From: m.kernels.from, FlopsOf: m.kernels.flopsOf, Int8Of: m.kernels.int8Of}
	for _, n := range counts {
		memory := m.best(ctx, n, readShare*round, m.read)
		flops := m.best(ctx, n, round, operations(m.kernels.flops))
		int8 := m.best(ctx, n, round, operations(m.kernels.int8))
		if err := ctx.Err(); err != nil {
			return optrace.Peak{}, errors.Join(errors.New("the measurement of the machine peak was interrupted"), err)
		}
		p := optrace.PeakPoint{Threads: n, BytesPerSecond: memory.perSecond, FlopsPerSecond: flops.perSecond, Int8PerSecond: int8.perSecond}
		out.ByThreads = append(out.ByThreads, p)
		if memory.onCPU < undisturbed || flops.onCPU < undisturbed {
			out.From = optrace.PeakDisturbed
		}
		if n == o.Threads {
			out.BytesPerSecond, out.FlopsPerSecond, out.Int8PerSecond = p.BytesPerSecond, p.FlopsPerSecond, p.Int8PerSecond
		}
	}
	return out, nil
}

// threadCounts returns the numbers of threads to measure, ascending: powers of two and the
// steps halfway between them, up to the number of CPUs, and the requested number.
func threadCounts(requested, cpus int) []int {
	counts := []int{requested, cpus}
	for n := 1; n <= cpus; n *= 2 {
		counts = append(counts, n)
		if half := n + n/2; half <= cpus {
			counts = append(counts, half)
		}
	}
	slices.Sort(counts)
	return slices.Compact(counts)
}
