package gpu

import (
	"slices"
	"sync"
)

// choice is the part of a source that all have: its devices, and which of them are
// read.
type choice struct {
	devices []Device // does not change once the source is open

	mu     sync.Mutex // guards what follows, here and in the source
	closed bool
	keep   []int // positions
}

// Devices implements [Source].
func (c *choice) Devices() []Device { return slices.Clone(c.devices) }

// Keep implements [Source].
func (c *choice) Keep(positions []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep = kept(positions, len(c.devices))
}

// kept resolves the positions that Keep was given against n devices: nil is
// all, and positions that do not exist are left out.
func kept(positions []int, n int) []int {
	out := make([]int, 0, n)
	if positions == nil {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	for _, p := range positions {
		if p >= 0 && p < n {
			out = append(out, p)
		}
	}
	return out
}
