package tui

import (
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
	now, of time.Duration
	speed   float64
}

func (f *fakeTape) Seek(by time.Duration) { f.now = min(max(0, f.now+by), f.of) }
func (f *fakeTape) Speed(times float64)   { f.speed = times }
func (f *fakeTape) At() (now, of time.Duration, speed float64) {
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
