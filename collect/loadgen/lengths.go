package loadgen

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Shape is the form of a distribution.
type Shape int

// Shapes. The zero value is uniform; a fixed value has equal bounds.
const (
	Uniform Shape = iota
	Lognormal
	Listed // a list whose entries are equally likely
	Exponential
)

// MaxTokens limits a length in tokens, so that a mistyped number does not request gigabytes of
// prompt.
const MaxTokens = 1 << 24

// tailFactor is where an unbounded lognormal distribution is cut, as a multiple of its mean.
const tailFactor = 20

// Lengths is a distribution of lengths in tokens.
type Lengths struct {
	Shape    Shape   // Uniform, Lognormal or Listed
	Min, Max int     // bounds, both included; for Lognormal Min 0 is 1 and Max 0 is 20 means
	Mean     float64 // of Lognormal before the bounds
	Sigma    float64 // of Lognormal: standard deviation of the logarithm
	Values   []int   // of Listed
}

// Fixed returns the distribution with the only value n.
func Fixed(n int) Lengths { return Lengths{Min: n, Max: n} }

// Between returns the uniform distribution from low to high, both included.
func Between(low, high int) Lengths { return Lengths{Min: low, Max: high} }

// LognormalMean returns the lognormal distribution with a mean, limited to most if that is above 0.
func LognormalMean(mean, sigma float64, most int) Lengths {
	return Lengths{Shape: Lognormal, Mean: mean, Sigma: sigma, Max: most}
}

// LognormalMedian returns the lognormal distribution with a median, limited like LognormalMean.
func LognormalMedian(median, sigma float64, most int) Lengths {
	return LognormalMean(median*math.Exp(sigma*sigma/2), sigma, most)
}

// OneOf returns the distribution of a list whose entries are equally likely.
func OneOf(values []int) Lengths { return Lengths{Shape: Listed, Values: values} }

// IsZero reports whether no distribution was given.
func (l Lengths) IsZero() bool {
	return l.Shape == Uniform && l.Min == 0 && l.Max == 0
}

// least and most return the bounds of drawn values. least is 0 for a lognormal distribution without
// a minimum.
func (l *Lengths) least() int {
	if l.Shape == Listed && len(l.Values) > 0 {
		return slices.Min(l.Values)
	}
	return l.Min
}

func (l *Lengths) most() int {
	switch {
	case l.Shape == Lognormal:
		return cmp.Or(l.Max, max(1, int(min(tailFactor*l.Mean, MaxTokens))))
	case l.Shape == Listed && len(l.Values) > 0:
		return slices.Max(l.Values)
	}
	return l.Max
}

// mean returns the mean of drawn values.
func (l *Lengths) mean() float64 {
	switch l.Shape {
	case Lognormal:
		return l.lognormalMean()
	case Listed:
		sum := 0.0
		for _, v := range l.Values {
			sum += float64(v)
		}
		return sum / float64(len(l.Values))
	}
	return float64(l.Min+l.Max) / 2
}

// lognormalMean sums the probabilities that a drawn value is at least 1, 2, 3, ..., which is the
// mean of whole numbers.
func (l *Lengths) lognormalMean() float64 {
	least, most := max(l.Min, 1), max(l.Min, 1, l.most())
	mean := float64(least)
	// The probability of a value above x: one half of erfc((ln(x/mean)+σ²/2)/(σ√2)).
	above := func(x float64) float64 {
		switch {
		case l.Sigma > 0:
			return math.Erfc((math.Log(x/l.Mean)+l.Sigma*l.Sigma/2)/(l.Sigma*math.Sqrt2)) / 2
		case x <= l.Mean:
			return 1
		}
		return 0
	}
	for n := least + 1; n <= most; {
		// Values are rounded, so n is drawn from n-½ on. Steps that grow with n shorten the sum,
		// with a relative error below 1e-6.
		step := min(max(1, n/2048), most-n+1)
		mean += float64(step) * above(float64(n)-1+float64(step)/2)
		n += step
	}
	return mean
}

