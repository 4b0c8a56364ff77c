package tally

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// threadSums sums up a compute thread over all graphs.
type threadSums struct {
	graphs                           int // graphs in which it took part
	parts                            [numWatched]threadParts
	barriers, took                   time.Duration
	threads                          map[int32]struct{}
	wakeUps                          stat.Durations
	switches, syscalls, minor, major float64
	ioBytes                          float64
}

// threadParts divides the time of a thread: busy, waits and off do not overlap.
type threadParts struct {
	busy, waits, off time.Duration
	preempted        time.Duration // a part of off
}

// partsOf divides the time of a thread in a graph that took some time. Off, from the kernel,
// takes precedence, and the parts do not exceed the whole.
func partsOf(l *optrace.Thread, took time.Duration) threadParts {
	off := min(max(l.Off, 0), took)
	busy := min(max(l.Busy, 0), took-off)
	waits := stat.Elapsed(max(l.OffWaiting, 0), max(l.Sync, 0))
	return threadParts{busy: busy, waits: min(waits, took-off-busy), off: off, preempted: min(max(l.Preempted, 0), off)}
}

// add adds the parts of another graph.
func (p *threadParts) add(q threadParts) {
	p.busy, p.waits, p.off, p.preempted = stat.AddSaturating(p.busy, q.busy), stat.AddSaturating(p.waits, q.waits), stat.AddSaturating(p.off, q.off), stat.AddSaturating(p.preempted, q.preempted)
}

// Records about the threads of a graph besides its operators, as an index below numWatched. A
// share of waits, or of time off the CPU, is of the time in which these were recorded, because
// it would shrink otherwise when they are switched off.
const (
	watchedBarriers = 1 << iota
	watchedSched
	numWatched = 1 << iota
)

// watchedOf returns which of these were recorded in a graph.
func watchedOf(g *optrace.Graph) (w int) {
	if g.Recorded(optrace.DetailBarrier) {
		w |= watchedBarriers
	}
	if g.Recorded(optrace.DetailSched) {
		w |= watchedSched
	}
	return w
}

// fullest returns which graphs the parts of threads are computed from: those with most
// recorded, if there are enough of them, or else those with most recorded at all.
func (t *Tally) fullest() int {
	for _, enough := range []int{optrace.FewestGraphs, 1} {
		for w := numWatched - 1; w >= 0; w-- {
			if t.thread0Graphs[w] >= enough {
				return w
			}
		}
	}
	return 0
}

// thread0With returns the time of graphs with a thread 0 in which the given details were
// recorded.
func (t *Tally) thread0With(what int) (sum time.Duration) {
	for w, took := range t.thread0By {
		if w&what == what {
			sum = stat.AddSaturating(sum, took)
		}
	}
	return sum
}

// addThreads adds the threads of a graph, and which processes preempted them.
func (t *Tally) addThreads(g *optrace.Graph, took time.Duration) {
	for i := range g.Threads {
		l := &g.Threads[i]
		if i == 0 {
			t.addThread0(g, l, took)
		}
		if i >= maxThreadRows {
			t.overflow = true
			break
		}
		if i >= len(t.threads) {
			t.threads = append(t.threads, &threadSums{threads: map[int32]struct{}{}})
		}
		if len(l.Spans) > 0 || l.TID != 0 {
			t.threads[i].add(l, len(g.Threads[0].Spans) > 0, watchedOf(g), took)
		}
	}
	t.takers.addGraph(g)
}

// addThread0 measures how much of a graph its operators cover, with the waits after them.
func (t *Tally) addThread0(g *optrace.Graph, l *optrace.Thread, took time.Duration) {
	if len(l.Spans) == 0 {
		return
	}
	covered := asTime(0)
	for k := range l.Spans {
		covered = stat.AddSaturating(covered, stat.Elapsed(l.Spans[k].Begin, waitsUntil(l, k, g.End)))
	}
	t.thread0, t.inThread0 = stat.AddSaturating(t.thread0, took), stat.AddSaturating(t.inThread0, min(covered, took))
	w := watchedOf(g)
	t.thread0By[w] = stat.AddSaturating(t.thread0By[w], took)
	t.thread0Graphs[w]++
	if g.Phase == optrace.PhaseDecode && (t.opsOf[len(l.Spans)] > 0 || len(t.opsOf) < maxCounts) {
		t.opsOf[len(l.Spans)]++
	}
}

