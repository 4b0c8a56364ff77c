package tally

import (
	"cmp"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// takerSums sums up the other processes that had the CPU while a thread could have run.
type takerSums struct {
	of      bounded[int32, takerSum] // by PID, 0 for those beyond the limit
	threads time.Duration            // time of graphs whose scheduling was recorded, summed over threads
	// preempted is the time of preempted threads; ran and queued are as in [optrace.Thread].
	preempted, ran, queued time.Duration
}

// takerSum sums up one process.
type takerSum struct {
	time  time.Duration // taken from all threads
	worst time.Duration // taken from the thread that lost most to it, summed over graphs
}

// addGraph adds the CPU time that was taken from the threads of a graph.
func (s *takerSums) addGraph(g *optrace.Graph) {
	var worst map[int32]time.Duration
	for i := range g.Threads {
		l := &g.Threads[i]
		s.preempted, s.ran, s.queued = stat.AddSaturating(s.preempted, l.Preempted), stat.AddSaturating(s.ran, l.Ran), stat.AddSaturating(s.queued, l.Queued)
		for pid, took := range l.TakenBy {
			if took <= 0 {
				continue
			}
			sum, over := s.of.getOr(pid, 0)
			if over {
				pid = 0
			}
			sum.time = stat.AddSaturating(sum.time, took)
			if worst == nil {
				worst = map[int32]time.Duration{}
			}
			worst[pid] = max(worst[pid], took)
		}
	}
	for pid, took := range worst {
		s.of.of[pid].worst = stat.AddSaturating(s.of.of[pid].worst, took)
	}
}

// preemptedWhile describes the target while threads of it were preempted.
func (s *takerSums) preemptedWhile(recorded optrace.Detail) optrace.Preempted {
	return optrace.Preempted{Time: optrace.RecordedTime(recorded&optrace.DetailSched != 0, s.preempted), OwnCPUs: stat.Ratio(s.ran, s.preempted), Threads: stat.Ratio(s.queued, s.preempted)}
}

// rows returns the processes, those that took most first and unknown ones last. The tracing
// process is returned separately, because its CPU time is a cost of the trace; its PID is 0 if
// it took nothing.
func (s *takerSums) rows(graphs time.Duration, of *Settings) (rows []optrace.OtherRow, reader optrace.OtherRow) {
	rows = make([]optrace.OtherRow, 0, len(s.of.of))
	for pid, o := range s.of.of {
		row := optrace.OtherRow{PID: int(pid), Name: of.Processes[pid], Time: o.time, Share: stat.Ratio(o.worst, graphs), OfThreads: stat.Ratio(o.time, s.threads)}
		switch {
		case pid == optrace.UnknownPID:
			row.PID, row.Name = 0, optrace.UnknownName
		case pid == optrace.SiblingPID:
			row.PID, row.Name = 0, optrace.SiblingName
		case pid == 0 && row.Name == "":
			row.Name = others
		case of.isReader(pid):
			reader = row
			continue
		}
		rows = append(rows, row)
	}
	last := func(r *optrace.OtherRow) int {
		if r.Name == optrace.UnknownName {
			return 1
		}
		return 0
	}
	slices.SortFunc(rows, func(a, b optrace.OtherRow) int {
		return cmp.Or(cmp.Compare(last(&a), last(&b)), cmp.Compare(b.Time, a.Time), cmp.Compare(a.PID, b.PID))
	})
	return rows, reader
}
