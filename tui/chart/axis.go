package chart

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Axis is one direction of a plot.
type Axis struct {
	// Title and unit, drawn once: of x below the axis at its end, of y above it.
	Title string
	// Lo and Hi are the values at the ends. Where Hi is not above Lo, or Log is set
	// and Lo is not positive, the axis has no values and the plot shows none.
	Lo, Hi float64
	// Log has equal distances for equal ratios.
	Log bool
	// Least is the least distance of ticks: 1 for what is counted.
	Least float64
	// Label spells a tick; nil is figure.Count.
	Label func(float64) string
}

func (a *Axis) ok() bool {
	return finite(a.Lo) && finite(a.Hi) && a.Hi > a.Lo && finite(a.Hi-a.Lo) && (!a.Log || a.Lo > 0)
}

// at returns where v lies on the axis: 0 at Lo, 1 at Hi, outside of both beyond
// them; NaN where the axis has no such value.
func (a *Axis) at(v float64) float64 {
	if a.Log {
		return math.Log(v/a.Lo) / math.Log(a.Hi/a.Lo)
	}
	return (v - a.Lo) / (a.Hi - a.Lo)
}

// inside says that v is drawn.
func (a *Axis) inside(v float64) bool {
	f := a.at(v)
	return f >= -1e-9 && f <= 1+1e-9
}

func (a *Axis) label(v float64) string {
	if a.Label != nil {
		return a.Label(v)
	}
	return figure.Count(v)
}

// Extend returns the axis with ends on ticks: what it showed before, and a little
// more. Most is how many ticks there is room for.
func (a Axis) Extend(most int) Axis {
	if !a.ok() {
		return a
	}
	if a.Log {
		a.Lo, a.Hi = niceBelow(a.Lo), Nice(a.Hi)
		return a
	}
	step := a.step(most)
	lo, hi := math.Floor(a.Lo/step+1e-9)*step, math.Ceil(a.Hi/step-1e-9)*step
	a.Lo, a.Hi = lo, hi
	return a
}

// niceBelow is the largest 1-2-5 step that is not above v.
func niceBelow(v float64) float64 {
	n := Nice(v)
	if n <= v*(1+1e-9) {
		return n
	}
	e := math.Floor(math.Log10(n) + 1e-9)
	switch f := n / math.Pow(10, e); {
	case f > 4:
		return decimal(2, e)
	case f > 1.5:
		return decimal(1, e)
	}
	return decimal(5, e-1)
}

// step is the 1-2-5 distance of about most ticks.
func (a *Axis) step(most int) float64 { return max(a.Least, Nice((a.Hi-a.Lo)/float64(max(1, most)))) }

// ticks returns at most most values, rising, that are round in the axis' own way:
// multiples of a 1-2-5 step, or 1-2-5 and powers of ten where it is logarithmic.
func (a *Axis) ticks(most int) []float64 {
	if !a.ok() || most <= 0 {
		return nil
	}
	if a.Log {
		return a.logTicks(most)
	}
	step := a.step(most)
	var out []float64
	first := math.Ceil(a.Lo/step - 1e-9)
	for i := 0.0; i <= float64(most)+1; i++ {
		v := (first + i) * step
		if v > a.Hi+1e-9*step {
			break
		}
		out = append(out, tidy(v, step))
	}
	return out
}

// tidy takes away what multiplying by a step adds beyond its last digit.
func tidy(v, step float64) float64 {
	if step >= 1 {
		return math.Round(v)
	}
	p := math.Pow(10, math.Ceil(-math.Log10(step))+1)
	return math.Round(v*p) / p
}

func (a *Axis) logTicks(most int) []float64 {
	for _, factors := range [...][]float64{{1, 2, 5}, {1}} {
		if out := a.within(factors, 1); len(out) <= most && len(out) > 1 {
			return out
		}
	}
	decades := math.Log10(a.Hi / a.Lo)
	every := math.Ceil(decades / float64(most))
	out := a.within([]float64{1}, max(1, every))
	return out[:min(len(out), most)]
}

// within lists the values factor·10^e that the axis shows, for every so manieth e.
func (a *Axis) within(factors []float64, every float64) []float64 {
	var out []float64
	for e := math.Floor(math.Log10(a.Lo)); e <= math.Ceil(math.Log10(a.Hi)); e += every {
		for _, f := range factors {
			if v := decimal(f, e); a.inside(v) {
				out = append(out, v)
			}
		}
	}
	return out
}
