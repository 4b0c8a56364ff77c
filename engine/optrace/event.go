package optrace

import "time"

// Kind is the type of an event.
type Kind uint8

// Kinds of events, by layer. Each says what Addr, Ref and N hold; they are 0 if it does not.
const (
	KindNone Kind = iota

	// The application: calls of the runtime's own interface.

	// CallBegin is the start of a call that computes a batch. Ref is a [CallKind], N the tokens
	// of the batch, 0 if they could not be read.
	CallBegin
	// CallEnd is the end of the thread's current call.
	CallEnd
	// SampleBegin is the choice of a token (llama_sampler_sample, llama_sampler_apply).
	SampleBegin

	// The runtime: graphs, operators, threads.

	// GraphBegin is the start of the computation of a graph. Addr is the graph's address, N its
	// number of nodes, Ref its [DAG] if one was read for it.
	GraphBegin
	// GraphEnd is the end of the computation that the thread began.
	GraphEnd
	// OpBegin is the start of a thread's part of an operator. Addr is the computed tensor, Ref
	// its [Operator]; Thread and Threads are set.
	OpBegin
	// FusedBegin is like OpBegin, for an operator that computes N nodes at once.
	FusedBegin
	// BarrierBegin is the start of a thread's wait for the other threads of its graph.
	BarrierBegin
	// BarrierEnd is the end of that wait.
	BarrierEnd
	// SplitBegin is the start of a part of a graph on a backend. Addr is the graph's address,
	// Ref the name of the backend in [Tables.Names], N the nodes of the part.
	SplitBegin
	// CopyBegin is a copy of a tensor to, from or between backends. N is its bytes, Ref a
	// [CopyKind], Addr the tensor.
	CopyBegin
	// ExpertsChosen belongs to the operator that the thread began last: Ref is its
	// [ExpertChoice].
	ExpertsChosen

	// The kernel, by thread.

	// SwitchOut is a thread that leaves its CPU. N is an [OffReason], Addr the process that
	// gets the CPU; 0 is the idle task, or unknown.
	SwitchOut
	// SwitchIn is a thread that gets a CPU. N is the process that had it before, 0 the idle
	// task.
	SwitchIn
	// WakeUp is a blocked thread that becomes ready to run.
	WakeUp
	// SyscallBegin is the start of a system call; N is its number on the target's architecture.
	SyscallBegin
	// SyscallEnd is the end of the thread's current system call.
	SyscallEnd
	// PageFault is a page that had to be mapped: Addr is the address, N is 1 if it was read
	// from a disk (a major fault).
	PageFault
	// BlockIOBegin is the start of a disk request; Addr is its sector, N its bytes.
	BlockIOBegin
	// BlockIOEnd is the end of the request at the same sector.
	BlockIOEnd

	// The hardware.

	// CountersRead is a reading of a thread's counters, Ref its [CounterSet].
	CountersRead

	// The recording itself.

	// Lost is a gap of N events that could not be kept, between At and Addr, which is a time
	// like At; if Addr is 0, at At itself.
	Lost
	// TargetExec is the replacement of the target's program by another one (exec).
	TargetExec
	// TargetExit is the end of the target process.
	TargetExit
	// DetailChanged says that N, a [Detail], is recorded from here on.
	DetailChanged

	kinds
)

// CallKind is the function of the runtime's interface that was called.
type CallKind uint32

// Kinds of calls.
const (
	CallOther   CallKind = iota
	CallDecode           // llama_decode
	CallProcess          // llama_process, from llama.cpp 0.7 on
	CallEncode           // llama_encode
)

// CopyKind is the direction of a copy.
type CopyKind uint32

// Kinds of copies.
const (
	CopyOther  CopyKind = iota
	CopySet             // into a backend
	CopyGet             // out of a backend
	CopyAcross          // from one backend to another
)

// OffReason is why a thread left its CPU.
type OffReason int64

// Reasons for a thread to leave its CPU.
const (
	OffBlocked   OffReason = iota // it waits for something
	OffPreempted                  // it could run, but another thread got the CPU
)

// Event is one thing that happened in the target or to it. Refs count from 1; 0 is none.
type Event struct {
	At      time.Duration // CLOCK_MONOTONIC
	Addr    uint64        // an address in the target
	N       int64
	Ref     uint32 // into [Tables]
	PID     int32
	TID     int32
	CPU     uint16
	Thread  uint16 // the compute thread's index in its graph (ith)
	Threads uint16 // number of compute threads of the graph (nth)
	Kind    Kind
}

// Detail is a set of kinds of information to record; each needs its own probes.
type Detail uint32

// Details, from the cheapest to the most expensive.
const (
	DetailToken    Detail = 1 << iota // calls and their batches
	DetailGraph                       // graphs
	DetailOperator                    // operators by their address: names come from the graph's DAG
	DetailTensor                      // operators with their tensor, read at that moment
	DetailExperts                     // ids of the experts that each mixture chose
	DetailBarrier                     // waits within and between operators
	DetailSched                       // on and off a CPU, wake-ups
	DetailSyscall                     // system calls
	DetailIO                          // block I/O
	DetailFault                       // page faults
	DetailCounters                    // counters, of hardware or the kernel's
	DetailBackend                     // splits and copies
	DetailSample                      // each sampler that chooses a token: a dozen a token in some chains
)

// detailNames are the names of single details, in the order of the bits. The words of a command
// line are in detail.go.
var detailNames = [...]string{
	"token", "graph", "operator", "tensor", "experts", "barriers", "sched", "syscalls", "io", "faults", "counters", "backends", "sampling",
}

// Levels of detail, each with a name of its own.
const (
	LevelToken    = DetailToken
	LevelGraph    = LevelToken | DetailGraph | DetailBackend
	LevelOperator = LevelGraph | DetailOperator
	LevelTensor   = LevelOperator | DetailTensor | DetailExperts
	LevelBarriers = LevelTensor | DetailBarrier
	LevelSched    = LevelTensor | DetailSched
	LevelAll      = DetailSample<<1 - 1
)
