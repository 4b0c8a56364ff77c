package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// laneSums adds a lane of all graphs up.
type laneSums struct {
	graphs                           int // that it was in
	busy, sync, off, preempted, took time.Duration
	threads                          map[int32]struct{}
	wakeUps                          durations
	switches, syscalls, minor, major float64
	ioBytes                          float64
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
			t.lanes[i].add(l, len(g.Lanes[0].Spans) > 0)
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
		s := &l.Spans[k]
		next := g.End
		if k+1 < len(l.Spans) {
			next = l.Spans[k+1].Begin
		}
		covered = plus(covered, span(s.Begin, max(s.End, min(plus(s.End, s.Sync), next))))
	}
	t.lane0, t.inLane0 = plus(t.lane0, took), plus(t.inLane0, min(covered, took))
	if g.Phase == PhaseDecode && (t.opsOf[len(l.Spans)] > 0 || len(t.opsOf) < maxCounts) {
		t.opsOf[len(l.Spans)]++
	}
}

// add adds what the lane did in a graph. Times go into ratios of the time of graphs
// whose operators were seen: those of others (detail that came later) do not.
func (s *laneSums) add(l *Lane, seen bool) {
	s.graphs++
	if seen {
		s.busy, s.sync = plus(s.busy, l.Busy), plus(s.sync, l.Sync)
		s.off, s.preempted = plus(s.off, l.Off), plus(s.preempted, l.Preempted)
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

// threadRows are the lanes, with ratios of the time of all graphs whose operators were
// seen. What was not recorded is absent.
func (t *Tally) threadRows(d Detail) []ThreadRow {
	rows := make([]ThreadRow, 0, len(t.lanes))
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
		row := ThreadRow{
			Lane: i, Threads: len(s.threads),
			Busy:      with(DetailOperator|DetailTensor, ratio(s.busy, t.lane0)),
			Sync:      with(DetailBarrier, ratio(s.sync, t.lane0)),
			Off:       with(DetailSched, ratio(s.off, t.lane0)),
			Preempted: with(DetailSched, ratio(s.preempted, t.lane0)),
			WakeUp:    s.wakeUps.distribution(),
			Switches:  with(DetailSched, finite(s.switches)),
			Syscalls:  with(DetailSyscall, finite(s.syscalls)), SyscallTime: with(DetailSyscall, finite(s.took.Seconds())),
			MinorFaults: with(DetailFault, finite(s.minor)), MajorFaults: with(DetailFault, finite(s.major)),
			IOBytes: with(DetailIO, finite(s.ioBytes)),
		}
		rows = append(rows, row)
	}
	return rows
}
