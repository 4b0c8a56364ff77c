package chart_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

var update = flag.Bool("update", false, "write the golden plots anew")

// plotted has everything that a plot can show: three curves, one with a gap, limits, a shaded
// range, two points in one cell, a level.
func plotted(log bool) *chart.Plot {
	pl := &chart.Plot{
		X: chart.Axis{Title: "running", Hi: 250}, Y: chart.Axis{Title: "tok/s", Hi: 14_000},
		Spans:    []chart.Range{{From: 180, To: math.Inf(1), Token: cell.Border}},
		Uprights: []chart.Tick{{At: 32, Label: "slots 32", Token: cell.Body}, {At: 180, Label: "KV pool 180"}, {At: 206, Label: "ridge 206"}, {At: 900, Label: "outside"}},
		Points: []chart.Point{
			{XY: chart.XY{X: 4, Y: 700}, Sign: "◇", Label: "0", Name: "before"},
			{XY: chart.XY{X: 32, Y: 3700}, Sign: "◇", Label: "1", Name: "before"},
			{XY: chart.XY{X: 32, Y: 3700}, Sign: "◆", Label: "", Name: "now", Token: cell.Accent},
		},
	}
	if log {
		pl.X.Log, pl.X.Lo, pl.Y.Log, pl.Y.Lo = true, 1, true, 100
	}
	curve := func(name string, k float64, stroke chart.Stroke) {
		s := chart.Series{Name: name, Stroke: stroke}
		for b := 1.0; b <= 250; b *= 1.1 {
			y := k * b / (0.006 + b*0.00005)
			if stroke == chart.Dotted && b > 60 && b < 100 {
				y = math.NaN()
			}
			s.XY = append(s.XY, chart.XY{X: b, Y: y})
		}
		pl.Series = append(pl.Series, s)
	}
	curve("ideal", 1, chart.Dotted)
	curve("achievable", 0.8, chart.Dashed)
	curve("this server", 0.7, chart.Solid)
	return pl
}

func TestPlotGolden(t *testing.T) {
	for _, c := range []struct {
		name  string
		w, h  int
		log   bool
		ascii bool
	}{
		{name: "linear-80x16", w: 80, h: 16},
		{name: "log-120x30", w: 120, h: 30, log: true},
		{name: "ascii-80x16", w: 80, h: 16, ascii: true},
		{name: "narrow-40x10", w: 40, h: 10, log: true},
		{name: "bare-20x3", w: 20, h: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, sheet := cell.Unicode(), cell.NewCanvas(c.w, c.h)
			if c.ascii {
				g = cell.ASCII()
				sheet.ASCII()
			}
			plotted(c.log).Draw(sheet.Pane(), g)
			got := sheet.Plain()
			path := filepath.Join("testdata", c.name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if c.ascii {
				if i := strings.IndexFunc(got, func(r rune) bool { return r > 126 }); i >= 0 {
					t.Errorf("not ASCII: %q", got[i:])
				}
			}
		})
	}
}

