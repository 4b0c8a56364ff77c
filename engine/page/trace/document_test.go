package trace

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestPageSaysWhichGraphAndCallsItDraws checks that a picture of a part states which part.
func TestPageSaysWhichGraphAndCallsItDraws(t *testing.T) {
	holds := func(desc, want string) {
		t.Helper()
		if !strings.Contains(strings.ReplaceAll(desc, figure.NBSP, " "), want) {
			t.Errorf("%q does not say %q", desc, want)
		}
	}
	g := &optrace.LiveGraph{Index: 7, Phase: "decode", Tokens: 1, Time: time.Millisecond, MedianOf: 156, Threads: []optrace.LiveThread{{}}}
	lanes := func() string {
		s := Lanes(g)
		if len(s.Nodes) != 1 {
			t.Fatalf("%+v", s)
		}
		return s.Nodes[0].(*page.Timeline).Desc
	}
	holds(lanes(), "the median by time of 156 whole graphs")
	b := builder{&optrace.Summary{Tokens: []optrace.TokenRow{{Phase: "decode", Time: time.Millisecond}, {Phase: "decode", Time: 2 * time.Millisecond}}}}
	b.s.Coverage.Calls = 2
	holds(b.callsPlot().Desc, "Every one of 2 calls")
	b.s.Coverage.Calls = 9000
	holds(b.callsPlot().Desc, "The last 2 calls of 9,000")
}

// TestWhatWaitsHasAClass checks that waiting operators have their own colour and word.
func TestWhatWaitsHasAClass(t *testing.T) {
	b := builder{&optrace.Summary{Steps: []optrace.OperatorRow{
		{Phase: "decode", Op: "FLASH_ATTN_EXT", Name: "flash_attn_ext", Share: stat.Some(0.082), Time: 2, Bound: optrace.BoundWaiting},
		{Phase: "decode", Op: "MUL_MAT", Name: "ffn_up", Type: "q8_0", Share: stat.Some(0.08), Time: 1, Bound: optrace.BoundMemory},
	}}}
	p := b.sharePlot()
	if len(p.Bars) != 2 || p.Bars[0].Class != "waiting" || !slices.ContainsFunc(p.Keys, func(k page.Key) bool { return k.Class == "waiting" }) {
		t.Errorf("what waits: %+v", p)
	}
	if !strings.HasSuffix(p.Bars[0].ValueLabel, "flash_attn_ext") {
		t.Errorf("the label is %q", p.Bars[0].ValueLabel)
	}
}
