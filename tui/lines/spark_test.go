package lines_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// some converts numbers to optional values; NaN is absent.
func some(list ...float64) []stat.Opt {
	out := make([]stat.Opt, len(list))
	for i, v := range list {
		if !math.IsNaN(v) {
			out[i] = stat.Some(v)
		}
	}
	return out
}

// drawn returns what draw writes on a canvas, without the last newline.
func drawn(w, h int, draw func(cell.Pane)) string {
	c := cell.NewCanvas(w, h)
	draw(c.Pane())
	return strings.TrimSuffix(c.Plain(), "\n")
}

var gap = math.NaN()

func TestSparkline(t *testing.T) {
	const to8 = 8.0
	for _, c := range []struct {
		name   string
		values []stat.Opt
		top    float64
		w, h   int
		ascii  bool
		want   string
	}{
		{name: "eight levels", values: some(1, 2, 3, 4, 5, 6, 7, 8), top: to8, w: 8, h: 1, want: "▁▂▃▄▅▆▇█"},
		{name: "eight levels in ASCII", values: some(1, 2, 3, 4, 5, 6, 7, 8), top: to8, w: 8, h: 1, ascii: true, want: "_.:-=+*#"},
		{name: "between levels rounds up", values: some(0.1, 1.1, 7.1), top: to8, w: 3, h: 1, want: "▁▂█"},
		{name: "absent is a gap, zero is not", values: some(8, gap, 0, gap, 8), top: to8, w: 5, h: 1, want: "█ ▁ █"},
		{name: "NaN and infinite are gaps", values: []stat.Opt{stat.Some(8), stat.Some(math.NaN()), stat.Some(math.Inf(1)), stat.Some(math.Inf(-1)), stat.Some(8)}, top: to8, w: 5, h: 1, want: "█   █"},
		{name: "beyond the scale is cut", values: some(-5, 99), top: to8, w: 2, h: 1, want: "▁█"},
		{name: "the newest at the right", values: some(4), top: to8, w: 4, h: 1, want: "   ▄"},
		{name: "older than fit are left out", values: some(8, 8, 1, 2), top: to8, w: 2, h: 1, want: "▁▂"},
		{name: "two lines have sixteen levels", values: some(1, 4, 5, 8), top: to8, w: 4, h: 2, want: "  ▂█\n▂███"},
		{name: "a scale of nothing", values: some(1, 2), w: 2, h: 1, want: "▁▁"},
		{name: "all absent", values: some(gap, gap), top: to8, w: 2, h: 1, want: ""},
		{name: "nothing", top: to8, w: 2, h: 1, want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := cell.Unicode()
			if c.ascii {
				g = cell.ASCII()
			}
			got := drawn(c.w, c.h, func(p cell.Pane) { lines.Sparkline(p, g, cell.Body, c.values, c.top) })
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
