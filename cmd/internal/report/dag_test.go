package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// graphMaker builds tables and a DAG, as GGML would.
type graphMaker struct {
	t optrace.Tables
	d optrace.DAG
}

// tensor is a node, or a leaf where op is "NONE"; it returns its address.
func (m *graphMaker) tensor(op, sub, name, typ string, view uint64, ne [4]int64, sources ...uint64) uint64 {
	m.t.Tensors = append(m.t.Tensors, optrace.Tensor{Name: name, Type: typ, NE: ne})
	made := optrace.Operator{Op: op, Sub: sub, Out: uint32(len(m.t.Tensors))}
	for _, addr := range sources {
		made.In = append(made.In, uint32((addr-0x10000)/0x150))
	}
	m.t.Operators = append(m.t.Operators, made)
	addr := 0x10000 + uint64(len(m.t.Tensors))*0x150
	n := optrace.Node{Addr: addr, Operator: uint32(len(m.t.Operators)), Sources: sources, View: view}
	if op == "NONE" {
		m.d.Leaves = append(m.d.Leaves, n)
	} else {
		m.d.Nodes = append(m.d.Nodes, n)
	}
	return addr
}

func (m *graphMaker) leaf(name, typ string, ne ...int64) uint64 {
	return m.tensor("NONE", "", name, typ, 0, dims(ne))
}

func (m *graphMaker) node(op, name string, ne []int64, sources ...uint64) uint64 {
	return m.tensor(op, "", name, "f32", 0, dims(ne), sources...)
}

func (m *graphMaker) view(op, name string, of uint64, ne ...int64) uint64 {
	return m.tensor(op, "", name, "f16", of, dims(ne), of)
}

func dims(ne []int64) [4]int64 {
	out := [4]int64{1, 1, 1, 1}
	copy(out[:], ne)
	return out
}

// llamaGraph is the graph of a dense model as llama.cpp builds it; the last layer has
// one node more than the others, and its norms have names that GGML made up.
func llamaGraph(layers int) (*optrace.Tables, *optrace.DAG) {
	m := &graphMaker{}
	const d, ff, vocab, kv = 2048, 5632, 32000, 256
	embd := []int64{d, 1}
	tokens, pos, mask, out := m.leaf("inp_tokens", "i32", 1), m.leaf("inp_pos", "i32", 1), m.leaf("KQ_mask", "f16", kv, 1), m.leaf("inp_out_ids", "i32", 1)
	x := m.node("GET_ROWS", "inp_embd", embd, m.leaf("token_embd.weight", "q4_0", d, vocab), tokens)
	for l := range layers {
		n := func(name string) string { return fmt.Sprintf("%s-%d", name, l) }
		w := func(name, typ string, ne ...int64) uint64 {
			return m.leaf(fmt.Sprintf("blk.%d.%s.weight", l, name), typ, ne...)
		}
		norm := m.node("MUL", n("attn_norm"), embd, m.node("RMS_NORM", fmt.Sprintf("node_%d", len(m.d.Nodes)), embd, x), w("attn_norm", "f32", d))
		q := m.node("MUL_MAT", n("Qcur"), embd, w("attn_q", "q4_0", d, d), norm)
		k := m.node("MUL_MAT", n("Kcur"), []int64{256, 1}, w("attn_k", "q4_0", d, 256), norm)
		v := m.node("MUL_MAT", n("Vcur"), []int64{256, 1}, w("attn_v", "q4_0", d, 256), norm)
		q = m.node("ROPE", n("Qcur"), []int64{64, 32}, m.view("RESHAPE", n("Qcur")+" (reshaped)", q, 64, 32), pos)
		k = m.node("ROPE", n("Kcur"), []int64{64, 4}, m.view("RESHAPE", n("Kcur")+" (reshaped)", k, 64, 4), pos)
		ck, cv := m.leaf(fmt.Sprintf("cache_k_l%d", l), "f16", 256, 4096), m.leaf(fmt.Sprintf("cache_v_l%d", l), "f16", 256, 4096)
		sk := m.node("SET_ROWS", fmt.Sprintf("cache_k_l%d (view)", l), []int64{256, 4096}, k, ck)
		sv := m.node("SET_ROWS", fmt.Sprintf("cache_v_l%d (view)", l), []int64{256, 4096}, v, cv)
		vk := m.view("VIEW", fmt.Sprintf("cache_k_l%d (view)", l), sk, 64, kv, 4)
		vv := m.view("VIEW", fmt.Sprintf("cache_v_l%d (view)", l), sv, 64, kv, 4)
		attn := m.node("FLASH_ATTN_EXT", fmt.Sprintf("__fattn__-%d", l), []int64{64, 32}, m.view("PERMUTE", n("Qcur")+" (permuted)", q, 64, 1, 32), vk, vv, mask)
		o := m.node("MUL_MAT", n("attn_out"), embd, w("attn_output", "q4_0", d, d), m.view("RESHAPE", n("kqv_out"), attn, d, 1))
		if l == layers-1 {
			o = m.node("GET_ROWS", n("last"), embd, o, out)
		}
		inp := m.node("ADD", n("ffn_inp"), embd, o, x)
		norm = m.node("MUL", n("ffn_norm"), embd, m.node("RMS_NORM", fmt.Sprintf("node_%d", len(m.d.Nodes)), embd, inp), w("ffn_norm", "f32", d))
		up := m.node("MUL_MAT", n("ffn_up"), []int64{ff, 1}, w("ffn_up", "q4_0", d, ff), norm)
		gate := m.node("MUL_MAT", n("ffn_gate"), []int64{ff, 1}, w("ffn_gate", "q4_0", d, ff), norm)
		glu := m.tensor("GLU", "SWIGLU", n("ffn_swiglu"), "f32", 0, dims([]int64{ff, 1}), gate, up)
		x = m.node("ADD", n("l_out"), embd, m.node("MUL_MAT", n("ffn_out"), embd, w("ffn_down", "q4_0", ff, d), glu), inp)
	}
	norm := m.node("MUL", "result_norm", embd, m.node("RMS_NORM", "norm", embd, x), m.leaf("output_norm.weight", "f32", d))
	m.node("MUL_MAT", "result_output", []int64{vocab, 1}, m.leaf("output.weight", "q8_0", d, vocab), norm)
	m.leaf("rope_freqs.weight", "f32", 32) // of no use here
	return &m.t, &m.d
}

