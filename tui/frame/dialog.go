package frame

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Dialog is a question, or a text to read, that covers part of a view.
type Dialog struct {
	Title string
	Lines Remarks
	// Yes and No are the answers to a question, "" if there is none.
	Yes, No string
	Command loop.Command // sent if the answer is yes
	About   string       // the change that the question is about
}

// drawDialog draws a dialog over the lower part of the body, between rules rather than in a box, so
// that the terminal can select a command without borders. The answers stay visible; the text above
// them scrolls.
func drawDialog(p cell.Pane, u *Settings) Extent {
	d := &u.Ask
	var rows Remarks
	for _, m := range d.Lines {
		for _, text := range u.wrap(m.Text, p.Width()-4) {
			rows = append(rows, Remark{m.Token, text})
		}
	}
	around := 2 // rules
	if u.Over == OverlayAsk {
		around += 2 // answers, and the blank line above them
	}
	h := min(p.Height(), len(rows)+around)
	page := max(0, h-around)
	p = p.Sub(0, p.Height()-h, p.Width(), h)
	p.Clear()
	p.Sub(0, 0, p.Width(), 1).Fill(cell.Accent, u.Glyphs.Horizontal)
	p.Text(2, 0, cell.Strong, " "+p.Cut(d.Title, p.Width()-6)+" ")
	first := max(0, min(u.Down, len(rows)-page))
	for y := range page {
		p.Text(2, 1+y, rows[first+y].Token, rows[first+y].Text)
	}
	if u.Over == OverlayAsk {
		drawAnswers(p.Sub(2, h-2, p.Width()-4, 1), u)
	}
	p.Sub(0, h-1, p.Width(), 1).Fill(cell.Accent, u.Glyphs.Horizontal)
	return Extent{Lines: len(rows), Page: page, First: first}
}

func drawAnswers(p cell.Pane, u *Settings) {
	x := 0
	for _, yes := range []bool{false, true} {
		text, token := u.Ask.No, cell.Body
		if yes {
			text = u.Ask.Yes
		}
		if yes == u.Yes {
			text, token = "[ "+text+" ]", cell.Selected
		} else {
			text = "  " + text + "  "
		}
		x = p.Text(x, 0, token, text) + 2
	}
}

// keysOver returns the keys of an overlay. more reports whether a dialog is longer than its room.
func keysOver(s *Scene, u *Settings, more bool) [][2]string {
	var keys [][2]string
	switch u.Over {
	case OverlayHelp:
		return [][2]string{{"esc", "closes the help"}, {fmt.Sprintf("1-%d", len(s.Views)), "a view"}}
	case OverlayAsk:
		keys = [][2]string{{"y", "yes"}, {"n", "no"}, {"tab", "the other answer"}, {"enter", "take it"}}
	case OverlayText:
		keys = [][2]string{{"esc", "closes"}}
	}
	if more {
		keys = append(keys, [2]string{"down", "more"})
	}
	return keys
}
