package tui

import (
	"slices"

	"charm.land/bubbles/v2/key"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// guideTo returns the help of the main screen. Keys of a recording appear only in replay.
func guideTo(s *loop.Snapshot, u *frame.Settings) frame.Guide {
	k := frame.Keys()
	groups := k.Groups()
	if u.Tape == nil {
		groups = slices.Delete(groups, 3, 4) // a live server has no speed
	}
	return frame.Guide{Groups: groups, Off: offNow(s), Legend: legend(u)}
}

// commands returns the keys that send a command to the loop.
func commands(k *frame.KeyMap) []commandKey {
	return []commandKey{
		{k.Apply, loop.CommandApply}, {k.Revert, loop.CommandRevert}, {k.Continue, loop.CommandContinue},
		{k.Skip, loop.CommandSkip}, {k.Unskip, loop.CommandUnskip}, {k.Measure, loop.CommandRemeasure}, {k.Hold, loop.CommandHold}, {k.Pause, loop.CommandPause},
	}
}

type commandKey struct {
	binding key.Binding
	command loop.Command
}

// offNow lists the keys that do nothing now, each with the reason.
func offNow(s *loop.Snapshot) [][2]string {
	var list [][2]string
	k := frame.Keys()
	for _, c := range commands(&k) {
		if why := whyNot(s, c.command); why != "" {
			list = append(list, [2]string{c.binding.Help().Key, why})
		}
	}
	return list
}

// whyNot returns the reason why a command does nothing now, "" if it does something.
func whyNot(s *loop.Snapshot, c loop.Command) string {
	switch a := s.Can[c]; {
	case a.OK:
		return ""
	case a.Why != "":
		return a.Why
	}
	return "It does nothing now."
}

func legend(u *frame.Settings) []frame.Remark {
	g := u.Glyphs
	return []frame.Remark{
		{Token: cell.OK, Text: g.Good + " fine or better"},
		{Token: cell.Warn, Text: g.Warn + " needs a look"},
		{Token: cell.Bad, Text: g.Bad + " broken or worse"},
		{Token: cell.Body, Text: g.Dash + " not known    (est) an estimate    " + g.Point + " now    " + g.Past + " before"},
		{Token: cell.Baseline, Text: "before a change"},
		{Token: cell.Trial, Text: "after it"},
		{Token: cell.Achievable, Text: "achievable: estimate for this hardware at this load"},
		{Token: cell.Ideal, Text: "ideal: hardware limit, nothing lost"},
		{Token: cell.Muted, Text: "rooftop explain NAME: what a finding or figure means, its limits, its remedy"},
	}
}

// hintsFor returns the keys that do something now, the most useful first. The help explains why the
// others do nothing, and so does pressing them.
func hintsFor(s *loop.Snapshot, u *frame.Settings) frame.Hints {
	k := frame.Keys()
	list := frame.Hints{{Binding: k.Help, Word: "help"}, {Binding: k.Next, Word: "view"}}
	add := list.Add
	can := func(c loop.Command) bool { return s.Can[c].OK && u.Tape == nil }
	halted := u.Tape != nil && u.Tape.Speed == 0
	ended := u.Tape != nil && u.Tape.Ended()
	add(u.Frozen, k.Freeze, "resume")
	add(s.Paused && u.Tape == nil, k.Pause, "resume")
	add(s.Phase == loop.PhaseWorse && can(loop.CommandRevert), k.Revert, "revert")
	add(s.Phase == loop.PhaseWorse && can(loop.CommandContinue), k.Continue, "continue")
	hold := map[bool]string{true: "resume", false: "pause auto"}[s.Held]
	add(s.Auto && can(loop.CommandHold), k.Hold, hold)
	add(u.Tape != nil, k.SeekBack, "-10 s")
	add(u.Tape != nil, k.SeekOn, "+10 s")
	add(u.Tape != nil, k.Faster, "faster")
	add(u.Tape != nil, k.Slower, "slower")
	add(halted && !ended, k.Pause, "play")
	add(u.Tape != nil && !halted && !ended, k.Pause, "halt")
	add(u.Filter != "", k.Back, "clear /"+u.Filter)
	add(u.View == viewEvidence && s.Attached, k.Filter, "filter")
	add(can(loop.CommandApply), k.Apply, "apply")
	add(commandOf(s) != "", k.Copy, "copy")
	add(can(loop.CommandSkip), k.Skip, "skip")
	add(can(loop.CommandUnskip), k.Unskip, "undo skip")
	add(can(loop.CommandRemeasure), k.Measure, "measure")
	add(s.Phase != loop.PhaseWorse && can(loop.CommandRevert), k.Revert, "revert")
	add(!u.Frozen, k.Freeze, "freeze")
	add(!s.Paused && can(loop.CommandPause), k.Pause, "pause")
	add(u.View == viewHistory, k.Window, "window")
	add(s.Attached, k.Export, "export")
	add(true, k.Palette, "go to")
	return list
}
