package perf

import (
	"math/rand/v2"
	"time"
)

// Noise is the scatter of step times of one rank: a seeded stream of its own.
type Noise struct {
	source *rand.PCG
	sd     float64
}

// noiseStream keeps this stream apart from others of the same seed.
const noiseStream = 0x7374657074696d65

// NewNoise returns the stream of a rank.
func (m *Machine) NewNoise(rank int) *Noise {
	return &Noise{rand.NewPCG(m.s.Seed, noiseStream+uint64(rank)), m.c.noise}
}

// longest keeps the clock of a simulation within its range, whatever a device
// file describes.
const longest = 1000 * time.Hour

// Apply returns a step's time with its share of noise, in whole nanoseconds, at
// least one. The deviate is the sum of four uniform ones, which differs from a
// normal one beyond three standard deviations only (it ends at 3.46), and which
// every platform computes alike.
func (n *Noise) Apply(seconds float64) time.Duration {
	bits, sum := n.source.Uint64(), 0.0
	for range 4 {
		sum += float64(bits & 0xffff)
		bits >>= 16
	}
	const mean, scale = 4 * 65535.0 / 2, 1.7320508075688772 / 65535 // sd of the sum is 65535/sqrt(3)
	seconds = min(seconds*(1+n.sd*(sum-mean)*scale), longest.Seconds())
	return max(1, time.Duration(seconds*1e9))
}
