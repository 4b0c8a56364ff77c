package optrace

// fitting are tables that are not too large for a recording, or what of them events
// need: a source goes on adding entries after the last event that was kept. As refs
// count in the order of entries, what is not needed is at the ends.
func fitting(t *Tables, events []Event) *Tables {
	entries := len(t.Tensors) + len(t.Operators) + len(t.Experts) + len(t.Counters) + len(t.DAGs) + len(t.Names)
	for i := range t.DAGs {
		entries += len(t.DAGs[i].Nodes) + len(t.DAGs[i].Leaves)
	}
	if entries <= maxTableEntries {
		return t
	}
	return needed(t, events)
}

// needed are the tables up to the last entries that events lead to.
func needed(t *Tables, events []Event) *Tables {
	var tensors, operators, experts, counters, dags, names uint32
	for i := range events {
		switch ref := events[i].Ref; events[i].Kind {
		case OpBegin, FusedBegin:
			operators = max(operators, ref)
		case ExpertsChosen:
			experts = max(experts, ref)
		case CountersRead:
			counters = max(counters, ref)
		case GraphBegin:
			dags = max(dags, ref)
		case SplitBegin:
			names = max(names, ref)
		}
	}
	n := &Tables{
		Experts: upTo(t.Experts, experts), Counters: upTo(t.Counters, counters), DAGs: upTo(t.DAGs, dags), Names: upTo(t.Names, names),
	}
	for i := range n.DAGs {
		for _, nodes := range [][]Node{n.DAGs[i].Nodes, n.DAGs[i].Leaves} {
			for k := range nodes {
				operators = max(operators, nodes[k].Operator)
			}
		}
	}
	n.Operators = upTo(t.Operators, operators)
	for i := range n.Operators {
		tensors = max(tensors, n.Operators[i].Out)
		for _, in := range n.Operators[i].In {
			tensors = max(tensors, in)
		}
	}
	n.Tensors = upTo(t.Tensors, tensors)
	return n
}

// upTo is a table up to a ref.
func upTo[T any](table []T, ref uint32) []T {
	return table[:min(int64(ref), int64(len(table)))]
}
