package tui

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
)

// keyMap is every key of the screen. The help, the footer and the table of the
// README are made from it.
type keyMap struct {
	Help, Next, Previous, Digit, Filter, Detail, Back key.Binding

	Apply, Revert, Continue, Skip, Measure, Hold, Pause, Copy, Export key.Binding

	Freeze, Up, Down, PageUp, PageDown, Top, Bottom key.Binding

	SeekBack, SeekOn, Faster, Slower key.Binding

	Quit, Interrupt, Suspend key.Binding
}

func bind(shown, does string, keys ...string) key.Binding {
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, does))
}

func keys() keyMap {
	return keyMap{
		Help:     bind("?", "help", "?", "f1"),
		Next:     bind("tab", "next view", "tab", "right", "l"),
		Previous: bind("shift+tab", "previous view", "shift+tab", "left", "h"),
		Digit:    bind("1-6", "a view by its number", "1", "2", "3", "4", "5", "6"),
		Filter:   bind("/", "filter the evidence", "/"),
		Detail:   bind("enter", "evidence for the advice", "enter"),
		Back:     bind("esc", "leave the innermost thing", "esc"),

		Apply:    bind("a", "apply the advice (asks)", "a"),
		Revert:   bind("r", "undo what was not kept", "r"),
		Continue: bind("c", "continue: the new baseline", "c"),
		Skip:     bind("s", "skip this recommendation", "s"),
		Measure:  bind("m", "measure again now", "m"),
		Hold:     bind("x", "hold autopilot, or go on", "x"),
		Pause:    bind("p", "pause reading the server", "p"),
		Copy:     bind("y", "copy and show the command", "y"),
		Export:   bind("e", "export a report", "e"),

		Freeze:   bind("space", "freeze the display only", "space"),
		Up:       bind("up k", "a line up", "up", "k"),
		Down:     bind("down j", "a line down", "down", "j"),
		PageUp:   bind("pgup", "a page up", "pgup", "ctrl+b", "ctrl+u"),
		PageDown: bind("pgdn", "a page down", "pgdown", "ctrl+f", "ctrl+d"),
		Top:      bind("g", "to the top", "g", "home"),
		Bottom:   bind("G", "to the end", "G", "end"),

		SeekBack: bind("left", "10 s back", "left"),
		SeekOn:   bind("right", "10 s on", "right"),
		Faster:   bind("+", "faster, up to 60x", "+", "="),
		Slower:   bind("-", "slower, down to 1x", "-"),

		Quit:      bind("q", "quit; asks during a change", "q"),
		Interrupt: bind("ctrl+c", "quit; twice: at once", "ctrl+c"),
		Suspend:   bind("ctrl+z", "to the shell; fg returns", "ctrl+z"),
	}
}

// keyGroup is what belongs together in the help.
type keyGroup struct {
	title string
	keys  []key.Binding
}

func (k *keyMap) groups() []keyGroup {
	return []keyGroup{
		{"Run", []key.Binding{k.Apply, k.Revert, k.Continue, k.Skip, k.Measure, k.Hold, k.Pause, k.Copy, k.Export}},
		{"Views", []key.Binding{k.Next, k.Previous, k.Digit, k.Filter, k.Detail, k.Back}},
		{"Display", []key.Binding{k.Freeze, k.Up, k.Down, k.PageUp, k.PageDown, k.Top, k.Bottom}},
		{"Recording (replay)", []key.Binding{k.SeekBack, k.SeekOn, k.Faster, k.Slower}},
		{"Program", []key.Binding{k.Help, k.Quit, k.Interrupt, k.Suspend}},
	}
}

// KeyTable returns the keys of the screen as a Markdown table.
func KeyTable() string {
	k := keys()
	return keyTable(k.groups())
}

// TraceKeyTable returns the keys of the screen of a trace as a Markdown table.
func TraceKeyTable() string {
	k := tracingKeys()
	return keyTable(k.groups())
}

func keyTable(groups []keyGroup) string {
	var b strings.Builder
	b.WriteString("| key | does |\n|---|---|\n")
	for _, g := range groups {
		for _, binding := range g.keys {
			h := binding.Help()
			fmt.Fprintf(&b, "| %s | %s |\n", "`"+strings.ReplaceAll(h.Key, " ", "` `")+"`", h.Desc)
		}
	}
	return b.String()
}
