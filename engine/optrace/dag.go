package optrace

import "fmt"

// Edge is one use of a tensor by a node of a [DAG].
type Edge struct {
	// From is the index of the node whose result is used, in [DAG.Nodes], or with Leaf
	// of the leaf, in [DAG.Leaves].
	From int
	Leaf bool
	To   int // index of the node that uses it
	Slot int // which source of To it is, -1 of a view
	// View says that To's memory is a part of From's, whose edge it does not replace: a
	// view has its tensor as a source too.
	View bool
}

// DAGSize counts what a [DAG] has.
type DAGSize struct {
	Nodes  int
	Leaves int
	Edges  int // from nodes to nodes
	Inputs int // from leaves to nodes
	Views  int // nodes that are views of others
	// Unknown are sources that are neither nodes nor leaves: they could not be read.
	Unknown int
}

// origin is where an address of a DAG is from.
type origin struct {
	index int
	leaf  bool
}

// origins are those of all addresses. Where one is there twice the first counts, and
// nodes before leaves.
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

// Edges are all edges of a DAG by the node that they lead to and its slots, that of a
// view last. Sources that could not be read have none.
func Edges(d DAG) []Edge {
	edges, _ := edges(&d)
	return edges
}

func edges(d *DAG) (list []Edge, unknown int) {
	at := origins(d)
	for to := range d.Nodes {
		n := &d.Nodes[to]
		for slot, addr := range n.Sources {
			o, ok := at[addr]
			switch {
			case ok:
				list = append(list, Edge{From: o.index, Leaf: o.leaf, To: to, Slot: slot})
			case addr != 0:
				unknown++
			}
		}
		if o, ok := at[n.View]; ok {
			list = append(list, Edge{From: o.index, Leaf: o.leaf, To: to, Slot: -1, View: true})
		}
	}
	return list, unknown
}

// SizeOf counts nodes, leaves and edges of a DAG.
func SizeOf(d DAG) DAGSize {
	list, unknown := edges(&d)
	size := DAGSize{Nodes: len(d.Nodes), Leaves: len(d.Leaves), Unknown: unknown}
	for _, e := range list {
		switch {
		case e.View:
		case e.Leaf:
			size.Inputs++
		default:
			size.Edges++
		}
	}
	for i := range d.Nodes {
		if d.Nodes[i].View != 0 {
			size.Views++
		}
	}
	return size
}

// CheckOrder says what is wrong with the order of a DAG: GGML computes nodes in the
// order of the graph, so that every source stands before what uses it. It is nil where
// that holds; a graph that is read while it is changed, or by a wrong layout, breaks it.
func CheckOrder(d DAG) error {
	seen := make(map[uint64]int, len(d.Nodes))
	for i := range d.Nodes {
		addr := d.Nodes[i].Addr
		if before, twice := seen[addr]; twice {
			return fmt.Errorf("nodes %d and %d of the graph have one address, %#x", before, i, addr)
		}
		seen[addr] = i
	}
	for _, e := range Edges(d) {
		if !e.Leaf && e.From >= e.To {
			return fmt.Errorf("node %d of the graph is computed from node %d, which comes after it", e.To, e.From)
		}
	}
	return nil
}
