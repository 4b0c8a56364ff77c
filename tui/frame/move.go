package frame

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Pressed reports whether a key belongs to a binding.
func Pressed(k tea.KeyPressMsg, b key.Binding) bool { return slices.Contains(b.Keys(), k.String()) }

// Action is what a key does while no overlay is open.
type Action struct {
	Binding key.Binding
	Do      func(tea.KeyPressMsg) tea.Cmd
}

// OnKey returns an action for a function that needs no key and returns no command.
func OnKey(b key.Binding, f func()) Action {
	return Action{b, func(tea.KeyPressMsg) tea.Cmd { f(); return nil }}
}

// Handle handles a key: first the keys that always work, then those of what is typed or of the overlay, then the
// first action that is bound to the key. over handles the keys of overlays; nil for overlays without a question.
func (d *Display) Handle(k tea.KeyPressMsg, actions func() []Action, over func(tea.KeyPressMsg) tea.Cmd) tea.Cmd {
	d.Changed = true
	switch {
	case Pressed(k, d.Keys.Interrupt):
		return tea.Quit
	case Pressed(k, d.Keys.Suspend):
		return tea.Suspend
	case d.Settings.Typing:
		d.typeFilter(k)
		return nil
	case d.Settings.Palette != nil:
		return d.typeName(k, actions())
	case d.Settings.Over != OverlayNone && over != nil:
		return over(k)
	case d.Settings.Over != OverlayNone:
		if !d.ScrollOverlay(k) {
			d.CloseOverlay(k)
		}
		return nil
	}
	for _, a := range actions() {
		if Pressed(k, a.Binding) {
			d.Notify(Remark{})
			return a.Do(k)
		}
	}
	d.refuse(k, "it does nothing here; ? lists the keys")
	return nil
}

// refuse says in the footer why a key does nothing.
func (d *Display) refuse(k tea.KeyPressMsg, why string) {
	d.Notify(Remark{Token: cell.Warn, Text: k.String() + ": " + why})
}

// Moves returns the actions that choose what is visible: help, views, scrolling.
func (d *Display) Moves() []Action {
	k := &d.Keys
	return append([]Action{
		OnKey(k.Help, func() { d.Open(OverlayHelp) }),
		OnKey(k.Next, func() { d.Settings.View = (d.Settings.View + 1) % d.count() }),
		OnKey(k.Previous, func() { d.Settings.View = (d.Settings.View + d.count() - 1) % d.count() }),
		{k.Digit, d.digit},
		OnKey(k.Filter, func() { d.Settings.Typing = true }),
		OnKey(k.Palette, func() { d.Settings.Palette = &Palette{} }),
		OnKey(k.Mouse, d.toggleMouse),
	}, d.scrolls()...)
}

// scrolls returns the actions that scroll.
func (d *Display) scrolls() []Action {
	k := &d.Keys
	return []Action{
		OnKey(k.Up, func() { d.scroll(-1) }), OnKey(k.Down, func() { d.scroll(1) }),
		OnKey(k.PageUp, func() { d.scroll(-d.page()) }), OnKey(k.PageDown, func() { d.scroll(d.page()) }),
		OnKey(k.Top, func() { d.scroll(-ToEnd) }), OnKey(k.Bottom, func() { d.scroll(ToEnd) }),
	}
}

// ToEnd is a number of lines greater than any view has.
const ToEnd = 1 << 20

func (d *Display) digit(k tea.KeyPressMsg) tea.Cmd {
	d.Settings.View = ViewID(k.String()[0] - '1')
	return nil
}

// count returns the number of views.
func (d *Display) count() ViewID { return ViewID(len(d.views)) }

