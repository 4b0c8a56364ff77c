package scenarios

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Shape is the kind of a distribution of lengths.
type Shape uint8

// Shapes, as they are spelled.
const (
	Fixed     Shape = iota // "512"
	Uniform                // "uniform 128 512": least and most
	Lognormal              // "lognormal 600 0.8 4000": median, sigma of the logarithm, most
)

// Lengths is a distribution of token counts.
type Lengths struct {
	Shape       Shape
	Least, Most int     // of Uniform; Most of Lognormal; both the value of Fixed
	Median      float64 // of Lognormal
	Sigma       float64 // of Lognormal
}

var errLengths = errors.New(`a length is "512", "uniform 128 512" (least, most) or "lognormal 600 0.8 4000" (median, sigma, most)`)

func (l *Lengths) parse(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 {
		return errLengths
	}
	shape, args := Fixed, words
	switch words[0] {
	case "uniform":
		shape, args = Uniform, words[1:]
	case "lognormal":
		shape, args = Lognormal, words[1:]
	}
	if want := [...]int{Fixed: 1, Uniform: 2, Lognormal: 3}[shape]; len(args) != want {
		return errLengths
	}
	var v [3]float64
	for i, a := range args {
		x, err := strconv.ParseFloat(a, 64)
		whole := shape != Lognormal || i == 2
		if err != nil || x <= 0 || x > 1e7 || whole && x != float64(int(x)) {
			return fmt.Errorf("%q is no length: %w", a, errLengths)
		}
		v[i] = x
	}
	switch shape {
	case Fixed:
		*l = Lengths{Least: int(v[0]), Most: int(v[0])}
	case Uniform:
		*l = Lengths{Shape: Uniform, Least: int(v[0]), Most: int(v[1])}
		if l.Least > l.Most {
			return fmt.Errorf("the least of %q is above its most", text)
		}
	case Lognormal:
		*l = Lengths{Shape: Lognormal, Least: 1, Median: v[0], Sigma: v[1], Most: int(v[2])}
	}
	return nil
}

// Set says whether the distribution was given.
func (l Lengths) Set() bool { return l.Most > 0 }
