package tally

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// threadSums sums up a compute thread over all graphs.
type threadSums struct {
	graphs                           int // graphs in which it took part
	parts                            threadParts
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

// addThreads adds the threads of a graph.
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
			t.threads[i].add(l, len(g.Threads[0].Spans) > 0, took)
		}
	}
	t.lost.addGraph(g)
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
func (s *threadSums) add(l *optrace.Thread, seen bool, took time.Duration) {
	s.graphs++
	if seen {
		s.parts.add(partsOf(l, took))
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

// threadRows returns the threads, with ratios of the time of graphs whose operators were seen. A
// figure is absent if its detail was not recorded and nothing of it was seen.
func (t *Tally) threadRows(recorded optrace.Detail) []optrace.ThreadRow {
	rows := make([]optrace.ThreadRow, 0, len(t.threads))
	for i, s := range t.threads {
		if s.graphs == 0 {
			continue
		}
		value := func(of optrace.Detail, v float64) stat.Opt {
			if recorded&of == 0 && v == 0 {
				return stat.None
			}
			return stat.Finite(v)
		}
		share := func(of optrace.Detail, part time.Duration) stat.Opt {
			if recorded&of == 0 && part == 0 {
				return stat.None
			}
			return stat.Ratio(part, t.thread0)
		}
		rows = append(rows, optrace.ThreadRow{
			Thread: i, ThreadIDs: len(s.threads),
			Busy: share(optrace.DetailOperator|optrace.DetailTensor, s.parts.busy), Sync: share(optrace.DetailBarrier, s.parts.waits),
			Off: share(optrace.DetailSched, s.parts.off), Preempted: share(optrace.DetailSched, s.parts.preempted),
			Barriers: share(optrace.DetailBarrier, s.barriers), WakeUp: s.wakeUps.Distribution(), Switches: value(optrace.DetailSched, s.switches),
			Syscalls: value(optrace.DetailSyscall, s.syscalls), SyscallTime: value(optrace.DetailSyscall, s.took.Seconds()),
			MinorFaults: value(optrace.DetailFault, s.minor), MajorFaults: value(optrace.DetailFault, s.major),
			IOBytes: value(optrace.DetailIO, s.ioBytes),
		})
	}
	return rows
}
