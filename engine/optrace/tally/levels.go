package tally

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxLevels is the number of levels of detail that are distinguished: users try only a few.
const maxLevels = 64

// levelSum sums up the graphs of one level.
type levelSum struct {
	graphs  int
	time    time.Duration
	decode  stat.Durations // decode graphs
	nodes   int            // nodes that one thread computes in decode graphs, summed up
	fused   int            // the part of nodes that may be computed together with the previous one
	threads int            // the largest number of threads of a decode graph
}

// nodeCount is how many nodes of a DAG are computed ([optrace.ExecutedNodes]), and how many of
// these may be computed together with the previous one ([optrace.FusedNodes]).
type nodeCount struct{ executed, fused int }

// levelSums are the graphs by what was recorded.
type levelSums struct {
	of    bounded[optrace.Detail, levelSum]
	nodes map[uint32]nodeCount // by DAG
}

func (l *levelSums) addGraph(t *optrace.Tables, g *optrace.Graph, took time.Duration) {
	s := l.of.get(g.Detail)
	if s == nil {
		return
	}
	s.graphs++
	s.time = stat.AddSaturating(s.time, took)
	if g.Phase != optrace.PhaseDecode {
		return
	}
	s.decode.Add(took)
	s.threads = max(s.threads, len(g.Threads))
	n := l.count(t, g)
	s.nodes += n.executed
	s.fused += n.fused
}

// count returns how many nodes one thread computes in a graph: those that were seen, or else
// those of its DAG, or else all.
func (l *levelSums) count(t *optrace.Tables, g *optrace.Graph) nodeCount {
	if len(g.Threads) > 0 && len(g.Threads[0].Spans) > 0 {
		return nodeCount{executed: len(g.Threads[0].Spans)}
	}
	d := t.DAG(g.DAG)
	if d == nil {
		return nodeCount{executed: g.Nodes}
	}
	n, known := l.nodes[g.DAG]
	if !known {
		n = nodeCount{optrace.ExecutedNodes(t, d), optrace.FusedNodes(t, d)}
		if len(l.nodes) < maxShapes {
			l.nodes[g.DAG] = n
		}
	}
	return n
}

// order returns the levels, those with the most decode graphs first, then with the most graphs.
func (l *levelSums) order() []optrace.Detail {
	list := slices.Sorted(maps.Keys(l.of.of))
	slices.SortStableFunc(list, func(a, b optrace.Detail) int {
		x, y := l.of.of[a], l.of.of[b]
		return cmp.Or(cmp.Compare(y.decode.Count, x.decode.Count), cmp.Compare(y.graphs, x.graphs))
	})
	return list
}

// Level returns the level of detail of most decode graphs, or of most graphs if none was a
// decode: the level that the figures are based on, whatever is recorded now. It returns last if
// no graph was recorded or no event said at which level.
func (t *Tally) Level(last optrace.Detail) optrace.Detail {
	if list := t.levels.order(); len(list) > 0 && list[0] != 0 {
		return list[0]
	}
	return last
}

// rows returns the levels of a trace.
func (l *levelSums) rows(last optrace.Detail) []optrace.LevelRow {
	rows := []optrace.LevelRow{}
	for _, d := range l.order() {
		s := l.of.of[d]
		rows = append(rows, optrace.LevelRow{Detail: cmp.Or(d, last).String(), Graphs: s.graphs, Decode: s.decode.Count, Time: s.time})
	}
	return rows
}

// changedLevel returns the gap of a trace whose level was changed while it ran, nil if it was
// not.
func changedLevel(rows []optrace.LevelRow) []optrace.Gap {
	if len(rows) < 2 {
		return nil
	}
	var list []string
	for i := range rows {
		list = append(list, fmt.Sprintf("%s for %s (%s)", rows[i].Detail, figure.Counted(rows[i].Graphs, "graph"), figure.Duration(rows[i].Time)))
	}
	return []optrace.Gap{{
		What: "all figures of all graphs",
		Why:  "the level of detail was changed while it ran: " + strings.Join(list, ", ") + "; graphs lack what their level leaves out. A report shows the cost of tracing at " + rows[0].Detail,
	}}
}

// Expectation returns the basis of a new [optrace.Expect] for the target: the median decode
// graph at [Tally.Level], without the time that the probes take. sites are those of the probes,
// times is as in [optrace.Expectation]. It returns false if fewer than 20 graphs were decoded,
// or no site is known.
func (t *Tally) Expectation(sites []optrace.Site, times float64) (optrace.Expectation, bool) {
	d := t.Level(0)
	s := t.levels.of.of[d]
	if d == 0 || s == nil || s.decode.Count < optrace.FewestGraphs || len(sites) == 0 {
		return optrace.Expectation{}, false
	}
	nodes := s.nodes
	if slices.ContainsFunc(sites, fuses) {
		nodes -= s.fused
	}
	in := optrace.Expectation{
		Detail: d, Nodes: (nodes + s.decode.Count/2) / s.decode.Count, Threads: s.threads, Sites: sites, Times: times,
		Graphs: s.decode.Count, From: optrace.ExpectedTrace,
	}
	took := s.decode.Quantile(0.5)
	in.GraphTime = took
	for range 4 { // the cost of a hit depends slightly on the time between hits
		o := optrace.Expect(in)
		in.GraphTime = max(took-o.Delay(), took/20, 1)
	}
	return in, true
}

// fuses reports whether a site is that of an operator which fuses a norm and the product after
// it.
func fuses(s optrace.Site) bool { return strings.HasSuffix(s.Symbol, "_rms_norm_mul_fused") }

// observer returns the cost of tracing: by the decode graphs of the trace itself if there are
// enough, or else as estimated before the trace. Graphs before the trace may be few, or from a
// moment in which other programs ran.
func (t *Tally) observer(s *Settings) optrace.Observer {
	before := s.Observer
	in, ok := t.Expectation(s.Target.Sites, before.Times)
	if !ok {
		return before
	}
	o := before
	e := optrace.Expect(in)
	o.HitsPerToken, o.CostPerHit, o.Expected, o.Threads = e.HitsPerToken, e.CostPerHit, e.Expected, e.Threads
	o.Graphs, o.GraphTime, o.From = e.Graphs, e.GraphTime, e.From
	o.MeanGraph = t.levels.of.of[in.Detail].decode.Mean()
	return o
}
