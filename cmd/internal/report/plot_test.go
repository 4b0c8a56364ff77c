package report

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestZeroTo(t *testing.T) {
	for _, c := range []struct {
		most, hi float64
		ticks    []float64
	}{
		{5980, 6000, []float64{0, 2000, 4000, 6000}},
		{1, 1, []float64{0, .2, .4, .6, .8, 1}},
		{.004, .004, []float64{0, .001, .002, .003, .004}},
		{101, 150, []float64{0, 50, 100, 150}},
	} {
		hi, ticks := zeroTo(c.most, 5)
		near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
		if !cmp.Equal(hi, c.hi, near) || !cmp.Equal(ticks, c.ticks, near) {
			t.Errorf("%g: to %g with %v, want %g with %v", c.most, hi, ticks, c.hi, c.ticks)
		}
	}
}

func TestDecades(t *testing.T) {
	for _, c := range []struct{ least, most, lo, hi float64 }{
		{1, 1024, 1, 2000}, {60, 9000, 50, 10000}, {3, 3, 2, 5}, {.02, 7, .02, 10}, {100, 100, 100, 1000}, {1, 5e9, 1, 5e9},
	} {
		lo, hi, ticks := decades(c.least, c.most)
		if lo != c.lo || hi != c.hi {
			t.Errorf("%g to %g: from %g to %g, want %g to %g", c.least, c.most, lo, hi, c.lo, c.hi)
		}
		if len(ticks) < 2 || len(ticks) > 12 || !slices.IsSorted(ticks) || ticks[0] < lo || ticks[len(ticks)-1] > hi*(1+1e-9) {
			t.Errorf("%g to %g: ticks %v", c.least, c.most, ticks)
		}
	}
}

func TestTimeTicks(t *testing.T) {
	for _, c := range []struct {
		from, to time.Duration
		want     []float64
	}{
		{0, 4 * time.Minute, []float64{0, 30, 60, 90, 120, 150, 180, 210, 240}},
		{7 * time.Second, 26 * time.Second, []float64{10, 15, 20, 25}},
		{0, time.Hour, []float64{0, 600, 1200, 1800, 2400, 3000, 3600}},
		{0, 100 * 24 * time.Hour, nil},
	} {
		got := timeTicks(c.from, c.to)
		if c.want == nil {
			if len(got) == 0 || len(got) > 9 {
				t.Errorf("%v: %d ticks", c.to, len(got))
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v to %v (-want +got):\n%s", c.from, c.to, diff)
		}
	}
}

// A line breaks where a value is absent, where the server was away, and where the
// configuration changes; a lone window is a point.
func TestLinesBreakAtGaps(t *testing.T) {
	at := func(seconds, iteration int, v stat.Opt) engine.Point {
		return engine.Point{T: time.Duration(seconds) * time.Second, Iteration: iteration, Tokens: v}
	}
	s := &engine.Snapshot{Now: 40 * time.Second, Points: []engine.Point{
		at(2, 0, some(10)), at(4, 0, some(20)), at(6, 0, stat.None), at(8, 0, some(20)), // a lone one
		at(20, 0, some(10)), at(22, 0, some(10)), // after a silence
		at(24, 1, some(40)), at(26, 1, some(40)),
	}}
	s.Iterations = []engine.Iteration{{N: 1, End: engine.IterationNoGain}}
	f := timePlot(s, "x", "output", rateUnit, func(p *engine.Point) stat.Opt { return p.Tokens })
	var classes, moves []string
	for _, l := range f.Lines {
		classes = append(classes, l.Class)
		moves = append(moves, strings.Repeat("L", strings.Count(l.D, "L"))+strings.Repeat("h", strings.Count(l.D, "h")))
	}
	if diff := cmp.Diff([]string{"baseline", "baseline", "baseline", "trial"}, classes); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"L", "h", "L", "L"}, moves); diff != "" {
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

func TestPlotsSayWhyTheyAreEmpty(t *testing.T) {
	blank := tuned()
	blank.Points, blank.Baseline.Curve, blank.Baseline.Ceiling.PhysicalReason = nil, nil, "needs the GPU"
	for i, f := range append(plots(blank), plots(&engine.Snapshot{})...) {
		if f.Empty == "" || len(f.Lines) > 0 {
			t.Errorf("plot %d: %q with %d lines", i, f.Empty, len(f.Lines))
		}
	}
	if got := plots(blank)[2].Empty; !strings.Contains(got, "needs the GPU") {
		t.Errorf("the roofline says %q", got)
	}
}

// Whatever lies on a plot lies inside its frame.
func TestRooflineStaysInItsFrame(t *testing.T) {
	s := tuned()
	s.Baseline.Curve.Seats, s.Baseline.Curve.Ridge = some(5000), stat.None // beyond the axis, and not known
	f := rooflinePlot(s)
	if len(f.Dots) != 3 || f.Dots[0].Label != "0" || f.Dots[2].Class != "trial" {
		t.Errorf("points %+v", f.Dots)
	}
	if len(f.Rules) != 1 || !strings.HasPrefix(f.Rules[0].Label, "KV pool") {
		t.Errorf("limits %+v", f.Rules)
	}
	if len(f.Lines) != 3 {
		t.Errorf("%d curves", len(f.Lines))
	}
	for _, l := range f.Lines {
		for _, place := range strings.FieldsFunc(l.D, func(r rune) bool { return r == 'M' || r == 'L' }) {
			if strings.HasPrefix(place, "-") || strings.Contains(place, " -") || strings.ContainsAny(place, "NI") {
				t.Errorf("%s is outside", place)
			}
		}
	}
}

// hour is a run of an hour with all that a loop remembers.
func hour() *engine.Snapshot {
	s := tuned()
	s.Points = nil
	for i := range 1800 {
		s.Points = append(s.Points, point(i))
	}
	for i := range 2000 {
		s.Journal = append(s.Journal, engine.Entry{Seq: i, T: time.Duration(i) * time.Second, Text: "a line of the journal that is about as long as they are"})
	}
	s.Now = time.Hour
	return s
}

func BenchmarkRunHTML(b *testing.B) {
	s := hour()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = len(written(b, WriteRunHTML, s))
	}
	b.ReportMetric(float64(n), "bytes/file")
}

func BenchmarkRunJSON(b *testing.B) {
	s := hour()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n = len(written(b, WriteRunJSON, s))
	}
	b.ReportMetric(float64(n), "bytes/file")
}

// A key is drawn as what it explains: with that class and no other, whose style
// would win.
func TestKeysLookLikeWhatTheyExplain(t *testing.T) {
	var b strings.Builder
	if err := WriteRunHTML(&b, tuned()); err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`<li><svg[^>]*><(line|circle) class="([^"]*)"`).FindAllStringSubmatch(b.String(), -1)
	var got []string
	for _, k := range keys {
		got = append(got, k[1]+" "+k[2])
	}
	over := []string{"line curve baseline", "line curve trial", "line curve change"}
	want := slices.Concat(over, over, []string{"line curve ideal", "line curve achievable", "line curve expected", "circle baseline"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
