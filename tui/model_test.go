package tui

import (
	"slices"
	"strings"
	"testing"

	"charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine"
)

// TestCommands presses keys and looks at what the loop was told.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *engine.Snapshot
		keys string
		want []engine.Command
		over overlay
		quit bool
		says string // part of the notice
	}{
		{name: "apply asks", s: withHands(waitingSnapshot()), keys: "a", over: overlayAsk},
		{name: "enter is no", s: withHands(waitingSnapshot()), keys: "a enter"},
		{name: "n is no", s: withHands(waitingSnapshot()), keys: "a n"},
		{name: "esc is no", s: withHands(waitingSnapshot()), keys: "a esc"},
		{name: "another key is neither", s: withHands(waitingSnapshot()), keys: "a x space 3", over: overlayAsk},
		{name: "y is yes", s: withHands(waitingSnapshot()), keys: "a y", want: []engine.Command{engine.CommandApply}},
		{name: "tab and enter is yes", s: withHands(waitingSnapshot()), keys: "a tab enter", want: []engine.Command{engine.CommandApply}},
		{name: "tab twice is no", s: withHands(waitingSnapshot()), keys: "a tab tab enter"},
		{name: "no hands: shown to type", s: waitingSnapshot(), keys: "a", over: overlayText},
		{name: "apply while nothing is recommended", s: measuringSnapshot(), keys: "a", says: "A change is being measured."},
		{name: "revert answers the question", s: worseSnapshot(), keys: "r", want: []engine.Command{engine.CommandRevert}},
		{name: "continue answers the question", s: worseSnapshot(), keys: "c", want: []engine.Command{engine.CommandContinue}},
		{name: "continue without a question", s: waitingSnapshot(), keys: "c", says: "c: There is no question open."},
		{name: "skip, measure, pause", s: waitingSnapshot(), keys: "s m p", want: []engine.Command{engine.CommandSkip, engine.CommandRemeasure, engine.CommandPause}},
		{name: "quit", s: waitingSnapshot(), keys: "q", want: []engine.Command{engine.CommandQuit}, quit: true},
		{name: "quit in the middle asks", s: measuringSnapshot(), keys: "q", over: overlayAsk},
		{name: "quit in the middle, no", s: measuringSnapshot(), keys: "q q"},
		{name: "quit in the middle, yes", s: measuringSnapshot(), keys: "q y", want: []engine.Command{engine.CommandQuit}, quit: true},
		{name: "quit while worse asks", s: worseSnapshot(), keys: "q", over: overlayAsk},
		{name: "ctrl+c never asks", s: measuringSnapshot(), keys: "ctrl+c", want: []engine.Command{engine.CommandQuit}, quit: true},
		{name: "ctrl+c in a question", s: withHands(waitingSnapshot()), keys: "a ctrl+c", want: []engine.Command{engine.CommandQuit}, over: overlayAsk, quit: true},
		{name: "ctrl+c while typing", s: waitingSnapshot(), keys: "/ x ctrl+c", want: []engine.Command{engine.CommandQuit}, quit: true},
		{name: "letters while typing are text", s: withHands(waitingSnapshot()), keys: "/ a q p", says: ""},
		{name: "help opens and closes", s: waitingSnapshot(), keys: "? ?"},
		{name: "q closes the help", s: waitingSnapshot(), keys: "? q"},
		{name: "a digit leaves the help", s: waitingSnapshot(), keys: "? 3"},
		{name: "before the first snapshot", s: nil, keys: "m", says: "not begun"},
		{name: "quit before the first snapshot", s: nil, keys: "q", want: []engine.Command{engine.CommandQuit}, quit: true},
		{name: "advice for the clients is no command", s: clientAdvice(), keys: "y", says: "no command to copy"},
		{name: "advice for the clients is not applied", s: clientAdvice(), keys: "a", says: "no flag of the server"},
		{name: "nothing to copy", s: lookingSnapshot(), keys: "y", says: "no command to copy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _, controls := testModel(c.s, Options{})
			cmd := press(m, c.keys)
			if !slices.Equal(controls.done, c.want) {
				t.Errorf("told %v, want %v", controls.done, c.want)
			}
			if m.look.over != c.over {
				t.Errorf("overlay %d, want %d", m.look.over, c.over)
			}
			if isQuit(cmd) != c.quit {
				t.Errorf("quits %v, want %v", isQuit(cmd), c.quit)
			}
			if !strings.Contains(m.look.notice.text, c.says) {
				t.Errorf("says %q, want %q in it", m.look.notice.text, c.says)
			}
		})
	}
}

func TestBusySessionIsSaid(t *testing.T) {
	m, _, controls := testModel(waitingSnapshot(), Options{})
	controls.busy = true
	for _, key := range []string{"m", "e"} {
		press(m, key)
		if !strings.Contains(m.look.notice.text, "again") {
			t.Errorf("%s: says %q", key, m.look.notice.text)
		}
	}
}

