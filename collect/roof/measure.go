package roof

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Options say what to measure.
type Options struct {
	// Threads is the number of threads that the roof is to be of: those of the target.
	// 0 takes as many as there are CPUs.
	Threads int
	// Duration is about how long it takes in all, 3 s where it is 0. Below 300 ms the
	// figures do not hold.
	Duration time.Duration
}

const (
	defaultDuration = 3 * time.Second
	// rounds of each figure: the highest counts, since what disturbs only slows down.
	rounds = 5
	// leastRound is long beside what it takes to start and stop threads.
	leastRound = 5 * time.Millisecond
	// readShare is how much longer memory is measured than each rate of operations:
	// it is the figure that matters more, and the one that scatters more.
	readShare = 2
	// undisturbed is the share of the best round that its threads must have had a CPU:
	// below it others were on it, the target not least, and the rates are too low.
	undisturbed = 0.95
	// mostThreads bounds what is measured, however many were asked for.
	mostThreads = 1024
)

// Measure measures the roof with Options.Threads threads, each on a CPU of its own as
// far as there are any, and with fewer and more (Roof.ByThreads). Where others had the
// CPUs meanwhile, Roof.From says so (optrace.RoofDisturbed), and nothing should be
// judged by it. It changes
// GOMAXPROCS for the time where that is smaller than the threads. An error says that
// the context ended, that there is no memory for the buffer, or that the CPUs cannot
// be told; the rates that this CPU has no kernel for are 0.
func Measure(ctx context.Context, o Options) (optrace.Roof, error) {
	cpus, err := allowedCPUs()
	if err != nil {
		return optrace.Roof{}, fmt.Errorf("the CPUs of this process: %w", err)
	}
	if o.Threads < 0 || o.Threads > mostThreads {
		return optrace.Roof{}, fmt.Errorf("%d threads: a number from 1 to %d, or 0 for one on each CPU", o.Threads, mostThreads)
	}
	if o.Threads == 0 {
		o.Threads = min(len(cpus), mostThreads)
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
		return optrace.Roof{}, err
	}
	defer m.free()

	shares := readShare + 2
	round := max(leastRound, o.Duration/time.Duration(shares*rounds*len(counts)))
	out := optrace.Roof{Threads: o.Threads, From: m.kernels.from, FlopsOf: m.kernels.flopsOf, Int8Of: m.kernels.int8Of}
	for _, n := range counts {
		memory := m.best(ctx, n, readShare*round, m.read)
		flops := m.best(ctx, n, round, operations(m.kernels.flops))
		int8 := m.best(ctx, n, round, operations(m.kernels.int8))
		if err := ctx.Err(); err != nil {
			return optrace.Roof{}, errors.Join(errors.New("the roof was not measured to the end"), err)
		}
		p := optrace.RoofPoint{Threads: n, BytesPerSecond: memory.perSecond, FlopsPerSecond: flops.perSecond, Int8PerSecond: int8.perSecond}
		out.ByThreads = append(out.ByThreads, p)
		if memory.onCPU < undisturbed || flops.onCPU < undisturbed {
			out.From = optrace.RoofDisturbed
		}
		if n == o.Threads {
			out.BytesPerSecond, out.FlopsPerSecond, out.Int8PerSecond = p.BytesPerSecond, p.FlopsPerSecond, p.Int8PerSecond
		}
	}
	return out, nil
}

// threadCounts are the numbers of threads to measure, ascending: powers of two and the
// steps halfway between them, up to the CPUs, and the one that is asked for.
func threadCounts(asked, cpus int) []int {
	counts := []int{asked, cpus}
	for n := 1; n <= cpus; n *= 2 {
		counts = append(counts, n)
		if half := n + n/2; half <= cpus {
			counts = append(counts, half)
		}
	}
	slices.Sort(counts)
	return slices.Compact(counts)
}
