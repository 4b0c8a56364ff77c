package compare

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name      string
		low, high float64
		rate      bool
		want      Verdict
	}{
		{"a rate that grew", 1.01, 1.2, true, Faster},
		{"a duration that grew", 1.01, 1.2, false, Slower},
		{"a rate that fell", 0.8, 0.99, true, Slower},
		{"a duration that fell", 0.8, 0.99, false, Faster},
		{"within a tenth", 0.9, 1.1, true, Equal},
		{"wider than a tenth", 0.89, 1.05, true, Unresolved},
		{"touching no change", 1, 1.2, false, Unresolved},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Judge(c.low, c.high, c.rate); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNewNeedsTwoPositiveSides(t *testing.T) {
	for _, c := range []struct {
		name   string
		a, b   stat.Opt
		ratio  stat.Opt
		reason string
	}{
		{"both", stat.Some(2), stat.Some(3), stat.Some(1.5), ""},
		{"absent", stat.None, stat.Some(3), stat.None, "one side has no value"},
		{"zero", stat.Some(2), stat.Some(0), stat.None, "one side is not positive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := New(c.a, c.b); got.Ratio != c.ratio || got.Reason != c.reason || got.Verdict != "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWithhold(t *testing.T) {
	c := New(stat.Some(1), stat.Some(2))
	c.SetInterval(1.9, 2.1, true)
	if c.Verdict != Faster || !c.Low.OK {
		t.Fatalf("got %+v", c)
	}
	c.Withhold("the two are the same recording")
	if c.Verdict != "" || c.Low.OK || c.High.OK || c.Ratio != stat.Some(2) || c.Reason == "" {
		t.Errorf("got %+v", c)
	}
}

func TestDiffering(t *testing.T) {
	got := Differing([]Difference{{"CPU", "x", "x"}, {"model", "a", "b"}})
	if len(got) != 1 || got[0] != (Difference{"model", "a", "b"}) {
		t.Errorf("got %v", got)
	}
}
