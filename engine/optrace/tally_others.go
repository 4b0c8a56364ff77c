package optrace

import (
	"cmp"
	"slices"
	"time"
)

// thiefSums adds up the other processes that had the CPU while a lane could have run.
type thiefSums struct {
	of    map[int32]*thiefSum // by PID, 0 those beyond the limit
	lanes time.Duration       // of graphs whose scheduling was recorded, all lanes
	// Of lanes that were preempted: for how long, and what [Lane] has of the target then.
	preempted, ran, queued time.Duration
}

// thiefSum adds one process up.
type thiefSum struct {
	time  time.Duration // taken from all lanes
	worst time.Duration // taken from the lane of a graph that lost most, over graphs
}

// addGraph adds what was taken from the lanes of a graph.
func (s *thiefSums) addGraph(g *Graph) {
	var worst map[int32]time.Duration
	for i := range g.Lanes {
		l := &g.Lanes[i]
		s.preempted, s.ran, s.queued = plus(s.preempted, l.Preempted), plus(s.ran, l.Ran), plus(s.queued, l.Queued)
		for pid, took := range l.Thieves {
			if took <= 0 {
				continue
			}
			if s.of[pid] == nil && len(s.of) >= maxOthers {
				pid = 0
			}
			if s.of[pid] == nil {
				s.of[pid] = &thiefSum{}
			}
			s.of[pid].time = plus(s.of[pid].time, took)
			if worst == nil {
				worst = map[int32]time.Duration{}
			}
			worst[pid] = max(worst[pid], took)
		}
	}
	for pid, took := range worst {
		s.of[pid].worst = plus(s.of[pid].worst, took)
	}
}

// UntoldName is the name in [Summary.Others] of processes that had a CPU for which a woken
// thread waited, where it is not known which they were. It is longer than the kernel lets
// the name of a process be.
const UntoldName = "not known (after a wake-up)"

// SiblingName is the name in [Summary.Others] of the target's own other threads, which had
// a CPU for which one of it waited.
const SiblingName = "other threads of the target"

// putOff is what the target had while lanes were put off their CPUs.
func (s *thiefSums) putOff(recorded Detail) PutOff {
	return PutOff{Time: recordedTime(recorded&DetailSched != 0, s.preempted), OwnCPUs: ratio(s.ran, s.preempted), Threads: ratio(s.queued, s.preempted)}
}

// rows are the processes, those that took most first and what is not known last. The one
// that traced is told apart: what it takes is a cost of the trace. Its PID is 0 where it
// took nothing.
func (s *thiefSums) rows(graphs time.Duration, of *Settings) (rows []OtherRow, reader OtherRow) {
	rows = make([]OtherRow, 0, len(s.of))
	for pid, o := range s.of {
		row := OtherRow{PID: int(pid), Name: of.Processes[pid], Time: o.time, Share: ratio(o.worst, graphs), OfLanes: ratio(o.time, s.lanes)}
		switch {
		case pid == untoldThief:
			row.PID, row.Name = 0, UntoldName
		case pid == siblingThief:
			row.PID, row.Name = 0, SiblingName
		case pid == 0 && row.Name == "":
			row.Name = others
		case of.isReader(pid):
			reader = row
			continue
		}
		rows = append(rows, row)
	}
	last := func(r *OtherRow) int {
		if r.Name == UntoldName {
			return 1
		}
		return 0
	}
	slices.SortFunc(rows, func(a, b OtherRow) int {
		return cmp.Or(cmp.Compare(last(&a), last(&b)), cmp.Compare(b.Time, a.Time), cmp.Compare(a.PID, b.PID))
	})
	return rows, reader
}
