package optrace

import (
	"maps"
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Receiver receives what an [Assembler] builds, and may keep it.
type Receiver interface {
	// Graph receives a complete graph when it has ended.
	Graph(*Graph)
	// Call receives a call that has ended, after its graphs.
	Call(*Call)
}

// Graphs is a [Receiver] of graphs only.
type Graphs func(*Graph)

// Graph calls f.
func (f Graphs) Graph(g *Graph) { f(g) }

// Call ignores the call.
func (Graphs) Call(*Call) {}

// Assembler builds graphs and calls from events.
//
// Compute threads are identified by their index in the graph (GGML's ith) instead of the thread
// of the process: some runtimes start new threads for each graph, others keep theirs. The
// thread that calls ggml_graph_compute is compute thread 0, with OpenMP too (ggml-cpu.c). An
// operator on another thread belongs to the open graph of its process that meets these
// conditions:
//
//  1. It has as many compute threads as the event says, and no other thread has this index.
//  2. It includes the operator: the address is a node of the graph's [optrace.DAG], or compute
//     thread 0 began it within the last steps. Barriers keep all compute threads of a graph
//     within one step of each other.
//  3. If several do, it is the graph of the thread that this one computed for last, or else
//     the one that began last.
//
// A worker that fits no graph is kept as loose, and tried again with its next operator and when
// a graph ends.
//
// A graph is either complete or dropped. It is dropped if it began before the trace, if events
// were or may have been lost in it, if the detail changed, if the target ended before it, or if
// its compute threads differ in their operators although those of other graphs of its DAG do
// not. An event that is older than the newest one counts as if it had the newest time.
type Assembler struct {
	// Tracer is the PID of the tracing process, as events have it; 0 if unknown.
	Tracer int

	t  *Tables
	to Receiver
	// backends receives splits and copies, nil if the receiver does not take them.
	backends BackendReceiver

	now     time.Duration
	lossy   time.Duration // graphs that begin before it may have lost events
	threads map[int32]*thread
	last    *thread // the most recently used thread
	refused int     // new threads that were refused because the table was full
	open    []*building
	loose   []*worker
	spans   int // capacity of the spans of open and loose compute threads

	dags  dagBook
	disk  diskRequests
	epoch uint32 // increases when the states of threads become invalid
	calls callBook

	graphs  int
	partial int
	lost    int64
}

// graphKey identifies a graph of a process.
type graphKey struct {
	pid  int32
	addr uint64
}

// New returns an assembler for events whose refs index t. The tables may grow while events are
// pushed.
func New(t *Tables, to Receiver) *Assembler {
	a := &Assembler{
		t: t, to: to, threads: map[int32]*thread{}, disk: diskRequests{},
		dags: dagBook{
			t: t, newest: map[graphKey]uint32{}, nodes: map[uint32]map[uint64]struct{}{}, uneven: map[uint32]int{}, products: map[uint32]struct{}{},
		},
	}
	a.backends, _ = to.(BackendReceiver)
	a.calls = callBook{to: to, dags: &a.dags}
	return a
}

// Replay passes the events of a recording to a receiver, and returns the assembler for its
// counters.
func Replay(r *Recording, t *Tables, to Receiver) *Assembler {
	a := New(t, to)
	a.Tracer = r.Reader
	for _, e := range r.Events {
		a.Push(e)
	}
	a.Flush(r.End)
	return a
}

// Dropped returns how many graphs were left out because they were incomplete, and how many
// events were lost: those of [optrace.Lost], and those of threads beyond the limit.
func (a *Assembler) Dropped() (partialGraphs int, lostEvents int64) {
	return a.partial, a.lost
}

// Cut returns how many calls were left out because neither they nor a complete graph revealed
// their tokens.
func (a *Assembler) Cut() int { return a.calls.cut }

// Push processes the next event.
func (a *Assembler) Push(e Event) {
	if e.At < a.now {
		e.At = a.now
	}
	a.now = e.At
	switch e.Kind {
	case OpBegin, FusedBegin, BarrierBegin, BarrierEnd, ExpertsChosen:
		a.pushOperator(&e)
	case CallBegin, CallEnd, SampleBegin, GraphBegin, GraphEnd, SplitBegin, CopyBegin:
		a.pushRuntime(&e)
	case SwitchOut, SwitchIn, WakeUp, SyscallBegin, SyscallEnd, PageFault, BlockIOBegin, BlockIOEnd, CountersRead:
		a.pushKernel(&e)
	case Lost:
		a.lost = stat.AddSaturating(a.lost, max(e.N, 0))
		a.lossy = max(a.lossy, time.Duration(min(e.Addr, math.MaxInt64)))
		a.dropAll()
	case DetailChanged:
		a.dropAll()
	case TargetExec, TargetExit:
		a.dropProcess(e.PID)
	}
}

// Flush ends the stream of events at a time. Open graphs are dropped; open calls are dropped
// too, unless no end of a call was ever seen: then they end with their last graph.
func (a *Assembler) Flush(at time.Duration) {
	a.now = max(a.now, at)
	if !a.calls.ends {
		a.calls.inferEnds(a.threads, a.epoch)
	}
	a.dropAll()
}

func (a *Assembler) pushOperator(e *Event) {
	th := a.thread(e)
	if th == nil {
		return
	}
	th.away = false
	switch e.Kind {
	case OpBegin, FusedBegin:
		a.beginOperator(th, e)
	case BarrierBegin:
		if w := th.work; w != nil {
			w.beginBarrier(e.At)
		}
	case BarrierEnd:
		if w := th.work; w != nil {
			w.endBarrier(e.At)
		}
	case ExpertsChosen:
		if s := th.span(); s != nil {
			s.Experts = e.Ref
		}
	}
}

func (a *Assembler) pushRuntime(e *Event) {
	th := a.thread(e)
	if th == nil {
		return
	}
	th.away = false
	if e.Kind == GraphEnd {
		a.endGraph(th, e.At)
		return
	}
	// The thread has left its graph; the return was not seen.
	if th.graph != nil {
		a.close(th.graph, th.graph.endBefore(e.At))
	}
	switch e.Kind {
	case GraphBegin:
		a.beginGraph(th, e)
	case CallBegin:
		a.calls.begin(th, e)
	case CallEnd:
		a.calls.end(th, e.At)
	case SplitBegin:
		th.split, th.backend = e.Addr, e.Ref
		if a.backends != nil {
			a.backends.Split(&Split{Backend: e.Ref, Nodes: int(max(e.N, 0))})
		}
	case CopyBegin:
		if a.backends != nil {
			a.backends.Copy(&Copy{Kind: CopyKind(e.Ref), Bytes: max(e.N, 0)})
		}
	}
}

// dropAll drops everything in progress, in every process, because missed events could belong to
// any of it.
func (a *Assembler) dropAll() {
	for len(a.open) > 0 {
		a.drop(a.open[len(a.open)-1])
	}
	for len(a.loose) > 0 {
		a.dropLoose(a.loose[len(a.loose)-1])
	}
	clear(a.disk)
	a.epoch++
}

// dropProcess drops what is in progress in a process that ended or became another program; 0 is all.
func (a *Assembler) dropProcess(pid int32) {
	if pid == 0 {
		a.dropAll()
		clear(a.threads)
		clear(a.dags.newest)
		a.last = nil
		return
	}
	for i := len(a.open) - 1; i >= 0; i-- {
		if a.open[i].pid == pid {
			a.drop(a.open[i])
		}
	}
	for i := len(a.loose) - 1; i >= 0; i-- {
		if a.loose[i].th.pid == pid {
			a.dropLoose(a.loose[i])
		}
	}
	for tid, th := range a.threads {
		if th.pid == pid {
			delete(a.threads, tid)
		}
	}
	maps.DeleteFunc(a.dags.newest, func(key graphKey, _ uint32) bool { return key.pid == pid })
	a.last = nil
}
