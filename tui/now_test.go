package tui

import (
	"fmt"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawn is a view's plain text at a size.
func drawn(draw func(cell.Pane, *engine.Snapshot, *look) int, s *engine.Snapshot, u *look, w, h int) string {
	c := cell.NewCanvas(w, h)
	if u.glyphs.ASCII {
		c.ASCII()
	}
	draw(c.Pane(), s, u)
	return c.Plain()
}

func unicodeLook() *look { return &look{glyphs: cell.Unicode()} }

// TestLookAtViews prints what the views look like: go test -run TestLookAtViews -v.
func TestLookAtViews(t *testing.T) {
	if !testing.Verbose() {
		t.Skip("prints pictures for people: run with -v")
	}
	for _, f := range fixtures() {
		for _, size := range [][2]int{{80, 21}, {120, 26}, {160, 40}, {200, 55}} {
			if f.s == nil || !f.s.Attached {
				continue
			}
			for name, draw := range map[string]func(cell.Pane, *engine.Snapshot, *look) int{"evidence": drawEvidence, "machine": drawMachine, "log": drawLog} {
				fmt.Printf("---- %s %s %dx%d\n%s", name, f.name, size[0], size[1]+70, drawn(draw, f.s, unicodeLook(), size[0], size[1]+70))
			}
			fmt.Printf("---- now %s %dx%d\n%s", f.name, size[0], size[1], drawn(drawNow, f.s, unicodeLook(), size[0], size[1]))
		}
	}
}
