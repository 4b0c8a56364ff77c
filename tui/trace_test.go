package tui

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

func traceNamed(t testing.TB, name string) traced {
	t.Helper()
	for _, f := range traceFixtures() {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("no trace %q", name)
	return traced{}
}

func traceText(f traced, u *look, w, h int) string {
	c, _ := traceFrame(f.l, u, &traceSet{}, w, h)
	return c.Plain()
}

func traceFile(v viewID) string { return strings.ToLower(traceTabs()[v]) }

// TestTraceViews are the views of traces at the sizes that people have.
func TestTraceViews(t *testing.T) {
	for _, c := range []struct {
		trace string
		views []viewID
		sizes [][2]int
	}{
		{"dense", []viewID{viewNow, viewOperators, viewLayers, viewThreads, viewExperts, viewDetails}, [][2]int{{80, 24}, {120, 30}, {200, 60}, {60, 16}}},
		{"moe", []viewID{viewNow, viewExperts}, [][2]int{{80, 24}, {120, 30}}},
		{"experts", []viewID{viewExperts, viewThreads}, [][2]int{{80, 24}, {200, 60}}},
		{"deep", []viewID{viewLayers}, [][2]int{{80, 24}, {200, 60}}},
		{"threads", []viewID{viewThreads, viewNow}, [][2]int{{80, 24}, {200, 60}}},
		{"single", []viewID{viewNow, viewThreads}, [][2]int{{80, 24}}},
	} {
		for _, v := range c.views {
			for _, size := range c.sizes {
				name := fmt.Sprintf("trace-%s-%s-%dx%d", traceFile(v), c.trace, size[0], size[1])
				t.Run(name, func(t *testing.T) {
					u := plainLook()
					u.scroll[viewLog] = 0
					u.view = v
					golden(t, name, traceText(traceNamed(t, c.trace), u, size[0], size[1]))
				})
			}
		}
	}
	for v := range numTraceViews {
		name := "trace-" + traceFile(v) + "-moe-80x24-ascii"
		t.Run(name, func(t *testing.T) {
			u := &look{glyphs: cell.ASCII(), view: v}
			got := traceText(traceNamed(t, "moe"), u, 80, 24)
			if strings.ContainsFunc(got, func(r rune) bool { return r > 0x7e }) {
				t.Errorf("more than seven bits in\n%s", got)
			}
			golden(t, name, got)
		})
	}
}

// TestTraceStates are the states that people meet.
func TestTraceStates(t *testing.T) {
	for _, f := range traceFixtures() {
		t.Run(f.name, func(t *testing.T) {
			golden(t, "trace-state-"+f.name+"-80x24", traceText(f, &look{glyphs: cell.Unicode()}, 80, 24))
		})
	}
}

// TestTraceLooks are views as bytes for a terminal without colours and with them.
func TestTraceLooks(t *testing.T) {
	for _, l := range []struct {
		name, theme string
		profile     colorprofile.Profile
	}{{"nocolor", "dark", colorprofile.ASCII}, {"light", "light", colorprofile.TrueColor}} {
		for v := range numTraceViews {
			name := "trace-" + traceFile(v) + "-experts-80x24-" + l.name
			t.Run(name, func(t *testing.T) {
				c, _ := traceFrame(traceNamed(t, "experts").l, &look{glyphs: cell.Unicode(), view: v}, &traceSet{}, 80, 24)
				goldenBytes(t, name, c, themeOf(l.theme, l.profile), l.profile)
			})
		}
	}
}

// TestTraceOverlays are what keys lay over a view or put into the footer, and small
// terminals.
func TestTraceOverlays(t *testing.T) {
	for _, o := range []struct {
		name, trace, keys string
		w, h              int
	}{
		{"help", "dense", "?", 80, 24},
		{"help", "ended", "?", 120, 30},
		{"help", "asking", "?", 80, 50},
		{"filter", "dense", "/ m u l", 80, 24},
		{"no-match", "dense", "/ z z enter", 80, 24},
		{"sorted", "dense", "2 s S", 80, 24},
		{"names", "dense", "2 b", 80, 24},
		{"prefill", "dense", "f", 80, 24},
		{"frozen", "dense", "space", 80, 24},
		{"detail", "dense", "+", 80, 24},
		{"why-not", "dense", "y", 80, 24},
		{"small", "dense", "", 40, 10},
		{"small", "asking", "", 40, 10},
		{"small", "attaching", "", 40, 10},
		{"small", "lost", "?", 20, 6},
	} {
		name := fmt.Sprintf("trace-over-%s-%s-%dx%d", o.name, o.trace, o.w, o.h)
		t.Run(name, func(t *testing.T) {
			m, _ := testTrace(t, o.trace, Options{})
			m.w, m.h = o.w, o.h
			pressTrace(m, o.keys)
			c, _ := traceFrame(m.shown, &m.look, &m.set, o.w, o.h)
			golden(t, name, c.Plain())
		})
	}
}

// TestNoRoof holds that a roof of which nothing is known is no roof "with 0 threads".
func TestNoRoof(t *testing.T) {
	if text := roofWords(0, 0, "", 0, "", 0, "(est)"); text != "" {
		t.Errorf("no roof is told as %q", text)
	}
}
