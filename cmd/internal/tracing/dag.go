package tracing

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// node is a node or leaf of a graph.
type node struct {
	op, name   string
	shape      string // type and dimensions
	leaf, view bool
	layer      int      // -1 if none
	share      stat.Opt // share of its nodes in the time of the phase's operators
}

// edge is an edge from a source to the node that uses it.
type edge struct {
	from, to int
	view     bool
}

// drawing is a graph to draw. Nodes are in computation order, followed by leaves.
type drawing struct {
	nodes []node
	edges []edge
}

// drawingOf converts a graph, with the shares of time of its nodes from s, which may be nil.
func drawingOf(t *optrace.Tables, d *optrace.DAG, s *optrace.Summary) *drawing {
	out := &drawing{}
	edges := optrace.Edges(d)
	used := map[int]bool{}
	for _, e := range edges {
		if e.Leaf {
			used[e.From] = true
		}
	}
	for i := range d.Nodes {
		out.nodes = append(out.nodes, nodeOf(t, &d.Nodes[i], false))
	}
	leaf := map[int]int{}
	for i := range d.Leaves {
		if used[i] { // skip unused leaves
			leaf[i] = len(out.nodes)
			out.nodes = append(out.nodes, nodeOf(t, &d.Leaves[i], true))
		}
	}
	seen := map[edge]bool{}
	for _, e := range edges {
		x := edge{from: e.From, to: e.To, view: e.View}
		if e.Leaf {
			x.from = leaf[e.From]
		}
		if other := (edge{from: x.from, to: x.to, view: !e.View}); seen[x] || e.View && seen[other] {
			continue // a view also lists its tensor as a source
		}
		seen[x] = true
		out.edges = append(out.edges, x)
	}
	out.assignLayers()
	out.setShares(s)
	return out
}

// assignLayers assigns nodes without a name of their own to the layer that uses them, or else to that of their sources.
func (g *drawing) assignLayers() {
	for _, e := range slices.Backward(g.edges) {
		if from := &g.nodes[e.from]; !from.leaf && from.layer < 0 && unnamedTensor(from.name) {
			from.layer = g.nodes[e.to].layer
		}
	}
	for _, e := range g.edges {
		if to := &g.nodes[e.to]; to.layer < 0 && unnamedTensor(to.name) {
			to.layer = g.nodes[e.from].layer
		}
	}
}

func nodeOf(t *optrace.Tables, n *optrace.Node, leaf bool) node {
	op := t.Operator(n.Operator)
	tensor := t.Tensor(op.Out)
	layer, _ := optrace.LayerOf(tensor.Name)
	name := strings.TrimSpace(op.Op + " " + op.Sub)
	if leaf {
		name = ""
	}
	return node{op: lines.Safe(name, false), name: lines.Safe(tensor.Name, false), shape: lines.Safe(tensorShape(tensor), false), leaf: leaf, view: viewOp(op.Op), layer: max(-1, layer)}
}

// viewOp reports whether an operator only refers to another tensor's memory.
func viewOp(op string) bool {
	switch op {
	case "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE":
		return true
	}
	return false
}

// unnamedTensor reports whether GGML generated the name.
func unnamedTensor(name string) bool {
	return name == "" || strings.HasPrefix(name, "node_") || strings.HasPrefix(name, " (")
}

// tensorShape returns the type and the dimensions of a tensor, without trailing ones.
func tensorShape(t optrace.Tensor) string {
	n := len(t.NE)
	for n > 1 && t.NE[n-1] <= 1 {
		n--
	}
	var dims []string
	for _, d := range t.NE[:n] {
		dims = append(dims, strconv.FormatInt(d, 10))
	}
	return strings.TrimSpace(t.Type + " [" + strings.Join(dims, "×") + "]")
}

// stepKey returns the key of a step in a summary: its operator, and its tensor's name without the layer and GGML's
// suffixes for views.
func stepKey(op, name string) string {
	_, rest := optrace.LayerOf(name)
	rest, _, _ = strings.Cut(rest, " (")
	op, _, _ = strings.Cut(op, " ")
	return op + "\x00" + strings.Trim(rest, "_ ")
}

// setShares sets the share of each node: that of a step, divided among its nodes.
func (g *drawing) setShares(s *optrace.Summary) {
	if s == nil {
		return
	}
	phase := trace.MainPhase(s)
	shares := map[string]stat.Opt{}
	for i := range s.Steps {
		if o := &s.Steps[i]; o.Phase == phase {
			for _, key := range [...]string{stepKey(o.Op, o.Name), stepKey("", o.Name)} {
				shares[key] = shares[key].Plus(o.Share.Finite())
			}
		}
	}
	counts := map[string]int{}
	each := func(visit func(n *node, key string)) {
		for i := range g.nodes {
			n := &g.nodes[i]
			if n.leaf {
				continue
			}
			key := n.step(shares)
			if _, computed := shares[key]; computed || !n.view { // builds of 2025 also schedule views
				visit(n, key)
			}
		}
	}
	each(func(_ *node, key string) { counts[key]++ })
	each(func(n *node, key string) { n.share = shares[key].Times(1 / float64(counts[key])) })
}

// step returns the key of a node's step in shares: by operator and name, or by operator alone for steps without a name.
// A product fused with a norm is found by its name, because the step has the norm's operator.
func (n *node) step(shares map[string]stat.Opt) string {
	op, _, _ := strings.Cut(n.op, " ")
	key := stepKey(op, n.name)
	if unnamedTensor(n.name) {
		key = stepKey(op, strings.ToLower(op))
	}
	if _, known := shares[key]; !known && op == "MUL" {
		return stepKey("", n.name)
	}
	return key
}

// lines returns the label of a node.
func (n *node) lines() []string {
	last := n.shape
	if n.share.OK {
		last += " · " + figure.PercentSign(n.share.V)
	}
	return slices.DeleteFunc([]string{n.op, n.name, last}, func(s string) bool { return s == "" })
}
