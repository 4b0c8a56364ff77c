package fleet

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

// feed supplies the states that a test sets.
type feed struct {
	mu    sync.Mutex
	l     *fleet.Live
	again int
}

func (f *feed) Latest() *fleet.Live {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.l
}

func (f *feed) set(l *fleet.Live) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.l = l
}

// opened returns a screen that has drawn its first frame.
func opened(t testing.TB, state string, w, h int) (*Screen, *feed) {
	f := &feed{l: named(t, state)}
	m := New(f, func() { f.again++ }, frame.Options{})
	m.Init()
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	m.View()
	return m, f
}

func press(m *Screen, names string) tea.Cmd {
	var cmd tea.Cmd
	for name := range strings.FieldsSeq(names) {
		_, cmd = m.Update(screentest.KeyPress(name))
		m.View()
	}
	return cmd
}

// text returns the frame that is shown.
func text(m *Screen) string { return ansi.Strip(m.View().Content) }

// under returns the name of the server under the cursor.
func under(m *Screen) string {
	if s := m.now().selected(); s != nil {
		return s.Name
	}
	return ""
}

// TestKeys presses keys and checks where they lead.
func TestKeys(t *testing.T) {
	list := fleetOf(40)
	last := list[len(list)-1].Name
	changes := slices.IndexFunc(list, func(s fleet.Server) bool { return s.Changes() })
	for _, c := range []struct {
		name, keys string
		view       frame.ViewID
		under      string
		says       string // part of the notice
		shows      string // part of the frame
		quit       bool
	}{
		{name: "the first row", under: list[0].Name},
		{name: "down", keys: "down j", under: list[2].Name},
		{name: "up at the top", keys: "up", under: list[0].Name, says: "first row"},
		{name: "down at the end", keys: "end down", under: last, says: "last row"},
		{name: "to the end and back", keys: "G home", under: list[0].Name},
		{name: "a page", keys: "pgdown pgup", under: list[0].Name},
		{name: "open and back", keys: "down enter esc", under: list[1].Name},
		{name: "g on its page is the top", keys: "enter down down g", view: viewServer, under: list[0].Name},
		{name: "its page", keys: "down enter", view: viewServer, under: list[1].Name, shows: list[1].Name},
		{name: "enter on its page", keys: "enter enter", view: viewServer, under: list[0].Name, says: "esc goes back"},
		{name: "groups", keys: "g", view: viewGroups, shows: "model"},
		{name: "deployments", keys: "g g", view: viewGroups, shows: "vllm-chat"},
		{name: "models again", keys: "g g g", view: viewGroups, shows: "to change"},
		{name: "a group and back", keys: "g enter esc", view: viewGroups},
		{name: "a group and back to the list", keys: "g enter esc esc", under: list[0].Name},
		{name: "nothing to go back to", keys: "esc", under: list[0].Name, says: "nothing to go back to"},
		{name: "filter", keys: "/ g p u - 0 0 2 enter", under: "gpu-002:8000", shows: `1 of 40 servers match "gpu-002"`},
		{name: "a page from a filtered list, and back", keys: "/ g p u - 0 0 2 enter enter esc", under: "gpu-002:8000", shows: `match "gpu-002"`},
		{name: "esc clears the filter", keys: "/ g p u - 0 0 2 enter esc", under: list[0].Name},
		{name: "no match", keys: "/ z z z enter enter", says: "no row", shows: "No row."},
		{name: "sort by name", keys: "s", under: "gpu-000:8000", shows: "[server]"},
		{name: "sort from groups shows the list", keys: "g s", under: list[0].Name},
		{name: "sort round", keys: strings.Repeat("s ", 10), under: list[0].Name},
		{name: "no change to copy", keys: "y", under: list[0].Name, says: "needs a change"},
		{name: "copy", keys: strings.Repeat("down ", changes) + "y", under: list[changes].Name, shows: "Copied, if the terminal allows it"},
		{name: "copy alone", keys: "t", under: list[0].Name, shows: "rooftop diagnose --prometheus"},
		{name: "copy in groups", keys: "g y", view: viewGroups, says: "no server under the cursor"},
		{name: "a view by its number", keys: "2", view: viewGroups},
		{name: "the next view", keys: "tab tab", view: viewServer, under: list[0].Name},
		{name: "by name", keys: ": g r o u p s enter", view: viewGroups},
		{name: "quit", keys: "q", under: list[0].Name, quit: true},
		{name: "quit while typing", keys: "/ g ctrl+c", under: list[0].Name, quit: true},
		{name: "q while typing", keys: "/ q", under: list[0].Name, shows: "/ q"},
		{name: "q closes the help", keys: "? q", under: list[0].Name},
		{name: "another key", keys: "Z", under: list[0].Name, says: "it does nothing here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := opened(t, "40", 120, 30)
			cmd := press(m, c.keys)
			if m.Settings.View != c.view {
				t.Errorf("view %s, want %s", tabs()[m.Settings.View], tabs()[c.view])
			}
			if c.view != viewGroups && under(m) != c.under {
				t.Errorf("the cursor is on %q, want %q", under(m), c.under)
			}
			if !strings.Contains(m.Settings.Notice.Text, c.says) || c.says == "" && m.Settings.Notice.Text != "" {
				t.Errorf("says %q, want %q in it", m.Settings.Notice.Text, c.says)
			}
			if !strings.Contains(words(text(m)), c.shows) {
				t.Errorf("no %q in\n%s", c.shows, text(m))
			}
			if screentest.IsQuit(cmd) != c.quit {
				t.Errorf("quits %v, want %v", screentest.IsQuit(cmd), c.quit)
			}
		})
	}
}

