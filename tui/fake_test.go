package tui

import (
	"strings"
	"sync"
	"time"

	"charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine"
)

type fakeFeed struct{ s *engine.Snapshot }

func (f *fakeFeed) Latest() *engine.Snapshot { return f.s }

type fakeControls struct {
	done    []engine.Command
	exports int
	busy    bool
}

func (c *fakeControls) Do(command engine.Command) bool {
	if !c.busy {
		c.done = append(c.done, command)
	}
	return !c.busy
}

func (c *fakeControls) Export() bool {
	if !c.busy {
		c.exports++
	}
	return !c.busy
}

type fakeTape struct {
	mu      sync.Mutex
	now, of time.Duration
	speed   float64
}

func (f *fakeTape) Seek(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = min(max(0, f.now+by), f.of)
}

func (f *fakeTape) Speed(times float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.speed = times
}

func (f *fakeTape) At() (now, of time.Duration, speed float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now, f.of, f.speed
}

// keyPress is a key by its name.
func keyPress(name string) tea.KeyPressMsg {
	special := map[string]tea.Key{
		"tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "esc": {Code: tea.KeyEscape}, "enter": {Code: tea.KeyEnter},
		"space": {Code: tea.KeySpace, Text: " "}, "backspace": {Code: tea.KeyBackspace}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
		"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
		"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+z": {Code: 'z', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl},
	}
	if k, ok := special[name]; ok {
		return tea.KeyPressMsg(k)
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// testModel is a model of 80 by 24 that has drawn its first frame.
func testModel(s *engine.Snapshot, o Options) (*model, *fakeFeed, *fakeControls) {
	feed, controls := &fakeFeed{s: s}, &fakeControls{}
	m := newModel(feed, controls, o)
	m.Init()
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.View()
	return m, feed, controls
}

// press presses keys, each with a frame after it, and returns the last command.
func press(m *model, names string) tea.Cmd {
	var cmd tea.Cmd
	for name := range strings.FieldsSeq(names) {
		_, cmd = m.Update(keyPress(name))
		m.View()
	}
	return cmd
}

func isQuit(cmd tea.Cmd) bool {
	if cmd == nil {
		return false
	}
	_, ok := cmd().(tea.QuitMsg)
	return ok
}

func withHands(s *engine.Snapshot) *engine.Snapshot {
	s.Can[engine.CommandApply], s.Can[engine.CommandRevert] = engine.Availability{OK: true}, engine.Availability{OK: true}
	return s
}

// clientAdvice is a server whose clients could ask more of it.
func clientAdvice() *engine.Snapshot {
	s := waitingSnapshot()
	s.Advice = &engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{Kind: engine.KindClient, Command: "send more requests at once", Why: "The server has room."}}
	s.Can[engine.CommandApply].Why = "This is for the client and no flag of the server: nothing can be applied here."
	return s
}
