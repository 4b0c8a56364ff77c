package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

// plainLook returns the settings before any key press.
func plainLook() *frame.Settings {
	u := &frame.Settings{Glyphs: cell.Unicode()}
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

// TestFrames draws each view at the sizes at which its layout differs, the states of a run, what keys lead to, and
// the looks of a terminal: in seven bits, without colours, and as bytes with them.
func TestFrames(t *testing.T) {
	looks := map[string]struct {
		theme   string
		profile colorprofile.Profile
	}{"nocolor": {"dark", colorprofile.ASCII}, "light": {"light", colorprofile.TrueColor}}
	for _, f := range []struct {
		name, state, keys, look string
		w, h                    int
	}{
		{"now", "waiting", "1", "", 80, 24},
		{"now", "waiting", "1", "", 120, 30},
		{"now", "waiting", "1", "", 200, 60},
		{"now", "waiting", "1", "", 60, 16},
		{"now", "waiting", "1", "ascii", 80, 24},
		{"now", "waiting", "1", "nocolor", 80, 24},
		{"now", "waiting", "1", "light", 80, 24},
		{"roofline", "waiting", "2", "", 80, 24},
		{"roofline", "waiting", "2", "", 120, 30},
		{"history", "waiting", "3", "", 80, 24},
		{"auto-history-better", "better", "3", "", 200, 60},
		{"auto-history-failed", "failed", "3", "", 80, 24},
		{"evidence", "waiting", "4", "", 80, 24},
		{"evidence", "waiting", "4", "", 200, 60},
		{"gpu", "waiting", "5", "", 80, 24},
		{"gpu", "waiting", "5", "", 200, 60},
		{"log", "waiting", "6", "", 80, 24},
		{"auto-now-trial", "trial", "1", "", 120, 30},
		{"auto-now-trial", "trial", "1", "", 40, 10},
		{"auto-now-better", "better", "1", "", 200, 60},
		{"state-countdown", "countdown", "1", "", 80, 24},
		{"state-looking", "looking", "1", "", 80, 24},
		{"state-down", "down", "1", "", 80, 24},
		{"state-late", "late", "1", "", 80, 24},
		{"state-nogpu", "nogpu", "1", "", 80, 24},
		{"state-worse", "worse", "1", "", 80, 24},
		{"over-worse", "worse", "1", "", 20, 6},
		{"over-help", "waiting", "?", "", 80, 24},
		{"over-apply", "applicable", "a", "", 80, 24},
		{"over-copied-long", "long", "y", "", 80, 24},
		{"over-quit", "measuring", "q", "", 80, 24},
		{"over-replay", "waiting", "1", "", 80, 24},
	} {
		name := strings.TrimSuffix(fmt.Sprintf("%s-%dx%d-%s", f.name, f.w, f.h, f.look), "-")
		t.Run(name, func(t *testing.T) {
			o := frame.Options{ASCII: f.look == "ascii"}
			if f.name == "over-replay" {
				o.Playback = &fakeTape{now: 312 * time.Second, of: 500 * time.Second, speed: 10}
			}
			m, _, _ := testModel(snapshotNamed(t, f.state), o)
			m.Update(tea.WindowSizeMsg{Width: f.w, Height: f.h})
			m.View()
			press(m, f.keys)
			c, _ := drawRun(m.shown, &m.Settings, f.w, f.h)
			if look, ok := looks[f.look]; ok {
				screentest.GoldenBytes(t, name, c, frame.ThemeOf(look.theme, look.profile), look.profile)
				return
			}
			screentest.Golden(t, name, c.Plain())
			if o.ASCII && strings.ContainsFunc(c.Plain(), func(r rune) bool { return r > 0x7e }) {
				t.Errorf("more than seven bits in\n%s", c.Plain())
			}
		})
	}
}
