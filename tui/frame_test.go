package tui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

var update = flag.Bool("update", false, "write the golden frames anew")

// golden compares a text with a file of testdata/frames.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "frames", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (run with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// plainLook is what a person sees who pressed nothing.
func plainLook() *look { return lookWith(cell.Unicode()) }

func lookWith(glyphs cell.Glyphs) *look {
	u := &look{glyphs: glyphs}
	u.scroll[viewLog] = rest(viewLog)
	return u
}

func snapshotNamed(t testing.TB, name string) *engine.Snapshot {
	t.Helper()
	for _, f := range fixtures() {
		if f.name == name {
			return f.s
		}
	}
	t.Fatalf("no fixture %q", name)
	return nil
}

func plainFrame(s *engine.Snapshot, u *look, w, h int) string {
	c, _ := frame(s, u, w, h)
	return c.Plain()
}

func viewFile(v viewID) string { return strings.ToLower(views()[v].name) }

// TestViews are the views of one run at the sizes that people have.
func TestViews(t *testing.T) {
	s := snapshotNamed(t, "waiting")
	for v := range numViews {
		for _, size := range [][2]int{{80, 24}, {120, 30}, {200, 60}, {40, 10}} {
			name := fmt.Sprintf("%s-%dx%d", viewFile(v), size[0], size[1])
			t.Run(name, func(t *testing.T) {
				u := plainLook()
				u.view = v
				golden(t, name, plainFrame(s, u, size[0], size[1]))
			})
		}
		name := viewFile(v) + "-80x24-ascii"
		t.Run(name, func(t *testing.T) {
			u := lookWith(cell.ASCII())
			u.view = v
			got := plainFrame(s, u, 80, 24)
			if strings.ContainsFunc(got, func(r rune) bool { return r > 0x7e }) {
				t.Errorf("more than seven bits in\n%s", got)
			}
			golden(t, name, got)
		})
	}
}

// TestLooks are the same view with colours and without, as bytes for a terminal.
func TestLooks(t *testing.T) {
	s := snapshotNamed(t, "waiting")
	c, _ := frame(s, plainLook(), 80, 24)
	for _, l := range []struct {
		name, theme string
		profile     colorprofile.Profile
	}{
		{"now-80x24-nocolor", "dark", colorprofile.ASCII},
		{"now-80x24-light", "light", colorprofile.TrueColor},
		{"now-80x24-dark", "dark", colorprofile.TrueColor},
		{"now-80x24-sixteen", "auto", colorprofile.ANSI},
	} {
		t.Run(l.name, func(t *testing.T) {
			th := themeOf(l.theme, l.profile)
			got := c.Render(th.paint)
			golden(t, l.name, strings.ReplaceAll(got, "\x1b", "␛")+"\n")
			if l.profile <= colorprofile.ASCII {
				for _, colour := range []string{"\x1b[3", "\x1b[4", "\x1b[9"} {
					if strings.Contains(strings.ReplaceAll(got, "\x1b[m", ""), colour) {
						t.Errorf("a colour without colours: %q", colour)
					}
				}
			}
			if words := trimLines(ansi.Strip(got)); words != c.Plain() {
				t.Errorf("without colours the words are others:\n%s", cmp.Diff(c.Plain(), words))
			}
		})
	}
}

func trimLines(s string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(s, "\n") {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	return b.String()
}

// TestStates are the states that people meet, as Now shows them.
func TestStates(t *testing.T) {
	for _, f := range fixtures() {
		if f.name == "waiting" {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			golden(t, "state-"+f.name+"-80x24", plainFrame(f.s, plainLook(), 80, 24))
		})
	}
}

// TestOverlays are what lies over a view.
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
		{"apply", "waiting", 30, 10, "a", true},
		{"apply-yourself", "waiting", 80, 24, "a", false},
		{"copied", "waiting", 80, 24, "y", false},
		{"copied-long", "long", 80, 24, "y", false},
		{"quit", "measuring", 80, 24, "q", false},
		{"filter", "waiting", 80, 24, "/ s e a t", false},
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
				s.Can[engine.CommandApply] = engine.Availability{OK: true}
			}
			options := Options{}
			if o.name == "replay" {
				options.Playback = &fakeTape{now: 312 * time.Second, of: 500 * time.Second, speed: 10}
			}
			m := newModel(&fakeFeed{s: &s}, &fakeControls{}, options)
			m.Init()
			m.w, m.h = o.w, o.h
			for k := range strings.FieldsSeq(o.keys) {
				m.View()
				m.Update(keyPress(k))
			}
			golden(t, name, plainFrame(m.shown, &m.look, o.w, o.h))
		})
	}
}
