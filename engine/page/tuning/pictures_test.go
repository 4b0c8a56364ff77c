package tuning

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// A line ends at an absent value, at an outage, and at a change of the configuration. A single window is a point.
func TestLinesBreakAtGaps(t *testing.T) {
	at := func(seconds, iteration int, v stat.Opt) loop.Point {
		return loop.Point{T: time.Duration(seconds) * time.Second, Iteration: iteration, Tokens: v}
	}
	s := &loop.Snapshot{Now: 40 * time.Second, Points: []loop.Point{
		at(2, 0, stat.Some(10)), at(4, 0, stat.Some(20)), at(6, 0, stat.None), at(8, 0, stat.Some(20)), // a lone one
		at(20, 0, stat.Some(10)), at(22, 0, stat.Some(10)), // after a silence
		at(24, 1, stat.Some(40)), at(26, 1, stat.Some(40)),
	}}
	s.Iterations = []loop.Iteration{{N: 1, End: loop.IterationNoGain}}
	f := Run{s}.overTime("x", "output", "tok/s", func(p *loop.Point) stat.Opt { return p.Tokens })
	var classes []string
	var moves []int
	for _, l := range f.Curves {
		classes, moves = append(classes, l.Class), append(moves, len(l.Points))
	}
	if diff := cmp.Diff([]string{"baseline", "baseline", "baseline", "trial"}, classes); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{2, 1, 2, 2}, moves); diff != "" {
		t.Errorf("their lengths (-want +got):\n%s", diff)
	}
	if len(f.Bands) != 2 || f.Bands[1].Class != "trial" {
		t.Errorf("shades %+v", f.Bands)
	}
	for _, want := range []string{"before any change, from 0:00 to 0:22, mean 14.0", "change 1, from 0:22 to 0:26, mean 40.0"} {
		if !strings.Contains(strings.ReplaceAll(f.Desc, nbsp, " "), want) {
			t.Errorf("%q lacks %q", f.Desc, want)
		}
	}
}

func TestPicturesSayWhyTheyAreEmpty(t *testing.T) {
	blank := &loop.Snapshot{Baseline: &engine.Diagnosis{Ceiling: engine.Ceiling{PhysicalReason: "needs the GPU"}}}
	for i, n := range append(Run{blank}.pictures().Nodes, Run{&loop.Snapshot{}}.pictures().Nodes...) {
		if p := n.(*page.Plot); p.Empty == "" || len(p.Curves) > 0 {
			t.Errorf("plot %d: %q with %d curves", i, p.Empty, len(p.Curves))
		}
	}
	if got := (Run{blank}).roofline().Empty; !strings.Contains(got, "needs the GPU") {
		t.Errorf("the roofline says %q", got)
	}
}

// Limits beyond the axis and unknown limits have no line.
func TestRooflineStaysInItsFrame(t *testing.T) {
	point := func(running, expected float64) engine.CurvePoint {
		return engine.CurvePoint{Running: running, Expected: expected, Ideal: stat.Some(2 * expected), Achievable: stat.Some(expected)}
	}
	d := &engine.Diagnosis{Curve: &engine.Curve{Points: []engine.CurvePoint{point(1, 60), point(512, 9000)}, Slots: stat.Some(5000), Pool: stat.Some(40), Ridge: stat.None}}
	f := Run{&loop.Snapshot{Baseline: d}}.roofline()
	if len(f.Rules) != 1 || !strings.HasPrefix(f.Rules[0].Tooltip, "KV pool") || len(f.Curves) != 3 {
		t.Errorf("limits %+v, %d curves", f.Rules, len(f.Curves))
	}
}
