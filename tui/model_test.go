package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// TestCommands presses keys and checks the commands sent to the loop.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *loop.Snapshot
		keys string
		want []loop.Command
		over frame.Overlay
		quit bool
		says string // part of the notice
	}{
		{name: "apply asks", s: withHands(waitingSnapshot()), keys: "a", over: frame.OverlayAsk},
		{name: "enter is no", s: withHands(waitingSnapshot()), keys: "a enter"},
		{name: "n is no", s: withHands(waitingSnapshot()), keys: "a n"},
		{name: "esc is no", s: withHands(waitingSnapshot()), keys: "a esc"},
		{name: "another key is neither", s: withHands(waitingSnapshot()), keys: "a x space 3", over: frame.OverlayAsk},
		{name: "y is yes", s: withHands(waitingSnapshot()), keys: "a y", want: []loop.Command{loop.CommandApply}},
		{name: "tab and enter is yes", s: withHands(waitingSnapshot()), keys: "a tab enter", want: []loop.Command{loop.CommandApply}},
		{name: "tab twice is no", s: withHands(waitingSnapshot()), keys: "a tab tab enter"},
		{name: "no hands: shown to type", s: waitingSnapshot(), keys: "a", over: frame.OverlayText},
		{name: "apply while nothing is recommended", s: measuringSnapshot(), keys: "a", says: "A change is being measured."},
		{name: "revert answers the question", s: worseSnapshot(), keys: "r", want: []loop.Command{loop.CommandRevert}},
		{name: "continue answers the question", s: worseSnapshot(), keys: "c", want: []loop.Command{loop.CommandContinue}},
		{name: "continue without a question", s: waitingSnapshot(), keys: "c", says: "c: There is no question open."},
		{name: "skip, measure, pause", s: waitingSnapshot(), keys: "s m p", want: []loop.Command{loop.CommandSkip, loop.CommandRemeasure, loop.CommandPause}},
		{name: "quit", s: waitingSnapshot(), keys: "q", want: []loop.Command{loop.CommandQuit}, quit: true},
		{name: "quit in the middle asks", s: measuringSnapshot(), keys: "q", over: frame.OverlayAsk},
		{name: "quit in the middle, no", s: measuringSnapshot(), keys: "q q"},
		{name: "quit in the middle, yes", s: measuringSnapshot(), keys: "q y", want: []loop.Command{loop.CommandQuit}, quit: true},
		{name: "quit while worse asks", s: worseSnapshot(), keys: "q", over: frame.OverlayAsk},
		{name: "ctrl+c never asks", s: measuringSnapshot(), keys: "ctrl+c", want: []loop.Command{loop.CommandQuit}, quit: true},
		{name: "ctrl+c in a question", s: withHands(waitingSnapshot()), keys: "a ctrl+c", want: []loop.Command{loop.CommandQuit}, over: frame.OverlayAsk, quit: true},
		{name: "ctrl+c while typing", s: waitingSnapshot(), keys: "/ x ctrl+c", want: []loop.Command{loop.CommandQuit}, quit: true},
		{name: "letters while typing are text", s: withHands(waitingSnapshot()), keys: "/ a q p", says: ""},
		{name: "help opens and closes", s: waitingSnapshot(), keys: "? ?"},
		{name: "q closes the help", s: waitingSnapshot(), keys: "? q"},
		{name: "a digit leaves the help", s: waitingSnapshot(), keys: "? 3"},
		{name: "before the first snapshot", s: nil, keys: "m", says: "not begun"},
		{name: "quit before the first snapshot", s: nil, keys: "q", want: []loop.Command{loop.CommandQuit}, quit: true},
		{name: "advice for the clients is not a command", s: clientAdvice(), keys: "y", says: "no command to copy"},
		{name: "advice for the clients is not applied", s: clientAdvice(), keys: "a", says: "no flag of the server"},
		{name: "holds", s: countdownSnapshot(), keys: "x", want: []loop.Command{loop.CommandHold}, says: "Paused: no more changes until x is pressed again."},
		{name: "resumes", s: heldSnapshot(), keys: "x", want: []loop.Command{loop.CommandHold}, says: "Autopilot resumed."},
		{name: "a manual run is not paused", s: waitingSnapshot(), keys: "x", says: "x: This run is not automatic: --auto makes it so."},
		{name: "nothing to copy", s: lookingSnapshot(), keys: "y", says: "no command to copy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _, controls := testModel(c.s, frame.Options{})
			cmd := press(m, c.keys)
			if !slices.Equal(controls.done, c.want) {
				t.Errorf("sent %v, want %v", controls.done, c.want)
			}
			if m.Settings.Over != c.over {
				t.Errorf("overlay %d, want %d", m.Settings.Over, c.over)
			}
			if screentest.IsQuit(cmd) != c.quit {
				t.Errorf("quits %v, want %v", screentest.IsQuit(cmd), c.quit)
			}
			if !strings.Contains(m.Settings.Notice.Text, c.says) {
				t.Errorf("says %q, want %q in it", m.Settings.Notice.Text, c.says)
			}
		})
	}
}

