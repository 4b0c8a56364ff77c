package optrace

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
	"time"
)

// nasty makes values of bytes: numbers that are small, huge, negative or all zero.
type nasty struct{ b []byte }

// word is the next number, 0 at the end.
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

// pick is one of some.
func pick[T any](h *nasty, of ...T) T { return of[uint64(h.word())%uint64(len(of))] }

// tables are hostile tables with as many operators.
func (h *nasty) tables(ops []string) *Tables {
	t := &Tables{Names: []string{"CPU"}, DAGs: []DAG{{Nodes: []Node{{Addr: 1, Operator: uint32(h.word()), Sources: []uint64{1, 2}, View: uint64(h.word())}}}}}
	for range 8 {
		t.Tensors = append(t.Tensors, Tensor{
			Name: pick(h, "", "blk.0.ffn_up.weight", "kq-0", "blk.-1.x", "cache_k_l99999999999 (view)", "node_3", "l_out-2"),
			Type: pick(h, "", "f32", "q4_0", "none"),
			NE:   [4]int64{h.word(), h.word(), h.word(), h.word()}, NB: [4]uint64{uint64(h.word()), uint64(h.word())},
		})
	}
	for _, op := range ops {
		o := Operator{Op: op, Sub: pick(h, "", "SILU"), Out: uint32(h.word()), Params: [16]int32{0, int32(h.word())}}
		for range h.word() & 7 {
			o.In = append(o.In, uint32(h.word()))
		}
		if h.word() == 0 {
			o.Fused = []string{"MUL"}
		}
		t.Operators = append(t.Operators, o)
	}
	t.Experts = []ExpertChoice{{Layer: int(h.word()), Used: int(h.word()), Tokens: int(h.word()), IDs: []int32{int32(h.word()), int32(h.word()), int32(h.word())}}}
	return t
}

// moment is a time, any one.
func (h *nasty) moment() time.Duration { return time.Duration(h.word()) }

// graph is a hostile graph.
func (h *nasty) graph() *Graph {
	g := &Graph{
		Index: int(h.word()), Call: int(h.word()), Phase: Phase(h.word()), Tokens: int(h.word()), DAG: uint32(h.word()), Backend: uint32(h.word()),
		Begin: h.moment(), End: h.moment(), Lanes: make([]Lane, h.word()&3), Critical: []SpanRef{{int(h.word()), int(h.word())}, {0, 0}},
	}
	for i := range g.Lanes {
		l := &g.Lanes[i]
		l.TID, l.Busy, l.Sync, l.Off, l.Preempted = int32(h.word()), h.moment(), h.moment(), h.moment(), h.moment()
		l.Syscalls, l.SyscallTime, l.IOBytes, l.WakeUps = int(h.word()), h.moment(), h.word(), []time.Duration{h.moment()}
		l.Thieves = map[int32]time.Duration{int32(h.word()): h.moment()}
		for range h.word() & 7 {
			s := Span{Operator: uint32(h.word()), Addr: uint64(h.word()), Begin: h.moment(), End: h.moment(), Sync: h.moment(), Off: h.moment(), Experts: uint32(h.word())}
			if c := h.word(); c != 0 {
				s.Counters = &Counted{Have: uint16(c), Value: [NumCounters]uint64{uint64(h.word()), uint64(h.word()), uint64(h.word())}}
			}
			l.Spans = append(l.Spans, s)
		}
	}
	return g
}

// FuzzTally adds up what no runtime does: the document can always be written, which it
// could not be with a number that is none.
func FuzzTally(f *testing.F) {
	names := append(sorted(costs), "", "UNHEARD_OF")
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
			c := CostOf(tables, tables.Operators[i], tables.Experts[0])
			for _, v := range []float64{c.ReadBytes, c.WrittenBytes, c.WeightBytes, c.Flops} {
				if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%s of %+v: %+v", tables.Operators[i].Op, tables.Tensors, c)
				}
			}
		}
		tally := NewTally(tables)
		for range 4 {
			tally.Graph(h.graph())
			tally.Call(&Call{Index: int(h.word()), Phase: Phase(h.word()), Tokens: int(h.word()), Begin: h.moment(), End: h.moment()})
			tally.Split(&Split{Backend: uint32(h.word()), Nodes: int(h.word())})
			tally.Copy(&Copy{Kind: CopyKind(h.word()), Bytes: h.word()})
		}
		// Every operator of the tables, whatever its shapes.
		g := &Graph{Phase: PhaseDecode, Tokens: 1, End: math.MaxInt64, Lanes: make([]Lane, 1)}
		for i := range tables.Operators {
			g.Lanes[0].Spans = append(g.Lanes[0].Spans, Span{Operator: uint32(i + 1), Begin: time.Duration(i), End: time.Duration(i) + 1, Experts: 1})
		}
		tally.Graph(g)
		r := pick(h, Roof{}, Roof{BytesPerSecond: 1e9, FlopsPerSecond: 1e9, From: "measured"}, Roof{BytesPerSecond: math.SmallestNonzeroFloat64, FlopsPerSecond: math.MaxFloat64})
		s := tally.Summary(Settings{Roof: r, Begin: h.moment(), Span: h.moment(), Detail: Detail(h.word())})
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		for _, k := range s.Kinds {
			if k.Time < 0 || k.Share.V < 0 || k.Share.V > 1+1e-9 {
				t.Fatalf("%+v", k)
			}
		}
		tally.Live()
		tally.Rates(h.moment(), 5)
	})
}