// waitsUntil returns when the wait after span k of a thread ends, or the end of the span if
// there is no wait.
func waitsUntil(l *optrace.Thread, k int, end time.Duration) time.Duration {
	s, next := &l.Spans[k], end
	if k+1 < len(l.Spans) {
		next = l.Spans[k+1].Begin
	}
	return max(s.End, min(stat.AddSaturating(s.End, s.Sync), next))
}

// add adds a thread of a graph. Times are added only if the operators of the graph were seen,
// because the ratios are of the time of these graphs.
func (s *threadSums) add(l *optrace.Thread, seen bool, watched int, took time.Duration) {
	s.graphs++
	if seen {
		s.parts[watched].add(partsOf(l, took))
		s.barriers = stat.AddSaturating(s.barriers, l.Sync)
	}
	s.took = stat.AddSaturating(s.took, l.SyscallTime)
	if l.TID != 0 && len(s.threads) < maxThreadIDs {
		s.threads[l.TID] = struct{}{}
	}
	for _, d := range l.WakeUps {
		s.wakeUps.Add(d)
	}
	s.switches += float64(max(l.Switches, 0))
	s.syscalls += float64(max(l.Syscalls, 0))
	s.minor += float64(max(l.MinorFaults, 0))
	s.major += float64(max(l.MajorFaults, 0))
	s.ioBytes += float64(max(l.IOBytes, 0))
}

// preempted returns for how long the thread was preempted in all graphs with scheduling.
func (s *threadSums) preempted() (sum time.Duration) {
	for w := range s.parts {
		if w&watchedSched != 0 {
			sum = stat.AddSaturating(sum, s.parts[w].preempted)
		}
	}
	return sum
}

// threadRows returns the threads, with ratios of the time of graphs in which the respective
// detail was recorded. A ratio whose detail was never recorded is absent.
func (t *Tally) threadRows(d optrace.Detail) []optrace.ThreadRow {
	rows := make([]optrace.ThreadRow, 0, len(t.threads))
	barriers, sched, fullest := t.thread0With(watchedBarriers), t.thread0With(watchedSched), t.fullest()
	for i, s := range t.threads {
		if s.graphs == 0 {
			continue
		}
		// A positive value was recorded, even if its detail is off by now.
		ifRecorded := func(of optrace.Detail, v stat.Opt) stat.Opt {
			if d&of == 0 && v.V == 0 {
				return stat.None
			}
			return v
		}
		// A part is unknown if its detail was not recorded in these graphs.
		part := func(watched int, of optrace.Detail, v time.Duration) stat.Opt {
			if fullest&watched == 0 {
				return stat.None
			}
			return ifRecorded(of, stat.Ratio(v, t.thread0By[fullest]))
		}
		parts := &s.parts[fullest]
		lost := ifRecorded(optrace.DetailSched, stat.Ratio(s.preempted(), sched))
		preempted := lost
		if fullest&watchedSched != 0 {
			preempted = ifRecorded(optrace.DetailSched, stat.Ratio(parts.preempted, t.thread0By[fullest]))
		}
		row := optrace.ThreadRow{
			Thread: i, ThreadIDs: len(s.threads),
			Busy:      ifRecorded(optrace.DetailOperator|optrace.DetailTensor, stat.Ratio(parts.busy, t.thread0By[fullest])),
			Sync:      part(watchedBarriers, optrace.DetailBarrier, parts.waits),
			Off:       part(watchedSched, optrace.DetailSched, parts.off),
			Barriers:  ifRecorded(optrace.DetailBarrier, stat.Ratio(s.barriers, barriers)),
			Preempted: preempted, LostCPU: lost, Graphs: t.thread0Graphs[fullest],
			WakeUp:   s.wakeUps.Distribution(),
			Switches: ifRecorded(optrace.DetailSched, stat.Finite(s.switches)),
			Syscalls: ifRecorded(optrace.DetailSyscall, stat.Finite(s.syscalls)), SyscallTime: ifRecorded(optrace.DetailSyscall, stat.Finite(s.took.Seconds())),
			MinorFaults: ifRecorded(optrace.DetailFault, stat.Finite(s.minor)), MajorFaults: ifRecorded(optrace.DetailFault, stat.Finite(s.major)),
			IOBytes: ifRecorded(optrace.DetailIO, stat.Finite(s.ioBytes)),
		}
		rows = append(rows, row)
	}
	return rows
}
