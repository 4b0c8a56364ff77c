package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Numbers in sentences: three significant digits, with the unit.

// number writes v with three significant digits and no exponent.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return trim(strconv.FormatFloat(v, 'f', 1, 64))
	case a >= 0.1:
		return trim(strconv.FormatFloat(v, 'f', 2, 64))
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func trim(s string) string { return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") }

// percent writes a ratio as percent.
func percent(ratio float64) string {
	p := ratio * 100
	if math.Abs(p) >= 10 || p == math.Trunc(p) {
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
	return trim(strconv.FormatFloat(p, 'f', 1, 64)) + " %"
}

// change writes a relative change with its sign.
func change(ratio float64) string {
	if ratio >= 0 {
		return "+" + percent(ratio)
	}
	return percent(ratio)
}

// seconds writes a duration in the unit that reads best.
func seconds(s float64) string {
	switch {
	case math.Abs(s) >= 1, s == 0:
		return number(s) + " s"
	case math.Abs(s) >= 0.001:
		return number(s*1e3) + " ms"
	}
	return number(s*1e6) + " us"
}

// counted writes a number with the noun in singular or plural.
func counted(n float64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// perRank adds whose the number is where there are several ranks.
func perRank(n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" on each of the %d data-parallel ranks", n)
}

// evidence makes one figure of a finding. limit may be absent.
func evidence(name string, v stat.Opt, unit, op string, limit stat.Opt, from engine.Source, text string) engine.Evidence {
	return engine.Evidence{Name: name, Value: v, Unit: unit, Op: op, Limit: limit, Source: from, Text: text}
}

// measured makes a figure without a limit that was measured.
func measured(name string, v stat.Opt, unit, text string) engine.Evidence {
	return engine.Evidence{Name: name, Value: v, Unit: unit, Source: engine.FromMeasured, Text: text}
}

// joinAnd lists phrases in words.
func joinAnd(parts []string) string {
	switch n := len(parts); n {
	case 0:
		return ""
	case 1:
		return parts[0]
	default:
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
}