func TestBusySessionIsSaid(t *testing.T) {
	m, _, controls := testModel(waitingSnapshot(), frame.Options{})
	controls.busy = true
	for _, key := range []string{"m", "e"} {
		press(m, key)
		if !strings.Contains(m.Settings.Notice.Text, "again") {
			t.Errorf("%s: says %q", key, m.Settings.Notice.Text)
		}
	}
}

// TestAnswersLookAgain checks that an answer about one change does not make another.
func TestAnswersLookAgain(t *testing.T) {
	for _, c := range []struct {
		key  string
		then func(s *loop.Snapshot)
	}{
		{"a", func(s *loop.Snapshot) {
			advice := *s.Advice
			advice.To = "64"
			s.Advice = &advice
		}},
		{"r", func(s *loop.Snapshot) { s.Iterations = append(s.Iterations, loop.Iteration{N: 3}) }},
	} {
		t.Run(c.key, func(t *testing.T) {
			m, feed, controls := testModel(withHands(waitingSnapshot()), frame.Options{})
			press(m, c.key)
			other := withHands(waitingSnapshot())
			other.Seq++
			c.then(other)
			feed.s = other
			m.Update(frame.Tick{Beat: m.Beat})
			press(m, "y")
			if len(controls.done) != 0 || !strings.Contains(m.Settings.Notice.Text, "a different one") {
				t.Errorf("sent %v and showed %q", controls.done, m.Settings.Notice.Text)
			}
		})
	}
}

// TestCopyDuringRevert checks that, while the run waits for the previous settings, the copied
// command is the one that restores them, never that of a change.
func TestCopyDuringRevert(t *testing.T) {
	s := revertingSnapshot()
	if got := commandOf(s); got != s.Kept || got == s.Launch {
		t.Errorf("%q, want %q", got, s.Kept)
	}
	s.Kept, s.Advice = "", &engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}, Launch: "vllm serve --max-num-seqs 64"}
	if got := commandOf(s); got != "" {
		t.Errorf("the previous command is unknown, but %q is given for it", got)
	}
	m, _, _ := testModel(s, frame.Options{})
	press(m, "y")
	if !strings.Contains(m.Settings.Notice.Text, "before the change is unknown") {
		t.Errorf("says %q", m.Settings.Notice.Text)
	}
}

func TestViewsAreChosen(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), frame.Options{})
	for _, c := range []struct {
		keys string
		want frame.ViewID
	}{{"3", viewHistory}, {"tab", viewEvidence}, {"shift+tab", viewHistory}, {"1", viewNow}, {"shift+tab", viewLog}, {"right", viewLog}, {"h", viewLog}, {"tab", viewNow}, {"/", viewNow}} {
		press(m, c.keys)
		if m.Settings.View != c.want {
			t.Errorf("after %s: view %d, want %d", c.keys, m.Settings.View, c.want)
		}
	}
}

func TestFilterIsTyped(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), frame.Options{})
	press(m, "/ space s l o t t backspace space space s a t ctrl+u s l o t")
	if m.Settings.Filter != "slot" || !m.Settings.Typing {
		t.Errorf("filter %q, typing %v", m.Settings.Filter, m.Settings.Typing)
	}
	press(m, "enter")
	if m.Settings.Filter != "slot" || m.Settings.Typing {
		t.Errorf("after enter: filter %q, typing %v", m.Settings.Filter, m.Settings.Typing)
	}
	press(m, "esc")
	if m.Settings.Filter != "" {
		t.Errorf("after esc: filter %q", m.Settings.Filter)
	}
	press(m, "/ x esc")
	if m.Settings.Filter != "" || m.Settings.Typing {
		t.Errorf("after esc while typing: filter %q, typing %v", m.Settings.Filter, m.Settings.Typing)
	}
	press(m, "/ space c o n c u r r e n c y space space s a t space")
	if m.Settings.Filter != "concurrency sat " {
		t.Errorf("with spaces: filter %q", m.Settings.Filter)
	}
	if text := plainFrame(m.shown, &m.Settings, 80, 24); !strings.Contains(text, "Concurrency saturation") {
		t.Errorf("a space at the end hides what matches:\n%s", text)
	}
	press(m, "esc /")
	m.Update(tea.PasteMsg{Content: "kv\n pressure" + strings.Repeat("x", 99)})
	m.Update(tea.PasteMsg{Content: "kv\n pressure"})
	if m.Settings.Filter != "kv pressure" {
		t.Errorf("after a paste: filter %q", m.Settings.Filter)
	}
}

