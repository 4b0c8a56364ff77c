package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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
func (l *Lengths) UnmarshalText(b []byte) error {
	text := string(b)
	if rest, ok := strings.CutPrefix(text, "lognormal:"); ok {
		words := strings.Split(rest, ",")
		if len(words) != 3 {
			return errLengths
		}
		mean, err1 := strconv.ParseFloat(words[0], 64)
		sigma, err2 := strconv.ParseFloat(words[1], 64)
		most, err3 := strconv.Atoi(words[2])
		if errors.Join(err1, err2, err3) != nil || !(mean >= 1 && sigma >= 0 && sigma <= 10 && float64(most) >= mean && most <= maxTokens) {
			return fmt.Errorf("%q is not a length: %w", text, errLengths)
		}
		*l = Lengths{Mean: mean, Sigma: sigma, Most: most}
		return nil
	}
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	least, err1 := strconv.Atoi(low)
	most, err2 := strconv.Atoi(high)
	if errors.Join(err1, err2) != nil || least < 1 || most < least || most > maxTokens {
		return fmt.Errorf("%q is not a length: %w", text, errLengths)
	}
	*l = Lengths{Least: least, Most: most}
	return nil
}

// maxTokens bounds lengths, against mistyped numbers.
const maxTokens = 1 << 22

// Set reports whether the distribution was given.
func (l Lengths) Set() bool { return l.Most > 0 }