// check returns what is wrong, as a predicate without a subject.
func (l *Lengths) check() error {
	switch l.Shape {
	case Listed:
		if len(l.Values) == 0 {
			return fmt.Errorf("are one of an empty list")
		}
	case Lognormal:
		if !(l.Mean >= 1 && l.Mean <= MaxTokens) {
			return fmt.Errorf("have a mean of %v, must be 1 to %d", l.Mean, MaxTokens)
		}
		if !(l.Sigma >= 0 && l.Sigma <= 10) {
			return fmt.Errorf("have a sigma of %v, must be 0 to 10", l.Sigma)
		}
		if l.Max < 0 || l.Min < 0 || l.Max > 0 && l.Max < max(l.Min, 1) {
			return fmt.Errorf("end at %d, below their start %d", l.Max, l.Min)
		}
	case Uniform:
		if l.Min < 1 {
			return fmt.Errorf("start at %d, must be at least 1", l.Min)
		}
		if l.Max < l.Min {
			return fmt.Errorf("end at %d, below their start %d", l.Max, l.Min)
		}
	default:
		return fmt.Errorf("have no shape %d", int(l.Shape))
	}
	if l.Shape == Listed && l.least() < 1 {
		return fmt.Errorf("start at %d, must be at least 1", l.least())
	}
	if l.most() > MaxTokens {
		return fmt.Errorf("end at %d, must be at most %d", l.most(), MaxTokens)
	}
	return nil
}

func (l *Lengths) draw(from *rand.Rand) int {
	switch l.Shape {
	case Lognormal:
		value := l.Mean * math.Exp(l.Sigma*from.NormFloat64()-l.Sigma*l.Sigma/2)
		return max(l.Min, 1, int(min(math.Round(value), float64(l.most()))))
	case Listed:
		return l.Values[from.IntN(len(l.Values))]
	}
	return l.Min + from.IntN(l.Max-l.Min+1)
}

// ParseLengths parses a length: 512, 100-800, lognormal:MEAN,SIGMA[,MAX],
// lognormal:median=M,sigma=S[,max=N], or @FILE with whole numbers. read returns the contents of the
// file.
func ParseLengths(text string, read func(name string) ([]byte, error)) (Lengths, error) {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		b, err := read(name)
		if err != nil {
			return Lengths{}, err
		}
		return parseList(name, string(b))
	}
	if rest, ok := strings.CutPrefix(text, "lognormal:"); ok {
		return parseLognormal(rest)
	}
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	first, err1 := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil {
		return Lengths{}, fmt.Errorf("%q is not a length: give 512, 100-800, lognormal:512,0.6 or @FILE", text)
	}
	l := Between(first, last)
	return l, l.refusal()
}

// refusal returns the error of check as a complete sentence.
func (l *Lengths) refusal() error {
	if err := l.check(); err != nil {
		return fmt.Errorf("lengths %w", err)
	}
	return nil
}

func parseLognormal(text string) (Lengths, error) {
	usage := func() (Lengths, error) {
		return Lengths{}, fmt.Errorf("lognormal:%s: give lognormal:MEAN,SIGMA[,MAX] or lognormal:median=M,sigma=S[,max=N]", text)
	}
	values := map[string]float64{}
	for i, part := range strings.Split(text, ",") {
		name, number, named := strings.Cut(part, "=")
		if !named {
			if i > 2 {
				return usage()
			}
			name, number = []string{"mean", "sigma", "max"}[i], part
		}
		v, err := strconv.ParseFloat(number, 64)
		_, twice := values[name]
		if err != nil || !stat.IsFinite(v) || twice || !slices.Contains([]string{"mean", "median", "sigma", "max"}, name) {
			return usage()
		}
		values[name] = v
	}
	mean, hasMean := values["mean"]
	median, hasMedian := values["median"]
	sigma, hasSigma := values["sigma"]
	if hasMean == hasMedian || !hasSigma || math.Abs(values["max"]) > MaxTokens {
		return usage()
	}
	l := LognormalMean(mean, sigma, int(values["max"]))
	if hasMedian {
		l = LognormalMedian(median, sigma, int(values["max"]))
	}
	return l, l.refusal()
}

