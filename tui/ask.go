package tui

import (
	"cmp"
	"fmt"
	"slices"

	"charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// askApply asks once before a change is made, and names it. Where rooftop cannot
// make it, it shows what to type.
func (m *model) askApply() {
	s := m.latest
	if s == nil {
		m.do(engine.CommandApply, "")
		return
	}
	if why := whyNot(s, engine.CommandApply); why != "" {
		if s.Advice == nil || commandOf(s) == "" {
			m.do(engine.CommandApply, "")
			return
		}
		m.look.ask = dialog{title: "Nothing was applied", lines: append(remarks{
			{cell.Warn, sentence(why)}, {cell.Body, ""},
			{cell.Strong, adviceOf(s.Advice)}, {cell.Body, ""},
		}, commandLines(s)...)}
		m.open(overlayText)
		return
	}
	d := dialog{
		title: "Apply this change?", yes: "Yes, restart the server", no: "No", command: engine.CommandApply, about: aboutOf(s, engine.CommandApply),
		lines: remarks{{cell.Accent, adviceOf(s.Advice)}, {cell.Body, "Downtime: " + downtime(s)}},
	}
	for _, price := range s.Advice.Price {
		d.lines = append(d.lines, remark{cell.Body, "Price: " + price})
	}
	if s.Advice.Launch != "" {
		d.lines = append(d.lines, remark{cell.Muted, "Starts: " + s.Advice.Launch})
	}
	m.look.ask = d
	m.open(overlayAsk)
}

// aboutOf tells what a command would do from what it would do in another
// snapshot: the recommendation that it makes, the change that it undoes.
func aboutOf(s *engine.Snapshot, c engine.Command) string {
	switch {
	case s == nil:
	case c == engine.CommandApply && s.Advice != nil:
		return adviceOf(s.Advice) + "\n" + s.Advice.Launch
	case c == engine.CommandRevert && len(s.Iterations) > 0:
		return fmt.Sprint(s.Iterations[len(s.Iterations)-1].N)
	}
	return ""
}

// downtime is what the last restart took; the first is not known beforehand.
func downtime(s *engine.Snapshot) string {
	for _, it := range slices.Backward(s.Iterations) {
		if it.Up > it.At {
			return "about " + show((it.Up - it.At).Seconds()) + ", as the last restart took. Requests in flight are lost."
		}
	}
	return "not known before the first restart; the model is loaded again. Requests in flight are lost."
}

// askRevert goes back at once where that was the question; elsewhere it asks.
func (m *model) askRevert() {
	s := m.latest
	if s == nil || whyNot(s, engine.CommandRevert) != "" || s.Phase == engine.PhaseWorse {
		m.do(engine.CommandRevert, "")
		return
	}
	what := cmp.Or(lastChange(s), "the last change")
	m.look.ask = dialog{
		title: "Undo the last change?", yes: "Yes, undo it", no: "No", command: engine.CommandRevert, about: aboutOf(s, engine.CommandRevert),
		lines: remarks{{cell.Accent, "Undo " + what}, {cell.Body, "Downtime: " + downtime(s)}},
	}
	m.open(overlayAsk)
}

// askQuit leaves, but not out of the middle of a change without a word.
func (m *model) askQuit() tea.Cmd {
	left := ""
	if m.latest != nil {
		left = underWay(m.latest)
	}
	if left == "" || m.o.Playback != nil {
		m.controls.Do(engine.CommandQuit)
		return tea.Quit
	}
	m.look.ask = dialog{title: "Quit now?", yes: "Yes, quit", no: "No, stay", command: engine.CommandQuit, lines: remarks{{cell.Warn, left}}}
	m.open(overlayAsk)
	return nil
}

// putsBack says that a run ends by putting back what was kept: the screen stays until
// that is done.
func putsBack(s *engine.Snapshot) bool {
	if s == nil || !s.Auto || !s.Hands || s.Finished != nil {
		return false
	}
	switch s.Phase {
	case engine.PhaseWaiting: // what gained nothing goes out with the next change, or now
		return s.Can[engine.CommandRevert].OK
	case engine.PhaseApplying, engine.PhaseDown, engine.PhaseSettling, engine.PhaseMeasuring, engine.PhaseWorse, engine.PhaseReverting:
		return len(s.Iterations) > 0
	}
	return false
}

// underWay says what quitting now leaves behind, "" nothing.
func underWay(s *engine.Snapshot) string {
	if putsBack(s) {
		return "The server runs with a change that is not kept. rooftop first puts back what is: one more restart."
	}
	switch s.Phase {
	case engine.PhaseApplying:
		return "The server is being restarted. It is left as it comes up, and what the change brought is not measured."
	case engine.PhaseDown:
		return "The server does not answer. It is left as it is, and a change that is under way is not measured."
	case engine.PhaseSettling, engine.PhaseMeasuring:
		return "A change is being measured. The server keeps it, and there is no verdict."
	case engine.PhaseWorse:
		return "The last change made it worse. The server keeps it."
	case engine.PhaseReverting:
		return "The old settings are not back yet. The server keeps what it runs with now."
	}
	return ""
}

// goesBack says that the way back is what there is to type.
func goesBack(s *engine.Snapshot) bool {
	return s.Phase == engine.PhaseWorse || s.Phase == engine.PhaseReverting
}

// commandOf is the command to type now: to go back where that is the way, else to
// make the recommended change; "" where no flag is the remedy.
func commandOf(s *engine.Snapshot) string {
	switch {
	case s == nil:
		return ""
	case goesBack(s):
		return s.Kept
	case s.Advice != nil && s.Advice.Launch != "":
		return s.Advice.Launch
	case s.Advice != nil && s.Advice.Kind == engine.KindFlag:
		return s.Advice.Command
	case s.Finished != nil:
		return s.Finished.Command
	}
	return ""
}

func commandLines(s *engine.Snapshot) remarks {
	list := remarks{{cell.Accent, commandOf(s)}}
	if s.Advice != nil && s.Advice.Launch != "" && s.Advice.Command != "" && commandOf(s) == s.Advice.Launch {
		list = append(list, remark{cell.Body, ""}, remark{cell.Muted, "That is: " + sentence(s.Advice.Command)})
	}
	return append(list, remark{cell.Muted, "rooftop notices the restart by itself."})
}

// copyCommand puts the command on the clipboard, and shows it: not every terminal
// takes what is sent to its clipboard.
func (m *model) copyCommand() tea.Cmd {
	s := m.latest
	command := commandOf(s)
	switch {
	case command == "" && s != nil && goesBack(s):
		m.say(remark{cell.Warn, "The launch command from before the change is not known."})
		return nil
	case command == "":
		m.say(remark{cell.Warn, "There is no command to copy now: no flag of the server is recommended."})
		return nil
	}
	m.look.ask = dialog{title: "Copied, where the terminal allows it", lines: commandLines(s)}
	m.open(overlayText)
	return tea.SetClipboard(command)
}

// export asks for a report; the journal tells what became of it.
func (m *model) export() {
	if !m.controls.Export() {
		m.say(remark{cell.Warn, "Too busy to write a report now: press e again."})
		return
	}
	m.noteAfter = lastEntry(m.latest)
	m.waitsForNote = true
	m.say(remark{cell.OK, "Writing a report …"})
}

// lastEntry is the number of the journal's last entry, -1 where there is none:
// they count from 0.
func lastEntry(s *engine.Snapshot) int {
	if s == nil || len(s.Journal) == 0 {
		return -1
	}
	return s.Journal[len(s.Journal)-1].Seq
}

// hear looks for the journal's word on an export.
func (m *model) hear() {
	if !m.waitsForNote || m.latest == nil {
		return
	}
	for _, e := range m.latest.Journal {
		if e.Seq > m.noteAfter && e.Noted {
			token := cell.OK
			if e.Level >= engine.LevelWarn {
				token = cell.Bad
			}
			m.waitsForNote = false
			m.say(remark{token, e.Text})
			m.noticeLeft *= 2
		}
	}
}
