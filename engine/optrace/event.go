package optrace

import "time"

// Kind says what an event is.
type Kind uint8

// Kinds of events, by layer. What Addr, Ref and N of an event hold is said with its
// kind; they are 0 where nothing is said.
const (
	KindNone Kind = iota

	// The application: calls of the runtime's own interface.

	// CallBegin is a call that computes a batch. Ref is a [CallKind], N the tokens of
	// the batch, 0 where they could not be read.
	CallBegin
	// CallEnd is the end of the call that the thread is in.
	CallEnd
	// SampleBegin is the choice of a token (llama_sampler_sample, llama_sampler_apply).
	SampleBegin

	// The runtime: graphs, operators, threads.

	// GraphBegin is a computation of a graph. Addr is the graph's, N its nodes, Ref
	// its [DAG] where one was read for it.
	GraphBegin
	// GraphEnd is the end of the computation that the thread began.
	GraphEnd
	// OpBegin is a thread that begins its part of an operator. Addr is the tensor that
	// is computed, Ref its [Operator]; Lane and Lanes are set.
	OpBegin
	// FusedBegin is as OpBegin, of an operator that computes N nodes at once.
	FusedBegin
	// BarrierBegin is a thread that begins to wait for the others of its graph.
	BarrierBegin
	// BarrierEnd is the end of that wait.
	BarrierEnd
	// SplitBegin is a part of a graph that is handed to a backend. Addr is the graph's
	// address, Ref the name of the backend among [Tables.Names], N the nodes of the part.
	SplitBegin
	// CopyBegin is a copy of a tensor to, from or between backends. N is its bytes,
	// Ref a [CopyKind], Addr the tensor.
	CopyBegin
	// ExpertsChosen belongs to the operator that the thread began last: Ref is its
	// [ExpertChoice].
	ExpertsChosen

	// The kernel, by thread.

	// SwitchOut is a thread that leaves its CPU. N is an [OffReason], Addr the process
	// that comes onto the CPU; 0 is the idle task, or not known.
	SwitchOut
	// SwitchIn is a thread that comes onto a CPU. N is the process that had it before,
	// 0 the idle task.
	SwitchIn
	// WakeUp is a blocked thread that is ready to run again.
	WakeUp
	// SyscallBegin is a system call; N is its number on the target's architecture.
	SyscallBegin
	// SyscallEnd is the end of the system call that the thread is in.
	SyscallEnd
	// PageFault is a page that had to be mapped: Addr is the address, N 1 where it was
	// read from a disk (a major fault).
	PageFault
	// BlockIOBegin is a request to a disk; Addr is its sector, N its bytes.
	BlockIOBegin
	// BlockIOEnd is the end of the request at the same sector.
	BlockIOEnd

	// The hardware.

	// CountersRead is a reading of a thread's counters, Ref its [CounterSet].
	CountersRead

	// The recording itself.

	// Lost is a gap: N events could not be kept. They are of moments from At to Addr, a
	// moment as At is; 0 is At itself.
	Lost
	// TargetExec is the target process that became another program.
	TargetExec
	// TargetExit is the end of the target process.
	TargetExit
	// DetailChanged says that from here on N, a [Detail], is recorded.
	DetailChanged

	// CPUTaken is a CPU that goes from another process to another still, after a thread
	// of the target was preempted on it. TID is 0, Addr the process that leaves, N the one
	// that comes; 0 where it is the idle task, or where the next ones are not told.
	CPUTaken

	kinds
)

// CallKind says which interface a call went through.
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
	CopyAcross          // from a backend to another
)

// OffReason says why a thread left its CPU.
type OffReason int64

// Reasons.
const (
	OffBlocked   OffReason = iota // it waits for something
	OffPreempted                  // it could go on: others got the CPU
)

// Event is one thing that happened in or to the target. Refs count from 1; 0 is none.
type Event struct {
	At    time.Duration // CLOCK_MONOTONIC, since the machine started
	Addr  uint64        // an address in the target
	N     int64
	Ref   uint32 // into [Tables]
	PID   int32
	TID   int32
	CPU   uint16
	Lane  uint16 // the compute thread's index in its graph (ith)
	Lanes uint16 // how many compute the graph (nth)
	Kind  Kind
}

// Detail is a set of what is recorded; each needs probes of its own.
type Detail uint32

// Details, from the cheapest to the dearest.
const (
	DetailToken    Detail = 1 << iota // calls and their batches
	DetailGraph                       // graphs
	DetailOperator                    // operators by their address: names come from the graph's DAG
	DetailTensor                      // operators with the tensor as it was at that moment
	DetailExperts                     // ids of the experts of each mixture
	DetailBarrier                     // waits within and between operators
	DetailSched                       // on and off a CPU, wake-ups
	DetailSyscall                     // system calls
	DetailIO                          // block I/O
	DetailFault                       // page faults
	DetailCounters                    // counters, of hardware or the kernel's
	DetailBackend                     // splits and copies
	DetailSample                      // each sampler that chooses a token: a dozen a token in some chains
)

// detailNames are the names of single details, in the order of the bits. Those that a
// command line takes are in detail.go.
var detailNames = [...]string{
	"token", "graph", "operator", "tensor", "experts", "barriers", "sched", "syscalls", "io", "faults", "counters", "backends", "sampling",
}

// Levels of detail that go by one name.
const (
	LevelToken    = DetailToken
	LevelGraph    = LevelToken | DetailGraph | DetailBackend
	LevelOperator = LevelGraph | DetailOperator
	LevelTensor   = LevelOperator | DetailTensor | DetailExperts
	LevelBarriers = LevelTensor | DetailBarrier
	LevelSched    = LevelTensor | DetailSched
	LevelAll      = DetailSample<<1 - 1
)
