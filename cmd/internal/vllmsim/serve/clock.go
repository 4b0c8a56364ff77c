package serve

import (
	"sync"
	"time"
)

// clock leads from the wall to simulated time, which every life on a host
// shares: it starts at zero, runs scale times as fast as the wall, and never
// goes back.
type clock struct {
	mu    sync.Mutex
	wall  time.Time     // at the last change of the scale
	sim   time.Duration // at the same moment
	scale float64
}

func newClock(scale float64) *clock {
	return &clock{wall: time.Now(), scale: scale}
}

// now is the simulated time.
func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(time.Now())
}

func (c *clock) at(wall time.Time) time.Duration {
	return c.sim + time.Duration(float64(wall.Sub(c.wall))*c.scale)
}

// until is the wall time from now to a simulated time; negative where it has
// passed.
func (c *clock) until(sim time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(float64(sim-c.at(time.Now())) / c.scale)
}

// rescale sets how fast simulated time runs from now on.
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
