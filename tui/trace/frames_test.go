package trace

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

var eachTrace = sync.OnceValue(traceFixtures)

func traceNamed(t testing.TB, name string) traced {
	t.Helper()
	for _, f := range eachTrace() {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("no trace %q", name)
	return traced{}
}

func traceText(f traced, u *frame.Settings, w, h int) string {
	c, _ := drawScreen(f.l, u, &choices{}, w, h)
	return c.Plain()
}

func traceFile(v frame.ViewID) string { return strings.ToLower(tabs()[v]) }

// TestTraceViews draws the views of traces at common terminal sizes.
func TestTraceViews(t *testing.T) {
	for _, c := range []struct {
		trace string
		views []frame.ViewID
		sizes [][2]int
	}{
		{"dense", []frame.ViewID{viewNow, viewOperators, viewLayers, viewThreads, viewExperts, viewDetails}, [][2]int{{80, 24}, {120, 30}, {200, 60}, {60, 16}}},
		{"moe", []frame.ViewID{viewNow, viewExperts}, [][2]int{{80, 24}, {120, 30}}},
		{"experts", []frame.ViewID{viewExperts, viewThreads}, [][2]int{{80, 24}, {200, 60}}},
		{"deep", []frame.ViewID{viewLayers}, [][2]int{{80, 24}, {200, 60}}},
		{"threads", []frame.ViewID{viewThreads, viewNow}, [][2]int{{80, 24}, {200, 60}}},
		{"single", []frame.ViewID{viewNow, viewThreads}, [][2]int{{80, 24}}},
	} {
		for _, v := range c.views {
			for _, size := range c.sizes {
				name := fmt.Sprintf("trace-%s-%s-%dx%d", traceFile(v), c.trace, size[0], size[1])
				t.Run(name, func(t *testing.T) {
					u := plainLook()
					u.View = v
					screentest.Golden(t, name, traceText(traceNamed(t, c.trace), u, size[0], size[1]))
				})
			}
		}
	}
	for v := range numViews {
		name := "trace-" + traceFile(v) + "-moe-80x24-ascii"
		t.Run(name, func(t *testing.T) {
			u := &frame.Settings{Glyphs: cell.ASCII(), View: v}
			got := traceText(traceNamed(t, "moe"), u, 80, 24)
			if strings.ContainsFunc(got, func(r rune) bool { return r > 0x7e }) {
				t.Errorf("more than seven bits in\n%s", got)
			}
			screentest.Golden(t, name, got)
		})
	}
}

// TestTraceStates draws common states.
func TestTraceStates(t *testing.T) {
	for _, f := range traceFixtures() {
		t.Run(f.name, func(t *testing.T) {
			screentest.Golden(t, "trace-state-"+f.name+"-80x24", traceText(f, &frame.Settings{Glyphs: cell.Unicode()}, 80, 24))
		})
	}
}

// TestTraceLooks draws views as bytes for terminals with and without colours.
func TestTraceLooks(t *testing.T) {
	for _, l := range []struct {
		name, theme string
		profile     colorprofile.Profile
	}{{"nocolor", "dark", colorprofile.ASCII}, {"light", "light", colorprofile.TrueColor}} {
		for v := range numViews {
			name := "trace-" + traceFile(v) + "-experts-80x24-" + l.name
			t.Run(name, func(t *testing.T) {
				c, _ := drawScreen(traceNamed(t, "experts").l, &frame.Settings{Glyphs: cell.Unicode(), View: v}, &choices{}, 80, 24)
				screentest.GoldenBytes(t, name, c, frame.ThemeOf(l.theme, l.profile), l.profile)
			})
		}
	}
}

// TestTraceOverlays draws overlays and notices, and small terminals.
func TestTraceOverlays(t *testing.T) {
	for _, o := range []struct {
		name, trace, keys string
		w, h              int
	}{
		{"help", "dense", "?", 80, 24},
		{"help", "ended", "?", 120, 30},
		{"help", "asking", "?", 80, 50},
		{"filter", "dense", "2 / m u l", 80, 24},
		{"no-match", "dense", "2 / z z enter", 80, 24},
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
			m, _ := testTrace(t, o.trace, frame.Options{})
			m.Width, m.Height = o.w, o.h
			pressTrace(m, o.keys)
			c, _ := drawScreen(m.shown, &m.Settings, &m.set, o.w, o.h)
			screentest.Golden(t, name, c.Plain())
		})
	}
}

// After a change of level the screen shows the current level and its cost everywhere, and says that
// the figures include other levels.
func TestTraceAfterAChangeOfLevel(t *testing.T) {
	l := *liveOf(shape{layers: 4, threads: 2, slow: -1})
	s := *l.Summary
	s.Coverage.Detail = "sched"
	s.Coverage.Levels = []optrace.LevelRow{{Detail: "sched", Graphs: 1200, Decode: 1200, Time: 9600 * time.Millisecond}}
	l.Summary, l.Detail = &s, optrace.LevelToken
	l.Observer = optrace.Observer{HitsPerToken: 2, Threads: 1, CostPerHit: time.Microsecond, Expected: 0.001}
	for v, want := range map[frame.ViewID][]string{
		viewNow:     {"detail token", "0.1 % of its speed (est): 2 probe hits a token", "several levels: view 6"},
		viewDetails: {"Coverage token", "sched for 1,200 graphs (9.60 s): all in the figures; now token", "0.1 % of its speed (est): 2 probe hits a token"},
	} {
		u := plainLook()
		u.View = v
		text := strings.Join(strings.Fields(strings.NewReplacer(figure.NBSP, " ", "─", "").Replace(traceText(traced{"", &l}, u, 200, 60))), " ")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("view %d has no %q:\n%s", v+1, w, traceText(traced{"", &l}, u, 200, 60))
			}
		}
		if strings.Contains(text, "detail sched") {
			t.Errorf("view %d has the level of before", v+1)
		}
	}
	s.Coverage.Graphs, s.Threads = 1200, slices.Clone(s.Threads)
	s.Threads[0].Graphs = 25
	u := plainLook()
	u.View = viewThreads
	if text := strings.ReplaceAll(traceText(traced{"", &l}, u, 120, 60), figure.NBSP, " "); !strings.Contains(text, "of 25 of 1,200 graphs, whose levels say most") {
		t.Errorf("it is not said what the shares of threads are of:\n%s", text)
	}
	l.Detail = optrace.LevelSched
	if v := (&snapshot{live: &l, s: &s}); v.severalLevels() {
		t.Error("one level is several")
	}
}
