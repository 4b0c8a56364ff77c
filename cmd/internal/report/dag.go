package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// dagNode is a node or a leaf of a graph, or one of each of several layers that are
// drawn as one.
type dagNode struct {
	op, name   string
	shape      string // type and elements
	leaf, view bool
	layer      int      // -1 none
	share      stat.Opt // of the time of the phase's operators, of all that it stands for
	times      int      // nodes that it stands for
	group      int      // index of its group, -1 none
}

// dagEdge leads to a node from one that it uses.
type dagEdge struct {
	from, to int
	view     bool
	back     bool // to the next of the layers that are drawn as one
}

// dagGroup are layers that are drawn as one.
type dagGroup struct{ first, last, layers int }

// dagDrawing is a graph to draw. Nodes stand in the order of their computation, leaves
// after them.
type dagDrawing struct {
	nodes  []dagNode
	edges  []dagEdge
	groups []dagGroup
	phase  string // whose shares of time the nodes have, "" none
}

// drawingOf takes a graph and the shares of time of its nodes from s, which may be nil.
func drawingOf(t *optrace.Tables, d *optrace.DAG, s *optrace.Summary) *dagDrawing {
	out := &dagDrawing{}
	edges := optrace.Edges(*d)
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
		if used[i] { // others are of no use to this graph
			leaf[i] = len(out.nodes)
			out.nodes = append(out.nodes, nodeOf(t, &d.Leaves[i], true))
		}
	}
	seen := map[dagEdge]bool{}
	for _, e := range edges {
		x := dagEdge{from: e.From, to: e.To, view: e.View}
		if e.Leaf {
			x.from = leaf[e.From]
		}
		if other := (dagEdge{from: x.from, to: x.to, view: !e.View}); seen[x] || e.View && seen[other] {
			continue // a view has its tensor as a source too
		}
		seen[x] = true
		out.edges = append(out.edges, x)
	}
	out.adopt()
	out.times(s)
	return out
}

// adopt gives nodes without a name of their own the layer of what uses them, else that
// of what they are computed of.
func (g *dagDrawing) adopt() {
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

func nodeOf(t *optrace.Tables, n *optrace.Node, leaf bool) dagNode {
	op := t.Operator(n.Operator)
	tensor := t.Tensor(op.Out)
	layer, _ := optrace.LayerOf(tensor.Name)
	name := strings.TrimSpace(op.Op + " " + op.Sub)
	if leaf {
		name = ""
	}
	return dagNode{op: safe(name), name: safe(tensor.Name), shape: safe(tensorShape(tensor)), leaf: leaf, view: viewOp(op.Op), layer: max(-1, layer), times: 1, group: -1}
}

// viewOp says that an operator computes nothing: its result is the memory of another.
func viewOp(op string) bool {
	switch op {
	case "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE":
		return true
	}
	return false
}

// unnamedTensor says that GGML made the name up.
func unnamedTensor(name string) bool {
	return name == "" || strings.HasPrefix(name, "node_") || strings.HasPrefix(name, " (")
}

// tensorShape is a type with the elements of each dimension, as far as there are any.
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

// stepKey names a step as a summary does: its operator, and its tensor's name without
// its layer and what GGML adds for a view.
func stepKey(op, name string) string {
	_, rest := optrace.LayerOf(name)
	rest, _, _ = strings.Cut(rest, " (")
	op, _, _ = strings.Cut(op, " ")
	return op + "\x00" + strings.Trim(rest, "_ ")
}

// times gives each node its share: a step's, divided among its nodes.
func (g *dagDrawing) times(s *optrace.Summary) {
	if s == nil {
		return
	}
	for _, phase := range phasesByTime(s) {
		if g.phase == "" || phase == "decode" {
			g.phase = phase
		}
	}
	shares := map[string]stat.Opt{}
	for i := range s.Steps {
		if o := &s.Steps[i]; o.Phase == g.phase {
			for _, key := range [...]string{stepKey(o.Op, o.Name), stepKey("", o.Name)} {
				shares[key] = shares[key].Plus(finite(o.Share))
			}
		}
	}
	counts := map[string]int{}
	each := func(visit func(n *dagNode, key string)) {
		for i := range g.nodes {
			n := &g.nodes[i]
			if n.leaf {
				continue
			}
			key := n.step(shares)
			if _, computed := shares[key]; computed || !n.view { // builds of 2025 pass views to their threads as well
				visit(n, key)
			}
		}
	}
	each(func(_ *dagNode, key string) { counts[key]++ })
	each(func(n *dagNode, key string) { n.share = shares[key].Times(1 / float64(counts[key])) })
}

// step is the key of a node's step among those that there are: by its operator and its
// name, without a name by its operator alone, as a summary names such steps. A product
// that is fused with a norm goes by its name: the step has the norm's operator.
func (n *dagNode) step(shares map[string]stat.Opt) string {
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

// folded draws layers in a row that are alike as one.
func (g *dagDrawing) folded() *dagDrawing {
	members := g.members()
	layers := slices.Clone(members.layers)
	out := &dagDrawing{phase: g.phase}
	stands := make([]int, len(g.nodes)) // for each node the one that stands for it
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
			out.groups = append(out.groups, dagGroup{layers[i], layers[j-1], j - i})
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
	seen := map[dagEdge]bool{}
	for _, e := range g.edges {
		from, to := &g.nodes[e.from], &g.nodes[e.to]
		x := dagEdge{from: place[stands[e.from]], to: place[stands[e.to]], view: e.view}
		x.back = from.group >= 0 && from.group == to.group && from.layer != to.layer || !from.leaf && x.from >= x.to
		if !seen[x] {
			seen[x] = true
			out.edges = append(out.edges, x)
		}
	}
	return out
}

// layerMembers are the nodes of each layer, and what tells layers apart.
type layerMembers struct {
	layers    []int
	of        map[int][]int
	signature map[int]string
}

func (g *dagDrawing) members() layerMembers {
	m := layerMembers{of: map[int][]int{}, signature: map[int]string{}}
	// Leaves stand in the order in which they are used.
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

// lines are the label of a node.
func (n *dagNode) lines(folded bool) []string {
	name := n.name
	if folded && n.group >= 0 {
		if _, name = optrace.LayerOf(n.name); unnamedTensor(n.name) {
			name = ""
		}
	}
	last := n.shape
	if n.share.OK {
		last += " · " + figure.Percent(n.share.V) + " %"
	}
	return nonEmpty(n.op, name, last)
}