// parseList parses whole numbers separated by white space or commas. A # begins a comment.
func parseList(name, text string) (Lengths, error) {
	var values []int
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for _, field := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' }) {
			n, err := strconv.Atoi(field)
			if err != nil || n < 1 || n > MaxTokens {
				return Lengths{}, fmt.Errorf("%s:%d: %q is not a length: give whole numbers from 1 to %d", name, i+1, field, MaxTokens)
			}
			values = append(values, n)
		}
	}
	if len(values) == 0 {
		return Lengths{}, fmt.Errorf("%s contains no lengths", name)
	}
	return OneOf(values), nil
}

// Delay is a distribution of durations.
type Delay struct {
	Shape    Shape         // Uniform, Exponential or Lognormal
	Min, Max time.Duration // of Uniform, both included
	Mean     time.Duration // of the other shapes, which are cut at 20 means
	Sigma    float64       // of Lognormal: standard deviation of the logarithm
}

// Always returns the distribution with the only value d.
func Always(d time.Duration) Delay { return Delay{Min: d, Max: d} }

func (d *Delay) check() error {
	switch {
	case d.Min < 0 || d.Max < 0 || d.Mean < 0:
		return fmt.Errorf("a time is negative")
	case d.Shape == Uniform && d.Max < d.Min:
		return fmt.Errorf("it ends at %v, below its start %v", d.Max, d.Min)
	case d.Shape == Lognormal && !(d.Sigma >= 0 && d.Sigma <= 10):
		return fmt.Errorf("sigma is %v, must be 0 to 10", d.Sigma)
	case d.Shape == Listed || d.Shape < 0 || d.Shape > Exponential:
		return fmt.Errorf("a time has no shape %d", int(d.Shape))
	case d.Mean > math.MaxInt64/tailFactor/2 || d.Max > math.MaxInt64/2:
		return fmt.Errorf("a time is too long")
	}
	return nil
}

func (d *Delay) draw(from *rand.Rand) time.Duration {
	switch d.Shape {
	case Exponential:
		return time.Duration(min(from.ExpFloat64(), tailFactor) * float64(d.Mean))
	case Lognormal:
		return time.Duration(min(math.Exp(d.Sigma*from.NormFloat64()-d.Sigma*d.Sigma/2), tailFactor) * float64(d.Mean))
	}
	return d.Min + time.Duration(from.Int64N(int64(d.Max-d.Min)+1))
}

// ParseDelay parses a delay: 2s, 1s-5s, exp:2s or lognormal:2s,0.5, the last two with their mean.
func ParseDelay(text string) (Delay, error) {
	wrong := fmt.Errorf("%q is not a duration: give 2s, 1s-5s, exp:2s or lognormal:2s,0.5", text)
	var d Delay
	var err error
	if mean, ok := strings.CutPrefix(text, "exp:"); ok {
		d.Shape = Exponential
		d.Mean, err = time.ParseDuration(mean)
	} else if rest, ok := strings.CutPrefix(text, "lognormal:"); ok {
		mean, sigma, _ := strings.Cut(rest, ",")
		d.Shape = Lognormal
		d.Sigma, err = strconv.ParseFloat(sigma, 64)
		if err == nil {
			d.Mean, err = time.ParseDuration(mean)
		}
	} else {
		low, high, isRange := strings.Cut(text, "-")
		if !isRange {
			high = low
		}
		d.Min, err = time.ParseDuration(low)
		if err == nil {
			d.Max, err = time.ParseDuration(high)
		}
	}
	if err != nil {
		return Delay{}, wrong
	}
	return d, d.check()
}