// Back clears the filter, or else scrolls back to the initial position. If there was neither to do,
// it reports whether the display is frozen.
func (d *Display) Back(k tea.KeyPressMsg) (thaws bool) {
	v := d.Settings.View
	switch {
	case d.Settings.Filter != "":
		d.Settings.Filter = ""
	case d.Settings.Scroll[v] != d.initialScroll(v):
		d.Settings.Scroll[v] = d.initialScroll(v)
	case !d.Settings.Frozen:
		d.refuse(k, "there is nothing to go back to")
	default:
		return true
	}
	return false
}

// typeFilter handles a key while the user types a filter.
func (d *Display) typeFilter(k tea.KeyPressMsg) {
	d.Settings.Scroll[d.Settings.View] = d.initialScroll(d.Settings.View)
	switch name := k.String(); {
	case name == "esc":
		d.Settings.Typing, d.Settings.Filter = false, ""
	case name == "enter":
		d.Settings.Typing = false
	case name == "backspace":
		_, size := utf8.DecodeLastRuneInString(d.Settings.Filter)
		d.Settings.Filter = d.Settings.Filter[:len(d.Settings.Filter)-size]
	case name == "ctrl+u":
		d.Settings.Filter = ""
	case k.Text != "":
		d.paste(k.Text)
	}
}

// paste appends text to the filter, unless the filter gets too long for a line.
func (d *Display) paste(text string) {
	const most = 40
	words := strings.Join(strings.Fields(d.Settings.Filter+text), " ")
	if words != "" && strings.TrimRightFunc(text, unicode.IsSpace) != text {
		words += " " // keep the space: the next word begins
	}
	if utf8.RuneCountInString(words) <= most {
		d.Settings.Filter = words
	}
}

// Open opens an overlay.
func (d *Display) Open(o Overlay) {
	d.Settings.Over, d.Settings.Down, d.Settings.Yes = o, 0, false
}

// ScrollOverlay scrolls the overlay and reports whether the key is one for scrolling.
func (d *Display) ScrollOverlay(k tea.KeyPressMsg) bool {
	for _, a := range d.scrolls() {
		if Pressed(k, a.Binding) {
			a.Do(k)
			return true
		}
	}
	return false
}

// CloseOverlay closes an overlay without a question if the key is one that closes it.
func (d *Display) CloseOverlay(k tea.KeyPressMsg) {
	switch {
	case Pressed(k, d.Keys.Back), Pressed(k, d.Keys.Help), Pressed(k, d.Keys.Quit), k.String() == "enter":
		d.Open(OverlayNone)
	case d.Settings.Over == OverlayHelp && Pressed(k, d.Keys.Digit):
		d.Open(OverlayNone)
		d.digit(k)
	default:
		d.refuse(k, "esc closes this first")
	}
}

// scroll moves by lines, or says why it cannot.
func (d *Display) scroll(by int) {
	switch {
	case d.Extent.Lines <= d.Extent.Page:
		d.Notify(Remark{Token: cell.Warn, Text: "Nothing to scroll: the whole view is on the screen."})
	case d.moved(by):
	case by < 0:
		d.Notify(Remark{Token: cell.Warn, Text: "This is the top."})
	default:
		d.Notify(Remark{Token: cell.Warn, Text: "This is the end."})
	}
}

// moved moves by lines and reports whether there were any in that direction. The end is known only
// after drawing.
func (d *Display) moved(by int) bool {
	first := min(max(0, d.Extent.First+by), max(0, d.Extent.Lines-d.Extent.Page))
	moved := first != d.Extent.First
	if d.Settings.Over != OverlayNone {
		d.Settings.Down = first
		return moved
	}
	if d.Follows[d.Settings.View] && first >= d.Extent.Lines-d.Extent.Page {
		first = ToEnd // follow what is added
	}
	d.Settings.Scroll[d.Settings.View] = first
	return moved
}

// initialScroll returns the scroll position of a view before the user scrolls.
func (d *Display) initialScroll(v ViewID) int {
	if d.Follows[v] {
		return ToEnd
	}
	return 0
}

func (d *Display) page() int { return max(1, d.Extent.Page-1) }
