package optrace

import "time"

// LiveGraph is a graph on a timeline.
type LiveGraph struct {
	Index    int
	Phase    string
	Tokens   int
	Time     time.Duration
	Threads  []LiveThread
	MedianOf int // number of complete decode graphs that this is the median of
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