// TestAnswersLookAgain asks about one change; the answer does not make another.
func TestAnswersLookAgain(t *testing.T) {
	for _, c := range []struct {
		key  string
		then func(s *engine.Snapshot)
	}{
		{"a", func(s *engine.Snapshot) {
			advice := *s.Advice
			advice.To = "64"
			s.Advice = &advice
		}},
		{"r", func(s *engine.Snapshot) { s.Iterations = append(s.Iterations, engine.Iteration{N: 3}) }},
	} {
		t.Run(c.key, func(t *testing.T) {
			m, feed, controls := testModel(withHands(waitingSnapshot()), Options{})
			press(m, c.key)
			other := withHands(waitingSnapshot())
			other.Seq++
			c.then(other)
			feed.s = other
			m.Update(tick{m.beat})
			press(m, "y")
			if len(controls.done) != 0 || !strings.Contains(m.look.notice.text, "another one") {
				t.Errorf("told %v and said %q", controls.done, m.look.notice.text)
			}
		})
	}
}

// TestTheWayBackIsThatOfWhatIsKept copies the command while the old settings are
// waited for: it is never that of a change.
func TestTheWayBackIsThatOfWhatIsKept(t *testing.T) {
	s := revertingSnapshot()
	if got := commandOf(s); got != s.Kept || got == s.Launch {
		t.Errorf("%q, want %q", got, s.Kept)
	}
	s.Kept, s.Advice = "", &engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}, Launch: "vllm serve --max-num-seqs 64"}
	if got := commandOf(s); got != "" {
		t.Errorf("the way back is not known, and %q is given for it", got)
	}
	m, _, _ := testModel(s, Options{})
	press(m, "y")
	if !strings.Contains(m.look.notice.text, "from before the change is not known") {
		t.Errorf("says %q", m.look.notice.text)
	}
}

func TestViewsAreChosen(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), Options{})
	for _, c := range []struct {
		keys string
		want viewID
	}{{"3", viewHistory}, {"tab", viewEvidence}, {"shift+tab", viewHistory}, {"1", viewNow}, {"shift+tab", viewLog}, {"right", viewNow}, {"h", viewLog}, {"/", viewEvidence}} {
		press(m, c.keys)
		if m.look.view != c.want {
			t.Errorf("after %s: view %d, want %d", c.keys, m.look.view, c.want)
		}
	}
}

func TestFilterIsTyped(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), Options{})
	press(m, "/ space s e a t t backspace space space s a t ctrl+u s e a t")
	if m.look.filter != "seat" || !m.look.typing {
		t.Errorf("filter %q, typing %v", m.look.filter, m.look.typing)
	}
	press(m, "enter")
	if m.look.filter != "seat" || m.look.typing {
		t.Errorf("after enter: filter %q, typing %v", m.look.filter, m.look.typing)
	}
	press(m, "esc")
	if m.look.filter != "" {
		t.Errorf("after esc: filter %q", m.look.filter)
	}
	press(m, "/ x esc")
	if m.look.filter != "" || m.look.typing {
		t.Errorf("after esc while typing: filter %q, typing %v", m.look.filter, m.look.typing)
	}
	press(m, "/ space s e a t space space s a t space")
	if m.look.filter != "seat sat " {
		t.Errorf("with spaces: filter %q", m.look.filter)
	}
	if text := plainFrame(m.shown, &m.look, 80, 24); !strings.Contains(text, "Seat saturation") {
		t.Errorf("a space at the end hides what matches:\n%s", text)
	}
	press(m, "esc /")
	m.Update(tea.PasteMsg{Content: "kv\n pressure" + strings.Repeat("x", 99)})
	m.Update(tea.PasteMsg{Content: "kv\n pressure"})
	if m.look.filter != "kv pressure" {
		t.Errorf("after a paste: filter %q", m.look.filter)
	}
}

// TestFrozen holds the display while the run goes on, and says when a question
// waits behind it.
func TestFrozen(t *testing.T) {
	m, feed, controls := testModel(waitingSnapshot(), Options{})
	press(m, "space")
	before := m.View().Content
	next := worseSnapshot()
	feed.s = next
	m.Update(tick{m.beat})
	if m.shown.Seq == next.Seq {
		t.Error("the display went on")
	}
	if !strings.Contains(m.look.notice.text, "question waits") || m.View().Content == before {
		t.Errorf("says %q", m.look.notice.text)
	}
	press(m, "r")
	if !slices.Equal(controls.done, []engine.Command{engine.CommandRevert}) {
		t.Errorf("told %v: commands are for what is, not for what is shown", controls.done)
	}
	press(m, "space")
	if m.shown != next {
		t.Error("the display does not go on")
	}
}

func TestNoticesGo(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), Options{})
	press(m, "c")
	for range int(noticeFor/m.refresh()) - 1 {
		m.Update(tick{m.beat})
	}
	if m.look.notice.text == "" {
		t.Error("gone too early")
	}
	m.Update(tick{m.beat})
	if m.look.notice.text != "" {
		t.Error("still there")
	}
}

