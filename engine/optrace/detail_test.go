package optrace

import (
	"strings"
	"testing"
)

func TestParseDetail(t *testing.T) {
	for _, c := range []struct {
		list string
		want Detail
		back string // "" the list itself
	}{
		{"token", DetailToken, ""},
		{"graph", LevelGraph, ""},
		{"operator", LevelOperator, ""},
		{"operators", LevelOperator, "operator"},
		{"tensor", LevelTensor, ""},
		{"barriers", LevelBarriers, ""},
		{"sched", LevelSched, ""},
		{"counters", LevelTensor | DetailCounters, ""},
		{"all", LevelAll, ""},
		{"all+io", LevelAll, "all"},
		{"graph+sched", LevelGraph | DetailSched, ""},
		{"sched,graph", LevelGraph | DetailSched, "graph+sched"},
		{"tensor+sched+io", LevelTensor | DetailSched | DetailIO, "sched+io"},
		{" Tensor , IO ", LevelTensor | DetailIO, "io"},
		{"operator+barriers+syscalls+faults", LevelOperator | DetailBarrier | DetailSyscall | DetailFault, ""},
	} {
		got, err := ParseDetail(c.list)
		if err != nil || got != c.want {
			t.Errorf("ParseDetail(%q) = %b, %v, want %b", c.list, got, err, c.want)
		}
		if c.back == "" {
			c.back = c.list
		}
		if got.String() != c.back {
			t.Errorf("%q comes back as %q, want %q", c.list, got, c.back)
		}
	}
}

// The string of a set that a list can give parses back, and every set of details has a string.
func TestDetailString(t *testing.T) {
	for d := range LevelAll + 1 {
		text := d.String()
		if text == "" {
			t.Errorf("%b has no word", d)
		}
		if strings.Contains(text, "only ") || d == 0 {
			continue
		}
		if back, err := ParseDetail(text); err != nil || back != d {
			t.Errorf("%b is %q, which is %b, %v", d, text, back, err)
		}
	}
	if got := (DetailBarrier | 1<<20).String(); got != "only barriers+only bit 20" {
		t.Errorf("a set of no level is %q", got)
	}
}
