package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// TestEveryKeyAnswers presses each key in each view and each overlay: it changes the frame, sends a
// command, or the footer says why it does nothing.
func TestEveryKeyAnswers(t *testing.T) {
	names := []string{"left", "right", "up", "down", "pgup", "pgdown", "home", "end", "esc", "enter", "space", "backspace"}
	for c := '!'; c <= '~'; c++ {
		names = append(names, string(c))
	}
	s := withHands(waitingSnapshot())
	for _, before := range []string{"1", "2", "3", "4", "5", "6", "1 ?", "1 a"} {
		for _, name := range names {
			m, _, controls := testModel(s, frame.Options{})
			press(m, before)
			m.Settings.Notice = frame.Remark{}
			sent, was := len(controls.done), m.Text
			if cmd := press(m, name); m.Text == was && len(controls.done) == sent && cmd == nil && name != before {
				t.Errorf("after %s, %s does nothing and says nothing", before, name)
			}
		}
	}
}

func TestPalette(t *testing.T) {
	for _, c := range []struct {
		keys string
		view frame.ViewID
		over frame.Overlay
		says string
	}{
		{": g p u enter", viewMachine, frame.OverlayNone, ""},
		{": L O G enter", viewLog, frame.OverlayNone, ""},
		{": a p p l y enter", viewNow, frame.OverlayAsk, ""},
		{": h e l p enter", viewNow, frame.OverlayHelp, ""},
		{": x y z enter", viewNow, frame.OverlayNone, "No view or action is named xyz"},
		{": g p u esc", viewNow, frame.OverlayNone, ""},
		{": g x backspace p u enter", viewMachine, frame.OverlayNone, ""},
		{": s k i tab enter", viewNow, frame.OverlayNone, "undone"},
		{"2 : enter", viewRoofline, frame.OverlayNone, ""},
		{"2 : tab tab enter", viewRoofline, frame.OverlayNone, ""},
	} {
		s := withHands(waitingSnapshot())
		s.Can[loop.CommandUnskip] = loop.Availability{OK: true}
		m, _, _ := testModel(s, frame.Options{})
		press(m, c.keys)
		if m.Settings.View != c.view || m.Settings.Over != c.over || !strings.Contains(m.Settings.Notice.Text, c.says) || m.Settings.Palette != nil {
			t.Errorf("%s: view %d, overlay %d, says %q", c.keys, m.Settings.View, m.Settings.Over, m.Settings.Notice.Text)
		}
	}
}

// TestMouse clicks on each tab where it is drawn, and scrolls.
func TestMouse(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), frame.Options{})
	for v, name := range viewNames() {
		x := strings.Index(strings.Split(ansi.Strip(m.Text), "\n")[1], name)
		m.Update(tea.MouseClickMsg{X: x, Y: 1, Button: tea.MouseLeft})
		m.View()
		if m.Settings.View != frame.ViewID(v) {
			t.Errorf("a click on %s shows view %d", name, m.Settings.View)
		}
	}
	press(m, "4")
	m.Update(tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if m.Settings.Scroll[viewEvidence] != 3 {
		t.Errorf("the wheel scrolls to line %d", m.Settings.Scroll[viewEvidence])
	}
	if got := m.View().MouseMode; got != tea.MouseModeCellMotion {
		t.Errorf("mouse mode %d", got)
	}
	press(m, "y")
	if got := m.View().MouseMode; got != tea.MouseModeNone {
		t.Error("the terminal cannot select the command that is shown to be copied")
	}
	press(m, "esc M")
	if got := m.View().MouseMode; got != tea.MouseModeNone {
		t.Error("M leaves the mouse on")
	}
	m, _, _ = testModel(waitingSnapshot(), frame.Options{NoMouse: true})
	if got := m.View().MouseMode; got != tea.MouseModeNone {
		t.Error("the option leaves the mouse on")
	}
}

