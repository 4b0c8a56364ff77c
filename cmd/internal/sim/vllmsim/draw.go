package vllmsim

import (
	"math"
	"math/rand/v2"
)

// lognormal is a distribution of output lengths.
type lognormal struct {
	median, sigma float64
	least         int
}

// defaultLengths is the distribution of output lengths if a request does not determine them: a mean of
// about 250 tokens with a long tail, as in recorded chats. Assumed.
var defaultLengths = lognormal{median: 180, sigma: 0.8, least: 1}

// draw returns a random length.
func (l lognormal) draw(source *rand.PCG) int {
	z := rand.New(source).NormFloat64()
	return max(l.least, int(math.Round(l.median*math.Exp(l.sigma*z))))
}
