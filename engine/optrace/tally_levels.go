package optrace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxLevels is how many levels of detail are told apart: a person tries some of them.
const maxLevels = 64

// LevelRow is what was recorded at one level of detail.
type LevelRow struct {
	Detail string `json:"detail"`
	Graphs int    `json:"graphs"`
	Decode int    `json:"decode_graphs"` // of Graphs
	// Time is that of these graphs, not what passed meanwhile.
	Time time.Duration `json:"graph_ns"`
}

// levelSum adds up the graphs of one level.
type levelSum struct {
	graphs int
	time   time.Duration
	decode durations // decode graphs
	nodes  int       // that one lane computes in them, added up
	fused  int       // of nodes, those that may be computed together with the one before
	lanes  int       // the most that computed one of them
}

// nodeCount is how many nodes of a DAG are computed, as [ExecutedNodes], and how many of
// these may be with the one before, as [FusedNodes].
type nodeCount struct{ executed, fused int }

// levelSums are by what was recorded.
type levelSums struct {
	of    map[Detail]*levelSum
	nodes map[uint32]nodeCount // by DAG
}

func (l *levelSums) addGraph(t *Tables, g *Graph, took time.Duration) {
	s := l.of[g.Detail]
	if s == nil {
		if len(l.of) >= maxLevels {
			return
		}
		s = &levelSum{}
		l.of[g.Detail] = s
	}
	s.graphs++
	s.time = plus(s.time, took)
	if g.Phase != PhaseDecode {
		return
	}
	s.decode.add(took)
	s.lanes = max(s.lanes, len(g.Lanes))
	n := l.count(t, g)
	s.nodes += n.executed
	s.fused += n.fused
}

// count is how many nodes one lane computes in a graph: those that were seen, else those
// of its DAG, else all.
func (l *levelSums) count(t *Tables, g *Graph) nodeCount {
	if len(g.Lanes) > 0 && len(g.Lanes[0].Spans) > 0 {
		return nodeCount{executed: len(g.Lanes[0].Spans)}
	}
	if g.DAG == 0 || int(g.DAG) > len(t.DAGs) {
		return nodeCount{executed: g.Nodes}
	}
	n, known := l.nodes[g.DAG]
	if !known {
		d := &t.DAGs[g.DAG-1]
		n = nodeCount{ExecutedNodes(t, d), FusedNodes(t, d)}
		if len(l.nodes) < maxShapes {
			l.nodes[g.DAG] = n
		}
	}
	return n
}

// order are the levels, those of most decode graphs first, then of most graphs.
func (l *levelSums) order() []Detail {
	list := sorted(l.of)
	slices.SortStableFunc(list, func(a, b Detail) int {
		x, y := l.of[a], l.of[b]
		return cmp.Or(cmp.Compare(y.decode.count, x.decode.count), cmp.Compare(y.graphs, x.graphs))
	})
	return list
}

// Level is the level of detail of most decode graphs, of most graphs where none was
// decoded: what the figures rest on, whatever is recorded now. last is that, and the answer
// where no graph was recorded or no event said at which level.
func (t *Tally) Level(last Detail) Detail {
	if list := t.levels.order(); len(list) > 0 && list[0] != 0 {
		return list[0]
	}
	return last
}

// rows are the levels of a trace.
func (l *levelSums) rows(last Detail) []LevelRow {
	rows := []LevelRow{}
	for _, d := range l.order() {
		s := l.of[d]
		rows = append(rows, LevelRow{Detail: cmp.Or(d, last).String(), Graphs: s.graphs, Decode: s.decode.count, Time: s.time})
	}
	return rows
}

// changedLevel is the gap of a trace whose level was changed while it ran.
func changedLevel(rows []LevelRow) []Gap {
	if len(rows) < 2 {
		return nil
	}
	var list []string
	for i := range rows {
		graphs := "graphs"
		if rows[i].Graphs == 1 {
			graphs = "graph"
		}
		list = append(list, fmt.Sprintf("%s for %d %s (%s)", rows[i].Detail, rows[i].Graphs, graphs, spellTime(rows[i].Time)))
	}
	return []Gap{{
		What: "all figures of all graphs",
		Why:  "the level of detail was changed while it ran: " + strings.Join(list, ", ") + "; what a level leaves out is not known of its graphs. A report has what tracing costs at " + rows[0].Detail + ", a screen what it costs now",
	}}
}

// Expectation is what another [Expect] of the target can be reckoned from: the middle one of
// the decode graphs of its [Tally.Level], without what the probes take of it. sites are
// those of the probes, times as in [Expectation]. False where fewer than 20 were decoded,
// or no site is known.
func (t *Tally) Expectation(sites []Site, times float64) (Expectation, bool) {
	d := t.Level(0)
	s := t.levels.of[d]
	if d == 0 || s == nil || s.decode.count < fewestGraphs || len(sites) == 0 {
		return Expectation{}, false
	}
	nodes := s.nodes
	if slices.ContainsFunc(sites, fuses) {
		nodes -= s.fused
	}
	in := Expectation{
		Detail: d, Nodes: (nodes + s.decode.count/2) / s.decode.count, Lanes: s.lanes, Sites: sites, Times: times,
		Graphs: s.decode.count, From: ExpectedTrace,
	}
	took := s.decode.quantile(0.5)
	in.GraphTime = took
	for range 4 { // what a hit costs depends on how far apart they are, a little
		o := Expect(in)
		in.GraphTime = max(took-o.Delay(), took/20, 1)
	}
	return in, true
}

// fuses says that a site is that of an operator which computes a norm and the product
// after it in one.
func fuses(s Site) bool { return strings.HasSuffix(s.Symbol, "_rms_norm_mul_fused") }

// observer is what tracing costs: by the decode graphs of the trace itself where there are
// enough, else as it was reckoned before. Those were few, or of a moment in which other
// programs ran.
func (t *Tally) observer(s *Settings) Observer {
	before := s.Observer
	in, ok := t.Expectation(s.Target.Sites, before.Times)
	if !ok {
		return before
	}
	o := before
	e := Expect(in)
	o.HitsPerToken, o.CostPerHit, o.Expected, o.Threads = e.HitsPerToken, e.CostPerHit, e.Expected, e.Threads
	o.Graphs, o.GraphTime, o.From = e.Graphs, e.GraphTime, e.From
	o.MeanGraph = t.levels.of[in.Detail].decode.mean()
	return o
}
