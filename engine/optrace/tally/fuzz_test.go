package tally

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// nasty derives extreme values from bytes: small, huge, negative or zero.
type nasty struct{ b []byte }

// word returns the next number, 0 at the end.
func (h *nasty) word() int64 {
	if len(h.b) == 0 {
		return 0
	}
	kind := h.b[0]
	h.b = h.b[1:]
	switch kind % 8 {
	case 0:
		return 0
	case 1:
		return -1
	case 2:
		return math.MaxInt64
	case 3:
		return math.MinInt64
	case 4, 5:
		return int64(kind / 8)
	}
	var w [8]byte
	n := copy(w[:], h.b)
	h.b = h.b[n:]
	return int64(binary.LittleEndian.Uint64(w[:]))
}

// pick returns one of some values.
func pick[T any](h *nasty, of ...T) T { return of[uint64(h.word())%uint64(len(of))] }

// tables returns hostile tables with the given operators.
func (h *nasty) tables(ops []string) *optrace.Tables {
	t := &optrace.Tables{Names: []string{"CPU"}, DAGs: []optrace.DAG{{Nodes: []optrace.Node{{Addr: 1, Operator: uint32(h.word()), Sources: []uint64{1, 2}, View: uint64(h.word())}}}}}
	for range 8 {
		t.Tensors = append(t.Tensors, optrace.Tensor{
			Name: pick(h, "", "blk.0.ffn_up.weight", "kq-0", "blk.-1.x", "cache_k_l99999999999 (view)", "node_3", "l_out-2"),
			Type: pick(h, "", "f32", "q4_0", "none"),
			NE:   [4]int64{h.word(), h.word(), h.word(), h.word()}, NB: [4]uint64{uint64(h.word()), uint64(h.word())},
		})
	}
	for _, op := range ops {
		o := optrace.Operator{Op: op, Sub: pick(h, "", "SILU"), Out: uint32(h.word()), Params: [16]int32{0, int32(h.word())}}
		for range h.word() & 7 {
			o.In = append(o.In, uint32(h.word()))
		}
		if h.word() == 0 {
			o.Fused = []string{"MUL"}
		}
		t.Operators = append(t.Operators, o)
	}
	t.Experts = []optrace.ExpertChoice{{Layer: int(h.word()), Used: int(h.word()), Tokens: int(h.word()), IDs: []int32{int32(h.word()), int32(h.word()), int32(h.word())}}}
	return t
}

// moment is a time, any one.
func (h *nasty) moment() time.Duration { return time.Duration(h.word()) }

// graph returns a hostile graph.
func (h *nasty) graph() *optrace.Graph {
	g := &optrace.Graph{
		Index: int(h.word()), Call: int(h.word()), Phase: optrace.Phase(h.word()), Tokens: int(h.word()), DAG: uint32(h.word()), Backend: uint32(h.word()),
		Begin: h.moment(), End: h.moment(), Threads: make([]optrace.Thread, h.word()&3), Critical: []optrace.SpanRef{{Thread: int(h.word()), Span: int(h.word())}, {}},
	}
	for i := range g.Threads {
		l := &g.Threads[i]
		l.TID, l.Busy, l.Sync, l.Off, l.Preempted = int32(h.word()), h.moment(), h.moment(), h.moment(), h.moment()
		l.Syscalls, l.SyscallTime, l.IOBytes, l.WakeUps = int(h.word()), h.moment(), h.word(), []time.Duration{h.moment()}
		l.Tracer = h.moment()
		for range h.word() & 7 {
			s := optrace.Span{Operator: uint32(h.word()), Addr: uint64(h.word()), Begin: h.moment(), End: h.moment(), Sync: h.moment(), Off: h.moment(), Experts: uint32(h.word())}
			if c := h.word(); c != 0 {
				s.Counters = &optrace.Counted{Have: uint16(c), Value: [optrace.NumCounters]uint64{uint64(h.word()), uint64(h.word()), uint64(h.word())}}
			}
			l.Spans = append(l.Spans, s)
		}
	}
	return g
}

