package recording

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// A source goes on adding to its tables after the last event that is kept: only what events
// need is kept.
func TestTablesThatAreTooLargeAreCut(t *testing.T) {
	small := &optrace.Tables{
		Tensors: make([]optrace.Tensor, 4), Operators: []optrace.Operator{{Out: 2, In: []uint32{3}}, {Out: 1}, {Out: 4}}, Experts: make([]optrace.ExpertChoice, 2),
		Counters: make([]optrace.CounterSet, 3), DAGs: []optrace.DAG{{Nodes: []optrace.Node{{Operator: 1}}}, {Nodes: []optrace.Node{{Operator: 3}}}}, Names: []string{"CPU"},
	}
	events := []optrace.Event{{Kind: optrace.GraphBegin, Ref: 1}, {Kind: optrace.OpBegin, Ref: 2}, {Kind: optrace.ExpertsChosen, Ref: 1}, {Kind: optrace.CountersRead, Ref: 2}}
	cut := referencedTables(small, events)
	for what, n := range map[string][2]int{
		"tensors": {len(cut.Tensors), 3}, "operators": {len(cut.Operators), 2}, "experts": {len(cut.Experts), 1},
		"counters": {len(cut.Counters), 2}, "DAGs": {len(cut.DAGs), 1}, "names": {len(cut.Names), 0},
	} {
		if n[0] != n[1] {
			t.Errorf("%d %s are kept, want %d", n[0], what, n[1])
		}
	}
	large := &optrace.Tables{DAGs: make([]optrace.DAG, 70)}
	for i := range large.DAGs {
		large.DAGs[i].Nodes = make([]optrace.Node, 1<<16)
	}
	if got := trimTables(large, events[:1]); len(got.DAGs) != 1 {
		t.Errorf("%d DAGs of %d, want the one that is needed", len(got.DAGs), len(large.DAGs))
	}
	if got := trimTables(small, nil); got != small {
		t.Error("tables that fit were cut")
	}
}
