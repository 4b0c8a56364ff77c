package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Expect is one expected effect of a change: a metric of the changed run is compared with a number
// ("preemptions_per_s <= 0.01") or with the unchanged run ("tokens_per_s >= 1.5x").
type Expect struct {
	Metric string
	Op     string // <=, >=, <, >
	Value  float64
	Ratio  bool // Value is a multiple of the unchanged run's
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (e *Expect) UnmarshalText(b []byte) error {
	text := string(b)
	words := strings.Fields(text)
	if len(words) != 3 {
		return fmt.Errorf("%q is not an expectation: write METRIC OP NUMBER, as in \"tokens_per_s >= 1.5x\" (times the unchanged run) or \"preemptions_per_s <= 0.01\"", text)
	}
	switch words[1] {
	case "<", "<=", ">", ">=":
	default:
		return fmt.Errorf("%q compares with none of <, <=, >, >=", text)
	}
	number, ratio := strings.CutSuffix(words[2], "x")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%q of %q is not a number", words[2], text)
	}
	*e = Expect{Metric: words[0], Op: words[1], Value: v, Ratio: ratio}
	return nil
}

// String formats the expectation as in a file.
func (e Expect) String() string {
	unit := ""
	if e.Ratio {
		unit = "x"
	}
	return e.Metric + " " + e.Op + " " + strconv.FormatFloat(e.Value, 'g', -1, 64) + unit
}

// Holds reports whether the expectation is met by the metric of the unchanged run (before) and of the changed
// one (after). It is false if a metric was not measured (NaN).
func (e Expect) Holds(before, after float64) bool {
	limit := e.Value
	if e.Ratio {
		limit *= before
	}
	switch e.Op {
	case "<":
		return after < limit
	case "<=":
		return after <= limit
	case ">":
		return after > limit
	}
	return after >= limit
}
