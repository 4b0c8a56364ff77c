package ggml

import "time"

// How long one copy of GGML in a process is watched that computes nothing, at first and at
// most.
const (
	firstDwell = 500 * time.Millisecond
	mostDwell  = 2 * time.Second
)

// copies goes round the copies of GGML in a process until one computes.
type copies struct {
	since time.Duration // when the one that is watched began to be
	dwell time.Duration
	found bool // the one that is watched computes
}

// watch takes in that another copy is watched from now on.
func (c *copies) watch(now time.Duration) {
	c.since = now
	c.dwell = min(max(2*c.dwell, firstDwell), mostDwell)
}

// leave says whether to watch another one. What computed once stays.
func (c *copies) leave(now time.Duration, computes bool) bool {
	c.found = c.found || computes
	return !c.found && c.dwell > 0 && now-c.since >= c.dwell
}
