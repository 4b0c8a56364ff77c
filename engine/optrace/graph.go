package optrace

import "time"

// Phase is what a call does for its sequences.
type Phase uint8

// Phases. A batch of one token for each sequence is a decode; prompts of one token
// look the same.
const (
	PhaseUnknown Phase = iota
	PhasePrefill
	PhaseDecode
	PhaseEncode
)

// String returns the name of a phase.
func (p Phase) String() string {
	return [...]string{"unknown", "prefill", "decode", "encode"}[p]
}

// Call is one call of the runtime's interface.
type Call struct {
	Index  int
	Kind   CallKind
	Phase  Phase
	Tokens int // of the batch; 0 unknown
	TID    int32
	Begin  time.Duration
	// End is that of its last graph if the end of the call was not seen, 0 if it computed none.
	End    time.Duration
	Graphs []int // indices of its complete graphs
}

// Graph is one complete computation of a graph. Partial ones (events lost, begun before the
// trace) are excluded and only counted.
type Graph struct {
	Index   int
	Call    int // index of the call it belongs to, -1 unknown
	Phase   Phase
	Tokens  int    // of the call's batch, 0 unknown
	Addr    uint64 // ggml_cgraph
	DAG     uint32 // ref of the newest DAG of this address, 0 none
	Backend uint32 // ref to [Tables.Names], 0 unknown
	Nodes   int
	Begin   time.Duration
	End     time.Duration
	TID     int32    // the thread that computes thread 0
	Threads []Thread // by index
	// Critical are the spans that decided how long the graph took: in each step the one that
	// ended last.
	Critical []SpanRef
}

// SpanRef identifies a span of a graph.
type SpanRef struct{ Thread, Span int }

// Thread is what one compute thread did for a graph. Its TID may differ from graph to graph:
// some runtimes start new threads each time.
type Thread struct {
	TID   int32
	Spans []Span
	// Times of the thread within the graph. Busy is the time of its spans without barriers and
	// without the time off the CPU. Sync is the time in barriers, if they are traced. Off is
	// the time off the CPU, if scheduling is traced; of it, Preempted while the thread could
	// have run, Waking from a wake-up to the CPU, and OffWaiting in barriers, which Sync
	// includes too.
	Busy, Sync, Off, Preempted, Waking, OffWaiting time.Duration
	// WakeUps are the single delays that Waking adds up, the first 64.
	WakeUps                  []time.Duration
	Syscalls, Switches       int
	SyscallTime              time.Duration
	MinorFaults, MajorFaults int
	IOBytes                  int64
	IOTime                   time.Duration
	// Tracer is the time without a CPU in absences that the tracing process began or ended: an
	// estimate of what it took.
	Tracer time.Duration
}

// Span is one thread's part of one operator. End is the start of the next span, or of the last
// barrier before it if barriers are traced.
type Span struct {
	Operator uint32 // ref to [Tables.Operators]
	Addr     uint64
	Begin    time.Duration
	End      time.Duration
	CPU      uint16
	Fused    uint16 // number of nodes that it computes, if more than one
	// Sync is the time in barriers inside and after the span. Off is the time off the CPU; of
	// it, Preempted while the thread could have run, and OffWaiting in those barriers.
	Sync, Off, Preempted, OffWaiting time.Duration
	MinorFaults, MajorFaults         uint32
	Experts                          uint32   // ref to [Tables.Experts], 0 none
	Counters                         *Counted // nil if none were read
}

// Counted is the growth of counters over a span. Bit n of Have is [Counter] n.
type Counted struct {
	Have  uint16
	Value [NumCounters]uint64
}

// Split is a part of a graph that a backend computes.
type Split struct {
	Backend uint32 // ref to [Tables.Names], 0 unknown
	Nodes   int
}

// Copy is a copy of a tensor to, from or between backends.
type Copy struct {
	Kind  CopyKind
	Bytes int64
}

// BackendReceiver is a receiver of graphs and calls that takes splits and copies too, in time
// order.
type BackendReceiver interface {
	Split(*Split)
	Copy(*Copy)
}
