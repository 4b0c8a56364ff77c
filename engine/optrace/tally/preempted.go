package tally

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// lostSums sums up the time for which threads could have run and had no CPU.
type lostSums struct {
	preempted time.Duration // added up over threads
	tracer    time.Duration // in absences that the tracing process began or ended, added up over threads
	worst     time.Duration // the same of the thread that lost most to it, summed over graphs
}

// addGraph adds the threads of a graph.
func (s *lostSums) addGraph(g *optrace.Graph) {
	var worst time.Duration
	for i := range g.Threads {
		l := &g.Threads[i]
		s.preempted = stat.AddSaturating(s.preempted, l.Preempted)
		s.tracer = stat.AddSaturating(s.tracer, max(l.Tracer, 0))
		worst = max(worst, l.Tracer)
	}
	s.worst = stat.AddSaturating(s.worst, worst)
}
