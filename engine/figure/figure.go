// Package figure spells quantities for people: three significant digits, units
// that fit the size, a sign that is never a hyphen. It knows no server and no
// screen; the report and the live screen spell the same number alike.
package figure

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Absent stands for what is not known.
const Absent = "–"

// NBSP holds a figure and its unit together in wrapped text.
const NBSP = "\u00a0"

// Significant formats v with three significant digits and thousands
// separators: 3,300, 884, 12.4, 0.0310. Figures beyond 1e12 or below 1e-3 are
// written with an exponent.
func Significant(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return Absent
	case v == 0:
		return "0"
	}
	e := strconv.FormatFloat(v, 'e', 2, 64)
	mantissa, exponent, _ := strings.Cut(e, "e")
	x, err := strconv.Atoi(exponent)
	if err != nil || x >= 12 || x < -3 {
		return Minus(mantissa + "e" + strconv.Itoa(x))
	}
	rounded, err := strconv.ParseFloat(e, 64)
	if err != nil {
		return Absent
	}
	return Minus(group(strconv.FormatFloat(rounded, 'f', max(0, 2-x), 64)))
}

// Count formats a number of things: whole numbers exactly, means with one
// decimal below 100, traces and what is huge with three significant digits.
func Count(v float64) string {
	r, a := math.Round(v), math.Abs(v)
	switch {
	case a >= 1e12 || (a < 0.05 && v != 0):
		return Significant(v)
	case math.Abs(v-r) < 0.05:
		return Whole(r)
	case a < 100:
		return Minus(strconv.FormatFloat(v, 'f', 1, 64))
	}
	return Significant(v)
}

// Whole formats a whole number exactly.
func Whole(v float64) string { return Minus(group(strconv.FormatFloat(v, 'f', 0, 64))) }

// Minus writes the sign of a number as a minus.
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

// Percent formats a ratio as percent without its sign: whole, with one decimal
// below 10 and between 99 and 100, where rounding would hide what matters. A
// trace of less than a thousandth is "<0.1", never 0.
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
	case a != 0 && a < 9.95, a > 99 && a < 99.95:
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
	from float64 // smallest value, in the base unit, that is shown so
	unit string
}

// scaled formats v by the first scale it reaches after rounding to three
// digits; the last scale takes the rest.
func scaled(v float64, scales ...scale) (string, string) {
	last := scales[len(scales)-1]
	for _, s := range scales {
		if math.Abs(v) >= s.from*0.9995 || s == last {
			return Significant(v / s.from), s.unit
		}
	}
	return Absent, ""
}

// Seconds formats a duration: µs, ms or s.
func Seconds(v float64) (string, string) {
	if v == 0 {
		return "0", "s"
	}
	return scaled(v, scale{1, "s"}, scale{1e-3, "ms"}, scale{1e-6, "µs"})
}

// Memory formats a size in binary units, as nvidia-smi does.
func Memory(v float64) (string, string) {
	return scaled(v, scale{1 << 40, "TiB"}, scale{1 << 30, "GiB"}, scale{1 << 20, "MiB"}, scale{1 << 10, "KiB"}, scale{1, "B"})
}

// Dollars formats an amount with cents, or three digits where it is small.
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

// Amount splits a value of a unit of the contract into its figure and the unit
// to print after it.
func Amount(v float64, unit string) (number, printed string) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Absent, ""
	}
	switch unit {
	case "s":
		return Seconds(v)
	case "B":
		return Memory(v)
	case "B/s":
		return scaled(v, scale{1e12, "TB/s"}, scale{1e9, "GB/s"}, scale{1e6, "MB/s"}, scale{1e3, "kB/s"}, scale{1, "B/s"})
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
	case "J":
		return scaled(v, scale{1e6, "MJ"}, scale{1e3, "kJ"}, scale{1, "J"}, scale{1e-3, "mJ"})
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

// Show formats a value with its unit, held together in wrapped text.
func Show(o stat.Opt, unit string) string {
	if !o.OK {
		return Absent
	}
	number, printed := Amount(o.V, unit)
	if printed == "" || strings.HasPrefix(printed, "/") {
		return cmp.Or(number+printed, Absent)
	}
	return number + NBSP + strings.ReplaceAll(printed, " ", NBSP)
}