// TestReadsAgain presses m.
func TestReadsAgain(t *testing.T) {
	m, f := opened(t, "40", 80, 24)
	press(m, "m")
	if f.again != 1 || !strings.Contains(m.Settings.Notice.Text, "Reading again") {
		t.Errorf("%d readings, says %q", f.again, m.Settings.Notice.Text)
	}
	f.set(named(t, "reading"))
	m.Pull()
	press(m, "m")
	if f.again != 1 || !strings.Contains(m.Settings.Notice.Text, "already in progress") {
		t.Errorf("%d readings, says %q", f.again, m.Settings.Notice.Text)
	}
}

// TestMouse scrolls, chooses and opens rows by mouse.
func TestMouse(t *testing.T) {
	m, f := opened(t, "1000", 120, 30)
	list := f.l.Servers
	wheel := func(b tea.MouseButton) { m.Update(tea.MouseWheelMsg{X: 10, Y: 12, Button: b}); m.View() }
	click := func(y int) { m.Update(tea.MouseClickMsg{X: 10, Y: y, Button: tea.MouseLeft}); m.View() }
	wheel(tea.MouseWheelDown)
	wheel(tea.MouseWheelDown)
	wheel(tea.MouseWheelUp)
	if under(m) != list[3].Name {
		t.Errorf("after the wheel the cursor is on %s, want %s", under(m), list[3].Name)
	}
	// A click chooses the server whose name is on the line, also in a list that is scrolled.
	press(m, "pgdown pgdown")
	lines := strings.Split(text(m), "\n")
	y := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  gpu-") }) + 3
	name := strings.Fields(lines[y])[0]
	click(y)
	if under(m) != name {
		t.Errorf("a click on %s chooses %s", name, under(m))
	}
	click(y)
	if m.Settings.View != viewServer || under(m) != name {
		t.Errorf("a second click shows view %d of %s", m.Settings.View, under(m))
	}
	click(1) // the first tab
	if m.Settings.View != viewServer && m.Settings.View != viewServers {
		t.Errorf("view %d", m.Settings.View)
	}
	m.Update(tea.MouseClickMsg{X: 2, Y: 1, Button: tea.MouseLeft})
	if m.Settings.View != viewServers {
		t.Errorf("a click on the first tab shows view %d", m.Settings.View)
	}
}

// TestTheCursorStays reads again: the cursor stays on its server, wherever that is now, and near where it was
// if the server is gone.
func TestTheCursorStays(t *testing.T) {
	m, f := opened(t, "40", 120, 30)
	press(m, "down down down")
	name := under(m)
	other := *f.l
	other.Servers = slices.Clone(f.l.Servers)
	slices.Reverse(other.Servers)
	f.set(&other)
	m.Pull()
	if text(m); under(m) != name {
		t.Errorf("after another order the cursor is on %s, want %s", under(m), name)
	}
	gone := other
	gone.Servers = slices.DeleteFunc(slices.Clone(other.Servers), func(s fleet.Server) bool { return s.Name == name })
	f.set(&gone)
	m.Pull()
	if text(m); under(m) != gone.Servers[3].Name {
		t.Errorf("without its server the cursor is on %s, want %s", under(m), gone.Servers[3].Name)
	}
	gone.Servers = gone.Servers[:1]
	if text(m); under(m) != gone.Servers[0].Name {
		t.Errorf("of one server the cursor is on %s", under(m))
	}
}

// TestFreezes freezes the display while readings continue.
func TestFreezes(t *testing.T) {
	m, f := opened(t, "40", 80, 24)
	press(m, "space")
	before := m.View().Content
	f.set(named(t, "3"))
	m.Update(frame.Tick{Beat: m.Beat})
	if m.View().Content != before || !strings.Contains(ansi.Strip(before), "FROZEN") {
		t.Errorf("the display continued, or does not say that it is frozen:\n%s", text(m))
	}
	press(m, "esc")
	if m.shown != f.l {
		t.Error("the display does not continue")
	}
}

