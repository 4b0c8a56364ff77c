package tui

import (
	"fmt"

	"charm.land/bubbles/v2/key"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// hint is a key of the footer.
type hint struct {
	binding key.Binding
	word    string
}

// drawFooter writes the keys that matter now on one line; in their place what is
// being typed, or a notice.
func drawFooter(p cell.Pane, s *scene, u *look) {
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
	if u.over == overlayHelp {
		x := p.Text(1, 0, cell.Key, "esc")
		x = p.Text(x+1, 0, cell.Body, "closes the help")
		x = p.Text(x+2, 0, cell.Key, fmt.Sprintf("1-%d", len(s.views)))
		p.Text(x+1, 0, cell.Body, "a view")
		return
	}
	const gap = 2
	cells := func(h hint) int { return p.Cells(h.binding.Help().Key) + 1 + p.Cells(h.word) + gap }
	room := p.Width() - 1 - cells(s.quit)
	x := 1
	put := func(h hint) {
		x = p.Text(x, 0, cell.Key, h.binding.Help().Key) + 1
		x = p.Text(x, 0, cell.Body, h.word) + gap
	}
	for _, h := range s.hints {
		if x+cells(h) <= room+1 {
			put(h)
		}
	}
	put(s.quit)
}

// hintsFor lists the keys that do something now, the most useful first. The help
// lists the others with the reason, and so does pressing them.
func hintsFor(s *engine.Snapshot, u *look) []hint {
	k := keys()
	list := []hint{{k.Help, "help"}, {k.Next, "view"}}
	add := func(on bool, b key.Binding, word string) {
		if on {
			list = append(list, hint{b, word})
		}
	}
	can := func(c engine.Command) bool { return s.Can[c].OK && u.tape == nil }
	halted := u.tape != nil && u.tape.speed == 0
	ended := u.tape != nil && u.tape.ended()
	add(u.frozen, k.Freeze, "go on")
	add(s.Paused && u.tape == nil, k.Pause, "go on")
	add(s.Phase == engine.PhaseWorse && can(engine.CommandRevert), k.Revert, "revert")
	add(s.Phase == engine.PhaseWorse && can(engine.CommandContinue), k.Continue, "continue")
	hold := map[bool]string{true: "go on", false: "hold"}[s.Held]
	add(s.Auto && can(engine.CommandHold), k.Hold, hold)
	add(u.tape != nil, k.SeekBack, "-10 s")
	add(u.tape != nil, k.SeekOn, "+10 s")
	add(u.tape != nil, k.Faster, "faster")
	add(u.tape != nil, k.Slower, "slower")
	add(halted && !ended, k.Pause, "play")
	add(u.tape != nil && !halted && !ended, k.Pause, "halt")
	add(u.view == viewEvidence && s.Attached, k.Filter, "filter")
	add(can(engine.CommandApply), k.Apply, "apply")
	add(commandOf(s) != "", k.Copy, "copy")
	add(can(engine.CommandSkip), k.Skip, "skip")
	add(can(engine.CommandRemeasure), k.Measure, "measure")
	add(s.Phase != engine.PhaseWorse && can(engine.CommandRevert), k.Revert, "revert")
	add(!u.frozen, k.Freeze, "freeze")
	add(!s.Paused && can(engine.CommandPause), k.Pause, "pause")
	add(s.Attached, k.Export, "export")
	return list
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
