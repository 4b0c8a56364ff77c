package optrace

import (
	"cmp"
	"slices"
	"time"
)

// MedianGraph is the whole decode graph of a recording that took the median time, of
// those of which operators were seen; the lower one of an even number. Its Of says how
// many there were, 0 none. The last graph of a trace is often the one in which the target
// was disturbed, or began to end.
func MedianGraph(r *Recording) LiveGraph {
	times := &graphTimes{}
	r.replay(times)
	if len(times.of) == 0 {
		return LiveGraph{}
	}
	slices.SortFunc(times.of, func(a, b timedGraph) int {
		return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.index, b.index))
	})
	pick := &graphPick{index: times.of[(len(times.of)-1)/2].index, tally: NewTally(r.Tables)}
	r.replay(pick)
	pick.graph.Of = len(times.of)
	return pick.graph
}

// replay gives a recording's events to an assembler.
func (r *Recording) replay(to Receiver) {
	a := NewAssembler(r.Tables, to)
	for _, e := range r.Events {
		a.Push(e)
	}
	a.Flush(r.End)
}

// drawable says that a graph is a decode of which operators were seen.
func (g *Graph) drawable() bool {
	return g.Phase == PhaseDecode && slices.ContainsFunc(g.Lanes, func(l Lane) bool { return len(l.Spans) > 0 })
}

// timedGraph is how long a graph took.
type timedGraph struct {
	index int
	took  time.Duration
}

// graphTimes collects the times of graphs that can be drawn.
type graphTimes struct{ of []timedGraph }

// Graph takes a graph, and keeps nothing of it but its time.
func (t *graphTimes) Graph(g *Graph) {
	if g.drawable() {
		t.of = append(t.of, timedGraph{g.Index, span(g.Begin, g.End)})
	}
}

// Call takes a call.
func (*graphTimes) Call(*Call) {}

// graphPick draws the graph with an index.
type graphPick struct {
	index int
	tally *Tally // knows the names of operators
	graph LiveGraph
}

// Graph takes a graph.
func (p *graphPick) Graph(g *Graph) {
	if g.Index == p.index && g.drawable() {
		p.graph = p.tally.draw(g)
	}
}

// Call takes a call.
func (*graphPick) Call(*Call) {}
