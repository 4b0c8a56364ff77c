package lines_test

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

func TestBar(t *testing.T) {
	achievable := lines.Tick{At: 60, Token: cell.Achievable}
	for _, c := range []struct {
		name  string
		bar   lines.Bar
		w, h  int
		ascii bool
		want  string
	}{
		{name: "value, rest", bar: lines.Bar{Value: stat.Some(40), Top: 100}, w: 10, h: 1, want: "████░░░░░░"},
		{name: "eighths of a cell", bar: lines.Bar{Value: stat.Some(45), Top: 100}, w: 10, h: 1, want: "████▌░░░░░"},
		{name: "ASCII", bar: lines.Bar{Value: stat.Some(45), Top: 100, Marks: []lines.Tick{achievable}}, w: 10, h: 1, ascii: true, want: "#####.|..."},
		{name: "a mark beyond the value", bar: lines.Bar{Value: stat.Some(45), Top: 100, Marks: []lines.Tick{achievable}}, w: 30, h: 1, want: "█████████████▌░░░░┃░░░░░░░░░░░"},
		{name: "a mark within the value", bar: lines.Bar{Value: stat.Some(80), Top: 100, Marks: []lines.Tick{achievable}}, w: 10, h: 1, want: "██████┃█░░"},
		{name: "absent is empty", bar: lines.Bar{Top: 100}, w: 10, h: 1, want: "░░░░░░░░░░"},
		{name: "zero is empty too", bar: lines.Bar{Value: stat.Some(0), Top: 100}, w: 8, h: 1, want: "░░░░░░░░"},
		{name: "beyond the top", bar: lines.Bar{Value: stat.Some(120), Top: 100}, w: 8, h: 1, want: "███████>"},
		{name: "exactly the top", bar: lines.Bar{Value: stat.Some(100), Top: 100}, w: 8, h: 1, want: "████████"},
		{name: "negative", bar: lines.Bar{Value: stat.Some(-3), Top: 100}, w: 8, h: 1, want: "░░░░░░░░"},
		{name: "no top", bar: lines.Bar{Value: stat.Some(3)}, w: 8, h: 1, want: "░░░░░░░░"},
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
