package trace

import (
	"strings"

	"charm.land/bubbles/v2/key"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// keyMap holds every key of the trace screen. Actions that the main screen also has use the same
// keys.
type keyMap struct {
	frame.KeyMap
	Order, Reverse, Names, Phase key.Binding
	More, Less, Yes, No          key.Binding
}

// boundKeys returns the key bindings of the trace screen.
func boundKeys() keyMap {
	k := keyMap{
		KeyMap:  frame.Keys(),
		Order:   frame.Bind("s", "sort by the next column", "s"),
		Reverse: frame.Bind("S", "reverse the order", "S"),
		Names:   frame.Bind("b", "by kind, or by name", "b"),
		Phase:   frame.Bind("f", "prefill, decode, encode", "f"),
		More:    frame.Bind("+", "trace more detail", "+", "="),
		Less:    frame.Bind("-", "trace less detail", "-"),
		Yes:     frame.Bind("y", "yes, to a question", "y"),
		No:      frame.Bind("n", "no, to a question", "n"),
	}
	k.Pause = frame.Bind("p", "pause or resume recording", "p")
	k.Export = frame.Bind("e", "export what was recorded", "e")
	k.Quit = frame.Bind("q", "quit: detaches", "q")
	k.Interrupt = frame.Bind("ctrl+c", "quit: detaches", "ctrl+c")
	return k
}

// groups returns the bindings in the groups and order of the help.
func (k *keyMap) groups() []frame.KeyGroup {
	return []frame.KeyGroup{
		{Title: "Trace", Keys: []key.Binding{k.More, k.Less, k.Pause, k.Yes, k.No, k.Pick, k.Export}},
		{Title: "Views", Keys: []key.Binding{k.Next, k.Previous, k.Digit, k.Palette, k.Phase, k.Filter, k.Order, k.Reverse, k.Names, k.Back}},
		{Title: "Display", Keys: []key.Binding{k.Freeze, k.Mouse, k.Up, k.Down, k.PageUp, k.PageDown, k.Top, k.Bottom}},
		{Title: "Program", Keys: []key.Binding{k.Help, k.Quit, k.Interrupt, k.Suspend}},
	}
}

// detailStep is a level of detail that keys can select.
type detailStep struct {
	detail optrace.Detail // including the details of all previous steps
	what   string         // what this step adds
}

// detailSteps returns the levels of detail, the lowest first.
func detailSteps() []detailStep {
	return []detailStep{
		{optrace.LevelToken, "calls and their batches"},
		{optrace.LevelGraph, "graphs and backends"},
		{optrace.LevelOperator, "operators and threads"},
		{optrace.LevelTensor, "shapes and experts"},
		{optrace.LevelTensor | optrace.DetailBarrier, "waits of threads"},
		{optrace.LevelTensor | optrace.DetailBarrier | optrace.DetailSched, "scheduling"},
		{optrace.LevelAll, "system calls, faults, disks and counters"},
	}
}

// moreDetail adds the first step of which d lacks a part, and returns the result and a description
// of the step. Other details stay. If there is nothing to add it returns d and "".
func moreDetail(d optrace.Detail) (optrace.Detail, string) {
	for _, r := range detailSteps() {
		if r.detail&^d != 0 {
			return d | r.detail, r.what + " too"
		}
	}
	return d, ""
}

// lessDetail removes the last step of which d has a part, and returns the result and a description.
// If only one step is left it returns d and "".
func lessDetail(d optrace.Detail) (optrace.Detail, string) {
	list := detailSteps()
	for i := len(list) - 1; i > 0; i-- {
		if own := list[i].detail &^ list[i-1].detail; d&own != 0 && d&^own != 0 {
			return d &^ own, "without " + list[i].what
		}
	}
	return d, ""
}

// whyRecorded is why keys that change a trace do nothing.
const whyRecorded = "This is a recording; its outputs are flags of 'rooftop trace'."

// hints returns the keys that do something now, the most useful first.
func hints(s *optrace.Live, u *frame.Settings) frame.Hints {
	k := boundKeys()
	asks, ended, paused := s.State == optrace.LiveAsking, s.State >= optrace.LiveEnded, s.State == optrace.LivePaused
	var list frame.Hints
	add := list.Add
	add(asks, k.Yes, "yes")
	add(asks, k.No, "no")
	add(true, k.Help, "help")
	add(true, k.Next, "view")
	add(u.Frozen, k.Freeze, "go on")
	add(paused, k.Pause, "go on")
	add(u.Filter != "", k.Back, "clear /"+u.Filter)
	add(u.View == viewOperators && s.Summary != nil, k.Filter, "filter")
	add(u.View == viewOperators && s.Summary != nil, k.Order, "sort")
	add(u.View <= viewLayers && s.Summary != nil && len(s.Summary.Phases) > 1, k.Phase, "phase")
	add(!ended, k.More, "more")
	add(!ended, k.Less, "less")
	add(s.Summary != nil && s.State != optrace.LiveRecorded, k.Export, "export")
	add(!u.Frozen, k.Freeze, "freeze")
	add(!paused && !ended, k.Pause, "pause")
	add(true, k.Palette, "go to")
	return list
}

// guide returns the help of the screen.
func guide(s *optrace.Live, u *frame.Settings) frame.Guide {
	k := boundKeys()
	g := u.Glyphs
	var off [][2]string
	if s.State != optrace.LiveAsking {
		off = append(off, [2]string{k.Yes.Help().Key + " " + k.No.Help().Key, "There is no question open."})
	}
	switch s.State {
	case optrace.LiveRecorded:
		off = append(off, [2]string{strings.Join([]string{k.More.Help().Key, k.Less.Help().Key, k.Pause.Help().Key, k.Export.Help().Key}, " "), whyRecorded})
	case optrace.LiveEnded:
		off = append(off, [2]string{k.More.Help().Key + " " + k.Less.Help().Key + " " + k.Pause.Help().Key, "The trace has ended."})
	}
	return frame.Guide{Groups: k.groups(), Off: off, Legend: []frame.Remark{
		{Token: cell.Title, Text: "Signs"},
		{Token: cell.OK, Text: " " + g.Good + " fine"},
		{Token: cell.Warn, Text: " " + g.Warn + " needs a look"},
		{Token: cell.Bad, Text: " " + g.Bad + " broken, or a large loss"},
		{Token: cell.Body, Text: " " + g.Dash + " not known: view 6 says why    (est) an estimate"},
		{Token: cell.OK, Text: " " + lines.Lanes(g.ASCII)[0] + " a thread computes"},
		{Token: cell.Warn, Text: " " + lines.Lanes(g.ASCII)[1] + " it waits for the others"},
		{Token: cell.Bad, Text: " " + lines.Lanes(g.ASCII)[2] + " it is off the CPU"},
		{Token: cell.Muted, Text: " blank: no operator"},
		{Token: cell.Muted, Text: " Roof is the share of what memory or compute allow, whichever bounds it."},
	}}
}
