package frame

import (
	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// wheelLines is how far one step of the mouse wheel scrolls.
const wheelLines = 3

// wheel scrolls what is under the mouse, which is the only thing that scrolls.
func (d *Display) wheel(m tea.MouseWheelMsg) {
	by := map[tea.MouseButton]int{tea.MouseWheelUp: -wheelLines, tea.MouseWheelDown: wheelLines}[m.Button]
	d.Changed = by != 0 && d.moved(by) || d.Changed
}

// click opens the view whose tab is clicked.
func (d *Display) click(m tea.MouseClickMsg) {
	if m.Button != tea.MouseLeft || m.Y != tabsLine || d.Settings.Over != OverlayNone && d.Settings.Over != OverlayHelp {
		return
	}
	for v, end := range d.Extent.Tabs {
		if m.X < end {
			d.Open(OverlayNone)
			d.Settings.View, d.Changed = ViewID(v), true
			return
		}
	}
}

// toggleMouse hands the mouse to the terminal, or takes it back.
func (d *Display) toggleMouse() {
	d.mouse = !d.mouse
	text := "The terminal uses the mouse to select text. M turns it on here."
	if d.mouse {
		text = "The wheel scrolls and a click opens a tab; shift selects text. M turns it off."
	}
	d.Notify(Remark{Token: cell.OK, Text: text})
}
