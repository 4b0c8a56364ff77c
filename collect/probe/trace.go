package probe

import "time"

// Trace is recorded load.
type Trace struct {
	Timed    bool     // its requests have times of arrival
	Requests []Traced // in order of At
}

// Traced is one request of a trace, or one conversation.
type Traced struct {
	At           time.Duration // since the first
	PromptTokens int
	OutputTokens int
	// Blocks identify the content of each BlockTokens tokens of the prompt: equal
	// ones have equal text, and so do what stands before them.
	Blocks []uint64
	// Turns are the texts of a conversation, in place of the lengths.
	Turns []TracedTurn
}

// TracedTurn is one request of a conversation.
type TracedTurn struct {
	Text         string // what the person says
	OutputTokens int    // of the recorded answer, estimated from its text
}

// BlockTokens is how many tokens a block of a trace stands for: those of the
// Mooncake traces (Qin et al., FAST 2025).
const BlockTokens = 512
