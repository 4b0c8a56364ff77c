package capture

import (
	"math"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Kind is the kind of a capture.
type Kind string

// Kinds of capture.
const (
	Probe       Kind = "probe"       // requests sent by rooftop
	Observation Kind = "observation" // a time window of a server in use, without own requests
)

// Capture is one recorded run. All times are offsets from its origin.
type Capture struct {
	Kind   Kind
	Wall   time.Time     // wall clock at the origin, read at the same time as the monotonic clock
	Period time.Duration // intended time between samples of processes and GPUs
	// Begin and End delimit the run: first send to last byte, or the observed window. Figures cover
	// this range; the first samples lie just before Begin, the last ones just after End.
	Begin, End time.Duration
	// Ended is what cut the run short ("interrupt", "server gone"); "" if nothing did.
	Ended string

	Requests []Request // in order of sending; none in an observation
	Tree     Tree
	GPUs     GPUs
	Pages    []PageSample // of the server's metrics, if it has any
	// PagesFrom names the engine whose metrics were read ("vLLM", "llama.cpp"); "" if there are
	// none.
	PagesFrom string
	Counting  Counting // when the counter of output tokens in Pages changes

	Missing []engine.Missing
	Notes   []string
}

// Span returns the length of the run.
func (c *Capture) Span() time.Duration { return c.End - c.Begin }

// ChunkKind is the kind of output in a chunk of a stream.
type ChunkKind uint8

// Kinds of chunks. A chunk with several kinds counts as the first of them in this order.
const (
	Text      ChunkKind = iota // visible text
	Reasoning                  // reasoning, if the server reports it separately
	ToolCall                   // a tool call, or a part of one
	Empty                      // no visible output, such as a special token
)

// Chunk is one streamed message with output.
type Chunk struct {
	At    time.Duration
	Kind  ChunkKind
	Bytes int // of its text; 0 for kinds without text
}

// Request is one streamed request as seen by the client.
type Request struct {
	ID   int // counts from 0 in order of sending
	Lane int // index of the concurrent client that sent it

	Sent time.Duration // just before the request was handed to the connection
	// Connect is how long a new connection took, 0 if a connection was reused.
	Connect time.Duration
	Reused  bool // the connection served an earlier request
	// Written is when the last byte of the request was sent, Answered when the first byte of the
	// response arrived; 0 if that did not happen.
	Written, Answered time.Duration
	Chunks            []Chunk
	End               time.Duration // of the stream, or of the attempt

	Status int    // HTTP status; 0 without a response
	Finish string // the server's finish reason, "" for none
	Error  string // why the request was not completed, one sentence; "" if it was

	// The server's usage report; absent if it sent none.
	PromptTokens, CachedTokens, OutputTokens, ReasoningTokens stat.Opt
	// PrefillSeconds and DecodeSeconds are the server's own times, if its last message has them
	// (llama.cpp's "timings").
	PrefillSeconds, DecodeSeconds stat.Opt
	Text                          string // generated text, if it was kept
	// Notes describe differences from the usual form of the request, which the server refused.
	Notes     []string
	Simulated bool // the response says that the server is a simulation
}

// TTFT returns the time from the send to the first chunk, or false if none arrived.
func (r *Request) TTFT() (time.Duration, bool) {
	if len(r.Chunks) == 0 {
		return 0, false
	}
	return r.Chunks[0].At - r.Sent, true
}

// E2E returns the time from the send to the last chunk, or false if none arrived.
func (r *Request) E2E() (time.Duration, bool) {
	if len(r.Chunks) == 0 {
		return 0, false
	}
	return r.Chunks[len(r.Chunks)-1].At - r.Sent, true
}

// TPOT returns (E2E-TTFT)/(tokens-1) for a number of output tokens. It returns false for fewer than
// two tokens, and if all arrived in one chunk, because the time between them is then unknown.
func (r *Request) TPOT(tokens float64) (time.Duration, bool) {
	if len(r.Chunks) < 2 || !(tokens >= 2) {
		return 0, false
	}
	span := r.Chunks[len(r.Chunks)-1].At - r.Chunks[0].At
	return time.Duration(math.Round(float64(span) / (tokens - 1))), true
}

// CountedTokens returns the output tokens of the usage report, or else the number of chunks.
func (r *Request) CountedTokens() float64 { return r.OutputTokens.Or(float64(len(r.Chunks))) }

// Tree is a process tree with the samples taken of it.
type Tree struct {
	Root int    // requested PID in this machine's numbering; 0 without a tree
	How  string // where Root came from: "--pid", "listens on port 8000"
	Why  string // why there is no tree, one sentence; "" if there is one
	CPUs int    // of the machine
	// Listener is the process on the server's port, which may be outside the tree.
	Listener Listener
	// Processes are in order of first appearance. A reused PID is another process.
	Processes []Process
	Samples   []TreeSample
	Cgroups   []CgroupSample
}

// Listener is the process that listens on the server's port. PID 0 is unknown.
type Listener struct {
	PID  int
	Comm string // name, cut to 15 characters by the kernel; "" if unknown
	Port int
}

// Process is one process of a tree. PID and Ticks together identify it.
type Process struct {
	PID, PPID int    // in this machine's numbering
	Ticks     uint64 // start time in clock ticks since boot
	Comm      string // name, cut to 15 characters by the kernel
	Title     string // process title ("VLLM::EngineCore"), "" without one
	Role      string // "api-server", "engine-core", "worker", "launcher", "other", …
	// Joined is the time of the first sample with the process. If Gone is set, Left is that of the
	// first sample without it.
	Joined, Left time.Duration
	Gone         bool
	// Earlier reports that the process started before the first sample but was found later. CPU
	// time that it had used before Joined does not belong to the run.
	Earlier bool
}

// TreeSample is one sample of the tree.
type TreeSample struct {
	At   time.Duration // midpoint of reading the CPU times
	Took time.Duration
	// Walked reports whether new children were searched for. Between two such samples the tree can
	// only shrink.
	Walked bool
	// Processes that existed. There are none if the root could not be read; Error then has the
	// reason.
	Processes []ProcessSample
	Error     string
	// Partial reports that children were not readable, so that the sample has only the root, or a
	// part of the tree.
	Partial bool
}

// ProcessSample has the cumulative usage of one process. CPU times never decrease.
type ProcessSample struct {
	Process int           // index into Tree.Processes
	Parent  int           // index of its parent at this sample; its own index if the parent is outside the tree
	CPU     time.Duration // user and system time of its threads, including ended ones
	// Reaped is the user and system time of children that ended and were waited for, and of their
	// children.
	Reaped   time.Duration
	RSSBytes int64
	Threads  int
	// RunWaitSeconds is the time in which its threads were ready but did not run. It is read in the
	// first and the last sample only.
	RunWaitSeconds stat.Opt
}

// CgroupSample has the CPU limit of the tree's control group, and how often it was met.
type CgroupSample struct {
	At               time.Duration
	Path             string
	Periods          stat.Opt // enforcement periods so far
	ThrottledPeriods stat.Opt // periods in which the group was throttled
	ThrottledSeconds stat.Opt
	CPULimitCores    stat.Opt // absent if unlimited
}

// GPUs are the sampled devices.
type GPUs struct {
	From     string // "NVML", "nvidia-smi", "amdgpu", "DCGM exporter"; "" if none is readable
	How      string // how the server's GPUs were identified
	Why      string // why no GPU was sampled
	Readings []engine.GPUReading
	// Averaging is the time over which the source itself averages power and utilization; nothing is
	// known about shorter windows. InstantPower reports that power readings are instantaneous, so
	// that Averaging applies only to utilization.
	Averaging    time.Duration
	InstantPower bool
}

// PageSample has the values of the engine's metrics page: cumulative since the server's start,
// except gauges.
type PageSample struct {
	At, Took time.Duration
	Error    string // why there are no values, "" if there are

	GenerationTokens, PromptTokens, Requests stat.Opt
	Running, Waiting                         stat.Opt // requests
	KVUsage                                  stat.Opt // 0..1
	// SequenceSteps is the sum over engine steps of the requests in each: about the number of
	// output tokens, counted as they are generated.
	SequenceSteps stat.Opt
	// Sums in seconds and numbers of requests.
	TTFTSum, TTFTCount, QueueSum, QueueCount, PrefillSum, PrefillCount stat.Opt
}
