package optrace

import (
	"cmp"
	"slices"
	"time"
)

// thiefSums adds up the other processes that had the CPU while a lane could have run.
type thiefSums struct {
	of map[int32]*thiefSum // by PID, 0 those beyond the limit
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
		for pid, took := range g.Lanes[i].Thieves {
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

// rows are the processes, those that took most first.
func (s *thiefSums) rows(graphs time.Duration, names map[int32]string) []OtherRow {
	rows := make([]OtherRow, 0, len(s.of))
	for pid, o := range s.of {
		name := names[pid]
		if pid == 0 && name == "" {
			name = others
		}
		rows = append(rows, OtherRow{PID: int(pid), Name: name, Time: o.time, Share: ratio(o.worst, graphs)})
	}
	slices.SortFunc(rows, func(a, b OtherRow) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.PID, b.PID))
	})
	return rows
}