// FuzzTally adds impossible graphs: the document must always be valid JSON, without NaN or
// infinity.
func FuzzTally(f *testing.F) {
	names := append(slices.Clone(operatorNames), "", "UNHEARD_OF")
	f.Add([]byte{})
	f.Add([]byte("\x06abcdefgh\x0c\x14\x02\x02\x02\x03\x01\x0c\x0c\x14\x1c\x24\x06zyxwvuts\x02\x02\x02\x02\x0c\x14\x1c\x24\x2c\x34"))
	seed := make([]byte, 4096)
	for i := range seed {
		seed[i] = byte(i*37 + i/256*11)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		h := &nasty{b}
		some := make([]string, 12)
		for i := range some {
			some[i] = pick(h, names...)
		}
		tables := h.tables(some)
		for i := range tables.Operators {
			c := optrace.CostOf(tables, tables.Operators[i], tables.Experts[0])
			for _, v := range []float64{c.ReadBytes, c.WrittenBytes, c.WeightBytes, c.Flops} {
				if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%s of %+v: %+v", tables.Operators[i].Op, tables.Tensors, c)
				}
			}
		}
		tally := New(tables)
		for range 4 {
			tally.Graph(h.graph())
			tally.Call(&optrace.Call{Index: int(h.word()), Phase: optrace.Phase(h.word()), Tokens: int(h.word()), Begin: h.moment(), End: h.moment()})
			tally.Split(&optrace.Split{Backend: uint32(h.word()), Nodes: int(h.word())})
			tally.Copy(&optrace.Copy{Kind: optrace.CopyKind(h.word()), Bytes: h.word()})
		}
		// Every operator of the tables, whatever its shapes.
		g := &optrace.Graph{Phase: optrace.PhaseDecode, Tokens: 1, End: math.MaxInt64, Threads: make([]optrace.Thread, 1)}
		for i := range tables.Operators {
			g.Threads[0].Spans = append(g.Threads[0].Spans, optrace.Span{Operator: uint32(i + 1), Begin: time.Duration(i), End: time.Duration(i) + 1, Experts: 1})
		}
		tally.Graph(g)
		r := pick(h, optrace.Peak{}, optrace.Peak{BytesPerSecond: 1e9, FlopsPerSecond: 1e9, From: "measured"}, optrace.Peak{BytesPerSecond: math.SmallestNonzeroFloat64, FlopsPerSecond: math.MaxFloat64})
		s := tally.Summary(Settings{Peak: r, Begin: h.moment(), Span: h.moment(), Detail: optrace.Detail(h.word())})
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		for _, k := range s.Kinds {
			if k.Time < 0 || k.Share.V < 0 || k.Share.V > 1+1e-9 {
				t.Fatalf("%+v", k)
			}
		}
		tally.liveGraph(g)
	})
}

// operatorNames are operators with a known cost.
var operatorNames = []string{
	"NONE", "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE", "MUL_MAT", "MUL_MAT_ID", "OUT_PROD", "FLASH_ATTN_EXT", "ADD",
	"SUB", "MUL", "DIV", "ADD1", "ADD_ID", "SCALE", "CLAMP", "SQR", "SQRT", "LOG", "SIN", "COS", "DIAG_MASK_INF",
	"DIAG_MASK_ZERO", "UNARY", "GLU", "LEAKY_RELU", "SOFT_MAX", "ROPE", "ROPE_BACK", "RMS_NORM", "L2_NORM", "NORM",
	"GROUP_NORM", "CPY", "DUP", "CONT", "SET_ROWS", "GET_ROWS", "CONCAT", "REPEAT", "PAD", "PAD_REFLECT_1D", "ROLL",
	"WIN_PART", "WIN_UNPART", "DIAG", "SET", "ACC", "ARANGE", "FILL", "TRI", "SUM", "SUM_ROWS", "MEAN", "ARGMAX",
	"CUMSUM", "COUNT_EQUAL", "REPEAT_BACK", "COL2IM_1D", "ARGSORT", "TOP_K", "IM2COL", "IM2COL_3D", "CONV_2D",
	"CONV_2D_DW", "CONV_3D", "CONV_TRANSPOSE_1D", "CONV_TRANSPOSE_2D", "SSM_CONV", "SSM_SCAN", "SOLVE_TRI", "RWKV_WKV6",
	"RWKV_WKV7", "GATED_LINEAR_ATTN", "GATED_DELTA_NET",
}
