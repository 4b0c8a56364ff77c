package capture

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Kind says what was captured.
type Kind string

// Kinds of capture.
const (
	Probe       Kind = "probe"       // requests of rooftop's own
	Observation Kind = "observation" // a window of what ran anyway, without a request
)

// Capture is one recorded run. All moments are offsets from its origin.
type Capture struct {
	Kind   Kind
	Wall   time.Time     // wall clock at the origin, read together with the monotonic clock
	Period time.Duration // intended time between samples of processes and GPUs
	// Begin and End delimit the run: first send to last byte, or the window that was
	// observed. Figures are taken over them; the opening samples lie just before
	// Begin, the closing ones just after End.
	Begin, End time.Duration
	// Ended says what cut the run short ("interrupt", "server gone"); "" is nothing.
	Ended string

	Requests []Request // in order of sending; none of an observation
	Tree     Tree
	GPUs     GPUs
	Pages    []PageSample // of the server's metrics, where it has any
	// PagesFrom names the engine whose metrics were read ("vLLM", "llama.cpp"); ""
	// where there are none.
	PagesFrom string
	Counting  Counting // when their counter of output tokens moves

	Missing []engine.Missing
	Notes   []string
}

// Span is the length of the run.
func (c *Capture) Span() time.Duration { return c.End - c.Begin }

// ChunkKind says what a chunk of a stream carried.
type ChunkKind uint8

// Kinds of chunk. A chunk of several kinds counts as the first of them in this
// order.
const (
	Text      ChunkKind = iota // what the model says
	Reasoning                  // what it thinks, where the server tells that apart
	ToolCall                   // a call of a tool, or a piece of one
	Empty                      // output of no visible kind (a lone special token)
)

// Chunk is one streamed message that carried output.
type Chunk struct {
	At    time.Duration
	Kind  ChunkKind
	Bytes int // of its text; 0 for kinds without
}

// Request is one streamed request as its client saw it.
type Request struct {
	ID   int // from 0 in order of sending
	Lane int // which of the concurrent clients sent it, from 0

	Sent time.Duration // just before it was handed to the connection
	// Connect is how long a new connection took, 0 where one was used again.
	Connect time.Duration
	Reused  bool // the connection served an earlier request
	// Written is when the last byte of the request left, Answered when the first
	// byte of the answer came; 0 where it did not come to that.
	Written, Answered time.Duration
	Chunks            []Chunk
	End               time.Duration // of the stream, or of the attempt

	Status int    // HTTP; 0 without an answer
	Finish string // the server's finish reason, "" none
	Error  string // why it is not whole, one sentence; "" it is

	// The server's usage report; absent where it gave none.
	PromptTokens, CachedTokens, OutputTokens, ReasoningTokens stat.Opt
	// PrefillSeconds and DecodeSeconds are the server's own times, where its last
	// message tells them (llama.cpp's "timings").
	PrefillSeconds, DecodeSeconds stat.Opt
	Text                          string // what was generated, where it was kept
	// Notes say in what it was asked for differently than others would be: the
	// server refused the usual form.
	Notes []string
}

// Tree is a process tree while it was sampled.
type Tree struct {
	Root int    // PID that was asked for, as this machine numbers it; 0 is no tree
	How  string // what that came from: "--pid", "listens on port 8000"
	Why  string // why there is no tree, one sentence; "" there is
	CPUs int    // of the machine
	// Listener listens on the server's port; it need not be of the tree.
	Listener Listener
	// Processes in order of first appearance; a PID that was used again is another
	// one.
	Processes []Process
	Samples   []TreeSample
	Cgroups   []CgroupSample
}

// Listener is the process that listens on the server's port. A PID of 0 is unknown.
type Listener struct {
	PID  int
	Comm string // name, cut to 15 characters by the kernel; "" unknown
	Port int
}

