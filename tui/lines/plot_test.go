package lines_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/lines"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

// plotted has everything that a plot can show: three curves, one with a gap, limits,
// two points in one cell, a level.
func plotted(log bool) *lines.Plot {
	pl := &lines.Plot{
		X: lines.Axis{Title: "running", Hi: 250}, Y: lines.Axis{Title: "tok/s", Hi: 14_000},
		Uprights: []lines.Tick{{At: 32, Label: "slots 32", Token: cell.Body}, {At: 180, Label: "KV pool 180"}, {At: 206, Label: "ridge 206"}, {At: 900, Label: "outside"}},
		Points: []lines.Point{
			{XY: lines.XY{X: 4, Y: 700}, Sign: "◇", Label: "0", Name: "before"},
			{XY: lines.XY{X: 32, Y: 3700}, Sign: "◇", Label: "1", Name: "before"},
			{XY: lines.XY{X: 32, Y: 3700}, Sign: "◆", Label: "", Name: "now", Token: cell.Accent},
		},
	}
	if log {
		pl.X.Log, pl.X.Lo, pl.Y.Log, pl.Y.Lo = true, 1, true, 100
	}
	curve := func(name string, k float64, stroke lines.Stroke) {
		s := lines.Series{Name: name, Stroke: stroke}
		for b := 1.0; b <= 250; b *= 1.1 {
			y := k * b / (0.006 + b*0.00005)
			if stroke == lines.Dotted && b > 60 && b < 100 {
				y = math.NaN()
			}
			s.XY = append(s.XY, lines.XY{X: b, Y: y})
		}
		pl.Series = append(pl.Series, s)
	}
	curve("ideal", 1, lines.Dotted)
	curve("achievable", 0.8, lines.Dashed)
	curve("this server", 0.7, lines.Solid)
	return pl
}

// A line between two points is drawn in every row and column between them, and nothing is drawn
// without a value.
func TestPlotJoinsWhatIsPresent(t *testing.T) {
	for _, c := range []struct {
		name string
		xy   []lines.XY
		want string
	}{
		{"rising", []lines.XY{{X: 0, Y: 0}, {X: 1, Y: 1}}, "   *\n  *\n *\n*"},
		{"a gap is not joined", []lines.XY{{X: 0, Y: 0}, {X: 0.5, Y: math.NaN()}, {X: 1, Y: 1}}, "   *\n\n\n*"},
		{"infinite is a gap", []lines.XY{{X: 0, Y: 0}, {X: 0.5, Y: math.Inf(1)}, {X: 1, Y: 1}}, "   *\n\n\n*"},
		{"cut at the edge, not bent", []lines.XY{{X: 0, Y: 0}, {X: 1, Y: 3}}, " *\n *\n*\n*"},
		{"a point alone", []lines.XY{{X: 0, Y: 1}}, "*\n\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pl := &lines.Plot{X: lines.Axis{Hi: 1}, Y: lines.Axis{Hi: 1}, Series: []lines.Series{{XY: c.xy}}}
			if got := drawn(4, 4, func(p cell.Pane) { pl.Draw(p, cell.ASCII()) }); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestPlotGolden(t *testing.T) {
	for name, c := range map[string]*cell.Canvas{"linear-80x16": cell.NewCanvas(80, 16), "narrow-40x10": cell.NewCanvas(40, 10)} {
		plotted(name != "linear-80x16").Draw(c.Pane(), cell.Unicode())
		screentest.Golden(t, name, c.Plain())
	}
}

// TestOddChartsAreDrawn checks that no value and no size makes a chart fail.
func TestOddChartsAreDrawn(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	value := func() float64 {
		return screentest.Pick(r, 0, -1, 1, 5e-324, 1e300, -1e300, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 12, 0.5, 90)
	}
	axis := func() lines.Axis { return lines.Axis{Lo: value(), Hi: value(), Log: r.IntN(2) == 0}.Extend(r.IntN(9)) }
	for range 3000 {
		var values []stat.Opt
		var xy []lines.XY
		for range r.IntN(50) {
			values = append(values, stat.Opt{V: value(), OK: r.IntN(4) > 0})
			xy = append(xy, lines.XY{X: value(), Y: value()})
		}
		p, g := cell.NewCanvas(r.IntN(60), r.IntN(24)).Pane(), screentest.Pick(r, cell.Unicode(), cell.ASCII())
		lines.Sparkline(p, g, cell.Body, values, value())
		pl := lines.Plot{
			X: axis(), Y: axis(), Uprights: []lines.Tick{{At: value(), Label: "KV pool 543"}},
			Points: []lines.Point{{XY: lines.XY{X: value(), Y: value()}, Sign: "◆", Label: "now", Name: "now"}},
			Series: []lines.Series{{Name: "a", XY: xy, Stroke: lines.Stroke(r.IntN(4))}, {Name: "b", XY: xy}},
		}
		pl.Draw(p, g)
		changes := lines.NewChanges([]lines.Stretch{{Low: value(), High: value()}}, nil)
		changes.Row(p, g, lines.Stretch{Low: value(), High: value()}, lines.Stretch{Low: value(), High: value()}, value(), cell.Trial)
		changes.Axis(p)
	}
}
