package tally

import (
	"cmp"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// MedianGraph returns the complete decode graph of a recording with the median time (the lower
// one for an even number), among those with operators. MedianOf is their number, 0 if there are
// none. The last graph of a trace is less typical: often the target was disturbed then, or
// began to end.
func MedianGraph(r *optrace.Recording) optrace.LiveGraph {
	type timed struct {
		index int
		took  time.Duration
	}
	var times []timed
	optrace.Replay(r, r.Tables, optrace.Graphs(func(g *optrace.Graph) {
		if drawable(g) {
			times = append(times, timed{g.Index, stat.Elapsed(g.Begin, g.End)})
		}
	}))
	if len(times) == 0 {
		return optrace.LiveGraph{}
	}
	slices.SortFunc(times, func(a, b timed) int {
		return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.index, b.index))
	})
	median := times[(len(times)-1)/2].index
	t := New(r.Tables) // looks up the names of operators
	var drawn optrace.LiveGraph
	optrace.Replay(r, r.Tables, optrace.Graphs(func(g *optrace.Graph) {
		if g.Index == median && drawable(g) {
			drawn = t.liveGraph(g)
		}
	}))
	drawn.MedianOf = len(times)
	return drawn
}

// drawable reports whether a graph is a decode with operators.
func drawable(g *optrace.Graph) bool {
	return g.Phase == optrace.PhaseDecode && slices.ContainsFunc(g.Threads, func(l optrace.Thread) bool { return len(l.Spans) > 0 })
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
