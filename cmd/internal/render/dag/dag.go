// Package dag draws computation graphs as DOT for Graphviz, and as SVG with its own layout. No Go library lays out
// graphs of thousands of nodes with identical layers folded, and traced machines do not have Graphviz.
package dag

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// node is a node or leaf of a graph, or the equal nodes of several layers that are drawn as one.
type node struct {
	op, name   string
	shape      string // type and dimensions
	leaf, view bool
	layer      int      // -1 if none
	share      stat.Opt // share of its nodes in the time of the phase's operators
	times      int      // number of nodes it represents
	group      int      // index of its group, -1 if none
}

// edge is an edge from a source to the node that uses it.
type edge struct {
	from, to int
	view     bool
	back     bool // leads to the next of several folded layers
}

// fold is a group of equal layers drawn as one.
type fold struct{ first, last, layers int }

// drawing is a graph to draw. Nodes are in computation order, followed by leaves.
type drawing struct {
	nodes  []node
	edges  []edge
	groups []fold
	phase  string // phase of the nodes' shares, "" if none
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
	return node{op: lines.Safe(name, false), name: lines.Safe(tensor.Name, false), shape: lines.Safe(tensorShape(tensor), false), leaf: leaf, view: viewOp(op.Op), layer: max(-1, layer), times: 1, group: -1}
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
	g.phase = trace.MainPhase(s)
	shares := map[string]stat.Opt{}
	for i := range s.Steps {
		if o := &s.Steps[i]; o.Phase == g.phase {
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

// folded returns the drawing with consecutive equal layers drawn as one.
func (g *drawing) folded() *drawing {
	members := g.members()
	layers := slices.Clone(members.layers)
	out := &drawing{phase: g.phase}
	stands := make([]int, len(g.nodes)) // index of the representing node, for each node
	for i := range stands {
		stands[i] = i
	}
	for i := 0; i < len(layers); {
		j := i + 1
		for j < len(layers) && layers[j] == layers[j-1]+1 && members.signature[layers[j]] == members.signature[layers[i]] {
			j++
		}
		if j-i > 1 {
			group := len(out.groups)
			out.groups = append(out.groups, fold{layers[i], layers[j-1], j - i})
			for _, layer := range layers[i:j] {
				for at, n := range members.of[layer] {
					stands[n], g.nodes[n].group = members.of[layers[i]][at], group
				}
			}
		}
		i = j
	}
	place := make([]int, len(g.nodes))
	for i := range g.nodes {
		if stands[i] == i {
			place[i] = len(out.nodes)
			out.nodes = append(out.nodes, g.nodes[i])
		} else {
			n := &out.nodes[place[stands[i]]]
			n.times += g.nodes[i].times
			n.share = n.share.Plus(g.nodes[i].share)
		}
	}
	seen := map[edge]bool{}
	for _, e := range g.edges {
		from, to := &g.nodes[e.from], &g.nodes[e.to]
		x := edge{from: place[stands[e.from]], to: place[stands[e.to]], view: e.view}
		x.back = from.group >= 0 && from.group == to.group && from.layer != to.layer || !from.leaf && x.from >= x.to
		if !seen[x] {
			seen[x] = true
			out.edges = append(out.edges, x)
		}
	}
	return out
}

// layerMembers are the nodes of each layer, and a signature by which layers are compared.
type layerMembers struct {
	layers    []int
	of        map[int][]int
	signature map[int]string
}

func (g *drawing) members() layerMembers {
	m := layerMembers{of: map[int][]int{}, signature: map[int]string{}}
	// Order leaves by first use.
	use := map[int]int{}
	for i, e := range g.edges {
		if _, used := use[e.from]; !used {
			use[e.from] = i
		}
	}
	for i := range g.nodes {
		if l := g.nodes[i].layer; l >= 0 {
			if m.of[l] == nil {
				m.layers = append(m.layers, l)
			}
			m.of[l] = append(m.of[l], i)
		}
	}
	slices.Sort(m.layers)
	at := map[int]int{}
	for _, l := range m.layers {
		slices.SortStableFunc(m.of[l], func(a, b int) int {
			x, y := &g.nodes[a], &g.nodes[b]
			if x.leaf && y.leaf {
				return cmp.Compare(use[a], use[b])
			}
			return cmp.Compare(a, b)
		})
		for i, n := range m.of[l] {
			at[n] = i
		}
	}
	sources := map[int][]int{}
	for _, e := range g.edges {
		if l := g.nodes[e.from].layer; l >= 0 && l == g.nodes[e.to].layer {
			sources[e.to] = append(sources[e.to], at[e.from])
		}
	}
	for _, l := range m.layers {
		var b strings.Builder
		for _, i := range m.of[l] {
			n := &g.nodes[i]
			_, rest := optrace.LayerOf(n.name)
			fmt.Fprintf(&b, "%q %q %q %v %v %v\n", n.op, rest, n.shape, n.leaf, n.view, sources[i])
		}
		m.signature[l] = b.String()
	}
	return m
}

// lines returns the label of a node.
func (n *node) lines(folded bool) []string {
	name := n.name
	if folded && n.group >= 0 {
		if _, name = optrace.LayerOf(n.name); unnamedTensor(n.name) {
			name = ""
		}
	}
	last := n.shape
	if n.share.OK {
		last += " · " + figure.PercentSign(n.share.V)
	}
	return slices.DeleteFunc([]string{n.op, name, last}, func(s string) bool { return s == "" })
}