// Process is one process of a tree. PID and Ticks together identify it.
type Process struct {
	PID, PPID int    // as this machine numbers them
	InnerPID  int    // in its own PID namespace; PID outside of containers
	Ticks     uint64 // start, clock ticks since boot
	Comm      string // name, cut to 15 characters by the kernel
	Title     string // what it calls itself ("VLLM::EngineCore"), "" where it does not
	Role      string // "api-server", "engine-core", "worker", "launcher", "other", …
	// Joined is the first sample that has it; Left the first that has it no longer,
	// where Gone says so.
	Joined, Left time.Duration
	Gone         bool
	// Earlier says that it began before the first look and was found only later: what
	// it had used until it joined is not the run's.
	Earlier bool
}

// TreeSample is one look at the tree.
type TreeSample struct {
	At   time.Duration // halfway through the reading of CPU times
	Took time.Duration
	// Walked says that new children were looked for. Between two such looks the tree
	// can only shrink.
	Walked bool
	// Processes that were there. None of them where the root could not be read: then
	// Error says why, and the sample says nothing.
	Processes []ProcessSample
	Error     string
	// Partial says that children were hidden from us, so that the sample holds the
	// root alone, or a part.
	Partial bool
}

// ProcessSample is what one process has used up to a look. CPU times only grow.
type ProcessSample struct {
	Process int           // index into Tree.Processes
	Parent  int           // index of its parent at this look; its own where the parent is not of the tree
	CPU     time.Duration // user and system time of its own threads, ended ones included
	// Reaped is the user and system time of children that ended and were waited
	// for, and of theirs.
	Reaped      time.Duration
	RSSBytes    int64
	Threads     int
	MinorFaults stat.Opt // page faults without a read from disk
	MajorFaults stat.Opt

	// Read less often, or not permitted; absent at the other looks.
	PSSBytes                               stat.Opt // shared pages divided among those that share them
	VoluntarySwitches, InvoluntarySwitches stat.Opt // context switches of all its threads
	ReadBytes, WrittenBytes                stat.Opt // from and to storage
	RunWaitSeconds                         stat.Opt // its threads were ready and did not run
}

// CgroupSample is what the tree's control group says of itself: a cross-check of
// the sums, and its limits.
type CgroupSample struct {
	At   time.Duration
	Path string
	// Whole says that the group holds the tree and nothing else, so that its sums
	// must agree with the tree's.
	Whole            bool
	CPUSeconds       stat.Opt // used by all its processes
	Periods          stat.Opt // enforcement periods so far
	ThrottledPeriods stat.Opt // of these, cut short
	ThrottledSeconds stat.Opt
	CPULimitCores    stat.Opt // absent is unlimited
	MemoryBytes      stat.Opt
	MemoryLimitBytes stat.Opt // absent is unlimited
}

// GPUs are the devices that were sampled.
type GPUs struct {
	From     string // "NVML", "nvidia-smi", "amd-smi", "DCGM exporter"; "" none is readable
	How      string // how the server's were told from others
	Why      string // why none is sampled, where none is
	Readings []engine.GPUReading
	// Averaging is over how long the source itself averages power and utilisation:
	// nothing can be said of a window shorter than that. InstantPower says that
	// power readings are instants, so that Averaging is utilisation's alone.
	Averaging    time.Duration
	InstantPower bool
}

// PageSample is what the engine's own metrics page said, cumulative since the
// server's start where not a gauge.
type PageSample struct {
	At, Took time.Duration
	Error    string // why there is nothing, "" there is

	GenerationTokens, PromptTokens, Requests stat.Opt
	Running, Waiting                         stat.Opt // requests
	KVUsage                                  stat.Opt // 0..1
	// SequenceSteps are the steps of the engine, each times the requests in it: about as
	// many output tokens, counted as they come.
	SequenceSteps stat.Opt
	// Sums in seconds and counts of requests.
	TTFTSum, TTFTCount, QueueSum, QueueCount, PrefillSum, PrefillCount stat.Opt
}
