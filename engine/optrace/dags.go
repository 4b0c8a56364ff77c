package optrace

// dagBook tracks the DAGs of graphs.
type dagBook struct {
	t        *Tables
	newest   map[graphKey]uint32            // refs
	nodes    map[uint32]map[uint64]struct{} // addresses, by ref
	uneven   map[uint32]int                 // number of graphs whose compute threads differ, by ref, or everEven
	products map[uint32]struct{}            // refs of DAGs with a matrix product
}

// begin returns the ref of a graph's DAG: the one that was read when it began, or else the
// newest one of its address if it has as many nodes; 0 if there is none.
func (b *dagBook) begin(e *Event) uint32 {
	key := graphKey{e.PID, e.Addr}
	if b.t.DAG(e.Ref) == nil {
		ref := b.newest[key]
		if d := b.t.DAG(ref); d == nil || e.N > 0 && int64(len(d.Nodes)+d.Truncated) != e.N {
			return 0
		}
		return ref
	}
	if len(b.newest) >= maxNewestDAGs {
		clear(b.newest)
	}
	b.newest[key] = e.Ref
	return e.Ref
}

// lacksEvents reports whether events of a graph are missing whose loss was not reported yet: losses
// are reported with the next event of their CPU, which may come after the graph's end. All
// compute threads of GGML pass all nodes, so they have the same number of operators. If they
// never do in graphs of a DAG, that is how they are computed, and the graphs are complete.
func (b *dagBook) lacksEvents(g *building) bool {
	n, workers, even := 0, 0, true
	for _, w := range g.workers {
		if w == nil || len(w.Spans) == 0 {
			continue
		}
		if workers++; workers > 1 && len(w.Spans) != n {
			even = false
		}
		n = len(w.Spans)
	}
	if workers < 2 {
		return false
	}
	if len(b.uneven) >= maxNewestDAGs {
		clear(b.uneven)
	}
	switch {
	case even:
		b.uneven[g.DAG] = everEven
		return false
	case b.uneven[g.DAG] == everEven:
		return true
	}
	b.uneven[g.DAG]++
	return b.uneven[g.DAG] <= maxUneven
}

// lacksProducts reports whether a graph lacks the products that others of its DAG had: the probes of
// its operators were detached, or attached, while it was computed, which is reported later.
func (b *dagBook) lacksProducts(g *building) bool {
	if len(g.first.Spans) == 0 || g.DAG == 0 {
		return false
	}
	if b.shape(g).tokens > 0 {
		if len(b.products) >= maxNewestDAGs {
			clear(b.products)
		}
		b.products[g.DAG] = struct{}{}
		return false
	}
	_, had := b.products[g.DAG]
	return had
}

// everEven marks a DAG whose compute threads had the same number of operators at least once.
const everEven = -1

// addresses returns the addresses of the nodes of a DAG, nil if there is none.
func (b *dagBook) addresses(dag uint32) map[uint64]struct{} {
	d := b.t.DAG(dag)
	if d == nil {
		return nil
	}
	if set, ok := b.nodes[dag]; ok {
		return set
	}
	if len(b.nodes) >= maxPlaces {
		clear(b.nodes)
	}
	set := make(map[uint64]struct{}, len(d.Nodes))
	for i := range d.Nodes {
		set[d.Nodes[i].Addr] = struct{}{}
	}
	b.nodes[dag] = set
	return set
}
