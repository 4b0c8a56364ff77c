package tui

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

// situation is the panel of what goes on now, in phases in which more is asked
// than to watch: what is waited for, how far it is, and what to do.
func (v *nowView) situation(w int) panel {
	s := v.s
	switch s.Phase {
	case engine.PhaseBaseline:
		return v.measuring(w, "Measuring the baseline")
	case engine.PhaseApplying:
		return v.measuring(w, "Restarting the server")
	case engine.PhaseSettling:
		return v.measuring(w, "Settling")
	case engine.PhaseMeasuring:
		return v.measuring(w, "Measuring the change")
	case engine.PhaseAttach:
		return v.measuring(w, "Reading the server")
	case engine.PhaseDown:
		return v.down(w)
	case engine.PhaseWorse:
		return v.worse(w)
	case engine.PhaseReverting:
		return v.reverting(w)
	case engine.PhaseDone:
		return v.done(w)
	}
	return panel{}
}

// progress is a bar with how far a phase is, and what it waits for where the
// title of the panel does not say it.
func (v *nowView) progress(w int, title string) []block {
	s, u := v.s, v.u
	at := s.Progress
	var list []block
	if at.Of > 0 {
		text := u.spell(figure.Whole(float64(seconds(min(at.Elapsed, at.Of)))) + " of " + lasting(at.Of))
		list = append(list, block{lines: 1, keep: 93, draw: func(p cell.Pane) {
			room := p.Width() - cell.Width(text) - 2
			if room >= 10 {
				bar := chart.Bar{Value: stat.Some(at.Elapsed.Seconds()), Token: cell.Accent, Top: at.Of.Seconds()}
				bar.Draw(p.Sub(0, 0, min(room, 60), 1), u.glyphs)
				p.Text(min(room, 60)+2, 0, cell.Body, text)
				return
			}
			p.Text(0, 0, cell.Body, text)
		}})
	}
	if at.Text != "" && told(at.Text) != told(title) {
		keep := 91
		if at.Of > 0 { // the title says it
			keep = 64
		}
		list = append(list, u.text(w, keep, nil, u.say(cell.Body, told(at.Text))))
	}
	return list
}

// measuring is a phase that ends by itself; of a change under trial, what it was
// and how it looks so far against what was before.
func (v *nowView) measuring(w int, title string) panel {
	s, u := v.s, v.u
	q := panel{title: title, token: cell.Accent}
	it := v.last()
	trial := it != nil && it.End == engine.IterationOpen && s.Phase != engine.PhaseBaseline
	if trial && it.Text != "" {
		q.blocks = append(q.blocks, u.text(w, 92, nil, u.say(cell.Strong, told(it.Text))))
	}
	looks := v.s.Phase == engine.PhaseMeasuring && v.s.Trial != nil
	if looks {
		q.note = u.say(cell.Muted, lookWords(v.s.Trial))
		q.blocks = append(q.blocks, v.trial(w)...)
	} else {
		q.blocks = append(q.blocks, v.progress(w, title)...)
	}
	if trial && !looks {
		if said := expectation(it); said != "" {
			q.blocks = append(q.blocks, u.text(w, 79, nil, u.say(cell.Muted, "Output "+said+".")))
		}
	}
	if text := autopilotDoes(s); s.Auto && text != "" {
		says := u.say(cell.Body, text)
		if limits := s.Limits.Told(); q.note == nil {
			q.note = u.say(cell.Muted, limits)
		} else {
			says = line(says, u.say(cell.Muted, " "+told(limits)))
		}
		q.blocks = append(q.blocks, v.field(w, 80, "then", says))
	}
	if trial && (s.Phase == engine.PhaseMeasuring || s.Phase == engine.PhaseSettling) && it.Before != nil && s.Live != nil {
		d := engine.Compare(it.Before, s.Live)
		if q.note == nil {
			q.note = u.say(cell.Muted, "before → so far")
		}
		rows := v.deltas(&d, it.Predicted, true)
		for i := range rows {
			if looks { // the interval says more than one figure
				rows[i].keep -= keepLess
			}
		}
		q.blocks = append(q.blocks, rows...)
	}
	return q
}

