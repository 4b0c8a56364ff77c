package chart_test

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

func TestBar(t *testing.T) {
	achievable := chart.Tick{At: 60, Token: cell.Achievable}
	for _, c := range []struct {
		name  string
		bar   chart.Bar
		w, h  int
		ascii bool
		want  string
	}{
		{name: "value, rest", bar: chart.Bar{Value: stat.Some(40), Top: 100}, w: 10, h: 1, want: "████░░░░░░"},
		{name: "eighths of a cell", bar: chart.Bar{Value: stat.Some(45), Top: 100}, w: 10, h: 1, want: "████▌░░░░░"},
		{name: "ASCII", bar: chart.Bar{Value: stat.Some(45), Top: 100, Marks: []chart.Tick{achievable}}, w: 10, h: 1, ascii: true, want: "#####.|..."},
		{name: "a mark beyond the value", bar: chart.Bar{Value: stat.Some(45), Top: 100, Marks: []chart.Tick{achievable}}, w: 30, h: 1, want: "█████████████▌░░░░┃░░░░░░░░░░░"},
		{name: "a mark within the value", bar: chart.Bar{Value: stat.Some(80), Top: 100, Marks: []chart.Tick{achievable}}, w: 10, h: 1, want: "██████┃█░░"},
		{name: "absent is empty", bar: chart.Bar{Top: 100}, w: 10, h: 1, want: "░░░░░░░░░░"},
		{name: "zero is empty too", bar: chart.Bar{Value: stat.Some(0), Top: 100}, w: 8, h: 1, want: "░░░░░░░░"},
		{name: "beyond the top", bar: chart.Bar{Value: stat.Some(120), Top: 100}, w: 8, h: 1, want: "███████>"},
		{name: "exactly the top", bar: chart.Bar{Value: stat.Some(100), Top: 100}, w: 8, h: 1, want: "████████"},
		{name: "negative", bar: chart.Bar{Value: stat.Some(-3), Top: 100}, w: 8, h: 1, want: "░░░░░░░░"},
		{name: "no top", bar: chart.Bar{Value: stat.Some(3)}, w: 8, h: 1, want: "░░░░░░░░"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := cell.Unicode()
			if c.ascii {
				g = cell.ASCII()
			}
			got := drawn(c.w, c.h, func(p cell.Pane) { c.bar.Draw(p, g) })
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
