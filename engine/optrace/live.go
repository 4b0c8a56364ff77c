package optrace

import "time"

// LiveState is the state of a live trace.
type LiveState uint8

// States, in the order in which a trace goes through them.
const (
	LiveAttaching LiveState = iota // reads the target's files and attaches
	LiveWaiting                    // attached; the target computes nothing
	LiveWeighing                   // records graphs only, to estimate the cost of more detail
	LiveAsking                     // waits for the answer to Question
	LiveTracing                    // records
	LivePaused                     // attached, records nothing
	LiveEnded                      // detached
	LiveRecorded                   // not live: a recording
)

// Live is an immutable snapshot of a running trace, for a screen.
type Live struct {
	State LiveState
	// Target is the traced process, as far as it is known; Summary has the final one.
	Target Target
	// Since is the recorded time, without pauses; Now is the time since the start of the trace.
	Since, Now time.Duration
	Detail     Detail
	// Observer is the cost of tracing at Detail. The one in Summary is for the level of most
	// decode graphs, which may differ.
	Observer Observer
	// Question is what has to be answered in LiveAsking, Notice the latest message.
	Question, Notice string
	// Summary covers everything so far; nil before the first graph.
	Summary *Summary
	// Rates are decode tokens per second over the last seconds, one value a second, the newest
	// last; NaN if nothing was decoded.
	Rates []float64
	// Graph is the newest complete decode graph, thread by thread.
	Graph LiveGraph
}

// LiveGraph is a graph on a timeline.
type LiveGraph struct {
	Index    int
	Phase    string
	Tokens   int
	Time     time.Duration
	Threads  []LiveThread
	MedianOf int // number of complete decode graphs that this is the median of, 0 for a single graph
}

// LiveThread is one compute thread of a [LiveGraph].
type LiveThread struct {
	Index int
	TID   int32
	Spans []LiveSpan
}

// LiveSpan is one operator on a thread, with the barrier after it. Times count from the start
// of the graph. Sync (waiting for others on its CPU) and Off (off its CPU) are disjoint parts
// of it; the remainder is computing.
type LiveSpan struct {
	Op         string
	Name       string
	Begin, End time.Duration
	Sync, Off  time.Duration
}
