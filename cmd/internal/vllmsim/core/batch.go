package core

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
