package figure

import (
	"strings"
	"testing"
	"time"
)

func TestSentenceParts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{PercentSign(0.1251), "13 %"},
		{PercentSign(0.0511), "5.1 %"},
		{ChangeSign(-0.062), "−6.2 %"},
		{ChangeRange(0.29, 0.33), "+29 to +33 %"},
		{ChangeRange(0.29, 0.2901), "+29 %"},
		{Value(0.0124, "s"), "12.4 ms"},
		{Value(884, "tok/s"), "884 tok/s"},
		{Duration(3020 * time.Millisecond), "3.02 s"},
		{Bytes(140e9), "140 GB"},
		{Clock(7 * time.Second), "0:07"},
		{Clock(750*time.Second + 999*time.Millisecond), "12:30"},
		{Clock(time.Hour + 5*time.Second), "1:00:05"},
		{Counted(1, "request"), "1 request"},
		{Counted(1024, "request"), "1,024 requests"},
		{Counted(3, "query"), "3 queries"},
		{Counted(0, "delay"), "0 delays"},
		{Counted(2.5, "batch"), "2.5 batches"},
		{List(), ""},
		{List("a"), "a"},
		{List("a", "b"), "a and b"},
		{List("a", "b", "c"), "a, b and c"},
	} {
		if got := strings.ReplaceAll(c.got, NBSP, " "); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Two values that are compared never print the same unless they are equal.
func TestComparedValuesDiffer(t *testing.T) {
	for _, c := range []struct {
		a, b   float64
		unit   string
		wa, wb string
	}{
		{59.98, 60, "s", "59.98 s", "60 s"},
		{60, 60, "s", "60.0 s", "60.0 s"},
		{12, 60, "s", "12.0 s", "60.0 s"},
		{0.349, 0.35, "ratio", "34.9 %", "35 %"},
		{0.34999, 0.35, "ratio", "34.999 %", "35 %"},
		{0.12, 0.35, "ratio", "12 %", "35 %"},
		{47.49, 47.5, "req", "47.49 req", "47.5 req"},
		{0.7, 0.75, "req", "0.7 req", "0.75 req"},
		{1.12, 1.5, "", "1.12", "1.5"},
		{12345, 12349, "tok/s", "12,340 tok/s", "12,350 tok/s"},
		{0.0300001, 0.03, "s", "30.0001 ms", "30 ms"},
		{1, 1 + 1e-12, "", "1", "1"},
	} {
		a, b := Compared(c.a, c.b, c.unit)
		if a, b = strings.ReplaceAll(a, NBSP, " "), strings.ReplaceAll(b, NBSP, " "); a != c.wa || b != c.wb {
			t.Errorf("%v beside %v %s: %q and %q, want %q and %q", c.a, c.b, c.unit, a, b, c.wa, c.wb)
		}
	}
}
