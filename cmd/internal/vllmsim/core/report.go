package core

import "time"

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
