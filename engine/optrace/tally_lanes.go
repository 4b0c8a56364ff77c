package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// laneSums adds a lane of all graphs up.
type laneSums struct {
	graphs                           int // that it was in
	parts                            [numWatched]laneParts
	barriers, took                   time.Duration
	threads                          map[int32]struct{}
	wakeUps                          durations
	switches, syscalls, minor, major float64
	ioBytes                          float64
}

// laneParts is the time of a lane, divided: no moment is in two of the first three.
type laneParts struct {
	busy, waits, off time.Duration
	preempted        time.Duration // of off
}

// partsOf divides the time of a lane in a graph that took so long. What the kernel says of
// it comes first, and nothing is more than is left of the whole.
func partsOf(l *Lane, took time.Duration) laneParts {
	off := min(max(l.Off, 0), took)
	busy := min(max(l.Busy, 0), took-off)
	waits := span(max(l.OffWaiting, 0), max(l.Sync, 0))
	return laneParts{busy: busy, waits: min(waits, took-off-busy), off: off, preempted: min(max(l.Preempted, 0), off)}
}

// add adds those of another graph.
func (p *laneParts) add(q laneParts) {
	p.busy, p.waits, p.off, p.preempted = plus(p.busy, q.busy), plus(p.waits, q.waits), plus(p.off, q.off), plus(p.preempted, q.preempted)
}

// What was recorded of the lanes of a graph, beside its operators: one of numWatched. A
// share of what barriers or scheduling tell is one of the time in which they were recorded,
// or it would shrink as soon as they are not any more.
const (
	watchedBarriers = 1 << iota
	watchedSched
	numWatched = 1 << iota
)

// watchedOf is which of them a graph is.
func watchedOf(g *Graph) (w int) {
	if g.watched(DetailBarrier) {
		w |= watchedBarriers
	}
	if g.watched(DetailSched) {
		w |= watchedSched
	}
	return w
}

// told is which graphs the parts of lanes are of: those that tell most, of which enough
// were seen, and where there are not enough of any, those that tell most at all.
func (t *Tally) told() int {
	for _, enough := range []int{fewestGraphs, 1} {
		for w := numWatched - 1; w >= 0; w-- {
			if t.lane0Graphs[w] >= enough {
				return w
			}
		}
	}
	return 0
}

// lane0With is the time of graphs with a lane 0 of which something was recorded.
func (t *Tally) lane0With(what int) (sum time.Duration) {
	for w, took := range t.lane0By {
		if w&what == what {
			sum = plus(sum, took)
		}
	}
	return sum
}

// addLanes adds the lanes of a graph, and what took the CPU away from them.
func (t *Tally) addLanes(g *Graph, took time.Duration) {
	for i := range g.Lanes {
		l := &g.Lanes[i]
		if i == 0 {
			t.addLane0(g, l, took)
		}
		if i >= maxLaneRows {
			t.overflow = true
			break
		}
		if i >= len(t.lanes) {
			t.lanes = append(t.lanes, &laneSums{threads: map[int32]struct{}{}})
		}
		if len(l.Spans) > 0 || l.TID != 0 {
			t.lanes[i].add(l, len(g.Lanes[0].Spans) > 0, watchedOf(g), took)
		}
	}
	t.thieves.addGraph(g)
}

// addLane0 measures how much of a graph its operators cover, with the waits after them.
func (t *Tally) addLane0(g *Graph, l *Lane, took time.Duration) {
	if len(l.Spans) == 0 {
		return
	}
	covered := asTime(0)
	for k := range l.Spans {
		covered = plus(covered, span(l.Spans[k].Begin, l.waitsUntil(k, g.End)))
	}
	t.lane0, t.inLane0 = plus(t.lane0, took), plus(t.inLane0, min(covered, took))
	w := watchedOf(g)
	t.lane0By[w] = plus(t.lane0By[w], took)
	t.lane0Graphs[w]++
	if g.Phase == PhaseDecode && (t.opsOf[len(l.Spans)] > 0 || len(t.opsOf) < maxCounts) {
		t.opsOf[len(l.Spans)]++
	}
}

