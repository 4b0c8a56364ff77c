package core

// Work is a request's part of a step.
type Work struct {
	ID      ID
	Context int  // tokens computed before this step
	New     int  // tokens to compute; at least 1
	Samples bool // whether the step samples a token for it
}

// Batch is one scheduled step. It is valid until the next call of the engine.
//
// A batch without Work computes nothing and should take no time: the step only preempted requests or
// reports requests that ended without a step. With asynchronous scheduling, a batch may contain work
// for requests whose end the previous step reported; the work is done and its token is dropped.
type Batch struct {
	Work      []Work // running requests in the engine's order
	Tokens    int    // sum of New
	Preempted []ID   // requests preempted for this batch, in order of preemption
}