// keepLess is by how much sooner figures without an interval give way to those with
// one.
const keepLess = 8

// down is a server that does not answer after a change; that it does not is said
// above the view.
func (v *nowView) down(w int) panel {
	u, it := v.u, v.last()
	if it == nil || it.End != engine.IterationOpen {
		return panel{}
	}
	q := panel{title: "Restart", token: cell.Accent}
	q.blocks = append(q.blocks, u.text(w, 95, nil, u.say(cell.Strong, told(it.Text))))
	if v.s.Can[engine.CommandRevert].OK {
		q.blocks = append(q.blocks, v.option(w, engine.CommandRevert, "r", "revert", "put the settings from before back."))
	}
	return q
}

// worse asks: revert or continue, and what each will do.
func (v *nowView) worse(w int) panel {
	q := panel{title: "Your decision", token: cell.Bad}
	it := v.last()
	back := "go back to the settings from before"
	if it != nil && len(it.Changes) > 0 {
		back = "undo " + changeOf(it)
	}
	how := ": you restart it, with the command that is shown then, and rooftop notices."
	if v.s.Hands {
		how = ": rooftop restarts the server."
	}
	q.blocks = append(q.blocks, v.option(w, engine.CommandRevert, "r", "revert", back+how+" The baseline stays as it was."))
	q.blocks = append(q.blocks, v.option(w, engine.CommandContinue, "c", "continue", "keep what runs now: it becomes the baseline that the next change is judged against."))
	return q
}

// option is one answer to a question.
func (v *nowView) option(w int, c engine.Command, key, name, does string) block {
	u := v.u
	label := line(u.say(cell.Key, " ["+key+"] "), u.say(cell.Strong, name+pad(10-len(name))))
	if a := v.s.Can[c]; !a.OK {
		label = label.with(cell.Disabled)
		does = cmp.Or(a.Why, "not now")
	}
	return u.text(w, 96, label, u.say(cell.Body, does))
}

// reverting waits for the settings from before.
func (v *nowView) reverting(w int) panel {
	u, s := v.u, v.s
	q := panel{title: "Going back", token: cell.Accent}
	if s.Auto {
		q.blocks = append(q.blocks, u.text(w, 95, nil, u.say(cell.Strong, "rooftop puts back the settings from before the change.")))
		q.blocks = append(q.blocks, v.progress(w, q.title)...)
		return q
	}
	q.blocks = append(q.blocks, u.text(w, 95, nil, u.say(cell.Strong, "Restart the server with the settings from before the change: rooftop notices.")))
	command := commandOf(s)
	if command != "" {
		q.blocks = append(q.blocks, v.field(w, 94, "command", u.say(cell.Accent, command)))
		q.blocks = append(q.blocks, v.field(w, 85, "keys", u.key("y", "copy the command")))
	}
	if s.Progress.Text != "" && !strings.Contains(s.Progress.Text, command) || command == "" {
		q.blocks = append(q.blocks, v.progress(w, q.title)...)
	}
	return q
}

// done says how the run ended.
func (v *nowView) done(w int) panel {
	u, f := v.u, v.s.Finished
	if f == nil {
		return panel{}
	}
	q := panel{title: "Finished", token: cell.Accent}
	if number(f.Gain) && f.Gain.V != 0 {
		gain := changeShown(f.Gain)
		if f.GainKnown {
			gain = engine.SpellInterval(f.GainWithin)
		}
		text := fmt.Sprintf("Output %s over the whole run, in %s", gain, counted(f.Restarts, "restart"))
		if f.Downtime > 0 {
			text += ", " + engine.SpellTime(f.Downtime) + " down"
		}
		q.blocks = append(q.blocks, u.text(w, 95, nil, u.say(cell.Strong, text+".")))
	}
	if text := f.Score.Told(); text != "" {
		q.blocks = append(q.blocks, u.text(w, 84, nil, u.say(cell.Body, told(text))))
	}
	if f.Command != "" {
		q.blocks = append(q.blocks, v.field(w, 58, "best", u.say(cell.Body, f.Command)))
	}
	return q
}