// A line between two points is drawn in every row and column between them, and nothing is drawn
// without a value.
func TestPlotJoinsWhatIsPresent(t *testing.T) {
	for _, c := range []struct {
		name string
		xy   []chart.XY
		want string
	}{
		{"rising", []chart.XY{{X: 0, Y: 0}, {X: 1, Y: 1}}, "   *\n  *\n *\n*"},
		{"a gap is not joined", []chart.XY{{X: 0, Y: 0}, {X: 0.5, Y: math.NaN()}, {X: 1, Y: 1}}, "   *\n\n\n*"},
		{"infinite is a gap", []chart.XY{{X: 0, Y: 0}, {X: 0.5, Y: math.Inf(1)}, {X: 1, Y: 1}}, "   *\n\n\n*"},
		{"cut at the edge, not bent", []chart.XY{{X: 0, Y: 0}, {X: 1, Y: 3}}, " *\n *\n*\n*"},
		{"a point alone", []chart.XY{{X: 0, Y: 1}}, "*\n\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pl := &chart.Plot{X: chart.Axis{Hi: 1}, Y: chart.Axis{Hi: 1}, Series: []chart.Series{{XY: c.xy}}}
			if got := drawn(4, 4, func(p cell.Pane) { pl.Draw(p, cell.ASCII()) }); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Strokes differ without colour.
func TestStrokesDiffer(t *testing.T) {
	seen := map[string]chart.Stroke{}
	for _, stroke := range []chart.Stroke{chart.Solid, chart.Dashed, chart.Dotted, chart.Cloud} {
		pl := &chart.Plot{X: chart.Axis{Hi: 1}, Y: chart.Axis{Hi: 1}, Series: []chart.Series{{Stroke: stroke, XY: []chart.XY{{X: 0, Y: 0.5}, {X: 1, Y: 0.5}}}}}
		got := drawn(12, 3, func(p cell.Pane) { pl.Draw(p, cell.Unicode()) })
		if other, ok := seen[got]; ok {
			t.Errorf("strokes %d and %d look alike:\n%s", stroke, other, got)
		}
		seen[got] = stroke
	}
}

// At any size and with any values, a chart writes only into its pane and does not fail.
func TestNothingOutsideOfThePane(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	odd := []float64{0, -1, 1, 5e-324, 1e300, -1e300, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 12, 0.5, 90}
	value := func() float64 { return odd[r.IntN(len(odd))] }
	for range 3000 {
		const W, H, left, top = 60, 24, 3, 2
		w, h := r.IntN(W-left), r.IntN(H-top)
		c := cell.NewCanvas(W, H)
		c.Pane().Fill(cell.Body, "x")
		p := c.Pane().Sub(left, top, w, h)
		p.Fill(cell.Body, " ")
		g := cell.Unicode()
		if r.IntN(2) == 0 {
			g = cell.ASCII()
		}
		draw := oddCharts(r, value)[r.IntN(3)]
		draw(p, g)
		for y, line := range strings.Split(strings.TrimSuffix(c.Plain(), "\n"), "\n") {
			cells := []rune(line)
			for x := range W {
				inside := x >= left && x < left+w && y >= top && y < top+h
				if !inside && (x >= len(cells) || cells[x] != 'x') {
					t.Fatalf("%dx%d wrote outside at %d, %d:\n%s", w, h, x, y, c.Plain())
				}
			}
		}
	}
}

// oddCharts returns a chart of each kind with unusual values.
func oddCharts(r *rand.Rand, value func() float64) []func(cell.Pane, cell.Glyphs) {
	var values []stat.Opt
	var xy []chart.XY
	var ticks []chart.Tick
	var points []chart.Point
	for range r.IntN(50) {
		values = append(values, stat.Opt{V: value(), OK: r.IntN(4) > 0})
		xy = append(xy, chart.XY{X: value(), Y: value()})
	}
	for range r.IntN(4) {
		ticks = append(ticks, chart.Tick{At: value(), Label: "KV pool 543"})
		points = append(points, chart.Point{XY: chart.XY{X: value(), Y: value()}, Sign: "◆", Label: "now", Name: "now"})
	}
	axis := func() chart.Axis {
		return chart.Axis{Title: "running", Lo: value(), Hi: value(), Log: r.IntN(2) == 0}.Extend(r.IntN(9))
	}
	return []func(cell.Pane, cell.Glyphs){
		func(p cell.Pane, g cell.Glyphs) {
			chart.Sparkline(p, g, cell.Body, values, chart.Scale{Lo: value(), Hi: value()})
		},
		func(p cell.Pane, g cell.Glyphs) {
			b := chart.Bar{Value: stat.Some(value()), Top: value(), Marks: ticks}
			b.Draw(p, g)
		},
		func(p cell.Pane, g cell.Glyphs) {
			pl := chart.Plot{
				X: axis(), Y: axis(), Uprights: ticks, Points: points,
				Spans:  []chart.Range{{From: value(), To: value()}},
				Series: []chart.Series{{Name: "a", XY: xy, Stroke: chart.Stroke(r.IntN(4))}, {Name: "b", XY: xy}},
			}
			pl.Draw(p, g)
		},
	}
}

func BenchmarkPlot(b *testing.B) {
	c := cell.NewCanvas(200, 60)
	pl, g := plotted(true), cell.Unicode()
	b.ReportAllocs()
	for b.Loop() {
		pl.Draw(c.Pane(), g)
	}
}

func BenchmarkSparkline(b *testing.B) {
	c := cell.NewCanvas(60, 1)
	g := cell.Unicode()
	var values []stat.Opt
	for i := range 60 {
		values = append(values, stat.Some(float64(i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		chart.Sparkline(c.Pane(), g, cell.Body, values, chart.Scale{Hi: 60})
	}
}
