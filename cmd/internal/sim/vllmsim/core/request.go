package core

import "time"

// Token is a token ID.
type Token int32

// VocabWords is the number of distinct generated tokens: their IDs are 0 to VocabWords-1, and each is one
// word of the simulator's tokenizer.
const VocabWords = 1 << 15

// ID identifies a request within one engine. The driver chooses it and must not reuse it.
type ID uint64

// Request is one sequence to generate.
type Request struct {
	ID      ID
	Arrival time.Duration // at the front end; never after its submission
	Prompt  []Token       // at least one; the engine keeps it and never writes to it
	// MaxTokens is the maximum length of the output, at least 1; it must respect the model's
	// length.
	MaxTokens int
	// StopAfter is the output length at which the model ends by itself; 0 means never. Below
	// MinTokens it has no effect.
	StopAfter int
	MinTokens int
	Priority  int    // lower is earlier, with the policy [Priority]
	Adapter   string // LoRA adapter; "" means the base model
	Salt      uint64 // extra key of the prefix hashes (cache_salt); 0 means none
}

// Reason is the reason for which a request ended.
type Reason uint8

// Reasons, in vLLM's order of finished_reason.
const (
	NotFinished Reason = iota
	Stop
	Length
	Aborted
	Error
)

// String returns vLLM's label for the reason; "" before the end.
func (r Reason) String() string {
	names := [...]string{"", "stop", "length", "abort", "error"}
	if int(r) < len(names) {
		return names[r]
	}
	return "unknown"
}

// History is the times and counts of a request. A time is zero until it is reached; a preemption does not
// reset it.
type History struct {
	ID           ID
	Arrival      time.Duration // at the front end
	Queued       time.Duration // at the first step boundary after its submission
	Scheduled    time.Duration // first scheduled
	FirstToken   time.Duration
	LastToken    time.Duration
	PromptTokens int
	CachedTokens int // prompt tokens found in the prefix cache at the first admission
	OutputTokens int
	MaxTokens    int
	Preemptions  int
	Adapter      string
}
