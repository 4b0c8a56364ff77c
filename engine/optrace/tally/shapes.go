package tally

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// maxShapes is the number of distinct graphs that are counted.
const maxShapes = 256

// shapeRows returns the graphs that were read, those that were computed most often first.
func (t *Tally) shapeRows() []optrace.GraphShape {
	rows := []optrace.GraphShape{}
	for _, ref := range slices.Sorted(maps.Keys(t.shapes)) {
		d := t.t.DAG(ref)
		if d == nil {
			continue
		}
		row := optrace.GraphShape{DAG: ref, Nodes: len(d.Nodes), Edges: len(optrace.Edges(d)), Leaves: len(d.Leaves), Graphs: t.shapes[ref]}
		for i := range d.Nodes {
			if d.Nodes[i].View != 0 {
				row.Views++
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b optrace.GraphShape) int { return cmp.Compare(b.Graphs, a.Graphs) })
	return rows
}

// gaps returns the gaps of the run, and what the figures lack.
func (t *Tally) gaps(s *Settings) []optrace.Gap {
	gaps := append([]optrace.Gap{}, s.Gaps...)
	if t.overflow {
		gaps = append(gaps, optrace.Gap{What: "rows", Why: "there were more operators, layers or threads than a trace distinguishes", Next: "the row \"others\" sums up the remaining ones; trace for a shorter time"})
	}
	if s.Cut > 0 {
		gaps = append(gaps, optrace.Gap{What: "the phase of some calls", Why: figure.Counted(s.Cut, "call") + " cut by a pause, a change of detail or a loss; left out of every figure"})
	}
	gaps = append(gaps, t.mute.gaps(s.Detail, t.graphs)...)
	if t.graphs > 0 && t.calls == 0 {
		gap := optrace.Gap{What: "calls", Why: "no call that computes a batch was seen", Next: "tokens and rates are those of graphs, without the time between them"}
		if !t.namesLogits() {
			gap.What, gap.Why, gap.Next = "calls and tokens", gap.Why+", and no result is called "+optrace.LogitsName, "it is unknown how other graphs show tokens; their times are right"
		}
		gaps = append(gaps, gap)
	}
	return gaps
}