func dagSVG(t testing.TB, tables *optrace.Tables, d *optrace.DAG, s *optrace.Summary) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteDAGSVG(&b, tables, d, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func dagDOT(t testing.TB, tables *optrace.Tables, d *optrace.DAG, s *optrace.Summary) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteDOT(&b, tables, d, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// checkXML says what is wrong with a document of XML.
func checkXML(doc []byte) error {
	d := xml.NewDecoder(bytes.NewReader(doc))
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if depth != 0 {
				return fmt.Errorf("%d elements are open at the end", depth)
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch x := token.(type) {
		case xml.StartElement:
			depth++
			if x.Name.Local == "script" || slices.ContainsFunc(x.Attr, func(a xml.Attr) bool { return strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" }) {
				return fmt.Errorf("an element %s with %v", x.Name.Local, x.Attr)
			}
		case xml.EndElement:
			depth--
		}
	}
}

// checkDOT says what is wrong with a graph of Graphviz: braces and quotes that do not
// pair.
func checkDOT(doc []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted && c == '\n':
			return fmt.Errorf("a line ends within quotes, at byte %d", i)
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == '<':
			return fmt.Errorf("markup at byte %d", i)
		}
	}
	if depth != 0 || quoted {
		return fmt.Errorf("%d braces are open, in quotes: %v", depth, quoted)
	}
	return nil
}

func TestDAGGoldens(t *testing.T) {
	tables, d := llamaGraph(22)
	svg := dagSVG(t, tables, d, denseTrace())
	golden(t, "dag-llama.svg", svg)
	if err := checkXML(svg); err != nil {
		t.Error(err)
	}
	small, two := llamaGraph(2)
	dot := dagDOT(t, small, two, denseTrace())
	golden(t, "dag-llama.dot", dot)
	if err := checkDOT(dot); err != nil {
		t.Error(err)
	}
}

// TestDAGIsFolded holds that layers that are alike are drawn once, with what all of
// them take, and that nothing else is left out.
func TestDAGIsFolded(t *testing.T) {
	tables, d := llamaGraph(22)
	all := drawingOf(tables, d, denseTrace())
	g := all.folded()
	if len(g.groups) != 1 || g.groups[0] != (dagGroup{0, 20, 21}) {
		t.Fatalf("groups %+v, want layers 0 to 20", g.groups)
	}
	stand, sum, before := 0, 0.0, 0.0
	for i := range all.nodes {
		before += all.nodes[i].share.V
	}
	loops := 0
	for i := range g.nodes {
		n := &g.nodes[i]
		stand += n.times
		sum += n.share.V
		if n.group >= 0 && n.times != 21 || n.group < 0 && n.times != 1 {
			t.Errorf("%s %s stands for %d", n.op, n.name, n.times)
		}
	}
	for _, e := range g.edges {
		if e.back {
			loops++
		}
	}
	if stand != len(all.nodes) {
		t.Errorf("the boxes stand for %d of %d nodes", stand, len(all.nodes))
	}
	if d := sum - before; d > 1e-9 || d < -1e-9 || sum < .9 {
		t.Errorf("the boxes have %v of the time, the nodes %v", sum, before)
	}
	if loops != 2 { // the residual stream goes into a norm and into a sum
		t.Errorf("%d edges lead to the next layer, want 2", loops)
	}
}

// TestDAGLayout holds that boxes do not lie on one another, that labels fit into them,
// and that edges lead downwards.
func TestDAGLayout(t *testing.T) {
	for _, layers := range []int{1, 2, 22} {
		tables, d := llamaGraph(layers)
		for name, g := range map[string]*dagDrawing{"whole": drawingOf(tables, d, denseTrace()), "folded": drawingOf(tables, d, denseTrace()).folded()} {
			labels := make([][]string, len(g.nodes))
			for i := range g.nodes {
				labels[i] = g.nodes[i].lines(true)
			}
			l := g.layout(labels)
			for _, rank := range l.ranks {
				for i := 1; i < len(rank); i++ {
					a, b := &l.boxes[rank[i-1]], &l.boxes[rank[i]]
					if a.x+a.width/2 > b.x-b.width/2+1e-6 {
						t.Fatalf("%s, %d layers: boxes overlap: %+v %+v", name, layers, a, b)
					}
				}
			}
			for i := range g.nodes {
				b := &l.boxes[i]
				for _, s := range labels[i] {
					if float64(width(s))*dagLetter > b.width {
						t.Fatalf("%q does not fit into %v", s, b.width)
					}
				}
				if b.x-b.width/2 < 0 || b.x+b.width/2 > l.width || b.y+b.height/2 > l.height {
					t.Fatalf("%+v lies outside of %v × %v", b, l.width, l.height)
				}
			}
			for _, e := range g.edges {
				if !e.back && l.boxes[e.from].rank >= l.boxes[e.to].rank {
					t.Fatalf("%s, %d layers: %s stands beside or below %s, which uses it", name, layers, g.nodes[e.from].name, g.nodes[e.to].name)
				}
			}
		}
	}
}

// TestDAGHasEveryNode holds that DOT has each node and each edge once.
func TestDAGHasEveryNode(t *testing.T) {
	tables, d := llamaGraph(3)
	dot := dagDOT(t, tables, d, nil)
	edges := map[[2]string]bool{}
	for _, m := range regexp.MustCompile(`(n\d+) -> (n\d+)`).FindAllStringSubmatch(string(dot), -1) {
		edges[[2]string{m[1], m[2]}] = true
	}
	want := map[[3]int]bool{}
	for _, e := range optrace.Edges(*d) {
		leaf := 0
		if e.Leaf {
			leaf = 1
		}
		want[[3]int{leaf, e.From, e.To}] = true
	}
	if len(edges) != len(want) {
		t.Errorf("%d edges of %d", len(edges), len(want))
	}
	if n := bytes.Count(dot, []byte("[label=")); n != len(d.Nodes)+len(d.Leaves)-1 { // one leaf is of no use
		t.Errorf("%d nodes of %d", n, len(d.Nodes)+len(d.Leaves)-1)
	}
}

// anyGraph is one that no runtime would make: cycles, views of what is not there, names
// that would break out of a document.
func anyGraph(seed uint64) (*optrace.Tables, *optrace.DAG) {
	r := rand.New(rand.NewPCG(seed, 11))
	t, d := llamaGraph(int(seed % 4))
	names := append(slices.Clone(hostile), `"];}`, "</text><script>x()</script>", "]]>", "<!--", "&amp;", `\`, `a\"`, "ffn_up-3", "blk.9999.x", "blk.0.y")
	for i := range t.Tensors {
		if r.IntN(3) == 0 {
			t.Tensors[i].Name, t.Tensors[i].Type = names[r.IntN(len(names))], names[r.IntN(len(names))]
		}
	}
	for i := range t.Operators {
		if r.IntN(5) == 0 {
			t.Operators[i] = optrace.Operator{Op: names[r.IntN(len(names))], Sub: names[r.IntN(len(names))], Out: r.Uint32N(400)}
		}
	}
	for _, list := range [][]optrace.Node{d.Nodes, d.Leaves} {
		for i := range list {
			if r.IntN(6) == 0 {
				list[i].Sources = append(slices.Clone(list[i].Sources), 0x10000+uint64(r.IntN(120))*0x150)
				list[i].View = 0x10000 + uint64(r.IntN(120))*0x150
			}
			if r.IntN(20) == 0 {
				list[i].Operator = r.Uint32()
			}
		}
	}
	d.Truncated = int(seed%3) * 7
	return t, d
}

// FuzzDAG holds that any graph is drawn, well-formed and with every name escaped.
func FuzzDAG(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		tables, d := anyGraph(seed)
		s := anyTrace(seed)
		if err := checkXML(dagSVG(t, tables, d, s)); err != nil {
			t.Error(err)
		}
		if err := checkDOT(dagDOT(t, tables, d, s)); err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkDAGSVG(b *testing.B) {
	t, d := llamaGraph(80)
	s := denseTrace()
	for b.Loop() {
		if err := WriteDAGSVG(io.Discard, t, d, s); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDAGSamples writes pictures for a person to look at where ROOFTOP_SAMPLES names a
// directory.
func TestDAGSamples(t *testing.T) {
	dir := os.Getenv("ROOFTOP_SAMPLES")
	if dir == "" {
		t.Skip("NOT CHECKED: how pictures look to a person (ROOFTOP_SAMPLES names no directory)")
	}
	tables, d := llamaGraph(22)
	if err := os.WriteFile(dir+"/dag.svg", dagSVG(t, tables, d, denseTrace()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSharesOfViews holds that views have the time that a summary has of them, as of old
// builds whose threads pass them, and none where it has none.
func TestSharesOfViews(t *testing.T) {
	g := func() *dagDrawing {
		return &dagDrawing{nodes: []dagNode{
			{op: "MUL_MAT", name: "Qcur-0"}, {op: "RESHAPE", name: "Qcur-0 (reshaped)", view: true}, {op: "RESHAPE", name: "Qcur-1 (reshaped)", view: true},
		}}
	}
	s := &optrace.Summary{
		Phases: []optrace.PhaseRow{{Phase: "decode"}},
		Steps: []optrace.OperatorRow{
			{Phase: "decode", Op: "MUL_MAT", Name: "Qcur", Share: stat.Some(0.75)}, {Phase: "decode", Op: "RESHAPE", Name: "Qcur", Share: stat.Some(0.25)},
		},
	}
	old := g()
	old.times(s)
	sum := 0.0
	for _, n := range old.nodes {
		sum += n.share.V
	}
	if sum != 1 || old.nodes[1].share != stat.Some(0.125) {
		t.Errorf("shares of an old build add up to %v: %+v", sum, old.nodes)
	}
	s.Steps = s.Steps[:1]
	today := g()
	today.times(s)
	if today.nodes[1].share.OK || today.nodes[0].share != stat.Some(0.75) {
		t.Errorf("views that nothing computes: %+v", today.nodes)
	}
}
