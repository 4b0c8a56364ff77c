package render

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// scale maps values between lo and hi to coordinates between from and to.
type scale struct {
	lo, hi   float64
	from, to float64
	log      bool
	ticks    []float64
	label    func(float64) string
}

// scaleOf returns the scale of an axis between two coordinates, with about the given number of ticks.
func scaleOf(a *page.Axis, from, to float64, ticks int) scale {
	s := scale{from: from, to: to, log: a.Log, label: labelsOf(a)}
	switch {
	case a.Log:
		s.lo, s.hi, s.ticks = logTicks(a.From, a.To)
	case a.Exact:
		s.lo, s.hi, s.ticks = a.From, a.To, []float64{a.From, (a.From + a.To) / 2, a.To}
	default:
		to := a.To
		if !(to > 0) || math.IsInf(to, 0) {
			to = 1
		}
		whole := lines.Axis{Hi: to}.Extend(ticks)
		s.hi, s.ticks = whole.Hi, whole.Ticks(ticks)
	}
	if a.Ticks != nil {
		s.ticks = a.Ticks
	}
	return s
}

func (s *scale) at(v float64) float64 {
	share := 0.0
	switch {
	case s.log:
		share = math.Log(min(max(v, s.lo), s.hi)/s.lo) / math.Log(s.hi/s.lo)
	case s.hi > s.lo:
		share = (v - s.lo) / (s.hi - s.lo)
	}
	return s.from + share*(s.to-s.from)
}

// logTicks returns the 1-2-5 steps from at most least to at least most, or only powers of ten if there are too many
// steps.
func logTicks(least, most float64) (lo, hi float64, at []float64) {
	lo = math.Pow(10, math.Floor(math.Log10(least)+1e-9))
	for _, step := range []float64{5, 2} {
		if lo*step <= least*(1+1e-9) {
			lo *= step
			break
		}
	}
	hi = lines.Nice(most)
	if hi <= lo {
		hi = 10 * lo
	}
	const room = 12
	whole := lines.Axis{Lo: lo, Hi: hi, Log: true}
	return lo, hi, whole.Ticks(room)
}

// labelsOf returns a function that formats the ticks of an axis, which are round numbers.
func labelsOf(a *page.Axis) func(float64) string {
	switch {
	case a.Unit == "clock":
		return func(v float64) string { return figure.Clock(time.Duration(v * float64(time.Second))) }
	case a.Unit == "" && a.Log:
		return func(v float64) string {
			if v >= 1 {
				return figure.Count(v)
			}
			return strconv.FormatFloat(v, 'g', 2, 64)
		}
	case a.Unit == "":
		return figure.Count
	}
	return func(v float64) string {
		number, printed := figure.Amount(v, a.Unit)
		if strings.Contains(number, ".") {
			number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
		}
		if v == 0 || printed == "" {
			return number
		}
		return number + figure.NBSP + printed
	}
}
