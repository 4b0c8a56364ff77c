package optrace

import "time"

// LiveState is where a live trace stands.
type LiveState uint8

// States, in the order in which a trace goes through them.
const (
	LiveAttaching LiveState = iota // looks at the target's files, attaches
	LiveWaiting                    // attached; the target computes nothing
	LiveWeighing                   // sees graphs alone, to reckon what more would cost
	LiveAsking                     // waits for a yes: Question
	LiveTracing                    // records
	LivePaused                     // attached, records nothing
	LiveEnded                      // detached
)

// Live is what a screen draws of a trace that goes on: an immutable snapshot.
type Live struct {
	State LiveState
	// Target is what is looked at, as far as it is known; Summary holds the same later.
	Target Target
	// Since is how long the trace records, less pauses; Now how long it is attached.
	Since, Now time.Duration
	Detail     Detail
	// Observer is what tracing costs at Detail. That of Summary is of the level of most
	// decode graphs, which may have been another.
	Observer Observer
	// Question is what has to be answered in LiveAsking, Notice the last thing to tell.
	Question, Notice string
	// Summary is of everything so far; nil before the first graph.
	Summary *Summary
	// Rates are decode tokens a second over the last seconds, one value a second, the
	// newest last; NaN where nothing was decoded.
	Rates []float64
	// Graph is the newest whole decode graph, lane by lane.
	Graph LiveGraph
}

// LiveGraph is a graph to draw.
type LiveGraph struct {
	Index  int
	Phase  string
	Tokens int
	Time   time.Duration
	Lanes  []LiveLane
	Of     int // whole decode graphs of which it is the median by time, 0 where it is just one
}

// LiveLane is one thread of it.
type LiveLane struct {
	Lane  int
	TID   int32
	Spans []LiveSpan
}

// LiveSpan is one operator on it, with the barrier after it. Moments count from the begin of
// the graph. Sync, waiting for others on its CPU, and Off, off its CPU, are two parts of it;
// what they leave is computing.
type LiveSpan struct {
	Op         string
	Name       string
	Begin, End time.Duration
	Sync, Off  time.Duration
}
