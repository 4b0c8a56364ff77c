package tui

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// situation returns the panel of what happens now, in phases that have more to show than
// measurements: what the run waits for, its progress, and what to do.
func (v *nowView) situation(w int) frame.Panel {
	switch phase := v.s.Phase; {
	case phase == loop.PhaseAttach:
		return v.measuring(w, "Reading the server")
	case phase == loop.PhaseBaseline && noLoad(v.s):
		return v.measuring(w, "Waiting for load")
	case phase == loop.PhaseBaseline, phase == loop.PhaseApplying, phase == loop.PhaseSettling, phase == loop.PhaseMeasuring, phase == loop.PhaseCanary:
		return v.measuring(w, strings.TrimSuffix(tuning.Sentence(stages()[phase].Words), "."))
	}
	switch v.s.Phase {
	case loop.PhaseDown:
		return v.down(w)
	case loop.PhaseWorse:
		return v.worse(w)
	case loop.PhaseReverting:
		return v.reverting(w)
	case loop.PhaseDone:
		return v.done(w)
	}
	return frame.Panel{}
}

// progress returns a progress bar, and what the run waits for, unless that is the panel's title.
func (v *nowView) progress(w int, title string) []frame.Block {
	s, u := v.s, v.u
	at := s.Progress
	var list []frame.Block
	if at.Total > 0 {
		stage := frame.Stage{Elapsed: min(at.Elapsed, at.Total), Total: at.Total, Token: cell.Accent}
		text := strings.TrimSpace(stage.Progress(true))
		list = append(list, frame.Block{Lines: 1, Keep: 93, Draw: func(p cell.Pane) {
			x := 0
			if room := p.Width() - cell.Width(text) - 2; room >= 10 {
				x = min(room, 60) + 2
				stage.Bar(p.Sub(0, 0, x-2, 1), u)
			}
			p.Text(x, 0, cell.Body, text)
		}})
	}
	if at.Text != "" && tuning.Sentence(at.Text) != tuning.Sentence(title) {
		keep := 91
		if at.Total > 0 { // the title shows it
			keep = 64
		}
		list = append(list, u.Paragraph(w, keep, nil, page.Toned(cell.Body, tuning.Sentence(at.Text))))
	}
	return list
}

// measuring returns the panel of a phase that ends by itself, none while the server is ill and nothing is
// measured. For a change on trial it includes the change and the results so far.
func (v *nowView) measuring(w int, title string) frame.Panel {
	s, u := v.s, v.u
	if s.Condition.Ill() {
		return frame.Panel{}
	}
	q := frame.Panel{Title: title, Token: cell.Accent}
	it := v.last()
	trial := it != nil && it.End == loop.IterationOpen && s.Phase != loop.PhaseBaseline
	if trial {
		q.Add(u.Paragraph(w, 92, nil, page.Toned(cell.Strong, tuning.Sentence(it.Text))))
	}
	looks := (s.Phase == loop.PhaseMeasuring || s.Phase == loop.PhaseCanary) && s.Trial != nil
	if looks {
		q.Note = page.Toned(cell.Muted, lookWords(v.s.Trial))
		q.Add(v.trial(w)...)
	} else {
		q.Add(v.progress(w, title)...)
	}
	if trial && !looks {
		if said := expectation(it); said != "" {
			q.Add(u.Paragraph(w, 79, nil, page.Toned(cell.Muted, "Output "+said+".")))
		}
	}
	if text := autopilotDoes(s); s.Auto && text != "" {
		says := page.Toned(cell.Body, text)
		if limits := s.Limits.Summary(); q.Note == nil {
			q.Note = page.Toned(cell.Muted, limits)
		} else {
			says = page.Join(says, page.Toned(cell.Muted, " "+tuning.Sentence(limits)))
		}
		q.Add(u.Field(w, 80, "then", says))
	}
	if trial && it.Before != nil {
		q.Add(v.soFar(w, it)...)
	}
	return q
}

// soFar returns the figures of a change that is being measured, as of the latest look: what is measured since may
// be left out as warm-up at the next. While nothing counts, it says so unless the looks do.
func (v *nowView) soFar(w int, it *loop.Iteration) []frame.Block {
	s, u := v.s, v.u
	if s.Phase == loop.PhaseSettling {
		return []frame.Block{u.Paragraph(w, 78, nil, page.Toned(cell.Muted, "Nothing counts yet: the measurement starts once the load is steady."))}
	}
	if s.Phase != loop.PhaseMeasuring || s.Trial == nil || s.Live == nil || lastResult(s.Trial.Results) == nil {
		return nil
	}
	d := effect.Compare(it.Before, s.Live)
	d.Verdict = lastResult(s.Trial.Results)
	rows := deltas(u, w, &d, it.Predicted, true)
	for i := range rows { // the interval is more informative
		rows[i].Keep -= keepLess
	}
	return rows
}

