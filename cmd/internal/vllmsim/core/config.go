package core

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
