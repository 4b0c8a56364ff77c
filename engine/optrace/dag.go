package optrace

// Edge is one use of a tensor by a node of a [DAG].
type Edge struct {
	// From is the index of the node whose result is used in [DAG.Nodes], or with Leaf the index
	// in [DAG.Leaves].
	From int
	Leaf bool
	To   int // index of the node that uses it
	// View reports whether To's memory is a part of From's. A view also has an edge as a
	// source, which this one does not replace.
	View bool
}

// origin is the node or leaf that an address of a DAG belongs to.
type origin struct {
	index int
	leaf  bool
}

// origins maps all addresses of a DAG to their nodes and leaves. Nodes take precedence over
// leaves, and the first of several entries with one address counts.
func origins(d *DAG) map[uint64]origin {
	at := make(map[uint64]origin, len(d.Nodes)+len(d.Leaves))
	for i := len(d.Leaves) - 1; i >= 0; i-- {
		at[d.Leaves[i].Addr] = origin{i, true}
	}
	for i := len(d.Nodes) - 1; i >= 0; i-- {
		at[d.Nodes[i].Addr] = origin{i, false}
	}
	delete(at, 0)
	return at
}

// Edges returns all edges of a DAG, ordered by the node that they lead to and by source, a
// view's edge last. Sources that could not be read have no edge.
func Edges(d *DAG) []Edge {
	var list []Edge
	at := origins(d)
	for to := range d.Nodes {
		n := &d.Nodes[to]
		for _, addr := range n.Sources {
			if o, ok := at[addr]; ok {
				list = append(list, Edge{From: o.index, Leaf: o.leaf, To: to})
			}
		}
		if o, ok := at[n.View]; ok {
			list = append(list, Edge{From: o.index, Leaf: o.leaf, To: to, View: true})
		}
	}
	return list
}
