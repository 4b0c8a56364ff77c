package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// plainLook returns the settings before any key press.
func plainLook() *frame.Settings { return lookWith(cell.Unicode()) }

func lookWith(glyphs cell.Glyphs) *frame.Settings {
	u := &frame.Settings{Glyphs: glyphs}
	u.Scroll[viewLog] = frame.ToEnd
	return u
}

func snapshotNamed(t testing.TB, name string) *loop.Snapshot {
	t.Helper()
	for _, f := range builders() {
		if f.name == name {
			return f.build()
		}
	}
	t.Fatalf("no fixture %q", name)
	return nil
}

func plainFrame(s *loop.Snapshot, u *frame.Settings, w, h int) string {
	c, _ := drawRun(s, u, w, h)
	return c.Plain()
}

func viewFile(v frame.ViewID) string { return strings.ToLower(views()[v].name) }

// TestViews draws the views of one run at common terminal sizes.
func TestViews(t *testing.T) {
	s := snapshotNamed(t, "waiting")
	for v := range numViews {
		for _, size := range [][2]int{{80, 24}, {120, 30}, {200, 60}, {60, 16}, {40, 10}} {
			name := fmt.Sprintf("%s-%dx%d", viewFile(v), size[0], size[1])
			t.Run(name, func(t *testing.T) {
				u := plainLook()
				u.View = v
				screentest.Golden(t, name, plainFrame(s, u, size[0], size[1]))
			})
		}
		name := viewFile(v) + "-80x24-ascii"
		t.Run(name, func(t *testing.T) {
			u := lookWith(cell.ASCII())
			u.View = v
			got := plainFrame(s, u, 80, 24)
			if strings.ContainsFunc(got, func(r rune) bool { return r > 0x7e }) {
				t.Errorf("more than seven bits in\n%s", got)
			}
			screentest.Golden(t, name, got)
		})
	}
}

// TestLooks draws views with and without colours, as bytes for a terminal.
func TestLooks(t *testing.T) {
	s := snapshotNamed(t, "waiting")
	for _, l := range []struct {
		name, theme string
		profile     colorprofile.Profile
		views       frame.ViewID // how many of them
	}{
		{"nocolor", "dark", colorprofile.ASCII, numViews},
		{"light", "light", colorprofile.TrueColor, numViews},
		{"dark", "dark", colorprofile.TrueColor, 1},
		{"sixteen", "auto", colorprofile.ANSI, 1},
	} {
		for v := range l.views {
			name := viewFile(v) + "-80x24-" + l.name
			t.Run(name, func(t *testing.T) {
				u := plainLook()
				u.View = v
				c, _ := drawRun(s, u, 80, 24)
				th := frame.ThemeOf(l.theme, l.profile)
				screentest.GoldenBytes(t, name, c, th, l.profile)
			})
		}
	}
}

// TestWordsSurviveWithoutColour checks that words and symbols express what colours express.
func TestWordsSurviveWithoutColour(t *testing.T) {
	for _, c := range []struct {
		state, keys string
		want        []string
	}{
		{"waiting", "1", []string{"[1 Now]", "●", "▲ warn", "Concurrency saturation", "PLATEAU"}},
		{"waiting", "3", []string{"[3 History]", "better", "plateau", "kept"}},
		{"waiting", "4", []string{"fired", "recommended"}},
		{"waiting", "space", []string{"FROZEN"}},
		{"paused", "1", []string{"PAUSED"}},
		{"worse", "1", []string{"✖ Worse", "WORSE", "worse", "revert", "continue"}},
		{"down", "1", []string{"✖", "not answered", "server down"}},
		{"late", "1", []string{"▲", "Last read 9 s ago"}},
		{"long", "1", []string{"SIMULATED"}},
		{"measuring", "q", []string{"[ No, stay ]", "Yes, quit"}},
	} {
		t.Run(c.state+" "+c.keys, func(t *testing.T) {
			m, _, _ := testModel(snapshotNamed(t, c.state), frame.Options{Color: "never"})
			press(m, c.keys)
			text := ansi.Strip(m.View().Content)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		})
	}
}

// TestStates draws common states in the view Now.
func TestStates(t *testing.T) {
	for _, f := range fixtures() {
		if f.name == "waiting" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			screentest.Golden(t, "state-"+f.name+"-80x24", plainFrame(f.s, plainLook(), 80, 24))
		})
	}
}

// TestOverlays draws overlays.
func TestOverlays(t *testing.T) {
	for _, o := range []struct {
		name, state string
		w, h        int
		keys        string
		hands       bool
	}{
		{"help", "waiting", 80, 24, "?", false},
		{"help", "waiting", 120, 30, "?", false},
		{"help", "waiting", 80, 50, "?", false},
		{"apply", "waiting", 80, 24, "a", true},
		{"apply", "waiting", 60, 16, "a", true},
		{"apply", "waiting", 30, 10, "a", true},
		{"help", "waiting", 40, 12, "?", false},
		{"apply-yourself", "waiting", 80, 24, "a", false},
		{"copied", "waiting", 80, 24, "y", false},
		{"copied-long", "long", 80, 24, "y", false},
		{"quit", "measuring", 80, 24, "q", false},
		{"filter", "waiting", 80, 24, "4 / s l o t", false},
		{"why-not", "waiting", 80, 24, "c", false},
		{"frozen", "waiting", 80, 24, "space", false},
		{"worse", "worse", 40, 10, "", false},
		{"worse", "worse", 20, 6, "", false},
		{"replay", "waiting", 80, 24, "", false},
	} {
		name := fmt.Sprintf("over-%s-%dx%d", o.name, o.w, o.h)
		t.Run(name, func(t *testing.T) {
			s := *snapshotNamed(t, o.state)
			if o.hands {
				s.Can[loop.CommandApply] = loop.Availability{OK: true}
			}
			options := frame.Options{}
			if o.name == "replay" {
				options.Playback = &fakeTape{now: 312 * time.Second, of: 500 * time.Second, speed: 10}
			}
			m := newModel(&fakeFeed{s: &s}, &fakeControls{}, options)
			m.Init()
			m.Width, m.Height = o.w, o.h
			for k := range strings.FieldsSeq(o.keys) {
				m.View()
				m.Update(screentest.KeyPress(k))
			}
			screentest.Golden(t, name, plainFrame(m.shown, &m.Settings, o.w, o.h))
		})
	}
}
