package tui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbletea/v2"
)

// hits says whether a key is one of a binding.
func hits(k tea.KeyPressMsg, b key.Binding) bool { return slices.Contains(b.Keys(), k.String()) }

// action is what a key does where nothing lies over the view.
type action struct {
	binding key.Binding
	do      func(tea.KeyPressMsg) tea.Cmd
}

// does makes an action of what needs neither the key nor a command.
func does(b key.Binding, f func()) action {
	return action{b, func(tea.KeyPressMsg) tea.Cmd { f(); return nil }}
}

// act answers a key with the first action that has it.
func (d *display) act(k tea.KeyPressMsg, list []action) tea.Cmd {
	for _, a := range list {
		if hits(k, a.binding) {
			d.say(remark{})
			return a.do(k)
		}
	}
	return nil
}

// moves are the actions that choose what is seen.
func (d *display) moves() []action {
	k := &d.keys
	return append([]action{
		does(k.Help, func() { d.open(overlayHelp) }),
		does(k.Next, func() { d.look.view = (d.look.view + 1) % d.views }),
		does(k.Previous, func() { d.look.view = (d.look.view + d.views - 1) % d.views }),
		{k.Digit, d.digit},
	}, d.scrolls()...)
}

// scrolls are the actions that move within what is seen.
func (d *display) scrolls() []action {
	k := &d.keys
	return []action{
		does(k.Up, func() { d.scroll(-1) }), does(k.Down, func() { d.scroll(1) }),
		does(k.PageUp, func() { d.scroll(-d.page()) }), does(k.PageDown, func() { d.scroll(d.page()) }),
		does(k.Top, func() { d.scroll(-toEnd) }), does(k.Bottom, func() { d.scroll(toEnd) }),
	}
}

// toEnd are more lines than any view has.
const toEnd = 1 << 20

func (d *display) digit(k tea.KeyPressMsg) tea.Cmd {
	d.look.view = viewID(k.String()[0] - '1')
	return nil
}

// back leaves the innermost thing: a filter, then scrolling. thaws says that none of
// them was there, and a display that stands still is to go on.
func (d *display) back() (thaws bool) {
	v := d.look.view
	switch {
	case d.look.filter != "":
		d.look.filter = ""
	case d.look.scroll[v] != d.rest(v):
		d.look.scroll[v] = d.rest(v)
	default:
		return d.look.frozen
	}
	return false
}

func (d *display) typeFilter(k tea.KeyPressMsg) {
	d.look.scroll[d.look.view] = 0
	switch name := k.String(); {
	case name == "esc":
		d.look.typing, d.look.filter = false, ""
	case name == "enter":
		d.look.typing = false
	case name == "backspace":
		_, size := utf8.DecodeLastRuneInString(d.look.filter)
		d.look.filter = d.look.filter[:len(d.look.filter)-size]
	case name == "ctrl+u":
		d.look.filter = ""
	case k.Text != "":
		d.paste(k.Text)
	}
}

// paste adds to the filter what fits a line.
func (d *display) paste(text string) {
	const most = 40
	words := strings.Join(strings.Fields(d.look.filter+text), " ")
	if words != "" && strings.TrimRightFunc(text, unicode.IsSpace) != text {
		words += " " // the next word begins
	}
	if utf8.RuneCountInString(words) <= most {
		d.look.filter = words
	}
}

// open lays something over the view.
func (d *display) open(o overlay) {
	d.look.over, d.look.down, d.look.yes = o, 0, false
}

// moved scrolls what lies over the view, where the key is one for that.
func (d *display) moved(k tea.KeyPressMsg) bool {
	for _, a := range d.scrolls() {
		if hits(k, a.binding) {
			a.do(k)
			return true
		}
	}
	return false
}

// leave closes what is there to read.
func (d *display) leave(k tea.KeyPressMsg) {
	switch {
	case hits(k, d.keys.Back), hits(k, d.keys.Help), hits(k, d.keys.Quit), k.String() == "enter":
		d.open(overlayNone)
	case d.look.over == overlayHelp && hits(k, d.keys.Digit):
		d.open(overlayNone)
		d.digit(k)
	}
}

// scroll moves by lines; where it ends is only known when it is drawn.
func (d *display) scroll(by int) {
	first := max(0, d.extent.first+by)
	first = min(first, max(0, d.extent.lines-d.extent.page))
	if d.look.over != overlayNone {
		d.look.down = first
		return
	}
	if d.follows[d.look.view] && first >= d.extent.lines-d.extent.page {
		first = toEnd // go on with what is added
	}
	d.look.scroll[d.look.view] = first
}

// rest is where a view stands before it is scrolled.
func (d *display) rest(v viewID) int {
	if d.follows[v] {
		return toEnd
	}
	return 0
}

func (d *display) page() int { return max(1, d.extent.page-1) }
