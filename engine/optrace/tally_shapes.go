package optrace

import (
	"cmp"
	"fmt"
	"slices"
)

// maxShapes is the number of distinct graphs that are told apart.
const maxShapes = 256

// shapeRows are the graphs that were read, those that were computed most first.
func (t *Tally) shapeRows() []GraphShape {
	rows := []GraphShape{}
	for _, ref := range sorted(t.shapes) {
		if int(ref) > len(t.t.DAGs) {
			continue
		}
		d := &t.t.DAGs[ref-1]
		row := GraphShape{DAG: ref, Nodes: len(d.Nodes), Edges: len(Edges(*d)), Leaves: len(d.Leaves), Graphs: t.shapes[ref]}
		for i := range d.Nodes {
			if d.Nodes[i].View != 0 {
				row.Views++
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b GraphShape) int { return cmp.Compare(b.Graphs, a.Graphs) })
	return rows
}

// gaps are those of the run, and what the figures lack.
func (t *Tally) gaps(s *Settings) []Gap {
	gaps := append([]Gap{}, s.Gaps...)
	if t.overflow {
		gaps = append(gaps, Gap{What: "rows", Why: "there were more operators, layers or threads than a trace tells apart", Next: "the row \"others\" holds the rest; trace for a shorter time"})
	}
	if s.Cut > 0 {
		calls := "calls were"
		if s.Cut == 1 {
			calls = "call was"
		}
		gaps = append(gaps, Gap{What: "the phase of some calls", Why: fmt.Sprintf("%d %s cut by a pause, a change of detail or a loss, and left out of every figure", s.Cut, calls)})
	}
	gaps = append(gaps, t.mute.gaps(s.Detail, t.graphs)...)
	if t.graphs > 0 && t.calls == 0 {
		gap := Gap{What: "calls", Why: "none that computes a batch was seen", Next: "tokens and their rates are those of graphs, less what lies between them"}
		if !t.namesLogits() {
			gap.What, gap.Why, gap.Next = "calls and tokens", gap.Why+", and no result is called "+logits, "what tells tokens in other graphs is not known; their times are right"
		}
		gaps = append(gaps, gap)
	}
	return append(gaps, changedLevel(t.levels.rows(s.Detail))...)
}
