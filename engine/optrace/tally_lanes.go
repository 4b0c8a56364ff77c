package optrace

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// laneSums adds a lane of all graphs up.
type laneSums struct {
	graphs                           int // that it was in
	busy                             [numWatched]time.Duration
	sync, off, preempted, took       time.Duration
	threads                          map[int32]struct{}
	wakeUps                          durations
	switches, syscalls, minor, major float64
	ioBytes                          float64
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
			t.lanes[i].add(l, len(g.Lanes[0].Spans) > 0, watchedOf(g))
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
	w := watchedOf(g)
	t.lane0By[w] = plus(t.lane0By[w], took)
	if g.Phase == PhaseDecode && (t.opsOf[len(l.Spans)] > 0 || len(t.opsOf) < maxCounts) {
		t.opsOf[len(l.Spans)]++
	}
}

// add adds what the lane did in a graph. Times go into ratios of the time of graphs
// whose operators were seen: those of others (detail that came later) do not.
func (s *laneSums) add(l *Lane, seen bool, watched int) {
	s.graphs++
	if seen {
		s.busy[watched], s.sync = plus(s.busy[watched], l.Busy), plus(s.sync, l.Sync)
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
// seen, and of which that was recorded what they are of. What never was is absent. A lane
// is busy for what is neither a wait nor off the CPU: of the graphs that tell most of these.
func (t *Tally) threadRows(d Detail) []ThreadRow {
	rows := make([]ThreadRow, 0, len(t.lanes))
	barriers, sched, most := t.lane0With(watchedBarriers), t.lane0With(watchedSched), numWatched-1
	for most > 0 && t.lane0By[most] == 0 {
		most--
	}
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
			Busy:      with(DetailOperator|DetailTensor, ratio(s.busy[most], t.lane0By[most])),
			Sync:      with(DetailBarrier, ratio(s.sync, barriers)),
			Off:       with(DetailSched, ratio(s.off, sched)),
			Preempted: with(DetailSched, ratio(s.preempted, sched)),
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
