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

// TestViews draws fleets of several sizes on common terminals.
func TestViews(t *testing.T) {
	for _, fleet := range []string{"3", "40", "1000"} {
		for _, size := range [][2]int{{80, 24}, {120, 30}, {200, 60}} {
			name := fmt.Sprintf("servers-%s-%dx%d", fleet, size[0], size[1])
			t.Run(name, func(t *testing.T) {
				c, _ := drawScreen(named(t, fleet), &frame.Settings{Glyphs: cell.Unicode()}, &choices{}, size[0], size[1])
				screentest.Golden(t, name, c.Plain())
			})
		}
	}
	for _, v := range []frame.ViewID{viewGroups, viewServer} {
		for _, size := range [][2]int{{80, 24}, {120, 30}, {60, 16}} {
			name := fmt.Sprintf("%s-40-%dx%d", strings.ToLower(tabs()[v]), size[0], size[1])
			t.Run(name, func(t *testing.T) {
				c, _ := drawScreen(named(t, "40"), &frame.Settings{Glyphs: cell.Unicode(), View: v}, &choices{}, size[0], size[1])
				screentest.Golden(t, name, c.Plain())
			})
		}
	}
	t.Run("ascii", func(t *testing.T) {
		c, _ := drawScreen(named(t, "40"), &frame.Settings{Glyphs: cell.ASCII()}, &choices{}, 80, 24)
		if strings.ContainsFunc(c.Plain(), func(r rune) bool { return r > 0x7e }) {
			t.Errorf("more than seven bits in\n%s", c.Plain())
		}
		screentest.Golden(t, "servers-40-80x24-ascii", c.Plain())
	})
}

// TestStates draws each state of a list.
func TestStates(t *testing.T) {
	for name, l := range states() {
		t.Run(name, func(t *testing.T) {
			c, _ := drawScreen(l, &frame.Settings{Glyphs: cell.Unicode()}, &choices{}, 80, 24)
			screentest.Golden(t, "state-"+name+"-80x24", c.Plain())
		})
	}
}

// TestLooks draws the list as bytes for terminals with and without colours.
func TestLooks(t *testing.T) {
	for _, l := range []struct {
		name, theme, state string
		profile            colorprofile.Profile
	}{{"nocolor", "dark", "40", colorprofile.ASCII}, {"light", "light", "40", colorprofile.TrueColor}, {"dark", "dark", "failed", colorprofile.TrueColor}} {
		name := "servers-" + l.state + "-80x24-" + l.name
		t.Run(name, func(t *testing.T) {
			c, _ := drawScreen(named(t, l.state), &frame.Settings{Glyphs: cell.Unicode()}, &choices{}, 80, 24)
			screentest.GoldenBytes(t, name, c, frame.ThemeOf(l.theme, l.profile), l.profile)
		})
	}
}

// TestOverlays draws what keys lead to, and small terminals.
func TestOverlays(t *testing.T) {
	for _, o := range []struct {
		name, state, keys string
		w, h              int
	}{
		{"help", "40", "?", 80, 24},
		{"help", "40", "?", 120, 30},
		{"copied", "40", "down down down down down down y", 80, 24},
		{"alone", "40", "t", 80, 24},
		{"filter", "1000", "/ c o n c u r enter", 120, 30},
		{"no-match", "40", "/ z z enter", 80, 24},
		{"sorted", "40", "s s s s s", 120, 30},
		{"deployments", "40", "g g", 120, 30},
		{"group", "40", "g g down enter", 120, 30},
		{"page", "40", "down down down down down down enter", 120, 30},
		{"unread", "40", "down down enter", 80, 24},
		{"end", "1000", "end", 80, 24},
		{"frozen", "40", "space", 80, 24},
		{"small", "40", "", 40, 10},
		{"small", "failed", "", 40, 10},
		{"small", "never", "", 40, 10},
		{"small", "3", "?", 20, 6},
	} {
		name := fmt.Sprintf("over-%s-%s-%dx%d", o.name, o.state, o.w, o.h)
		t.Run(name, func(t *testing.T) {
			m, _ := opened(t, o.state, o.w, o.h)
			press(m, o.keys)
			c, _ := drawScreen(m.shown, &m.Settings, &m.set, o.w, o.h)
			screentest.Golden(t, name, c.Plain())
		})
	}
}
