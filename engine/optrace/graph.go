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

// String is the field's word for a phase.
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
	End    time.Duration
	// Inferred says that the call's own end was not seen: End is that of its last
	// graph, 0 where it computed none.
	Inferred bool
	Graphs   []int // indices of the graphs that it computed whole
}

// Graph is one whole computation of a graph. Partial ones (events lost, begun before
// the trace) are not among them; [Assembler.Dropped] counts those.
type Graph struct {
	Index   int
	Call    int // index of the call it belongs to, -1 unknown
	Phase   Phase
	Tokens  int    // of the call's batch, 0 unknown
	Addr    uint64 // ggml_cgraph
	DAG     uint32 // ref of the newest DAG of this address, 0 none
	Backend uint32 // ref to [Tables.Names], 0 unknown
	Nodes   int
	// Detail is what was recorded meanwhile, 0 where no event said so.
	Detail Detail
	Begin  time.Duration
	End    time.Duration
	TID    int32  // the thread that computes lane 0
	Lanes  []Lane // by index
	// Critical are the spans that decided how long it took: in each step of the graph
	// the one that ended last.
	Critical []SpanRef
}

// watched says whether a detail was recorded meanwhile. Where nobody said what was, all
// may have been.
func (g *Graph) watched(d Detail) bool { return g.Detail == 0 || g.Detail&d != 0 }

// SpanRef names a span of a graph.
type SpanRef struct{ Lane, Span int }

// Lane is what one compute thread did for a graph. Threads of a lane may differ from
// graph to graph: some runtimes make new ones each time.
type Lane struct {
	TID   int32
	Spans []Span
	// Times of the lane within the graph. Busy is the time of its spans less what of
	// it was spent in barriers or off the CPU; Sync the time in barriers, where they
	// are traced; Off that off the CPU, where scheduling is: Preempted of it while it
	// could have run, Waking between a wake-up and the CPU, OffWaiting in barriers and so
	// in Sync too.
	Busy, Sync, Off, Preempted, Waking, OffWaiting time.Duration
	// WakeUps are the delays that Waking adds up, one by one, the first 64.
	WakeUps                  []time.Duration
	Syscalls, Switches       int
	SyscallTime              time.Duration
	MinorFaults, MajorFaults int
	IOBytes                  int64
	IOTime                   time.Duration
	// Thieves are other processes that had the CPU while the lane could have run, preempted
	// or woken, by PID; -1 those that are not known, -2 other threads of the target.
	Thieves map[int32]time.Duration
	// Ran is the CPU time of all threads of the target while the lane was preempted, Queued
	// for how long they, the lane's among them, could have run then and had no CPU.
	Ran, Queued time.Duration
}

// Span is one thread's part of one operator. End is the begin of the next, or the
// last barrier before it where barriers are traced.
type Span struct {
	Operator uint32 // ref to [Tables.Operators]
	Addr     uint64
	Begin    time.Duration
	End      time.Duration
	CPU      uint16
	Fused    uint16 // nodes that it computes, where more than one
	// Sync is the time in barriers inside and after it, Off that off the CPU, of that
	// Preempted, and OffWaiting in those barriers.
	Sync, Off, Preempted, OffWaiting time.Duration
	MinorFaults, MajorFaults         uint32
	Experts                          uint32   // ref to [Tables.Experts], 0 none
	Counters                         *Counted // nil where none were read
}

// Counted is the growth of counters over a span.
type Counted struct {
	Have  uint16
	Value [NumCounters]uint64
}

// Split is a part of a graph that was handed to a backend.
type Split struct {
	Call    int    // index of the call it belongs to, -1 unknown
	Backend uint32 // ref to [Tables.Names], 0 unknown
	Nodes   int
	At      time.Duration
	TID     int32
}

// Copy is a copy of a tensor to, from or between backends.
type Copy struct {
	Call  int // index of the call it belongs to, -1 unknown
	Kind  CopyKind
	Bytes int64
	At    time.Duration
	TID   int32
}

// BackendReceiver is a [Receiver] that takes splits and copies too, in the order of At.
// An [Assembler] hands them to receivers that have these methods.
type BackendReceiver interface {
	Split(*Split)
	Copy(*Copy)
}
