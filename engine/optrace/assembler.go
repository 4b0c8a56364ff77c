package optrace

import (
	"math"
	"time"
)

// Receiver takes what an [Assembler] makes. What it is given is its own to keep.
type Receiver interface {
	// Graph is a graph that ended and was seen from its begin to its end.
	Graph(*Graph)
	// Call is a call that ended, after the graphs that it computed.
	Call(*Call)
}

// Assembler makes graphs and calls of events.
//
// Lanes are told apart by their index in the graph, not by the thread: some runtimes
// make new threads for each graph, others keep theirs. The thread that calls
// ggml_graph_compute computes lane 0, with OpenMP too (ggml-cpu.c). For an operator on
// another thread the graph is looked for among the open ones of its process:
//
//  1. It has as many lanes as the event says, and no other thread has this one.
//  2. The operator has a place in it: its address is a node of the graph's [DAG], or
//     lane 0 has begun it within the last steps. Barriers keep all lanes of a graph
//     within one step of one another.
//  3. Of several the one of the thread that this one worked for last, then the one
//     that began last.
//
// Where no graph has a place for it the lane is put by, and it is tried again with the
// lane's next operator and when a graph ends.
//
// A graph is whole or dropped: one that was begun before the trace, one in which
// events were lost, or may have been, or the detail was changed, one that the target did not live to end,
// one whose lanes differ in their operators although those of its like do not.
// Events that come late count as if they came at the moment of the newest.
type Assembler struct {
	t  *Tables
	to Receiver
	// backends takes splits and copies, nil where the receiver does not.
	backends BackendReceiver

	now     time.Duration
	lossy   time.Duration // until when graphs that begin may have lost events
	epoch   uint32        // grows where what is known of threads no longer holds
	threads map[int32]*thread
	last    *thread // the one that was asked for last
	refused int     // new threads that were turned away since the table was full
	open    []*building
	loose   []*laneWork
	spans   int // room for spans that open and loose lanes hold
	newest  map[graphKey]uint32
	places  map[uint32]map[uint64]struct{}
	uneven  map[uint32]int // graphs of a DAG whose lanes differ
	// products are the DAGs of graphs of which a matrix product was seen.
	products map[uint32]struct{}
	pending  map[uint64]request
	cpus     map[uint16]*cpuUse
	inUse    cpuSums // of the threads of this epoch

	details map[int32]Detail // what is recorded of a process, as far as it was told
	detail  Detail           // what was told last, of any

	graphs, calls int
	callEnds      bool // an end of a call was seen: they are probed
	computes      bool // a graph of a call was seen whole
	cut           int  // calls that were left out
	partial       int
	lost          int64
}

// graphKey names a graph of a process.
type graphKey struct {
	pid  int32
	addr uint64
}

// NewAssembler returns an assembler of events whose refs lead into t, which may grow
// while events come.
func NewAssembler(t *Tables, to Receiver) *Assembler {
	backends, _ := to.(BackendReceiver)
	return &Assembler{
		t: t, to: to, backends: backends,
		threads:  map[int32]*thread{},
		newest:   map[graphKey]uint32{},
		places:   map[uint32]map[uint64]struct{}{},
		uneven:   map[uint32]int{},
		pending:  map[uint64]request{},
		products: map[uint32]struct{}{},
		cpus:     map[uint16]*cpuUse{},
		details:  map[int32]Detail{},
	}
}

// Dropped is how many graphs were left out because they were not seen whole, and how
// many events were lost on the way: those of [Lost], and those of threads beyond the
// limit.
func (a *Assembler) Dropped() (partialGraphs int, lostEvents int64) {
	return a.partial, a.lost
}

// Cut is how many calls were left out because they do not tell their tokens and none of
// their graphs was seen whole.
func (a *Assembler) Cut() int { return a.cut }

// Push takes the next event.
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
	case CPUTaken:
		a.cpu(e.CPU).pass(e.At, int64(e.Addr), e.N)
	case Lost:
		a.lost = addUp(a.lost, max(e.N, 0))
		a.lossy = max(a.lossy, time.Duration(min(e.Addr, math.MaxInt64)))
		a.forget()
	case DetailChanged:
		a.forget()
		a.changeDetail(e.PID, Detail(max(e.N, 0)))
	case TargetExec, TargetExit:
		a.leave(e.PID)
	}
}

// Flush says that no event comes any more. What goes on at that moment was not seen
// to end and is dropped; only calls whose ends are never seen are taken to have ended
// with their last graph.
func (a *Assembler) Flush(at time.Duration) {
	a.now = max(a.now, at)
	if !a.callEnds {
		a.endCalls()
	}
	a.forget()
}

func (a *Assembler) pushOperator(e *Event) {
	th := a.thread(e)
	if th == nil {
		return
	}
	a.runs(th)
	switch e.Kind {
	case OpBegin, FusedBegin:
		a.beginOperator(th, e)
	case BarrierBegin:
		if w := th.lane; w != nil {
			w.beginBarrier(e.At)
		}
	case BarrierEnd:
		if w := th.lane; w != nil {
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
	a.runs(th)
	if e.Kind == GraphEnd {
		a.endGraph(th, e.At)
		return
	}
	// The thread is back from its graph: the return was not seen.
	if th.graph != nil {
		a.close(th.graph, th.graph.endBefore(e.At))
	}
	switch e.Kind {
	case GraphBegin:
		a.beginGraph(th, e)
	case CallBegin:
		a.beginCall(th, e)
	case CallEnd:
		a.endCall(th, e.At)
	case SplitBegin:
		th.split, th.backend = e.Addr, e.Ref
		a.handSplit(th, e)
	case CopyBegin:
		a.handCopy(th, e)
	}
}

// changeDetail remembers what is recorded of a process from here on.
func (a *Assembler) changeDetail(pid int32, d Detail) {
	if len(a.details) >= maxThreads {
		clear(a.details)
	}
	a.details[pid], a.detail = d, d
}

// detailOf is what is recorded of a process, 0 where no event said so.
func (a *Assembler) detailOf(pid int32) Detail {
	if d, told := a.details[pid]; told {
		return d
	}
	return a.detail
}

// forget drops everything that goes on, in every process: what was missed could be any
// part of it.
func (a *Assembler) forget() {
	for len(a.open) > 0 {
		a.drop(a.open[len(a.open)-1])
	}
	for len(a.loose) > 0 {
		a.letGo(a.loose[len(a.loose)-1])
	}
	clear(a.pending)
	clear(a.cpus)
	a.inUse = cpuSums{}
	a.epoch++
}

// leave drops what goes on in a process that ended or became another program, 0 in all.
func (a *Assembler) leave(pid int32) {
	if pid == 0 {
		a.forget()
		clear(a.threads)
		clear(a.newest)
		clear(a.details)
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
			a.letGo(a.loose[i])
		}
	}
	for tid, th := range a.threads {
		if th.pid == pid {
			a.uses(th, useUnknown)
			delete(a.threads, tid)
		}
	}
	for key := range a.newest {
		if key.pid == pid {
			delete(a.newest, key)
		}
	}
	a.last = nil
}
