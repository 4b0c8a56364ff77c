package vllmsim

import "time"

// clock converts wall time to simulated time, which all starts on a host share: it starts at zero and runs scale
// times as fast as the wall clock.
type clock struct {
	began time.Time
	scale float64
}

func newClock(scale float64) *clock { return &clock{began: time.Now(), scale: scale} }

// now returns the simulated time.
func (c *clock) now() time.Duration {
	return time.Duration(float64(time.Since(c.began)) * c.scale)
}

// until returns the wall time from now to a simulated time; negative if that has passed.
func (c *clock) until(sim time.Duration) time.Duration {
	return time.Duration(float64(sim-c.now()) / c.scale)
}
