package engine

import (
	"math"
	"strconv"
	"strings"
)

// Sentence writes what decided in words, with the figure and what it was held
// against: "queue ratio 12 % < 30 %", "prefill saturated at 55 %".
func (c Check) Sentence() string {
	if !c.Figure.OK {
		return c.Why
	}
	parts := []string{c.Why, inUnit(c.Figure.V, c.Unit)}
	if c.State != Suppressed && c.Op != "" && c.Limit.OK {
		parts = append(parts, c.Op, inUnit(c.Limit.V, c.Unit))
	}
	return strings.Join(parts, " ")
}

// inUnit writes a value in a unit of findings with three significant digits;
// ratios as percent.
func inUnit(v float64, unit string) string {
	switch unit {
	case "ratio":
		return digits(100*v) + " %"
	case "", "req":
		return digits(v)
	}
	return digits(v) + " " + unit
}

// digits writes three significant digits without an exponent, and whole numbers
// as they are.
func digits(v float64) string {
	if math.Abs(v) >= 100 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
