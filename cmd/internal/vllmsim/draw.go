package vllmsim

import (
	"math"
	"math/rand/v2"
)

// noise draws how much longer or shorter than the model says a step takes: a
// ratio with a deviation of 2 %, never beyond 7 %. It sums four uniform draws of 16
// bits, in integers, so that it is the same on every machine.
func noise(source *rand.PCG) float64 {
	const (
		deviation = 0.02
		mean      = 4 * 65535 / 2
		unit      = 37837.2 // deviation of the sum: sqrt(4 (2^32 - 1) / 12)
	)
	bits := source.Uint64()
	sum := int64(bits&0xffff) + int64(bits>>16&0xffff) + int64(bits>>32&0xffff) + int64(bits>>48)
	return 1 + deviation*float64(sum-mean)/unit
}

// lognormal is a distribution of output lengths.
type lognormal struct {
	median, sigma float64
	least         int
}

// defaultLengths is how long a simulated model talks when nothing else ends it: a
// mean of about 250 tokens with a long tail, as in recorded chats. Assumed.
var defaultLengths = lognormal{median: 180, sigma: 0.8, least: 1}

// draw draws a length.
func (l lognormal) draw(source *rand.PCG) int {
	z := rand.New(source).NormFloat64()
	return max(l.least, int(math.Round(l.median*math.Exp(l.sigma*z))))
}
