package tui

import (
	"charm.land/bubbles/v2/key"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// hint is a key of the footer.
type hint struct {
	binding key.Binding
	word    string
	off     bool // it does nothing now
}

// drawFooter writes the keys that matter now on one line; in their place what is
// being typed, or a notice.
func drawFooter(p cell.Pane, s *engine.Snapshot, u *look) {
	switch {
	case u.typing:
		x := p.Text(1, 0, cell.Key, "/ ")
		x = p.Text(x, 0, cell.Body, u.filter)
		p.Text(x, 0, cell.Selected, " ")
		p.Right(p.Width()-1, 0, cell.Muted, "enter keeps it, esc clears it")
		return
	case u.notice.text != "":
		p.Text(1, 0, u.notice.token, p.Cut(u.notice.text, p.Width()-2))
		return
	}
	const gap = 2
	cells := func(h hint) int { return p.Cells(h.binding.Help().Key) + 1 + p.Cells(h.word) + gap }
	k := keys()
	quit := hint{k.Quit, "quit", false}
	room := p.Width() - 1 - cells(quit)
	x := 1
	put := func(h hint) {
		keyToken, wordToken := cell.Key, cell.Body
		if h.off {
			keyToken, wordToken = cell.Disabled, cell.Disabled
		}
		x = p.Text(x, 0, keyToken, h.binding.Help().Key) + 1
		x = p.Text(x, 0, wordToken, h.word) + gap
	}
	for _, h := range hintsFor(s, u) {
		if x+cells(h) <= room+1 {
			put(h)
		}
	}
	put(quit)
}

// hintsFor lists the keys of the footer, the most useful first.
func hintsFor(s *engine.Snapshot, u *look) []hint {
	k := keys()
	can := func(c engine.Command) bool { return !s.Can[c].OK }
	list := []hint{{k.Help, "help", false}, {k.Next, "view", false}}
	if u.frozen {
		list = append(list, hint{k.Freeze, "go on", false})
	}
	if s.Paused {
		list = append(list, hint{k.Pause, "go on", false})
	}
	if u.tape != nil {
		list = append(list, hint{k.SeekBack, "-10 s", false}, hint{k.SeekOn, "+10 s", false}, hint{k.Faster, "faster", false}, hint{k.Slower, "slower", false})
		pause := "pause"
		if u.tape.speed == 0 {
			pause = "play"
		}
		list = append(list, hint{k.Pause, pause, false})
	}
	if u.view == viewEvidence {
		list = append(list, hint{k.Filter, "filter", false})
	}
	if s.Phase == engine.PhaseWorse {
		list = append(list, hint{k.Revert, "revert", can(engine.CommandRevert)}, hint{k.Continue, "continue", can(engine.CommandContinue)})
	} else if u.tape == nil {
		list = append(list, hint{k.Apply, "apply", can(engine.CommandApply)})
	}
	list = append(list, hint{k.Copy, "copy", commandOf(s) == ""})
	if u.tape == nil {
		list = append(list, hint{k.Skip, "skip", can(engine.CommandSkip)}, hint{k.Measure, "measure", can(engine.CommandRemeasure)})
	}
	if !u.frozen {
		list = append(list, hint{k.Freeze, "freeze", false})
	}
	if u.tape == nil && !s.Paused {
		list = append(list, hint{k.Pause, "pause", can(engine.CommandPause)})
	}
	return append(list, hint{k.Export, "export", false})
}

// drawTape shows where a recording stands, and how fast it runs.
func drawTape(p cell.Pane, u *look) {
	if u.tape == nil || p.Height() == 0 {
		return
	}
	t := u.tape
	text := clock(t.now) + " of " + clock(t.of) + "  " + speedOf(t)
	p.Right(p.Width()-1, 0, cell.Accent, text)
	w := p.Width() - 4 - p.Cells(text)
	p.Sub(1, 0, w, 1).Fill(cell.Border, u.glyphs.Rest)
	if t.of > 0 {
		n := int(float64(w) * min(1, max(0, float64(t.now)/float64(t.of))))
		p.Sub(1, 0, n, 1).Fill(cell.Accent, u.glyphs.Bar)
	}
}
