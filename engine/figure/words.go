package figure

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// PercentSign formats a ratio as a percentage with its sign: "12.5 %".
func PercentSign(ratio float64) string { return withPercentSign(Percent(ratio)) }

// ChangeSign formats a relative change with its signs: "+43 %", "−6.2 %".
func ChangeSign(ratio float64) string { return withPercentSign(Change(ratio)) }

func withPercentSign(s string) string {
	if s == Absent {
		return s
	}
	return s + NBSP + "%"
}

// Operator returns a comparison as people read it: "≥" for ">=".
func Operator(op string) string { return operators.Replace(op) }

var operators = strings.NewReplacer(">=", "≥", "<=", "≤")

// ChangeRange formats an interval of relative changes: "+29 to +33 %". If both ends format the same, it is one
// figure.
func ChangeRange(low, high float64) string {
	if Change(low) == Change(high) {
		return ChangeSign(low)
	}
	return Change(low) + " to " + ChangeSign(high)
}

// Value formats a value with its unit, joined by a no-break space. Units are those of [Amount].
func Value(v float64, unit string) string { return withUnit(Amount(v, unit)) }

// ValueBeside formats a value like ValueWithin beside its limit: with all digits if rounding would put it on
// the limit or on its other side.
func ValueBeside(v, resolution, limit float64, unit string) string {
	if r := roundTo(placeOf(v, resolution), v); (v > limit) != (r > limit) || (v < limit) != (r < limit) {
		resolution = 0
	}
	return ValueWithin(v, resolution, unit)
}

// ValueWithin formats a value like Value, rounded to the place of its resolution.
func ValueWithin(v, resolution float64, unit string) string {
	return withUnit(AmountWithin(v, resolution, unit))
}

// Duration formats a duration with three significant digits: "884 µs", "12.4 ms", "3.02 s".
func Duration(d time.Duration) string { return Value(d.Seconds(), "s") }

// Bytes formats a size in decimal units, as on data sheets: "140 GB".
func Bytes(v float64) string {
	return withUnit(scaled(v, decimalBytes, 3))
}

// Clock formats a time since the start of a run like a stopwatch, in whole seconds: 0:07, 12:30, 1:00:05.
func Clock(d time.Duration) string {
	s := int(max(0, d) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Counted formats a number of things with their noun, given in the singular: "1 request", "1,024 requests",
// "3 queries".
func Counted[N int | int64 | uint64 | float64](n N, noun string) string {
	return Count(float64(n)) + " " + Plural(n, noun)
}

// Plural returns the form of the noun after n: the singular only after what is shown as 1.
func Plural[N int | int64 | uint64 | float64](n N, noun string) string {
	switch {
	case Count(float64(n)) == "1":
		return noun
	case strings.HasSuffix(noun, "y") && !strings.ContainsAny(noun[max(0, len(noun)-2):len(noun)-1], "aeiou"):
		return noun[:len(noun)-1] + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "x"), strings.HasSuffix(noun, "ch"):
		return noun + "es"
	}
	return noun + "s"
}

// List joins words as in a sentence: "a", "a and b", "a, b and c".
func List(words ...string) string {
	n := len(words)
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
}

// Joined joins the parts that are not empty.
func Joined(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

// Unbroken replaces spaces by no-break spaces.
func Unbroken(s string) string { return strings.ReplaceAll(s, " ", NBSP) }

// Elapsed formats a duration in whole units: 12 s, 4 min 12 s, 2 h 5 min.
func Elapsed(d time.Duration) string {
	s := int(max(d, 0).Round(time.Second) / time.Second)
	part := func(n int, unit string) string { return fmt.Sprintf("%d%s%s", n, NBSP, unit) }
	switch {
	case s < 60:
		return part(s, "s")
	case s < 3600 && s%60 == 0:
		return part(s/60, "min")
	case s < 3600:
		return part(s/60, "min") + NBSP + part(s%60, "s")
	case s%3600 < 60:
		return part(s/3600, "h")
	}
	return part(s/3600, "h") + NBSP + part(s/60%60, "min")
}

// Stopped returns the text with a full stop at its end.
func Stopped(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}
