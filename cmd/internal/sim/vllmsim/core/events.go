package core

import "time"

// EventKind is the kind of an [Event].
type EventKind uint8

// Kinds of events.
const (
	Queued     EventKind = iota // a request was queued
	Scheduled                   // it was admitted for the first time
	Resumed                     // it was admitted again after a preemption
	Preempted                   // it lost its blocks and is queued again
	FirstToken                  // its first token was sampled
	Finished                    // it ended, for the reason given
	StepBegan                   // a step began
	StepEnded                   // its tokens were sampled and finished requests removed
)

// String returns the name of the kind in event logs.
func (k EventKind) String() string {
	names := [...]string{"queued", "scheduled", "resumed", "preempted", "first_token", "finished", "step_began", "step_ended"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// String returns vLLM's label for the reason; "" before the end.
func (r Reason) String() string {
	names := [...]string{"", "stop", "length", "abort", "error"}
	if int(r) < len(names) {
		return names[r]
	}
	return "unknown"
}

// Event is an event of an engine.
type Event struct {
	At      time.Duration
	Kind    EventKind
	Request ID     // for events of a request
	Step    uint64 // step of the event, or the previous one for an event between steps
	// Batch is the number of requests in the step (StepBegan) or running after it (StepEnded).
	Batch int
	// Tokens is a number of tokens of the request: known (Queued, Preempted), to compute (Scheduled,
	// Resumed), of the prompt (FirstToken) or generated (Finished). For a step it is the number
	// scheduled (StepBegan) or sampled (StepEnded).
	Tokens int
	// Blocks is the number of blocks of the request (Scheduled, Resumed, FirstToken, Finished), else
	// of all requests.
	Blocks int
	Reason Reason // for Finished
}

// Observe calls f with every event from now on; nil stops the calls. Times never decrease. f must not
// call the engine.
func (e *Engine) Observe(f func(Event)) { e.observe = f }

func (e *Engine) emit(event Event) {
	if e.observe != nil {
		e.observe(event)
	}
}
