package tui

import (
	"charm.land/bubbles/v2/key"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// guide is what the help of a screen says.
type guide struct {
	groups []keyGroup
	off    [][2]string // keys that do nothing now, each with the reason
	legend []remark    // what the signs mean
}

func guideTo(s *engine.Snapshot, u *look) guide {
	k := keys()
	groups := k.groups()
	if u.tape == nil {
		groups = append(groups[:3:3], groups[4])
	}
	return guide{groups, offNow(s), legend(u)}
}

// drawHelp shows every key, what does nothing now and why, and what the signs
// mean. It returns how many lines it needs.
func drawHelp(p cell.Pane, help *guide, first int) int {
	columns := 1
	if p.Width() >= 76 {
		columns = 2
	}
	heights := make([]int, columns)
	w := (p.Width() - 2) / columns
	for _, g := range help.groups {
		c := 0
		for i := range heights {
			if heights[i] < heights[c] {
				c = i
			}
		}
		if heights[c] > 0 {
			heights[c]++
		}
		drawGroup(p.Sub(1+c*w, 0, w-2, p.Height()), heights[c]-first, g)
		heights[c] += 1 + len(g.keys)
	}
	y := heights[0]
	for _, h := range heights {
		y = max(y, h)
	}
	if len(help.off) > 0 {
		y++
		p.Text(1, y-first, cell.Title, "Not now")
		y++
	}
	for _, k := range help.off {
		p.Text(2, y-first, cell.Disabled, k[0])
		y = p.Sub(0, 0, p.Width()-1, p.Height()).Paragraph(12, y-first, cell.Disabled, k[1]) + first
	}
	y++
	for _, m := range help.legend {
		p.Text(1, y-first, m.token, p.Cut(m.text, p.Width()-2))
		y++
	}
	return y
}

func drawGroup(p cell.Pane, y int, g keyGroup) {
	p.Text(0, y, cell.Title, g.title)
	for i, b := range g.keys {
		h := b.Help()
		p.Text(1, y+1+i, cell.Key, h.Key)
		p.Text(11, y+1+i, cell.Body, p.Cut(h.Desc, p.Width()-11))
	}
}

// commands are the keys that tell the loop something.
func (k *keyMap) commands() []commandKey {
	return []commandKey{
		{k.Apply, engine.CommandApply}, {k.Revert, engine.CommandRevert}, {k.Continue, engine.CommandContinue},
		{k.Skip, engine.CommandSkip}, {k.Measure, engine.CommandRemeasure}, {k.Hold, engine.CommandHold}, {k.Pause, engine.CommandPause},
	}
}

type commandKey struct {
	binding key.Binding
	command engine.Command
}

// offNow lists the keys that do nothing now, each with the reason.
func offNow(s *engine.Snapshot) [][2]string {
	var list [][2]string
	k := keys()
	for _, c := range k.commands() {
		if why := whyNot(s, c.command); why != "" {
			list = append(list, [2]string{c.binding.Help().Key, why})
		}
	}
	return list
}

// whyNot is the reason why a command does nothing now, "" where it does.
func whyNot(s *engine.Snapshot, c engine.Command) string {
	switch a := s.Can[c]; {
	case a.OK:
		return ""
	case a.Why != "":
		return a.Why
	}
	return "There is nothing to do with it now."
}

func legend(u *look) []remark {
	g := u.glyphs
	return []remark{
		{cell.Title, "Signs"},
		{cell.OK, " " + g.Good + " fine or better"},
		{cell.Warn, " " + g.Warn + " needs a look"},
		{cell.Bad, " " + g.Bad + " broken or worse"},
		{cell.Body, " " + g.Dash + " not known    (est) an estimate    " + g.Point + " now    " + g.Past + " before"},
		{cell.Baseline, " before a change"},
		{cell.Trial, " after it"},
		{cell.Achievable, " achievable: what good software gets out of this hardware at this load"},
		{cell.Ideal, " ideal: what physics allows, nothing lost"},
		{cell.Muted, " rooftop explain NAME: what a finding or figure means, its limits, its remedy"},
	}
}
