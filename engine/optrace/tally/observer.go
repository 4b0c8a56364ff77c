package tally

import (
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// decodeSums sums up decode graphs, as the basis of the expected cost of tracing.
type decodeSums struct {
	time    stat.Durations
	sum     nodeCount
	threads int                  // the largest number of threads of a graph
	nodes   map[uint32]nodeCount // by DAG
}

// nodeCount is how many nodes one thread computes ([optrace.ExecutedNodes]), and how many of these
// may be computed together with the previous one ([optrace.FusedNodes]).
type nodeCount struct{ executed, fused int }

// addGraph adds a decode graph.
func (s *decodeSums) addGraph(t *optrace.Tables, g *optrace.Graph) {
	s.time.Add(stat.Elapsed(g.Begin, g.End))
	s.threads = max(s.threads, len(g.Threads))
	n := s.count(t, g)
	s.sum.executed += n.executed
	s.sum.fused += n.fused
}

// count returns how many nodes one thread computes in a graph: those that were seen, or else
// those of its DAG, or else all.
func (s *decodeSums) count(t *optrace.Tables, g *optrace.Graph) nodeCount {
	if len(g.Threads) > 0 && len(g.Threads[0].Spans) > 0 {
		return nodeCount{executed: len(g.Threads[0].Spans)}
	}
	d := t.DAG(g.DAG)
	if d == nil {
		return nodeCount{executed: g.Nodes}
	}
	n, known := s.nodes[g.DAG]
	if !known {
		n = nodeCount{optrace.ExecutedNodes(t, d), optrace.FusedNodes(t, d)}
		if len(s.nodes) < maxShapes {
			s.nodes[g.DAG] = n
		}
	}
	return n
}

// observer returns the cost of tracing: by the decode graphs of the trace itself if there are
// enough, without the time that the probes take in them, or else as estimated before the trace.
// Graphs before the trace may be few, or from a moment in which other programs ran.
func (t *Tally) observer(s *Settings) optrace.Observer {
	o, d := s.Observer, &t.decoded
	count := d.time.Count
	if s.Detail == 0 || count < optrace.FewestGraphs || len(s.Target.Sites) == 0 {
		return o
	}
	nodes := d.sum.executed
	if slices.ContainsFunc(s.Target.Sites, func(s optrace.Site) bool { return strings.HasSuffix(s.Symbol, optrace.FusedSuffix) }) {
		nodes -= d.sum.fused
	}
	in := optrace.Expectation{
		Detail: s.Detail, Nodes: (nodes + count/2) / count, Threads: d.threads, Sites: s.Target.Sites, Times: o.Times,
		Graphs: count, From: optrace.ExpectedTrace,
	}
	took := d.time.Quantile(0.5)
	in.GraphTime = took
	for range 4 { // the cost of a hit depends slightly on the time between hits
		e := optrace.Expect(in)
		in.GraphTime = max(took-e.Delay(), took/20, 1)
	}
	e := optrace.Expect(in)
	o.HitsPerToken, o.CostPerHit, o.Expected, o.Threads = e.HitsPerToken, e.CostPerHit, e.Expected, e.Threads
	o.Graphs, o.GraphTime, o.From = e.Graphs, e.GraphTime, e.From
	o.MeanGraph = d.time.Mean()
	return o
}
