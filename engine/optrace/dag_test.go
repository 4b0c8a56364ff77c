package optrace

import (
	"testing"
)

// attention returns w·x with a view of it, and x.
func attention() DAG {
	return DAG{
		Addr: 1,
		Nodes: []Node{
			{Addr: 0x10, Operator: 1, Sources: []uint64{0xa, 0xb, 0}},
			{Addr: 0x20, Operator: 2, Sources: []uint64{0x10}, View: 0x10},
			{Addr: 0x30, Operator: 3, Sources: []uint64{0x20, 0xa, 0xdead}},
			{Addr: 0x40, Operator: 4, Sources: []uint64{0x30, 0x30}, View: 0xa},
		},
		Leaves: []Node{{Addr: 0xa}, {Addr: 0xb}},
	}
}

func TestEdges(t *testing.T) {
	want := []Edge{
		{From: 0, Leaf: true, To: 0},
		{From: 1, Leaf: true, To: 0},
		{From: 0, To: 1},
		{From: 0, To: 1, View: true},
		{From: 1, To: 2},
		{From: 0, Leaf: true, To: 2},
		{From: 2, To: 3},
		{From: 2, To: 3},
		{From: 0, Leaf: true, To: 3, View: true},
	}
	d := attention()
	got := Edges(&d)
	if len(got) != len(want) {
		t.Fatalf("%d edges, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("edge %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestLayerOf(t *testing.T) {
	for _, c := range []struct {
		name  string
		layer int
		rest  string
	}{
		{"blk.3.attn_q.weight", 3, "attn_q.weight"},
		{"v.blk.12.ffn_up.bias", 12, "v.ffn_up.bias"},
		{"enc.blk.0.attn_k.weight", 0, "enc.attn_k.weight"},
		{"ffn_out-11", 11, "ffn_out"},
		{"l_out-0", 0, "l_out"},
		{"Qcur-3 (reshaped)", 3, "Qcur (reshaped)"},
		{"Qcur-3 (reshaped) (permuted)", 3, "Qcur (reshaped) (permuted)"},
		{"cache_k_l5", 5, "cache_k"},
		{"cache_v_l21 (view) (permuted)", 21, "cache_v (view) (permuted)"},
		{"cache_k_l0 (view) (copy of Kcur-0 (reshaped))", 0, "cache_k (view) (copy of Kcur (reshaped))"},
		{" (copy of Kcur-4)", 4, " (copy of Kcur)"},
		{"ffn_moe_topk-7", 7, "ffn_moe_topk"},
		{"blk.2.ffn_gate_exps.weight", 2, "ffn_gate_exps.weight"},
		{"result_output", -1, "result_output"},
		{"token_embd.weight", -1, "token_embd.weight"},
		{"inp_pos", -1, "inp_pos"},
		{"node_120", -1, "node"},
		{"leaf_3 (view)", -1, "leaf (view)"},
		{"node_x", -1, "node_x"},
		{"", -1, ""},
		{"-3", -1, "-3"},
		{"_l3", -1, "_l3"},
		{"ffn_out-", -1, "ffn_out-"},
		{"ffn_out-12x", -1, "ffn_out-12x"},
		{"ffn_out-99999", -1, "ffn_out-99999"},
		{"blk.3", -1, "blk.3"},
		{"blk.x.y", -1, "blk.x.y"},
		{"myblk.3.w", -1, "myblk.3.w"},
	} {
		layer, rest := LayerOf(c.name)
		if layer != c.layer || rest != c.rest {
			t.Errorf("LayerOf(%q) = %d, %q, want %d, %q", c.name, layer, rest, c.layer, c.rest)
		}
	}
}

func FuzzLayerOf(f *testing.F) {
	for _, name := range []string{"blk.3.attn_q.weight", "ffn_out-11", "cache_k_l0 (view) (copy of Kcur-0)", "node_3", "-1-2"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		layer, rest := LayerOf(name)
		if layer < -1 || layer > 9999 || len(rest) > len(name) {
			t.Errorf("LayerOf(%q) = %d, %q", name, layer, rest)
		}
	})
}
