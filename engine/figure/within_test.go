package figure

import (
	"math"
	"testing"
)

func TestAmountWithinItsResolution(t *testing.T) {
	for _, c := range []struct {
		v, resolution float64
		unit, want    string
	}{
		{0.244, 0.15, "s", "240 ms"}, {0.0623, 0.025, "s", "60 ms"}, {39.5, 40, "s", "40 s"}, {9.95, 2.5, "s", "10 s"},
		{1.87, 0.25, "s", "1.9 s"}, {0.0379, 0.002, "s", "38 ms"}, {0.03, 0.1, "s", "30 ms"}, {0.244, 0, "s", "244 ms"},
		{0.244, math.Inf(1), "s", "244 ms"}, {0, 0.1, "s", "0 s"}, {0.02, 0.00001, "s", "20 ms"}, {1234, 150, "tok", "1,230 tok"},
	} {
		if got := ValueWithin(c.v, c.resolution, c.unit); got != withUnit(splitUnit(c.want)) {
			t.Errorf("%v within %v: %q, want %q", c.v, c.resolution, got, c.want)
		}
	}
}

func splitUnit(text string) (number, unit string) {
	for i := range text {
		if text[i] == ' ' {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// TestValueBesideItsLimit checks that rounding never contradicts the text about a value and its limit.
func TestValueBesideItsLimit(t *testing.T) {
	for _, c := range []struct {
		v, resolution, limit float64
		want                 string
	}{
		{0.244, 0.15, 0.5, "240 ms"}, {0.244, 0.15, 0.242, "244 ms"}, {0.248, 0.15, 0.25, "248 ms"}, {0.25, 0.15, 0.25, "250 ms"}, {0.312, 0.25, 0.305, "312 ms"},
	} {
		if got := ValueBeside(c.v, c.resolution, c.limit, "s"); got != withUnit(splitUnit(c.want)) {
			t.Errorf("%v within %v beside %v: %q, want %q", c.v, c.resolution, c.limit, got, c.want)
		}
	}
}
