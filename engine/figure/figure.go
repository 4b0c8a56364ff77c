// Package figure formats quantities for people: three significant digits, units that fit the size, a minus
// instead of a hyphen. Report and live screen use it, so that they format a number the same.
package figure

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Absent stands for an unknown value.
const Absent = "–"

// NBSP is the no-break space between a figure and its unit.
const NBSP = "\u00a0"

// Significant formats v with three significant digits and thousands
// separators: 3,300, 884, 12.4, 0.0310. Figures beyond 1e12 or below 1e-3 are
// written with an exponent.
func Significant(v float64) string { return significant(v, 3) }

// significant is Significant with another number of digits.
func significant(v float64, digits int) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Absent
	case v == 0:
		return "0"
	}
	e := strconv.FormatFloat(v, 'e', digits-1, 64)
	mantissa, exponent, _ := strings.Cut(e, "e")
	x, err := strconv.Atoi(exponent)
	if err != nil || x >= 12 || x < -3 {
		return Minus(mantissa + "e" + strconv.Itoa(x))
	}
	rounded, err := strconv.ParseFloat(e, 64)
	if err != nil {
		return Absent
	}
	return Minus(group(strconv.FormatFloat(rounded, 'f', max(0, digits-1-x), 64)))
}

// Count formats a number of things: integers exactly, means below 100 with one decimal, and very large
// numbers with three significant digits. A mean that would round to 0 is "<0.1", unless it is 0.
func Count(v float64) string {
	r, a := math.Round(v), math.Abs(v)
	switch {
	case a >= 1e12:
		return Significant(v)
	case v > 0 && v < 0.05:
		return "<0.1"
	case math.Abs(v-r) < 0.05:
		return Whole(r)
	case a < 100:
		return Minus(strconv.FormatFloat(v, 'f', 1, 64))
	}
	return Significant(v)
}

// Whole formats a whole number exactly.
func Whole(v float64) string { return Minus(group(strconv.FormatFloat(v, 'f', 0, 64))) }

// Minus replaces a leading hyphen by a minus.
func Minus(s string) string { return strings.Replace(s, "-", "−", 1) }

// group puts a comma between thousands of the whole part.
func group(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	integer, fraction, dot := strings.Cut(s, ".")
	for i := len(integer) - 3; i > 0; i -= 3 {
		integer = integer[:i] + "," + integer[i:]
	}
	if dot {
		integer += "." + fraction
	}
	return sign + integer
}

// Percent formats a ratio as a percentage without the percent sign: whole, or with one decimal below 10 and
// between 99 and 100, where rounding would hide what matters. A percentage that would round to 0
// is "<0.1", unless it is 0.
func Percent(ratio float64) string {
	p := ratio * 100
	a := math.Abs(p)
	switch {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return Absent
	case a >= 1e12:
		return Significant(p)
	case a > 0 && a < 0.05:
		return "<0.1"
	case math.Abs(p-math.Round(p)) < 1e-9:
		return Whole(math.Round(p))
	case a < 9.95, a > 99 && a < 99.95:
		return Minus(group(strconv.FormatFloat(p, 'f', 1, 64)))
	}
	return Whole(math.Round(p))
}

// Change formats a relative change in percent, always signed: +43, −6.2.
func Change(ratio float64) string {
	s := Percent(ratio)
	if ratio > 0 && s[0] != '<' {
		return "+" + s
	}
	return s
}

// scale is one prefix of a unit.
type scale struct {
	from float64 // smallest value, in the base unit, for this prefix
	unit string
}

// decimalBytes is the key of bytes with decimal prefixes in scales.
const decimalBytes = "bytes"

// scales are the prefixes of the units that have some, largest first.
var scales = map[string][]scale{
	"s":   {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}},
	"B":   {{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}},
	"B/s": {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}},
	"J":   {{1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}, {1e-3, "mJ"}},

	decimalBytes: {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}},
}

// scaled formats v in a unit with prefixes: with the first that it reaches after rounding to three
// digits, or else the last.
func scaled(v float64, unit string, digits int) (string, string) {
	list := scales[unit]
	for _, s := range list[:len(list)-1] {
		if math.Abs(v) >= s.from*0.9995 {
			return significant(v/s.from, digits), s.unit
		}
	}
	last := list[len(list)-1]
	return significant(v/last.from, digits), last.unit
}

// Seconds formats a duration: µs, ms or s.
func Seconds(v float64) (string, string) {
	if v == 0 {
		return "0", "s"
	}
	return scaled(v, "s", 3)
}

