package tui

import (
	"charm.land/bubbles/v2/key"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// traceKeys is every key of the screen of a trace. What it shares with the main screen
// is bound to the same keys.
type traceKeys struct {
	keyMap
	Order, Reverse, Names, Phase key.Binding
	More, Less, Yes, No          key.Binding
}

func tracingKeys() traceKeys {
	k := traceKeys{
		keyMap:  keys(),
		Order:   bind("s", "sort by the next column", "s"),
		Reverse: bind("S", "the least first, or last", "S"),
		Names:   bind("b", "by kind, or by name", "b"),
		Phase:   bind("f", "prefill, decode, encode", "f"),
		More:    bind("+", "trace more detail", "+", "="),
		Less:    bind("-", "trace less detail", "-"),
		Yes:     bind("y", "yes, to a question", "y"),
		No:      bind("n", "no, to a question", "n"),
	}
	k.Filter = bind("/", "filter the operators", "/")
	k.Pause = bind("p", "pause recording, or go on", "p")
	k.Export = bind("e", "export what was recorded", "e")
	k.Quit = bind("q", "quit: detaches", "q")
	k.Interrupt = bind("ctrl+c", "quit: detaches", "ctrl+c")
	return k
}

func (k *traceKeys) groups() []keyGroup {
	return []keyGroup{
		{"Trace", []key.Binding{k.More, k.Less, k.Pause, k.Yes, k.No, k.Export}},
		{"Views", []key.Binding{k.Next, k.Previous, k.Digit, k.Phase, k.Filter, k.Order, k.Reverse, k.Names, k.Back}},
		{"Display", []key.Binding{k.Freeze, k.Up, k.Down, k.PageUp, k.PageDown, k.Top, k.Bottom}},
		{"Program", []key.Binding{k.Help, k.Quit, k.Interrupt, k.Suspend}},
	}
}

// rung is a step of detail that a key takes.
type rung struct {
	detail optrace.Detail // with all of the ones before
	what   string         // what it has that the ones before have not
}

// rungs are the steps of detail, the least first.
func rungs() []rung {
	return []rung{
		{optrace.LevelToken, "calls and their batches"},
		{optrace.LevelGraph, "graphs and backends"},
		{optrace.LevelOperator, "operators and threads"},
		{optrace.LevelTensor, "shapes and experts"},
		{optrace.LevelTensor | optrace.DetailBarrier, "waits of threads"},
		{optrace.LevelTensor | optrace.DetailBarrier | optrace.DetailSched, "scheduling"},
		{optrace.LevelAll, "system calls, faults, disks and counters"},
	}
}

// more adds the first step that a set of details lacks a part of. It keeps the others,
// whichever they are, and returns the set itself where nothing is left to add.
func more(d optrace.Detail) (optrace.Detail, string) {
	for _, r := range rungs() {
		if r.detail&^d != 0 {
			return d | r.detail, r.what + " too"
		}
	}
	return d, ""
}

// less takes away the last step that a set of details has a part of, and only that. It
// returns the set itself where one step alone is left.
func less(d optrace.Detail) (optrace.Detail, string) {
	list := rungs()
	for i := len(list) - 1; i > 0; i-- {
		if own := list[i].detail &^ list[i-1].detail; d&own != 0 && d&^own != 0 {
			return d &^ own, "without " + list[i].what
		}
	}
	return d, ""
}

// traceHints lists the keys that do something now, the most useful first.
func traceHints(s *optrace.Live, u *look) []hint {
	k := tracingKeys()
	asks, ended, paused := s.State == optrace.LiveAsking, s.State == optrace.LiveEnded, s.State == optrace.LivePaused
	var list []hint
	add := func(on bool, b key.Binding, word string) {
		if on {
			list = append(list, hint{b, word})
		}
	}
	add(asks, k.Yes, "yes")
	add(asks, k.No, "no")
	add(true, k.Help, "help")
	add(true, k.Next, "view")
	add(u.frozen, k.Freeze, "go on")
	add(paused, k.Pause, "go on")
	add(u.view == viewOperators && s.Summary != nil, k.Filter, "filter")
	add(u.view == viewOperators && s.Summary != nil, k.Order, "sort")
	add(u.view <= viewLayers && s.Summary != nil && len(s.Summary.Phases) > 1, k.Phase, "phase")
	add(!ended, k.More, "more")
	add(!ended, k.Less, "less")
	add(s.Summary != nil, k.Export, "export")
	add(!u.frozen, k.Freeze, "freeze")
	add(!paused && !ended, k.Pause, "pause")
	return list
}

// traceGuide is the help of the screen.
func traceGuide(s *optrace.Live, u *look) guide {
	k := tracingKeys()
	g := u.glyphs
	var off [][2]string
	if s.State != optrace.LiveAsking {
		off = append(off, [2]string{k.Yes.Help().Key + " " + k.No.Help().Key, "There is no question open."})
	}
	if s.State == optrace.LiveEnded {
		off = append(off, [2]string{k.More.Help().Key + " " + k.Less.Help().Key + " " + k.Pause.Help().Key, "The trace has ended."})
	}
	return guide{k.groups(), off, []remark{
		{cell.Title, "Signs"},
		{cell.OK, " " + g.Good + " fine"},
		{cell.Warn, " " + g.Warn + " needs a look"},
		{cell.Bad, " " + g.Bad + " broken, or a great loss"},
		{cell.Body, " " + g.Dash + " not known: view 6 says why    (est) an estimate"},
		{cell.OK, " " + laneSigns(g)[laneBusy] + " a thread computes"},
		{cell.Warn, " " + laneSigns(g)[laneSync] + " it waits for the others"},
		{cell.Bad, " " + laneSigns(g)[laneOff] + " it is off the CPU"},
		{cell.Muted, " blank: it has no operator"},
		{cell.Muted, " Roof is the share of what memory or compute allow, whichever bounds it."},
	}}
}
