package frame

import (
	"strconv"
	"strings"

	"charm.land/bubbles/v2/key"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Hint is a key shown in the footer.
type Hint struct {
	Binding key.Binding
	Word    string
}

// Hints are the keys of the footer, the most useful first.
type Hints []Hint

// Add appends a key if it does something now.
func (h *Hints) Add(on bool, b key.Binding, word string) {
	if on {
		*h = append(*h, Hint{b, word})
	}
}

// drawFooter writes the most useful keys on one line, or instead of them the filter being typed, or
// a notice. With an overlay, they are its own keys alone; e is the text that it shows.
func drawFooter(p cell.Pane, s *Scene, u *Settings, e Extent) {
	switch {
	case u.Palette != nil:
		drawPalette(p, u.Palette)
		return
	case u.Typing:
		x := p.Text(1, 0, cell.Key, "/ ")
		x = p.Text(x, 0, cell.Body, u.Filter)
		p.Text(x, 0, cell.Selected, " ")
		p.Right(p.Width()-1, 0, cell.Muted, "enter keeps it, esc clears it")
		return
	case u.Notice.Text != "":
		p.Text(1, 0, u.Notice.Token, p.Cut(u.Notice.Text, p.Width()-2))
		return
	}
	const gap = 2
	x := 1
	if u.Over != OverlayNone {
		for _, k := range keysOver(s, u, e.Lines > e.Page) {
			x = p.Text(x, 0, cell.Key, k[0]) + 1
			x = p.Text(x, 0, cell.Body, k[1]) + gap
		}
		return
	}
	shown := func(h Hint) string { // one key is enough here
		name, _, _ := strings.Cut(h.Binding.Help().Key, " ")
		return name
	}
	cells := func(h Hint) int { return p.Cells(shown(h)) + 1 + p.Cells(h.Word) + gap }
	room := p.Width() - 1 - cells(s.Quit)
	put := func(h Hint) {
		x = p.Text(x, 0, cell.Key, shown(h)) + 1
		x = p.Text(x, 0, cell.Body, h.Word) + gap
	}
	for _, h := range s.Hints {
		if x+cells(h) <= room+1 {
			put(h)
		}
	}
	put(s.Quit)
}

// drawTape shows the position in a recording, and its speed.
func drawTape(p cell.Pane, u *Settings) {
	if u.Tape == nil || p.Height() == 0 {
		return
	}
	t := u.Tape
	text := figure.Clock(t.Now) + " of " + figure.Clock(t.Total) + "  " + speedOf(t)
	p.Right(p.Width()-1, 0, cell.Accent, text)
	w := p.Width() - 4 - p.Cells(text)
	p.Sub(1, 0, w, 1).Fill(cell.Border, u.Glyphs.Rest)
	if t.Total > 0 {
		n := int(float64(w) * min(1, max(0, float64(t.Now)/float64(t.Total))))
		p.Sub(1, 0, n, 1).Fill(cell.Accent, u.Glyphs.Bar)
	}
}

// Speeds returns the speeds that a recording can run at, as multiples of real time.
func Speeds() []float64 { return []float64{1, 2, 5, 10, 20, 30, 60} }

// Ended reports whether the recording is at its end.
func (t *Tape) Ended() bool { return t.Total > 0 && t.Now >= t.Total }

func speedOf(t *Tape) string {
	switch {
	case t.Ended():
		return "at its end"
	case t.Speed == 0:
		return "halted"
	}
	return strconv.FormatFloat(t.Speed, 'f', -1, 64) + "x"
}
