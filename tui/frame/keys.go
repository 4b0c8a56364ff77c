package frame

import (
	"charm.land/bubbles/v2/key"
)

// KeyMap holds every key of the screen. The help, the footer and the table in the README are made
// from it.
type KeyMap struct {
	Help, Next, Previous, Digit, Filter, Palette, Detail, Back key.Binding

	Apply, Revert, Continue, Skip, Unskip, Measure, Hold, Pause, Copy, Export key.Binding

	Freeze, Mouse, Up, Down, PageUp, PageDown, Top, Bottom key.Binding

	Window, SeekBack, SeekOn, Faster, Slower key.Binding

	Quit, Interrupt, Suspend key.Binding
}

// Bind returns a binding for keys, shown in the help with a description.
func Bind(shown, description string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, description))
}

// Keys returns the default bindings of all screens.
func Keys() KeyMap {
	return KeyMap{
		Help:     Bind("?", "help", "?", "f1"),
		Next:     Bind("tab", "next view", "tab"),
		Previous: Bind("shift+tab", "previous view", "shift+tab"),
		Digit:    Bind("1-6", "a view by its number", "1", "2", "3", "4", "5", "6"),
		Filter:   Bind("/", "find in the view", "/"),
		Palette:  Bind(":", "a view or action by name", ":"),
		Detail:   Bind("enter", "evidence for the advice", "enter"),
		Back:     Bind("esc", "back, close", "esc"),

		Apply:    Bind("a", "apply the advice (asks)", "a"),
		Revert:   Bind("r", "revert what was not kept", "r"),
		Continue: Bind("c", "continue: the new baseline", "c"),
		Skip:     Bind("s", "skip this recommendation", "s"),
		Unskip:   Bind("u", "undo the last skip", "u"),
		Measure:  Bind("m", "measure again now", "m"),
		Hold:     Bind("x", "pause or resume autopilot", "x"),
		Pause:    Bind("p", "pause reading the server", "p"),
		Copy:     Bind("y", "copy and show the command", "y"),
		Export:   Bind("e", "export a report", "e"),

		Freeze:   Bind("space", "freeze the display only", "space"),
		Mouse:    Bind("M", "mouse on or off", "M"),
		Up:       Bind("up k", "a line up", "up", "k"),
		Down:     Bind("down j", "a line down", "down", "j"),
		PageUp:   Bind("pgup", "a page up", "pgup", "ctrl+b", "ctrl+u"),
		PageDown: Bind("pgdn", "a page down", "pgdown", "ctrl+f", "ctrl+d"),
		Top:      Bind("g", "to the top", "g", "home"),
		Bottom:   Bind("G", "to the end", "G", "end"),

		Window:   Bind("w", "charts: 1, 5, 15 min, all", "w"),
		SeekBack: Bind("left h", "back in time", "left", "h"),
		SeekOn:   Bind("right l", "forward in time", "right", "l"),
		Faster:   Bind("+", "faster, up to 60x", "+", "="),
		Slower:   Bind("-", "slower, down to 1x", "-"),

		Quit:      Bind("q", "quit; asks during a change", "q"),
		Interrupt: Bind("ctrl+c", "quit; twice: at once", "ctrl+c"),
		Suspend:   Bind("ctrl+z", "to the shell; fg returns", "ctrl+z"),
	}
}

// KeyGroup is a group of keys in the help.
type KeyGroup struct {
	Title string
	Keys  []key.Binding
}

// Groups returns the bindings in the groups and order of the help.
func (k *KeyMap) Groups() []KeyGroup {
	return []KeyGroup{
		{"Run", []key.Binding{k.Apply, k.Revert, k.Continue, k.Skip, k.Unskip, k.Measure, k.Hold, k.Pause, k.Copy, k.Export}},
		{"Views", []key.Binding{k.Next, k.Previous, k.Digit, k.Palette, k.Filter, k.Detail, k.Back}},
		{"Display", []key.Binding{k.Freeze, k.Mouse, k.Up, k.Down, k.PageUp, k.PageDown, k.Top, k.Bottom, k.Window}},
		{"Recording (replay)", []key.Binding{k.SeekBack, k.SeekOn, k.Faster, k.Slower}},
		{"Program", []key.Binding{k.Help, k.Quit, k.Interrupt, k.Suspend}},
	}
}