// Memory formats a size in binary units, as nvidia-smi does.
func Memory(v float64) (string, string) { return scaled(v, "B", 3) }

// Dollars formats an amount with cents, or with three digits if it is small.
func Dollars(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Absent
	case a >= 1e12 || (a < 0.1 && a > 0):
		return "$" + Significant(v)
	case a >= 1000:
		return "$" + Whole(math.Round(v))
	}
	return "$" + Minus(strconv.FormatFloat(v, 'f', 2, 64))
}

// Amount formats a value in a unit of docs/interfaces.md. It returns the figure, and the unit to print after
// it.
func Amount(v float64, unit string) (number, printed string) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Absent, ""
	}
	switch unit {
	case "s":
		return Seconds(v)
	case "B":
		return Memory(v)
	case "B/s", "J":
		return scaled(v, unit, 3)
	case "ratio":
		return Percent(v), "%"
	case "bool":
		if v == 0 {
			return "no", ""
		}
		return "yes", ""
	case "C":
		return Count(v), "°C"
	case "MHz":
		return Whole(math.Round(v)), unit
	case "USD":
		return Dollars(v), ""
	case "USD/h":
		return Dollars(v), "/h"
	case "1/s":
		return Significant(v), "/s"
	case "req", "tok", "blocks", "":
		return Count(v), unit
	}
	return Significant(v), unit
}

// AmountWithin formats a value like Amount, but rounded to the place of half its resolution, in the unit of
// the value: 244 ms from a bucket of 150 ms is 240 ms. At least one digit remains. A resolution that is
// not positive and finite changes nothing.
func AmountWithin(v, resolution float64, unit string) (number, printed string) {
	place := placeOf(v, resolution)
	number, printed = Amount(roundTo(place, v), unit)
	if place > 0 && strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number, printed
}

// placeOf returns the decimal place of half the resolution of a value, or of the first digit of the value if
// that is smaller; 0 without a resolution.
func placeOf(v, resolution float64) float64 {
	if !(resolution > 0) || math.IsInf(resolution, 1) || v == 0 {
		return 0
	}
	return math.Pow(10, min(math.Floor(math.Log10(resolution/2)), math.Floor(math.Log10(math.Abs(v)))))
}

// roundTo rounds a value to a decimal place; 0 leaves it as it is.
func roundTo(place, v float64) float64 {
	if place == 0 {
		return v
	}
	return math.Round(v/place) * place
}

// ShowWithin formats a value like Show, rounded to the place of its resolution.
func ShowWithin(o stat.Opt, resolution float64, unit string) string {
	if !o.OK {
		return Absent
	}
	return ValueWithin(o.V, resolution, unit)
}

// Show formats a value with its unit, joined by a no-break space.
func Show(o stat.Opt, unit string) string {
	if !o.OK {
		return Absent
	}
	return Value(o.V, unit)
}

// mostDigits is the number of significant digits that Compared shows at most.
const mostDigits = 9

// Compared formats two values that are compared with each other. If they differ but would look the
// same, both have as many digits as it takes to distinguish them: 59.98 s and 60 s, not 60.0 s twice.
// Numbers of things below ten have three digits: one decimal would move a limit of 0.75.
func Compared(a, b float64, unit string) (string, string) {
	x, y := compared(a, unit), compared(b, unit)
	for digits := 3; x == y && a != b && digits <= mostDigits; digits++ {
		x, y = precise(a, unit, digits), precise(b, unit, digits)
	}
	return x, y
}

func compared(v float64, unit string) string {
	switch unit {
	case "req", "tok", "blocks", "":
		if math.Abs(v) < 10 {
			return precise(v, unit, 3)
		}
	}
	return Value(v, unit)
}

// precise is Value with a number of significant digits, without trailing zeros.
func precise(v float64, unit string, digits int) string {
	number, printed := Amount(v, unit)
	switch {
	case number == Absent, unit == "bool", strings.HasPrefix(unit, "USD"):
		return withUnit(number, printed)
	case scales[unit] != nil:
		number, printed = scaled(v, unit, digits)
	case unit == "ratio":
		number = significant(100*v, digits)
	default:
		number = significant(v, digits)
	}
	if strings.Contains(number, ".") && !strings.Contains(number, "e") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return withUnit(number, printed)
}

// withUnit joins a figure and its unit by a no-break space.
func withUnit(number, unit string) string {
	if unit == "" || strings.HasPrefix(unit, "/") {
		return cmp.Or(number+unit, Absent)
	}
	return number + NBSP + strings.ReplaceAll(unit, " ", NBSP)
}
