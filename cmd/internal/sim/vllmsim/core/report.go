package core

import "time"

// Output is one token of one request, or its end without a token (Aborted, Error).
type Output struct {
	ID       ID
	Token    Token
	HasToken bool
	First    bool          // its first token
	Gap      time.Duration // since its previous token; 0 for the first
	Finish   Reason
	// History is the state of the request after this output. It belongs to the engine and is valid
	// until the engine's next call.
	History *History
}

// Report is the result of a completed step and the state of the engine after it. It is valid until the
// engine's next call.
type Report struct {
	Ended       time.Duration
	Outputs     []Output
	Preemptions int // since the previous report
	// ComputedPrompt is the number of prompt tokens of requests that got their first token in this
	// step, without cached tokens (New) or with them (Old): fact 25 of docs/dev/simulator.md.
	ComputedPrompt int
	// PrefixQueries and PrefixHits are the numbers of tokens looked up and found since the previous
	// report, as this generation counts them.
	PrefixQueries, PrefixHits int
	State
}

// State is the values of an engine's gauges.
type State struct {
	Running         int
	WaitingCapacity int // queued requests, including preempted ones
	WaitingDeferred int // requests that wait for a LoRA slot
	KVUsage         float64
}
