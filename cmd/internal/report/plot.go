package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// figureOf is a plot as an HTML template draws it: texts apart from geometry, in
// user units of the frame. The template escapes the texts.
type figureOf struct {
	ID, Title string
	Desc      string // the plot in words, for those who do not see it
	Empty     string // why there is nothing to draw, "" where there is
	XTitle    string
	YTitle    string
	X, Y      []gridLine
	Bands     []bandOf
	Rules     []ruleOf // vertical
	Lines     []lineOf
	Dots      []dotOf
	Keys      []keyOf
}

// gridLine is a tick with its place.
type gridLine struct {
	At    string
	Label string
}

// bandOf shades a stretch of the x axis.
type bandOf struct {
	X, Width, Middle string
	Class, Label     string
}

// ruleOf is a vertical line with a name.
type ruleOf struct {
	X, LabelX, LabelY string
	Class, Anchor     string
	Label, Text       string // shown, and said when pointed at
}

// lineOf is a curve.
type lineOf struct{ D, Class string }

// dotOf is a measured point with its number.
type dotOf struct {
	X, Y, LabelX, LabelY string
	Class, Label, Text   string
}

// keyOf explains a line, or a dot.
type keyOf struct {
	Class, Label string
	Dot          bool
}

// Frame of a plot in user units, and the space around what is drawn.
const (
	frameWidth  = 860.0
	frameHeight = 300.0
	frameLeft   = 74.0
	frameRight  = 18.0
	frameTop    = 34.0
	frameBottom = 44.0
)

// coordinate writes a place with a tenth of a unit.
func coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// scaleOf maps values between Lo and Hi to places between From and To.
type scaleOf struct {
	lo, hi   float64
	from, to float64
	log      bool
}

func (s scaleOf) at(v float64) float64 {
	share := 0.0
	switch {
	case s.log:
		share = math.Log(v/s.lo) / math.Log(s.hi/s.lo)
	case s.hi > s.lo:
		share = (v - s.lo) / (s.hi - s.lo)
	}
	return s.from + share*(s.to-s.from)
}

func (s scaleOf) inside(v float64) bool { return v >= s.lo*(1-1e-9) && v <= s.hi*(1+1e-9) }

func xScale(lo, hi float64, log bool) scaleOf {
	return scaleOf{lo, hi, frameLeft, frameWidth - frameRight, log}
}

func yScale(lo, hi float64, log bool) scaleOf {
	return scaleOf{lo, hi, frameHeight - frameBottom, frameTop, log}
}

// zeroTo is a linear scale from zero to a round number above most, with its ticks.
func zeroTo(most float64, ticks int) (hi float64, at []float64) {
	step := chart.Nice(most / float64(ticks))
	for i := 0.0; ; i++ {
		at = append(at, i*step)
		if i*step >= most*(1-1e-9) && i > 0 {
			return i * step, at
		}
	}
}

// decades are the 1-2-5 steps from one below least to one above most; where there
// are many, powers of ten.
func decades(least, most float64) (lo, hi float64, at []float64) {
	lo = math.Pow(10, math.Floor(math.Log10(least)+1e-9))
	for _, step := range []float64{5, 2} {
		if lo*step <= least*(1+1e-9) {
			lo *= step
			break
		}
	}
	hi = chart.Nice(most)
	if hi <= lo {
		hi = 10 * lo
	}
	for v := lo; v <= hi*(1+1e-9); v = chart.Nice(v * 1.5) {
		at = append(at, v)
	}
	const room = 12
	if len(at) <= room {
		return lo, hi, at
	}
	var powers []float64
	for _, v := range at {
		if x := math.Log10(v); math.Abs(x-math.Round(x)) < 1e-9 {
			powers = append(powers, v)
		}
	}
	return lo, hi, powers
}

// pathOf draws places in their order as one line.
func pathOf(places [][2]float64) string {
	var b strings.Builder
	for i, p := range places {
		b.WriteString(map[bool]string{true: "M", false: "L"}[i == 0])
		b.WriteString(coordinate(p[0]) + " " + coordinate(p[1]))
	}
	if len(places) == 1 { // a lone point is drawn by its round end
		b.WriteString("h.1")
	}
	return b.String()
}

// ticksAt labels values of an axis.
func ticksAt(s scaleOf, values []float64, label func(float64) string) []gridLine {
	var out []gridLine
	for _, v := range values {
		out = append(out, gridLine{coordinate(s.at(v)), label(v)})
	}
	return out
}

// plainNumber labels a tick.
func plainNumber(v float64) string { return figure.Count(v) }

// inUnit labels ticks with a unit of their own, as times from µs to s.
func inUnit(unit string) func(float64) string {
	return func(v float64) string {
		number, printed := figure.Amount(v, unit)
		if strings.Contains(number, ".") { // ticks are round
			number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
		}
		if v == 0 || printed == "" {
			return number
		}
		return number + nbsp + printed
	}
}

// finiteAbove says that a value can stand on an axis that begins above zero.
func finiteAbove(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
