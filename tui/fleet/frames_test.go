package fleet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

// TestFrames draws each view at the sizes at which its layout differs, the states of a list, and what keys lead to.
func TestFrames(t *testing.T) {
	for _, f := range []struct {
		name, state, keys string
		w, h              int
	}{
		{"servers-40", "40", "", 80, 24},
		{"servers-40", "40", "", 120, 30},
		{"servers-40", "40", "", 200, 60},
		{"groups-40", "40", "2", 120, 30},
		{"server-40", "40", "3", 80, 24},
		{"state-failed", "failed", "", 80, 24},
		{"state-never", "never", "", 80, 24},
		{"over-small-failed", "failed", "", 40, 10},
		{"over-group-40", "40", "g g down enter", 120, 30},
	} {
		name := fmt.Sprintf("%s-%dx%d", f.name, f.w, f.h)
		t.Run(name, func(t *testing.T) {
			m, _ := opened(t, f.state, f.w, f.h)
			press(m, f.keys)
			c, _ := drawScreen(m.shown, &m.Settings, &m.set, f.w, f.h)
			screentest.Golden(t, name, c.Plain())
		})
	}
}

// TestLooks draws the list as bytes for terminals without colours, and in seven bits.
func TestLooks(t *testing.T) {
	c, _ := drawScreen(named(t, "40"), &frame.Settings{Glyphs: cell.Unicode()}, &choices{}, 80, 24)
	screentest.GoldenBytes(t, "servers-40-80x24-nocolor", c, frame.ThemeOf("dark", colorprofile.ASCII), colorprofile.ASCII)
	c, _ = drawScreen(named(t, "40"), &frame.Settings{Glyphs: cell.ASCII()}, &choices{}, 80, 24)
	if strings.ContainsFunc(c.Plain(), func(r rune) bool { return r > 0x7e }) {
		t.Errorf("more than seven bits in\n%s", c.Plain())
	}
}
