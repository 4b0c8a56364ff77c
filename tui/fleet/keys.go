package fleet

import (
	"charm.land/bubbles/v2/key"

	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// keyMap holds every key of the screen. Actions that other screens also have use the same keys, but g.
type keyMap struct {
	frame.KeyMap
	Order, Group, Alone key.Binding
}

// boundKeys returns the key bindings of the screen.
func boundKeys() keyMap {
	k := keyMap{
		KeyMap: frame.Keys(),
		Order:  frame.Bind("s", "sort by the next column", "s"),
		Group:  frame.Bind("g", "groups; another grouping", "g"),
		Alone:  frame.Bind("t", "copy a line for it alone", "t"),
	}
	k.Digit = frame.Bind("1-3", "a view by its number", "1", "2", "3")
	k.Filter = frame.Bind("/", "rows that contain a text", "/")
	k.Detail = frame.Bind("enter", "open the row", "enter")
	k.Measure = frame.Bind("m", "read all again now", "m")
	k.Copy = frame.Bind("y", "copy the command to run", "y")
	k.Up, k.Down = frame.Bind("up k", "a row up", "up", "k"), frame.Bind("down j", "a row down", "down", "j")
	k.Top, k.Bottom = frame.Bind("home", "to the top", "home"), frame.Bind("end G", "to the end", "end", "G")
	k.Quit = frame.Bind("q", "quit", "q")
	k.Interrupt = frame.Bind("ctrl+c", "quit", "ctrl+c")
	return k
}

// groups returns the bindings in the groups and order of the help.
func (k *keyMap) groups() []frame.KeyGroup {
	return []frame.KeyGroup{
		{Title: "Servers", Keys: []key.Binding{k.Detail, k.Back, k.Filter, k.Order, k.Group, k.Copy, k.Alone, k.Measure}},
		{Title: "Views", Keys: []key.Binding{k.Next, k.Previous, k.Digit, k.Palette}},
		{Title: "Display", Keys: []key.Binding{k.Freeze, k.Mouse, k.Up, k.Down, k.PageUp, k.PageDown, k.Top, k.Bottom}},
		{Title: "Program", Keys: []key.Binding{k.Help, k.Quit, k.Interrupt, k.Suspend}},
	}
}

// hints returns the keys that do something now, the most useful first.
func hints(v *view) frame.Hints {
	k := boundKeys()
	u, list := v.u, v.u.View != viewServer
	s := v.selected()
	var h frame.Hints
	h.Add(true, k.Help, "help")
	h.Add(u.Frozen, k.Freeze, "resume")
	h.Add(u.Filter != "", k.Back, "clear /"+u.Filter)
	h.Add(u.Filter == "" && (!list || v.set.within != nil || u.View == viewGroups), k.Back, "back")
	h.Add(list && v.rows() > 0, k.Detail, "open")
	h.Add(s != nil && s.Changes(), k.Copy, "copy command")
	h.Add(true, k.Filter, "filter")
	h.Add(u.View == viewServers, k.Order, "sort")
	h.Add(list, k.Group, map[bool]string{true: "group by " + ((v.set.by + 1) % fleet.NumBys).String(), false: "groups"}[u.View == viewGroups])
	h.Add(s != nil && s.Command != "", k.Alone, "alone")
	h.Add(!v.l.Reading, k.Measure, "read again")
	h.Add(!u.Frozen, k.Freeze, "freeze")
	h.Add(true, k.Palette, "go to")
	return h
}

// guide returns the help of the screen.
func guide(v *view) frame.Guide {
	k := boundKeys()
	g := v.u.Glyphs
	var off [][2]string
	s := v.selected()
	if s == nil || !s.Changes() {
		off = append(off, [2]string{k.Copy.Help().Key, "No change is recommended for the row under the cursor."})
	}
	if v.l.Reading {
		off = append(off, [2]string{k.Measure.Help().Key, "A reading is in progress."})
	}
	return frame.Guide{Groups: k.groups(), Off: off, Legend: []frame.Remark{
		{Token: cell.OK, Text: g.Good + " healthy"},
		{Token: cell.Warn, Text: g.Warn + " something to change, or a server that could not be read"},
		{Token: cell.Bad, Text: g.Bad + " unhealthy, or a large loss"},
		{Token: cell.Body, Text: g.Dash + " not known    (est) an estimate"},
		{Token: cell.Muted, Text: "Unhealthy servers come first, then those that could not be read, then the rest by what a change saves."},
		{Token: cell.Muted, Text: "saves: the share of the price that the change is predicted to save for the same output."},
	}}
}
