package tracing

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func dagDOT(t testing.TB, tables *optrace.Tables, d *optrace.DAG, s *optrace.Summary) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteDOT(&b, tables, d, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// checkDOT returns what is wrong with a DOT graph: unbalanced braces or quotes.
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

// graph returns the attention of some layers as llama.cpp builds it, and a leaf that no node uses.
func graph(layers int) (*optrace.Tables, *optrace.DAG) {
	t, d := &optrace.Tables{}, &optrace.DAG{}
	add := func(op, name string, view uint64, sources ...uint64) uint64 {
		t.Tensors = append(t.Tensors, optrace.Tensor{Name: name, Type: "f32", NE: [4]int64{64, 2, 1, 1}})
		t.Operators = append(t.Operators, optrace.Operator{Op: op, Out: uint32(len(t.Tensors))})
		n := optrace.Node{Addr: 0x10000 + uint64(len(t.Tensors))*0x150, Operator: uint32(len(t.Operators)), Sources: sources, View: view}
		if op == "NONE" {
			d.Leaves = append(d.Leaves, n)
		} else {
			d.Nodes = append(d.Nodes, n)
		}
		return n.Addr
	}
	x := add("GET_ROWS", "inp_embd", 0, add("NONE", "token_embd.weight", 0), add("NONE", "inp_tokens", 0))
	for l := range layers {
		norm := add("RMS_NORM", fmt.Sprintf("node_%d", l), 0, x)
		q := add("MUL_MAT", fmt.Sprintf("Qcur-%d", l), 0, add("NONE", fmt.Sprintf("blk.%d.attn_q.weight", l), 0), norm)
		cache := add("NONE", fmt.Sprintf("cache_k_l%d", l), 0)
		view := add("VIEW", fmt.Sprintf("cache_k_l%d (view)", l), cache, cache)
		attention := add("FLASH_ATTN_EXT", fmt.Sprintf("__fattn__-%d", l), 0, add("RESHAPE", fmt.Sprintf("Qcur-%d (reshaped)", l), q, q), view, view)
		x = add("ADD", fmt.Sprintf("l_out-%d", l), 0, attention, x)
	}
	add("NONE", "rope_freqs.weight", 0) // unused
	return t, d
}

// TestDAGHasEveryNode checks that DOT has each node and edge once.
func TestDAGHasEveryNode(t *testing.T) {
	tables, d := graph(3)
	dot := dagDOT(t, tables, d, nil)
	edges := map[[2]string]bool{}
	for _, m := range regexp.MustCompile(`(n\d+) -> (n\d+)`).FindAllStringSubmatch(string(dot), -1) {
		edges[[2]string{m[1], m[2]}] = true
	}
	want := map[[3]int]bool{}
	for _, e := range optrace.Edges(d) {
		leaf := 0
		if e.Leaf {
			leaf = 1
		}
		want[[3]int{leaf, e.From, e.To}] = true
	}
	if len(edges) != len(want) {
		t.Errorf("%d edges of %d", len(edges), len(want))
	}
	if n := bytes.Count(dot, []byte("[label=")); n != len(d.Nodes)+len(d.Leaves)-1 { // one leaf is unused
		t.Errorf("%d nodes of %d", n, len(d.Nodes)+len(d.Leaves)-1)
	}
}

// hostile are names that try to break out of a document.
var hostile = []string{
	"", " ", "\x1b[31mred\x1b[0m\x07", "tab\tnew\nline", "\u202egnp.exe", "\xff\xfe broken", `quote " and \ and 'single'`, "通义千问 в режиме",
	`"];}`, "</text><script>x()</script>", `\`, `a\"`, "ffn_up-3", "blk.9999.x", "blk.0.y",
}

// anyGraph returns a random, implausible graph: with cycles, views of missing tensors, and names that try to break out of a
// document.
func anyGraph(seed uint64) (*optrace.Tables, *optrace.DAG) {
	r := rand.New(rand.NewPCG(seed, 11))
	t, d := graph(int(seed % 4))
	name := func() string { return hostile[r.IntN(len(hostile))] }
	for i := range t.Tensors {
		if r.IntN(3) == 0 {
			t.Tensors[i].Name, t.Tensors[i].Type = name(), name()
		}
	}
	for i := range t.Operators {
		if r.IntN(5) == 0 {
			t.Operators[i] = optrace.Operator{Op: name(), Sub: name(), Out: r.Uint32N(400)}
		}
	}
	for _, list := range [][]optrace.Node{d.Nodes, d.Leaves} {
		for i := range list {
			if r.IntN(6) == 0 {
				list[i].Sources = append(slices.Clone(list[i].Sources), 0x10000+uint64(r.IntN(40))*0x150)
				list[i].View = 0x10000 + uint64(r.IntN(40))*0x150
			}
			if r.IntN(20) == 0 {
				list[i].Operator = r.Uint32()
			}
		}
	}
	d.Truncated = int(seed%3) * 7
	return t, d
}

// FuzzDAG checks that any graph is drawn, well-formed and with every name escaped.
func FuzzDAG(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		tables, d := anyGraph(seed)
		s := &optrace.Summary{Phases: []optrace.PhaseRow{{Phase: "decode"}}, Steps: []optrace.OperatorRow{
			{Phase: "decode", Op: "MUL_MAT", Name: "Qcur", Share: stat.Some(0.7)}, {Phase: "decode", Op: "ADD", Name: "l_out", Share: stat.Some(0.3)},
			{Phase: "decode", Name: hostile[seed%uint64(len(hostile))], Share: stat.Some(math.Inf(int(seed%3) - 1))},
		}}
		if err := checkDOT(dagDOT(t, tables, d, s)); err != nil {
			t.Error(err)
		}
	})
}

// TestSharesOfViews checks that views have the time of a summary if it has any, as with old builds whose threads schedule
// them.
func TestSharesOfViews(t *testing.T) {
	g := func() *drawing {
		return &drawing{nodes: []node{
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
	old.setShares(s)
	sum := 0.0
	for _, n := range old.nodes {
		sum += n.share.V
	}
	if sum != 1 || old.nodes[1].share != stat.Some(0.125) {
		t.Errorf("shares of an old build add up to %v: %+v", sum, old.nodes)
	}
	s.Steps = s.Steps[:1]
	today := g()
	today.setShares(s)
	if today.nodes[1].share.OK || today.nodes[0].share != stat.Some(0.75) {
		t.Errorf("views that nothing computes: %+v", today.nodes)
	}
}
