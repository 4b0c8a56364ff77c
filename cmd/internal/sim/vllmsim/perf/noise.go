package perf

import (
	"math/rand/v2"
	"time"
)

// Noise is the random variation of the step times of one rank, from a separate seeded stream.
type Noise struct {
	source *rand.PCG
	sd     float64
}

// noiseStream separates this stream from others with the same seed.
const noiseStream = 0x7374657074696d65

// NewNoise returns the stream of a rank.
func (m *Machine) NewNoise(rank int) *Noise {
	return &Noise{rand.NewPCG(m.s.Seed, noiseStream+uint64(rank)), m.c.noise}
}

// maxStep bounds the time of a step, so that the clock of a simulation cannot overflow with any device file.
const maxStep = 1000 * time.Hour

// Apply returns the time of a step with noise, in whole nanoseconds, at least one. The deviate is the sum of
// four uniform ones. It differs from a normal one only beyond three standard deviations (its maximum is 3.46),
// and is equal on all platforms.
func (n *Noise) Apply(seconds float64) time.Duration {
	bits, sum := n.source.Uint64(), 0.0
	for range 4 {
		sum += float64(bits & 0xffff)
		bits >>= 16
	}
	const mean, scale = 4 * 65535.0 / 2, 1.7320508075688772 / 65535 // sd of the sum is 65535/sqrt(3)
	seconds = min(seconds*(1+n.sd*(sum-mean)*scale), maxStep.Seconds())
	return max(1, time.Duration(seconds*1e9))
}
