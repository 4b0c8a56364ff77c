package tui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	u.scroll[viewLog] = toEnd
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
		for _, size := range [][2]int{{80, 24}, {120, 30}, {200, 60}, {60, 16}, {40, 10}} {
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

// TestLooks are views with colours and without, as bytes for a terminal.
func TestLooks(t *testing.T) {
	s := snapshotNamed(t, "waiting")
	for _, l := range []struct {
		name, theme string
		profile     colorprofile.Profile
		views       viewID // how many of them
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
				u.view = v
				c, _ := frame(s, u, 80, 24)
				th := themeOf(l.theme, l.profile)
				goldenBytes(t, name, c, th, l.profile)
			})
		}
	}
}

// goldenBytes compares what goes to a terminal of some colours with a golden file, and
// with the words that are there without them.
func goldenBytes(t *testing.T, name string, c *cell.Canvas, th theme, p colorprofile.Profile) {
	t.Helper()
	got := c.Render(th.paint)
	golden(t, name, strings.ReplaceAll(got, "\x1b", "␛")+"\n")
	if colour := regexp.MustCompile(`\x1b\[[0-9;]*[349][0-9]`).FindString(got); p <= colorprofile.ASCII && colour != "" {
		t.Errorf("a colour without colours: %q", colour)
	}
	if words := trimLines(ansi.Strip(got)); words != c.Plain() {
		t.Errorf("without colours the words are others:\n%s", cmp.Diff(c.Plain(), words))
	}
}

// TestWordsSurviveWithoutColour looks for the words and signs that say what a
// colour says.
func TestWordsSurviveWithoutColour(t *testing.T) {
	for _, c := range []struct {
		state, keys string
		want        []string
	}{
		{"waiting", "1", []string{"[1 Now]", "●", "▲ warn", "Seat saturation", "PLATEAU"}},
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
			m, _, _ := testModel(snapshotNamed(t, c.state), Options{Color: "never"})
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
		{"help", "waiting", 40, 12, "?", false},
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
