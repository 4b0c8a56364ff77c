package optrace

import (
	"runtime"
	"testing"
	"time"
)

// What is kept does not grow with the trace: 140 tokens a second, each graph with a worker of
// its own as some runtimes have them, and another process that comes and goes. An hour of
// it kept 2.2 MiB where two minutes kept 1.5.
func TestALongTraceKeepsLittle(t *testing.T) {
	const token = 7 * time.Millisecond
	tables := &Tables{
		Tensors:   []Tensor{{Name: "Qcur-0", Type: "f32", NE: [4]int64{64, 1, 1, 1}}, {Name: "l_out-0", Type: "f32", NE: [4]int64{64, 1, 1, 1}}},
		Operators: []Operator{{Op: "MUL_MAT", Out: 1, In: []uint32{1}}, {Op: "ADD", Out: 2, In: []uint32{1}}},
	}
	tally := NewTally(tables)
	a := NewAssembler(tables, tally)
	graphs := 0
	until := func(n int) uint64 {
		for ; graphs < n; graphs++ {
			at := time.Duration(graphs) * token
			worker, other := int32(10+graphs), int64(5_000_000+graphs)
			for _, e := range []Event{
				{Kind: CallBegin, TID: 1, N: 1}, {Kind: GraphBegin, TID: 1, Addr: 9, N: 2},
				{Kind: OpBegin, TID: 1, Addr: 1, Ref: 1, Lanes: 2}, {Kind: OpBegin, TID: worker, Addr: 1, Ref: 1, Lane: 1, Lanes: 2},
				{Kind: SwitchOut, TID: worker, Addr: uint64(other), N: int64(OffPreempted)}, {Kind: SwitchIn, TID: worker, N: other},
				{Kind: OpBegin, TID: 1, Addr: 2, Ref: 2, Lanes: 2}, {Kind: OpBegin, TID: worker, Addr: 2, Ref: 2, Lane: 1, Lanes: 2},
				{Kind: GraphEnd, TID: 1}, {Kind: CallEnd, TID: 1},
			} {
				at += token / 20
				e.At = at
				a.Push(e)
			}
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const most = 4 << 20 // 30 bytes a graph are more
	if kept := until(int(16 * time.Minute / token)); kept > most {
		t.Errorf("%d KiB are kept of %d graphs", kept>>10, graphs)
	}
	if partial, _ := a.Dropped(); partial != 0 || a.graphs != graphs {
		t.Errorf("%d graphs of %d, %d partial", a.graphs, graphs, partial)
	}
	runtime.KeepAlive(tally)
}
