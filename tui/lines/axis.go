package lines

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Axis is one axis of a plot.
type Axis struct {
	// Title, with its unit, is drawn once: for x at the end below the axis, for y above it.
	Title string
	// Lo and Hi are the values at the ends. If Hi is not above Lo, or Log is set and Lo is not
	// positive, the axis is invalid and the plot shows no values.
	Lo, Hi float64
	// Log makes the axis logarithmic.
	Log bool
	// MinStep is the minimum distance between ticks: 1 for counts.
	MinStep float64
}

// valid reports whether the axis can show values.
func (a *Axis) valid() bool {
	return stat.IsFinite(a.Lo) && stat.IsFinite(a.Hi) && a.Hi > a.Lo && stat.IsFinite(a.Hi-a.Lo) && (!a.Log || a.Lo > 0)
}

// at returns the position of v on the axis: 0 at Lo, 1 at Hi, outside that range for values beyond
// them. The result is NaN or infinite if the axis has no such value.
func (a *Axis) at(v float64) float64 {
	if a.Log {
		return math.Log(v/a.Lo) / math.Log(a.Hi/a.Lo)
	}
	return (v - a.Lo) / (a.Hi - a.Lo)
}

// inside reports whether v lies on the axis.
func (a *Axis) inside(v float64) bool {
	f := a.at(v)
	return f >= -1e-9 && f <= 1+1e-9
}

// Extend returns a linear axis that includes this one and begins and ends on ticks. There is room
// for maxTicks ticks. It returns an invalid or logarithmic axis unchanged.
func (a Axis) Extend(maxTicks int) Axis {
	if !a.valid() || a.Log {
		return a
	}
	step := a.step(maxTicks)
	a.Lo, a.Hi = math.Floor(a.Lo/step+1e-9)*step, math.Ceil(a.Hi/step-1e-9)*step
	return a
}

// step returns the 1-2-5 step that gives about most ticks.
func (a *Axis) step(most int) float64 { return max(a.MinStep, Nice((a.Hi-a.Lo)/float64(max(1, most)))) }

// Ticks returns at most most values in rising order: multiples of a 1-2-5 step or, on a logarithmic
// axis, 1, 2 and 5 times powers of ten, or only the powers of ten.
func (a *Axis) Ticks(most int) []float64 {
	if !a.valid() || most <= 0 {
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

// tidy removes the rounding error of multiplying by a step.
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

// within returns the values factor·10^e inside the axis, for every n-th exponent e with n = every.
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
