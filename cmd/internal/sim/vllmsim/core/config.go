package core

// Generation is the generation of vLLM's scheduler that is simulated.
type Generation uint8

// Generations and their differences.
const (
	// New is vLLM main of August 2026: a request is admitted only if its whole sequence fits,
	// unhashed blocks are reused first, blocked requests are moved to a separate queue, and prefix
	// lookups are counted once.
	New Generation = iota
	// Old is v0.10.0: a request is admitted if its first chunk fits, free blocks form one queue, and
	// every lookup of a blocked head is counted again.
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
	MaxNumSeqs                int // slots
	MaxNumBatchedTokens       int // token budget of a step
	MaxModelLen               int // maximum tokens of one sequence
	BlockSize                 int // tokens
	NumBlocks                 int // of the pool, including the null block
	PrefixCaching             bool
	ChunkedPrefill            bool
	LongPrefillTokenThreshold int // maximum tokens of one prompt in a step; 0 means no limit
	Policy                    Policy
	ReserveFullISL            bool    // admit a request only if its whole sequence fits (New only)
	Watermark                 float64 // share of the pool kept free at admission while requests run, 0..1
	AsyncScheduling           bool
	MaxLoras                  int // maximum adapters of one step; 0 without LoRA
	Generation                Generation
	Seed                      uint64 // of the generated tokens
}