// TestFrozen freezes the display while the run continues, and announces a question behind it.
func TestFrozen(t *testing.T) {
	m, feed, controls := testModel(waitingSnapshot(), frame.Options{})
	press(m, "space")
	before := m.View().Content
	next := worseSnapshot()
	feed.s = next
	m.Update(frame.Tick{Beat: m.Beat})
	if m.shown.Seq == next.Seq {
		t.Error("the display went on")
	}
	if !strings.Contains(m.Settings.Notice.Text, "question waits") || m.View().Content == before {
		t.Errorf("says %q", m.Settings.Notice.Text)
	}
	press(m, "r")
	if !slices.Equal(controls.done, []loop.Command{loop.CommandRevert}) {
		t.Errorf("sent %v: commands apply to the present state, not to the shown one", controls.done)
	}
	press(m, "space")
	if m.shown != next {
		t.Error("the display does not continue")
	}
}

func TestNoticesGo(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), frame.Options{})
	press(m, "c")
	for range int(frame.NoticeFor/m.Refresh()) - 1 {
		m.Update(frame.Tick{Beat: m.Beat})
	}
	if m.Settings.Notice.Text == "" {
		t.Error("gone too early")
	}
	m.Update(frame.Tick{Beat: m.Beat})
	if m.Settings.Notice.Text != "" {
		t.Error("still there")
	}
}

func TestExportIsHeardOf(t *testing.T) {
	m, feed, controls := testModel(waitingSnapshot(), frame.Options{})
	press(m, "e")
	next := waitingSnapshot()
	next.Seq++
	next.Journal = append(next.Journal, loop.Entry{Seq: 98, Text: "skipped: --max-num-seqs"}, loop.Entry{Seq: 99, Noted: true, Text: "report written to rooftop-report.html"})
	feed.s = next
	m.Update(frame.Tick{Beat: m.Beat})
	if controls.exports != 1 || m.Settings.Notice.Text != "report written to rooftop-report.html" {
		t.Errorf("%d exports, says %q", controls.exports, m.Settings.Notice.Text)
	}
}

// TestFramesAreDrawnOnChange counts frames: the same snapshot, further ticks and the same size draw
// nothing.
func TestFramesAreDrawnOnChange(t *testing.T) {
	m, feed, _ := testModel(waitingSnapshot(), frame.Options{})
	steps := []struct {
		name string
		msg  tea.Msg
		want int
	}{
		{"a tick without news", frame.Tick{Beat: m.Beat}, 0},
		{"a tick of another chain", frame.Tick{Beat: m.Beat + 1}, 0},
		{"the same size", tea.WindowSizeMsg{Width: 80, Height: 24}, 0},
		{"another size", tea.WindowSizeMsg{Width: 81, Height: 24}, 1},
		{"a key", screentest.KeyPress("2"), 1},
	}
	for _, s := range steps {
		before := m.Drawn
		m.Update(s.msg)
		m.View()
		m.View()
		if got := m.Drawn - before; got != s.want {
			t.Errorf("%s: %d frames, want %d", s.name, got, s.want)
		}
	}
	news := []struct {
		what string
		does func(s *loop.Snapshot)
		want int
	}{
		{"the next poll", func(s *loop.Snapshot) { s.Now += 250 * time.Millisecond }, 0},
		{"a window", func(s *loop.Snapshot) { s.Points = append(slices.Clip(s.Points), loop.Point{T: s.Now}) }, 1},
		{"a second", func(s *loop.Snapshot) { s.Now += time.Second }, 0},
		{"as long as a window takes, without one", func(s *loop.Snapshot) { s.Now += 2 * time.Second }, 1},
		{"another phase", func(s *loop.Snapshot) { s.Phase = loop.PhaseMeasuring }, 1},
		{"a second of a phase with a countdown", func(s *loop.Snapshot) { s.Now += time.Second }, 1},
		{"an illness of the server", func(s *loop.Snapshot) { s.Condition.State = engine.Hung }, 1},
		{"an entry of the journal", func(s *loop.Snapshot) { s.Journal = append(slices.Clip(s.Journal), loop.Entry{Seq: 1 << 20}) }, 1},
	}
	for _, n := range news {
		next := *feed.s
		next.Seq++
		n.does(&next)
		feed.s = &next
		before := m.Drawn
		m.Update(frame.Tick{Beat: m.Beat})
		m.View()
		if got := m.Drawn - before; got != n.want {
			t.Errorf("%s: %d frames, want %d", n.what, got, n.want)
		}
	}
}

