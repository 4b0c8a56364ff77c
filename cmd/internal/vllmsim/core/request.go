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