// keepLess lowers the priority of figures without an interval.
const keepLess = 8

// down returns the panel of a server that does not respond after a change. The banner reports the
// outage itself.
func (v *nowView) down(w int) frame.Panel {
	u, it := v.u, v.last()
	if it == nil || it.End != loop.IterationOpen {
		return frame.Panel{}
	}
	q := frame.Panel{Title: "Restart", Token: cell.Accent}
	q.Add(u.Paragraph(w, 95, nil, page.Toned(cell.Strong, tuning.Sentence(it.Text))))
	if v.s.Can[loop.CommandRevert].OK {
		q.Add(v.option(w, loop.CommandRevert, "r", "revert", "restore the previous settings."))
	}
	return q
}

// worse returns the panel with the choice to revert or continue, and the effects of each.
func (v *nowView) worse(w int) frame.Panel {
	q := frame.Panel{Title: "Your decision", Token: cell.Bad}
	it := v.last()
	back := "restore the previous settings"
	if it != nil && len(it.Changes) > 0 {
		back = "undo " + tuning.IterationChange(it)
	}
	how := ": restart the server with the command that is shown then; rooftop notices."
	if v.s.CanApply {
		how = ": rooftop restarts the server."
	}
	q.Add(v.option(w, loop.CommandRevert, "r", "revert", back+how+" The baseline stays."))
	q.Add(v.option(w, loop.CommandContinue, "c", "continue", "keep the current settings as the new baseline."))
	return q
}

// option returns one answer to a question.
func (v *nowView) option(w int, c loop.Command, key, name, does string) frame.Block {
	u := v.u
	label := page.Join(page.Toned(cell.Key, " ["+key+"] "), page.Toned(cell.Strong, name+spaces(10-len(name))))
	if a := v.s.Can[c]; !a.OK {
		label = page.Toned(cell.Disabled, label.String())
		does = cmp.Or(a.Why, "not now")
	}
	return u.Paragraph(w, 96, label, page.Toned(cell.Body, does))
}

// reverting returns the panel of a run that waits for the previous settings.
func (v *nowView) reverting(w int) frame.Panel {
	u, s := v.u, v.s
	q := frame.Panel{Title: "Reverting", Token: cell.Accent}
	if s.Auto {
		q.Add(u.Paragraph(w, 95, nil, page.Toned(cell.Strong, "rooftop restores the settings from before the change.")))
		q.Add(v.progress(w, q.Title)...)
		return q
	}
	q.Add(u.Paragraph(w, 95, nil, page.Toned(cell.Strong, "Restart the server with the settings from before the change; rooftop notices.")))
	command := commandOf(s)
	if command != "" {
		q.Add(u.Field(w, 94, "command", page.Toned(cell.Accent, command)))
		q.Add(u.Field(w, 85, "keys", u.Key("y", "copy the command")))
	}
	if s.Progress.Text != "" && !strings.Contains(s.Progress.Text, command) || command == "" {
		q.Add(v.progress(w, q.Title)...)
	}
	return q
}

// done returns the panel of how the run ended.
func (v *nowView) done(w int) frame.Panel {
	u, f := v.u, v.s.Finished
	if f == nil {
		return frame.Panel{}
	}
	q := frame.Panel{Title: "Finished", Token: cell.Accent}
	if f.Gain.Finite().OK && f.Gain.V != 0 {
		gain := tuning.Change(f.Gain)
		if f.GainKnown {
			gain = f.GainWithin.String()
		}
		text := fmt.Sprintf("Output %s over the whole run, in %s", gain, figure.Counted(f.Restarts, "restart"))
		if f.Downtime > 0 {
			text += ", " + figure.Elapsed(f.Downtime) + " down"
		}
		q.Add(u.Paragraph(w, 95, nil, page.Toned(cell.Strong, text+".")))
	}
	q.Add(u.Paragraph(w, 84, nil, page.Toned(cell.Body, tuning.Sentence(f.Score.Summary()))))
	q.Add(u.Field(w, 58, "best", page.Toned(cell.Body, f.Command)))
	return q
}