func TestTicksKeepOneChain(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), frame.Options{})
	old := m.Beat
	m.Update(tea.ResumeMsg{})
	if _, cmd := m.Update(frame.Tick{Beat: old}); cmd != nil {
		t.Error("a tick from before the suspension continues")
	}
	if _, cmd := m.Update(frame.Tick{Beat: m.Beat}); cmd == nil {
		t.Error("the new chain ends")
	}
}

// TestScrollStaysInside presses more keys than there are lines.
func TestScrollStaysInside(t *testing.T) {
	m, _, _ := testModel(longSnapshot(), frame.Options{})
	for _, v := range []frame.ViewID{viewEvidence, viewLog} {
		for _, keys := range []string{"G", "pgdown pgdown", "down"} {
			press(m, string('1'+rune(v))+" "+keys)
			if last := max(0, m.Extent.Lines-m.Extent.Page); m.Extent.First != last || last == 0 {
				t.Errorf("view %d after %s: line %d, want %d", v, keys, m.Extent.First, last)
			}
		}
	}
	press(m, "g up")
	if m.Settings.Scroll[viewLog] != 0 {
		t.Errorf("line %d, want 0", m.Settings.Scroll[viewLog])
	}
	press(m, "? G")
	if m.Settings.Down == 0 || m.Settings.Scroll[viewLog] != 0 {
		t.Errorf("help at %d, log at %d", m.Settings.Down, m.Settings.Scroll[viewLog])
	}
}

// TestLogFollows checks that the log shows the latest entry until the user scrolls up.
func TestLogFollows(t *testing.T) {
	m, feed, _ := testModel(longSnapshot(), frame.Options{})
	press(m, "6")
	grow := func() {
		next := *feed.s
		next.Seq++
		next.Journal = append(slices.Clone(next.Journal), loop.Entry{Seq: 1000 + len(next.Journal), T: next.Now, Text: "one more"})
		feed.s = &next
		m.Update(frame.Tick{Beat: m.Beat})
		m.View()
	}
	last := func() bool { return m.Extent.First == m.Extent.Lines-m.Extent.Page }
	grow()
	if !last() {
		t.Error("does not follow")
	}
	press(m, "up")
	grow()
	if last() {
		t.Error("follows although it was scrolled up")
	}
	press(m, "G")
	grow()
	if !last() {
		t.Error("does not follow again")
	}
}

func TestEnterShowsTheEvidence(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), frame.Options{})
	press(m, "enter")
	if m.Settings.View != viewEvidence || m.Settings.Filter != string(engine.ConcurrencySaturation) {
		t.Errorf("view %d, filter %q", m.Settings.View, m.Settings.Filter)
	}
}

func TestThemeFollowsTheTerminal(t *testing.T) {
	env := func(name string) (string, bool) { return "xterm-direct", name == "TERM" }
	m, _, _ := testModel(waitingSnapshot(), frame.Options{Env: env})
	unknown := m.View().Content
	m.Update(tea.BackgroundColorMsg{Color: lipgloss.Color("#fdf6e3")})
	light := m.View().Content
	m.Update(tea.BackgroundColorMsg{Color: lipgloss.Color("#002b36")})
	dark := m.View().Content
	if unknown == light || light == dark {
		t.Error("the looks are the same")
	}
	if ansi.Strip(light) != ansi.Strip(dark) {
		t.Error("the words are others")
	}
	m, _, _ = testModel(waitingSnapshot(), frame.Options{Env: env, Theme: "light"})
	m.Update(tea.BackgroundColorMsg{Color: lipgloss.Color("#002b36")})
	if m.View().Content != light {
		t.Error("what was asked for does not stay")
	}
}
