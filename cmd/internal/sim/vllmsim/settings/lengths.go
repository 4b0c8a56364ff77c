package settings

import (
	"errors"
	"fmt"
)

// Lengths is a distribution of token counts, in the syntax of `rooftop load`: "512", "100-800" or
// "lognormal:MEAN,SIGMA,MAX".
type Lengths struct {
	Least, Most int     // inclusive bounds; Least is 0 for lognormal
	Mean        float64 // of lognormal, before it is cut at Most; 0 for a uniform distribution
	Sigma       float64 // of lognormal: standard deviation of the logarithm
}

var errLengths = errors.New(`a length is "512", "100-800" or "lognormal:600,0.8,4000" (mean, sigma, most)`)

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *Lengths) UnmarshalText(text []byte) error {
	var d Lengths
	if n, _ := fmt.Sscanf(string(text), "lognormal:%g,%g,%d", &d.Mean, &d.Sigma, &d.Most); n < 3 {
		n, _ = fmt.Sscanf(string(text), "%d-%d", &d.Least, &d.Most)
		if n == 1 {
			d.Most = d.Least
		}
		if d.Mean = 0; d.Least < 1 {
			return fmt.Errorf("%q is not a length: %w", text, errLengths)
		}
	}
	if d.Most > maxTokens || float64(d.Most) < max(d.Mean, float64(d.Least), 1) || d.Least == 0 && !(d.Mean >= 1 && d.Sigma >= 0 && d.Sigma <= 10) {
		return fmt.Errorf("%q is not a length: %w", text, errLengths)
	}
	*l = d
	return nil
}

// maxTokens bounds lengths, against mistyped numbers.
const maxTokens = 1 << 22

// Set reports whether the distribution was given.
func (l Lengths) Set() bool { return l.Most > 0 }