// TestFindInEveryView types a text in each view: lists keep what matches, drawings mark it.
func TestFindInEveryView(t *testing.T) {
	for v, text := range map[frame.ViewID]string{viewNow: "achievable", viewRoofline: "slots", viewHistory: "change", viewEvidence: "slot", viewMachine: "memory", viewLog: "recommended"} {
		m, _, _ := testModel(waitingSnapshot(), frame.Options{Color: "always"})
		press(m, fmt.Sprint(v+1))
		m.Settings.Filter, m.Changed = text, true
		m.View()
		if got := strings.ToLower(ansi.Strip(m.Text)); !strings.Contains(got, text) {
			t.Errorf("view %d: %q is not on the screen\n%s", v+1, text, got)
		}
		marked := strings.Count(m.Text, "\x1b[7m") // the tab is the first
		if marked < 2 {
			t.Errorf("view %d: %q is not marked", v+1, text)
		}
	}
}

// TestLimitsInCharts checks that an objective is drawn where it fits the scale.
func TestLimitsInCharts(t *testing.T) {
	s := waitingSnapshot()
	s.Objectives = []verdict.Objective{{Metric: verdict.MetricITL, Quantile: 0.99, Limit: 0.03}, {Metric: verdict.MetricTTFT, Quantile: 0.5, Limit: 1}}
	got := drawn(history, s, plainLook(), 200, 55)
	if !strings.Contains(got, "limit 30.0 ms") || !strings.Contains(got, "┄┄┄") {
		t.Errorf("no limit of ITL\n%s", got)
	}
	if strings.Contains(got, "limit 1.00 s") {
		t.Error("an objective on the median is drawn in the chart of p99")
	}
}

func TestRanksAndFailures(t *testing.T) {
	s := waitingSnapshot()
	p := *s.Page
	rank := func(name string, running, waiting, kv float64) engine.Rank {
		r := engine.Rank{Name: name, Generation: stat.Some(1)}
		r.Gauges[engine.GaugeRunning], r.Gauges[engine.GaugeWaiting], r.Gauges[engine.GaugeKVUsage] = stat.Some(running), stat.Some(waiting), stat.Some(kv)
		return r
	}
	p.Ranks = []engine.Rank{rank("0", 12, 18, 0.5), {Name: "1", Generation: stat.Some(0)}}
	p.Gauges[engine.GaugeRunning], p.Gauges[engine.GaugeWaiting] = stat.Some(12), stat.Some(18)
	s.Page = &p
	d := *s.Live
	d.Measured = slices.Insert(slices.Clone(d.Measured), 0, engine.NamedQuantity{Name: "http_5xx_per_s", Quantity: engine.Quantity{Value: stat.Some(0.4), Unit: "req/s"}})
	s.Live = &d
	for _, size := range [][2]int{{80, 44}, {120, 40}, {200, 56}} {
		got := words(drawn(machine, s, plainLook(), size[0], size[1]))
		for _, want := range []string{"2 data-parallel ranks", "0 12 18 50 % 100 %", "1 0 0 0"} {
			if !strings.Contains(got, want) {
				t.Errorf("%v: %q is missing in\n%s", size, want, got)
			}
		}
		if got := words(drawn(now, s, plainLook(), size[0], size[1])); !strings.Contains(got, "0.400 req/s failed (5xx)") {
			t.Errorf("%v: no failures in\n%s", size, got)
		}
	}
	if got := words(drawn(now, s, plainLook(), 200, 56)); !strings.Contains(got, "Data-parallel ranks") {
		t.Errorf("the wide view has no ranks\n%s", got)
	}
}

// TestWindowOfCharts checks that w shows the last minutes in the charts, and that left and right say what they are for.
func TestWindowOfCharts(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), frame.Options{})
	press(m, "3 left")
	if m.Settings.View != viewHistory || !strings.Contains(m.Settings.Notice.Text, "Only a recording") {
		t.Errorf("view %d, %q", m.Settings.View, m.Settings.Notice.Text)
	}
	whole := ansi.Strip(m.Text)
	press(m, "w")
	if m.Settings.Window != time.Minute || ansi.Strip(m.Text) == whole {
		t.Errorf("a window of %v", m.Settings.Window)
	}
	press(m, "w w w")
	if m.Settings.Window != 0 {
		t.Errorf("after all windows: %v", m.Settings.Window)
	}
}
