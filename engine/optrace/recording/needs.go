package recording

import (
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// trimTables returns t if it is within the limits of a recording, or else the part of it that
// events refer to: a source goes on adding entries after the last event that was kept. Since
// refs follow the order of entries, the entries that are not needed are the last ones.
func trimTables(t *optrace.Tables, events []optrace.Event) *optrace.Tables {
	entries := len(t.Tensors) + len(t.Operators) + len(t.Experts) + len(t.Counters) + len(t.DAGs) + len(t.Names)
	for i := range t.DAGs {
		entries += len(t.DAGs[i].Nodes) + len(t.DAGs[i].Leaves)
	}
	if entries <= maxTableEntries {
		return t
	}
	return referencedTables(t, events)
}

// referencedTables returns the tables up to the last entries that events refer to.
func referencedTables(t *optrace.Tables, events []optrace.Event) *optrace.Tables {
	var tensors, last, experts, counters, dags, names uint32
	for i := range events {
		switch ref := events[i].Ref; events[i].Kind {
		case optrace.OpBegin, optrace.FusedBegin:
			last = max(last, ref)
		case optrace.ExpertsChosen:
			experts = max(experts, ref)
		case optrace.CountersRead:
			counters = max(counters, ref)
		case optrace.GraphBegin:
			dags = max(dags, ref)
		case optrace.SplitBegin:
			names = max(names, ref)
		}
	}
	n := &optrace.Tables{
		Experts: upTo(t.Experts, experts), Counters: upTo(t.Counters, counters), DAGs: upTo(t.DAGs, dags), Names: upTo(t.Names, names),
	}
	for i := range n.DAGs {
		for ref := range dagOperators(&n.DAGs[i]) {
			last = max(last, ref)
		}
	}
	n.Operators = upTo(t.Operators, last)
	for i := range n.Operators {
		tensors = max(tensors, n.Operators[i].Out)
		for _, in := range n.Operators[i].In {
			tensors = max(tensors, in)
		}
	}
	n.Tensors = upTo(t.Tensors, tensors)
	return n
}

// upTo returns a table up to the entry with the given ref.
func upTo[T any](table []T, ref uint32) []T {
	return table[:min(int64(ref), int64(len(table)))]
}
