package frame

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Pick is the place in the view that the user chose to copy: the part of its line, between the
// frames of panels, in which the column lies.
type Pick struct{ Line, Column int }

// drawPick marks the chosen part, and tells its text and place.
func drawPick(p cell.Pane, u *Settings, e *Extent) {
	line := min(u.Pick.Line, p.Height()-1)
	e.Parts = p.Parts(line, u.Glyphs.Vertical)
	if len(e.Parts) == 0 {
		p.Mark(0, p.Width(), line, cell.Selected)
		return
	}
	for i, part := range e.Parts {
		if part[0] <= u.Pick.Column {
			e.Part = i
		}
	}
	at := e.Parts[e.Part]
	e.Picked = withoutCharts(p.Read(at[0], at[1], line))
	p.Mark(at[0], at[1], line, cell.Selected)
}

// withoutCharts returns the words of a text without those drawn with lines, blocks and braille.
func withoutCharts(text string) string {
	drawn := func(r rune) bool { return r >= 0x2500 && r <= 0x28ff }
	words := slices.DeleteFunc(strings.Fields(text), func(w string) bool { return strings.TrimFunc(w, drawn) == "" })
	return strings.Join(words, " ")
}

// startPick lets the user choose what to copy.
func (d *Display) startPick() {
	d.Settings.Pick = &Pick{}
	d.Notify(Remark{Token: cell.OK, Text: "Choose with the arrow keys or a click; y copies, esc ends."})
}

// movePick handles a key while the user chooses what to copy.
func (d *Display) movePick(k tea.KeyPressMsg) tea.Cmd {
	at, key := d.Settings.Pick, &d.Keys
	switch {
	case Pressed(k, key.Back), Pressed(k, key.Pick):
		d.Settings.Pick = nil
	case Pressed(k, key.Up) && at.Line == 0, Pressed(k, key.Down) && at.Line >= d.Extent.Height-1:
		by := 1
		if at.Line == 0 {
			by = -1
		}
		if !d.moved(by) {
			d.refuse(k, "this is the edge of the view")
		}
	case Pressed(k, key.Up):
		at.Line--
	case Pressed(k, key.Down):
		at.Line++
	case Pressed(k, key.SeekBack) && d.Extent.Part > 0:
		at.Column = d.Extent.Parts[d.Extent.Part-1][0]
	case Pressed(k, key.SeekOn) && d.Extent.Part+1 < len(d.Extent.Parts):
		at.Column = d.Extent.Parts[d.Extent.Part+1][0]
	case Pressed(k, key.SeekBack), Pressed(k, key.SeekOn):
		d.refuse(k, "the line has no further part there")
	case Pressed(k, key.Copy), k.String() == "enter":
		d.Notify(Remark{Token: cell.OK, Text: "Copied, where the terminal allows it: " + d.Extent.Picked})
		d.Settings.Pick = nil
		return tea.SetClipboard(d.Extent.Picked)
	default:
		d.refuse(k, "the arrow keys choose, y copies, esc ends")
	}
	return nil
}
