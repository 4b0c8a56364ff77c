package tally

import (
	"runtime"
	"testing"
	"time"

	_ "github.com/rooftop-dev/rooftop/engine/longtest" // collects garbage less often
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/assemble"
)

// Memory does not grow with the trace: 140 tokens per second, each graph with a new worker, as
// in some runtimes, and other processes that come and go. An hour kept 2.2 MiB where two
// minutes kept 1.5.
func TestALongTraceKeepsLittle(t *testing.T) {
	const token = 7 * time.Millisecond
	tables := &optrace.Tables{
		Tensors:   []optrace.Tensor{{Name: "Qcur-0", Type: "f32", NE: [4]int64{64, 1, 1, 1}}, {Name: "l_out-0", Type: "f32", NE: [4]int64{64, 1, 1, 1}}},
		Operators: []optrace.Operator{{Op: "MUL_MAT", Out: 1, In: []uint32{1}}, {Op: "ADD", Out: 2, In: []uint32{1}}},
	}
	tally := New(tables)
	a := assemble.New(tables, tally)
	graphs := 0
	until := func(n int) uint64 {
		for ; graphs < n; graphs++ {
			at := time.Duration(graphs) * token
			worker, other := int32(10+graphs), int64(5_000_000+graphs)
			for _, e := range []optrace.Event{
				{Kind: optrace.CallBegin, TID: 1, N: 1}, {Kind: optrace.GraphBegin, TID: 1, Addr: 9, N: 2},
				{Kind: optrace.OpBegin, TID: 1, Addr: 1, Ref: 1, Threads: 2}, {Kind: optrace.OpBegin, TID: worker, Addr: 1, Ref: 1, Thread: 1, Threads: 2},
				{Kind: optrace.SwitchOut, TID: worker, Addr: uint64(other), N: int64(optrace.OffPreempted)}, {Kind: optrace.SwitchIn, TID: worker, N: other},
				{Kind: optrace.OpBegin, TID: 1, Addr: 2, Ref: 2, Threads: 2}, {Kind: optrace.OpBegin, TID: worker, Addr: 2, Ref: 2, Thread: 1, Threads: 2},
				{Kind: optrace.GraphEnd, TID: 1}, {Kind: optrace.CallEnd, TID: 1},
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
	const most = 4 << 20 // less than 30 bytes per graph
	if kept := until(int(16 * time.Minute / token)); kept > most {
		t.Errorf("%d KiB are kept of %d graphs", kept>>10, graphs)
	}
	if partial, _ := a.Dropped(); partial != 0 || tally.graphs != graphs {
		t.Errorf("%d graphs of %d, %d partial", tally.graphs, graphs, partial)
	}
	runtime.KeepAlive(tally)
}
