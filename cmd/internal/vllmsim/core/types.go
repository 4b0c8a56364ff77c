package core

import "time"

// Token is one token id.
type Token int32

// VocabWords is the number of distinct generated tokens: they are ids in
// [0, VocabWords), each of which is one word of the simulator's tokenizer.
const VocabWords = 1 << 15

// ID names a request within one engine; the driver chooses it and never uses
// one twice.
type ID uint64

// Generation is the state of vLLM's scheduler that is simulated.
type Generation uint8

// Generations, by what differs between them.
const (
	// New is vLLM main of August 2026: the whole sequence has to fit for
	// admission, unhashed blocks are reused first, blocked requests are set aside
	// in a queue of their own, and prefix lookups are counted once.
	New Generation = iota
	// Old is v0.10.0: only the first chunk has to fit, free blocks form one
	// queue, and every lookup of a blocked head is counted again.
	Old
)

// Policy is the order of admission and of preemption.
type Policy uint8

// Policies of --scheduling-policy.
const (
	FCFS Policy = iota
	Priority
)

// Config is one engine: one data-parallel rank.
type Config struct {
	MaxNumSeqs                int // seats
	MaxNumBatchedTokens       int // token budget of a step
	MaxModelLen               int // tokens of one sequence at most
	BlockSize                 int // tokens
	NumBlocks                 int // of the pool, the null block included
	PrefixCaching             bool
	ChunkedPrefill            bool
	LongPrefillTokenThreshold int // tokens of one prompt in a step; 0 is off
	Policy                    Policy
	ReserveFullISL            bool    // the whole sequence has to fit for admission (New only)
	Watermark                 float64 // 0..1 of the pool kept free at admission while something runs
	AsyncScheduling           bool
	MaxLoras                  int // adapters of one step at most; 0 where LoRA is off
	Generation                Generation
	Seed                      uint64 // of the generated tokens
}

// Request is one sequence to generate.
type Request struct {
	ID      ID
	Arrival time.Duration // at the front end; never after its submission
	Prompt  []Token       // at least one; the engine keeps it and never writes to it
	// MaxTokens is the length of the output at most, at least 1 and already capped
	// by the model's length.
	MaxTokens int
	// StopAfter is the output token at which the model would end by itself; 0
	// never. Before MinTokens it has no effect.
	StopAfter int
	MinTokens int
	Priority  int    // lower is sooner, under [Priority]
	Adapter   string // LoRA adapter; "" is the base model
	Salt      uint64 // extra key of the prefix hashes (cache_salt); 0 is none
}

// Reason is how a request ended.
type Reason uint8

// Reasons, in vLLM's order of finished_reason.
const (
	NotFinished Reason = iota
	Stop
	Length
	Aborted
	Error
)

// Life is what a request has been through. Times are zero until they happen;
// a preemption resets none of them.
type Life struct {
	ID           ID
	Arrival      time.Duration // at the front end
	Queued       time.Duration // taken into the engine's queue, at the first step boundary after its submission
	Scheduled    time.Duration // first scheduled
	FirstToken   time.Duration
	LastToken    time.Duration
	PromptTokens int
	CachedTokens int // of the prompt, found in the prefix cache at first admission
	OutputTokens int
	MaxTokens    int
	Preemptions  int
	Adapter      string
}

// Work is a request's part of a step.
type Work struct {
	ID      ID
	Context int  // tokens computed before this step
	New     int  // tokens to compute; at least 1
	Samples bool // the step yields a token for it
	Prefill bool // New are tokens of the prompt, or recomputed ones
	Adapter string
}

// Batch is one step as scheduled. It is valid until the engine's next call.
//
// A batch without Work computes nothing and should take no time: it only
// preempted, or its report only tells of requests that ended without a step.
// Under asynchronous scheduling a batch may hold work of requests whose end was
// reported by the step before; the work is done and its token thrown away.
type Batch struct {
	Step      uint64 // counts from 1
	Work      []Work // running requests in the engine's order
	Tokens    int    // sum of New
	Preempted []ID   // when this batch was scheduled, in order of preemption
	Admitted  []ID   // that left the queue for this batch, resumed ones included
}

// Output is one token of one request, or its end without a token (Aborted,
// Error).
type Output struct {
	ID       ID
	Token    Token
	HasToken bool
	First    bool          // its first token
	Gap      time.Duration // since its previous token; 0 for the first
	Finish   Reason
	// Life is the request as it stands after this output. It is the engine's own
	// and valid until the engine's next call.
	Life *Life
}

// Report is what a completed step did, and how the engine stands after it. It
// is valid until the engine's next call.
type Report struct {
	Step         uint64
	Began, Ended time.Duration
	Outputs      []Output
	Preemptions  int // events since the previous report
	// ComputedPrompt is the prompt tokens of requests that got their first token
	// in this step, without cached ones (New) or with them (Old): fact 25.
	ComputedPrompt int
	// PrefixQueries and PrefixHits are the tokens looked up and found since the
	// previous report, as this generation counts them.
	PrefixQueries, PrefixHits int
	State
}

// State is what the gauges of an engine show.
type State struct {
	Running         int
	WaitingCapacity int // queued, preempted ones included
	WaitingDeferred int // set aside: no LoRA slot
	KVUsage         float64
}
