package frame

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Palette is a line in which the user types the name of a view or of an action.
type Palette struct {
	Typed  string
	Offers []string // names that begin with what was typed, the chosen one first
}

// offers returns the views and actions whose names have words that begin with those typed.
func (d *Display) offers(typed string, actions []Action) []Action {
	var list []Action
	for v, name := range d.views {
		list = append(list, OnKey(Bind("", name), func() { d.Settings.View = ViewID(v) }))
	}
	for _, a := range actions {
		if !Pressed(tea.KeyPressMsg{Code: ':', Text: ":"}, a.Binding) && !slices.Contains(a.Binding.Keys(), "1") {
			list = append(list, a)
		}
	}
	return slices.DeleteFunc(list, func(a Action) bool { return !named(a.Binding.Help().Desc, typed) })
}

// named reports whether each word typed is the beginning of a word of the name.
func named(name, typed string) bool {
	words := strings.Fields(strings.ToLower(name))
	for _, t := range strings.Fields(strings.ToLower(typed)) {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, t) }) {
			return false
		}
	}
	return true
}

// typeName handles a key while the palette is open: enter runs the first offer, tab offers the next
// one first.
func (d *Display) typeName(k tea.KeyPressMsg, actions []Action) tea.Cmd {
	p := d.Settings.Palette
	list := d.offers(p.Typed, actions)
	if len(p.Offers) > 0 {
		at := slices.IndexFunc(list, func(a Action) bool { return a.Binding.Help().Desc == p.Offers[0] })
		list = slices.Concat(list[max(0, at):], list[:max(0, at)])
	}
	switch name := k.String(); {
	case name == "esc", name == "enter" && p.Typed == "":
		d.Settings.Palette = nil
		return nil
	case name == "enter" && len(list) == 0:
		d.Settings.Palette = nil
		d.Notify(Remark{Token: cell.Warn, Text: "No view or action is named " + p.Typed + "; ? lists them."})
		return nil
	case name == "enter":
		d.Settings.Palette = nil
		d.Notify(Remark{})
		return list[0].Do(k)
	case name == "tab" && p.Typed != "" && len(list) > 0:
		list = append(list[1:], list[0])
	case name == "backspace" && p.Typed != "":
		_, size := utf8.DecodeLastRuneInString(p.Typed)
		p.Typed = p.Typed[:len(p.Typed)-size]
		list = d.offers(p.Typed, actions)
	case k.Text != "":
		p.Typed += k.Text
		list = d.offers(p.Typed, actions)
	}
	p.Offers = p.Offers[:0]
	for _, a := range list {
		p.Offers = append(p.Offers, a.Binding.Help().Desc)
	}
	return nil
}

// drawPalette writes what was typed, and the names that it may mean.
func drawPalette(p cell.Pane, l *Palette) {
	x := p.Text(1, 0, cell.Key, ": ")
	x = p.Text(x, 0, cell.Body, l.Typed)
	x = p.Text(x, 0, cell.Selected, " ") + 2
	switch {
	case l.Typed == "":
		p.Text(x, 0, cell.Muted, p.Cut("a view or an action, such as gpu or export; tab shows the next match, esc closes", p.Width()-x-1))
		return
	case len(l.Offers) == 0:
		p.Text(x, 0, cell.Warn, "no view or action has this name")
		return
	}
	for i, name := range l.Offers {
		if x+p.Cells(name) >= p.Width() {
			return
		}
		token := cell.Muted
		if i == 0 {
			token = cell.Accent
		}
		x = p.Text(x, 0, token, name) + 3
	}
}
