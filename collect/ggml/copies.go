package ggml

import "time"

// How long one copy of GGML in a process is watched without computing anything, at first and at
// most.
const (
	firstDwell = 500 * time.Millisecond
	mostDwell  = 2 * time.Second
)

// copies decides when to watch the next copy of GGML in a process, until one computes.
type copies struct {
	since time.Duration // when the present copy was attached
	dwell time.Duration
	found bool // the present copy computes
}

// watch notes that another copy is watched from now on.
func (c *copies) watch(now time.Duration) {
	c.since = now
	c.dwell = min(max(2*c.dwell, firstDwell), mostDwell)
}

// shouldSwitch reports whether to watch another copy. A copy that computed once is kept.
func (c *copies) shouldSwitch(now time.Duration, computes bool) bool {
	c.found = c.found || computes
	return !c.found && c.dwell > 0 && now-c.since >= c.dwell
}