// TestStaleIsMarked checks that nothing stale looks fresh: the age is on every frame, and a reading that failed
// is reported and mutes the rows.
func TestStaleIsMarked(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 30}, {200, 60}, {60, 16}} {
		for state, want := range map[string][]string{
			"40": {"12 s"}, "reading": {"12 s old"}, "failed": {"1 min 10 s old", "OLD", "Showing the last values, 1 min 10 s old"}, "never": {"No server was read", "connection refused"},
		} {
			m, _ := opened(t, state, size[0], size[1])
			for _, w := range want {
				if !strings.Contains(words(text(m)), w) {
					t.Errorf("%s at %v has no %q:\n%s", state, size, w, text(m))
				}
			}
		}
	}
}

// A Prometheus that does not answer shows as a reading that takes long.
func TestSlowReadingsAreShown(t *testing.T) {
	slow := liveOf(3)
	slow.Reading, slow.Began, slow.Now = true, slow.Now, slow.Now+20*time.Second
	m, f := opened(t, "3", 80, 24)
	f.set(slow)
	m.Pull()
	if !strings.Contains(text(m), "reading for 20 s, list is 32 s old") {
		t.Errorf("a slow reading:\n%s", text(m))
	}
}

// TestKeysAreOneEach finds keys that two bindings share, and bindings without a place in the help or without an
// action.
func TestKeysAreOneEach(t *testing.T) {
	k := boundKeys()
	owner := map[string]string{}
	bound := 0
	for _, g := range k.groups() {
		for _, b := range g.Keys {
			bound++
			for _, name := range b.Keys() {
				if other, ok := owner[name]; ok {
					t.Errorf("%s is %q and %q", name, other, b.Help().Desc)
				}
				owner[name] = b.Help().Desc
			}
		}
	}
	m, _ := opened(t, "40", 80, 24)
	if got := len(m.actions()) + 2; got != bound { // two are looked at before
		t.Errorf("%d keys do something, the help has %d", got, bound)
	}
}

// TestHoldsItsFrame draws every state in every view at various sizes, with and without a filter.
func TestHoldsItsFrame(t *testing.T) {
	for name, l := range states() {
		for _, w := range []int{20, 36, 59, 60, 80, 100, 170, 240} {
			for _, h := range []int{6, 10, 15, 16, 17, 24, 60} {
				for v := range numViews {
					u := &frame.Settings{Glyphs: cell.Unicode(), View: v, Over: map[bool]frame.Overlay{true: frame.OverlayHelp}[h == 17]}
					if (w+h)%2 == 0 {
						u.Glyphs, u.Filter = cell.ASCII(), "gpu-00"
					}
					u.Scroll[v] = 7 * (h % 3)
					set := &choices{order: fleet.Order(w % 9), by: fleet.By(h) % fleet.NumBys}
					if w%4 == 0 {
						set.within = &within{by: fleet.ByDeployment, name: "vllm-chat"}
					}
					set.at[v] = cursor{true, "gpu-007:8000", h}
					c, e := drawScreen(l, u, set, w, h)
					err := screentest.CheckFrame(c.Plain(), w, h)
					if err != nil || e.Lines < 0 || e.First > max(0, e.Lines-e.Page) {
						t.Fatalf("%s, %s at %dx%d: %v, %+v\n%s", name, tabs()[v], w, h, err, e, c.Plain())
					}
				}
			}
		}
	}
}

// TestHostileFleets draws fleets that are inconsistent, partly empty, and full of invalid numbers and names.
func TestHostileFleets(t *testing.T) {
	base := *liveOf(12)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 8))
		sp := &screentest.Spoiler{Rand: r, Odds: screentest.Pick(r, 3, 10, 40, 200)}
		l := base
		l.Servers = nil
		for i := range base.Servers {
			s := base.Servers[i]
			s.Name = sp.Spoil(reflect.ValueOf(s.Name)).String()
			s.Unread, s.Deployment = sp.Spoil(reflect.ValueOf(s.Unread)).String(), sp.Spoil(reflect.ValueOf(s.Deployment)).String()
			s.Measured = sp.Spoil(reflect.ValueOf(s.Measured)).Interface().([]engine.NamedQuantity)
			l.Servers = append(l.Servers, s)
		}
		l.Failed = sp.Spoil(reflect.ValueOf(l.Failed)).String()
		w, h := screentest.Pick(r, 20, 36, 60, 80, 101, 120, 200), screentest.Pick(r, 6, 16, 24, 31, 60)
		for v := range numViews {
			u := &frame.Settings{Glyphs: screentest.Pick(r, cell.Unicode(), cell.ASCII()), View: v, Filter: screentest.Pick(r, "", "gpu")}
			u.Scroll[v] = screentest.Pick(r, 0, 3, frame.ToEnd)
			c, _ := drawScreen(&l, u, &choices{order: fleet.Order(r.IntN(9))}, w, h)
			if err := screentest.CheckFrame(c.Plain(), w, h); err != nil {
				t.Fatalf("seed %d, view %s at %dx%d: %v\n%s", seed, tabs()[v], w, h, err, c.Plain())
			}
		}
	}
}
