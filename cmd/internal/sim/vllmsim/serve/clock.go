package serve

import (
	"sync"
	"time"
)

// clock converts wall time to simulated time, which all starts on a host share: it starts at zero, runs scale
// times as fast as the wall clock, and never decreases.
type clock struct {
	mu    sync.Mutex
	wall  time.Time     // at the last change of the scale
	sim   time.Duration // at the same moment
	scale float64
}

func newClock(scale float64) *clock {
	return &clock{wall: time.Now(), scale: scale}
}

// now returns the simulated time.
func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(time.Now())
}

func (c *clock) at(wall time.Time) time.Duration {
	return c.sim + time.Duration(float64(wall.Sub(c.wall))*c.scale)
}

// until returns the wall time from now to a simulated time; negative if that has passed.
func (c *clock) until(sim time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(float64(sim-c.at(time.Now())) / c.scale)
}

// rescale sets the simulated seconds per wall second from now on.
func (c *clock) rescale(scale float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.sim, c.wall, c.scale = c.at(now), now, scale
}

func (c *clock) rate() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.scale
}
