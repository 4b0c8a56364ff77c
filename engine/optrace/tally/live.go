package tally

import (
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Live returns the newest complete decode graph, the zero one before the first.
func (t *Tally) Live() optrace.LiveGraph {
	if t.newest == nil {
		return optrace.LiveGraph{}
	}
	return t.liveGraph(t.newest)
}

// liveGraph converts a graph for a timeline. Spans are clipped to the graph.
func (t *Tally) liveGraph(g *optrace.Graph) optrace.LiveGraph {
	l := optrace.LiveGraph{Index: g.Index, Phase: phaseIndex(g.Phase).String(), Tokens: max(g.Tokens, 0), Time: stat.Elapsed(g.Begin, g.End), Threads: make([]optrace.LiveThread, len(g.Threads))}
	for i := range g.Threads {
		thread := &g.Threads[i]
		l.Threads[i] = optrace.LiveThread{Index: i, TID: thread.TID, Spans: make([]optrace.LiveSpan, len(thread.Spans))}
		for k := range thread.Spans {
			p := &thread.Spans[k]
			f := t.factsOf(p.Operator)
			begin := min(stat.Elapsed(g.Begin, p.Begin), l.Time)
			end := min(max(stat.Elapsed(g.Begin, waitsUntil(thread, k, g.End)), begin), l.Time)
			off := min(max(p.Off, 0), end-begin)
			l.Threads[i].Spans[k] = optrace.LiveSpan{
				Op: f.op, Name: f.name, Begin: begin, End: end, Sync: min(stat.Elapsed(max(p.OffWaiting, 0), max(p.Sync, 0)), end-begin-off), Off: off,
			}
		}
	}
	return l
}
