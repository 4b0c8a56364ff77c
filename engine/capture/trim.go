package capture

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// Trim drops samples later than one period after the end of the run, except the first one after it:
// they do not belong to the run.
func (c *Capture) Trim() {
	late := func(at, before time.Duration) bool { return at > c.End+c.Period && before >= c.End }
	c.Tree.Samples = trimmed(c.Tree.Samples, late, func(s TreeSample) time.Duration { return s.At })
	c.GPUs.Readings = trimmed(c.GPUs.Readings, late, func(r engine.GPUReading) time.Duration { return r.T })
	c.Pages = trimmed(c.Pages, late, func(p PageSample) time.Duration { return p.At })
}

// trimmed returns the samples up to the first late one. late gets the times of a sample and of the
// previous one.
func trimmed[T any](samples []T, late func(at, before time.Duration) bool, at func(T) time.Duration) []T {
	for i := 1; i < len(samples); i++ {
		if late(at(samples[i]), at(samples[i-1])) {
			return slices.Clip(samples[:i])
		}
	}
	return samples
}