func TestExportIsHeardOf(t *testing.T) {
	m, feed, controls := testModel(waitingSnapshot(), Options{})
	press(m, "e")
	next := waitingSnapshot()
	next.Seq++
	next.Journal = append(next.Journal, engine.Entry{Seq: 98, Text: "skipped: --max-num-seqs"}, engine.Entry{Seq: 99, Noted: true, Text: "report written to rooftop-report.html"})
	feed.s = next
	m.Update(tick{m.beat})
	if controls.exports != 1 || m.look.notice.text != "report written to rooftop-report.html" {
		t.Errorf("%d exports, says %q", controls.exports, m.look.notice.text)
	}
}

// TestFramesAreDrawnOnChange counts frames: the same snapshot, other ticks and the
// same size draw nothing.
func TestFramesAreDrawnOnChange(t *testing.T) {
	m, feed, _ := testModel(waitingSnapshot(), Options{})
	steps := []struct {
		name string
		msg  tea.Msg
		want int
	}{
		{"a tick without news", tick{m.beat}, 0},
		{"a tick of another chain", tick{m.beat + 1}, 0},
		{"the same size", tea.WindowSizeMsg{Width: 80, Height: 24}, 0},
		{"another size", tea.WindowSizeMsg{Width: 81, Height: 24}, 1},
		{"a key", keyPress("2"), 1},
	}
	for _, s := range steps {
		before := m.drawn
		m.Update(s.msg)
		m.View()
		m.View()
		if got := m.drawn - before; got != s.want {
			t.Errorf("%s: %d frames, want %d", s.name, got, s.want)
		}
	}
	next := *feed.s
	next.Seq++
	feed.s = &next
	before := m.drawn
	m.Update(tick{m.beat})
	m.View()
	if m.drawn != before+1 {
		t.Error("a new snapshot drew nothing")
	}
}

// TestResizeStorm sends a hundred sizes; one frame is drawn, at the last.
func TestResizeStorm(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), Options{})
	before := m.drawn
	for i := range 100 {
		m.Update(tea.WindowSizeMsg{Width: 20 + i, Height: 6 + i%40})
	}
	if m.drawn != before {
		t.Errorf("%d frames while it lasted", m.drawn-before)
	}
	m.View()
	if err := holds(trimLines(ansi.Strip(m.text)), 119, 6+99%40); err != nil {
		t.Error(err)
	}
}

func TestTicksKeepOneChain(t *testing.T) {
	m, _, _ := testModel(waitingSnapshot(), Options{})
	old := m.beat
	m.Update(tea.ResumeMsg{})
	if _, cmd := m.Update(tick{old}); cmd != nil {
		t.Error("a tick from before the suspension goes on")
	}
	if _, cmd := m.Update(tick{m.beat}); cmd == nil {
		t.Error("the new chain ends")
	}
}

// TestScrollStaysInside presses more keys than there are lines.
func TestScrollStaysInside(t *testing.T) {
	m, _, _ := testModel(longSnapshot(), Options{})
	for _, v := range []viewID{viewEvidence, viewLog} {
		for _, keys := range []string{"G", "pgdown pgdown", "down"} {
			press(m, string('1'+rune(v))+" "+keys)
			if last := max(0, m.extent.lines-m.extent.page); m.extent.first != last || last == 0 {
				t.Errorf("view %d after %s: line %d, want %d", v, keys, m.extent.first, last)
			}
		}
	}
	press(m, "g up")
	if m.look.scroll[viewLog] != 0 {
		t.Errorf("line %d, want 0", m.look.scroll[viewLog])
	}
	press(m, "? G")
	if m.look.down == 0 || m.look.scroll[viewLog] != 0 {
		t.Errorf("help at %d, log at %d", m.look.down, m.look.scroll[viewLog])
	}
}

// TestLogFollows shows the latest entry until someone scrolls up.
func TestLogFollows(t *testing.T) {
	m, feed, _ := testModel(longSnapshot(), Options{})
	press(m, "6")
	grow := func() {
		next := *feed.s
		next.Seq++
		next.Journal = append(slices.Clone(next.Journal), engine.Entry{Seq: 1000 + len(next.Journal), T: next.Now, Text: "one more"})
		feed.s = &next
		m.Update(tick{m.beat})
		m.View()
	}
	last := func() bool { return m.extent.first == m.extent.lines-m.extent.page }
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
	m, _, _ := testModel(waitingSnapshot(), Options{})
	press(m, "enter")
	if m.look.view != viewEvidence || m.look.filter != string(engine.SeatSaturation) {
		t.Errorf("view %d, filter %q", m.look.view, m.look.filter)
	}
}

func TestThemeFollowsTheTerminal(t *testing.T) {
	env := func(name string) (string, bool) { return "xterm-direct", name == "TERM" }
	m, _, _ := testModel(waitingSnapshot(), Options{Env: env})
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
	m, _, _ = testModel(waitingSnapshot(), Options{Env: env, Theme: "light"})
	m.Update(tea.BackgroundColorMsg{Color: lipgloss.Color("#002b36")})
	if m.View().Content != light {
		t.Error("what was asked for does not stay")
	}
}