// waitsUntil is when the wait after the k-th span of a lane is over, its own end where
// there is none.
func (l *Lane) waitsUntil(k int, end time.Duration) time.Duration {
	s, next := &l.Spans[k], end
	if k+1 < len(l.Spans) {
		next = l.Spans[k+1].Begin
	}
	return max(s.End, min(plus(s.End, s.Sync), next))
}

// add adds what the lane did in a graph. Times go into ratios of the time of graphs
// whose operators were seen: those of others (detail that came later) do not.
func (s *laneSums) add(l *Lane, seen bool, watched int, took time.Duration) {
	s.graphs++
	if seen {
		s.parts[watched].add(partsOf(l, took))
		s.barriers = plus(s.barriers, l.Sync)
	}
	s.took = plus(s.took, l.SyscallTime)
	if l.TID != 0 && len(s.threads) < maxThreadIDs {
		s.threads[l.TID] = struct{}{}
	}
	for _, d := range l.WakeUps {
		s.wakeUps.add(d)
	}
	s.switches += float64(max(l.Switches, 0))
	s.syscalls += float64(max(l.Syscalls, 0))
	s.minor += float64(max(l.MinorFaults, 0))
	s.major += float64(max(l.MajorFaults, 0))
	s.ioBytes += float64(max(l.IOBytes, 0))
}

// preempted is for how long the lane lost its CPU in all graphs that tell it.
func (s *laneSums) preempted() (sum time.Duration) {
	for w := range s.parts {
		if w&watchedSched != 0 {
			sum = plus(sum, s.parts[w].preempted)
		}
	}
	return sum
}

// threadRows are the lanes, with ratios of the time of all graphs whose operators were
// seen, and of which that was recorded what they are of. What never was is absent.
func (t *Tally) threadRows(d Detail) []ThreadRow {
	rows := make([]ThreadRow, 0, len(t.lanes))
	barriers, sched, told := t.lane0With(watchedBarriers), t.lane0With(watchedSched), t.told()
	for i, s := range t.lanes {
		if s.graphs == 0 {
			continue
		}
		// What was counted was recorded, even if it is not any more.
		with := func(of Detail, v stat.Opt) stat.Opt {
			if d&of == 0 && v.V == 0 {
				return stat.None
			}
			return v
		}
		// Of a part nothing is known where these graphs do not tell it.
		part := func(watched int, of Detail, v time.Duration) stat.Opt {
			if told&watched == 0 {
				return stat.None
			}
			return with(of, ratio(v, t.lane0By[told]))
		}
		parts := &s.parts[told]
		lost := with(DetailSched, ratio(s.preempted(), sched))
		preempted := lost
		if told&watchedSched != 0 {
			preempted = with(DetailSched, ratio(parts.preempted, t.lane0By[told]))
		}
		row := ThreadRow{
			Lane: i, Threads: len(s.threads),
			Busy:      with(DetailOperator|DetailTensor, ratio(parts.busy, t.lane0By[told])),
			Sync:      part(watchedBarriers, DetailBarrier, parts.waits),
			Off:       part(watchedSched, DetailSched, parts.off),
			Barriers:  with(DetailBarrier, ratio(s.barriers, barriers)),
			Preempted: preempted, LostCPU: lost, Graphs: t.lane0Graphs[told],
			WakeUp:   s.wakeUps.distribution(),
			Switches: with(DetailSched, finite(s.switches)),
			Syscalls: with(DetailSyscall, finite(s.syscalls)), SyscallTime: with(DetailSyscall, finite(s.took.Seconds())),
			MinorFaults: with(DetailFault, finite(s.minor)), MajorFaults: with(DetailFault, finite(s.major)),
			IOBytes: with(DetailIO, finite(s.ioBytes)),
		}
		rows = append(rows, row)
	}
	return rows
}
