package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// askApply asks for confirmation before a change, and names it. If rooftop cannot make the change,
// it shows the command to type instead.
func (m *model) askApply() {
	s := m.latest
	if s == nil {
		m.do(loop.CommandApply, "")
		return
	}
	if why := whyNot(s, loop.CommandApply); why != "" {
		if s.Advice == nil || commandOf(s) == "" {
			m.do(loop.CommandApply, "")
			return
		}
		m.Settings.Ask = frame.Dialog{Title: "Nothing was applied", Lines: append(frame.Remarks{
			{Token: cell.Warn, Text: figure.Stopped(why)}, {Token: cell.Body, Text: ""},
			{Token: cell.Strong, Text: tuning.Action(s.Advice)}, {Token: cell.Body, Text: ""},
		}, commandLines(s)...)}
		m.Open(frame.OverlayText)
		return
	}
	d := frame.Dialog{
		Title: "Apply this change?", Yes: "Yes, restart the server", No: "No", Command: loop.CommandApply, About: aboutOf(s, loop.CommandApply),
		Lines: frame.Remarks{{Token: cell.Accent, Text: tuning.Action(s.Advice)}},
	}
	for _, e := range (&nowView{s: s}).expected(s.Advice) {
		parts := slices.DeleteFunc([]string{"Expect:", e.Metric, e.FromTo, e.Change, e.Range}, func(part string) bool { return part == "" })
		d.Lines = append(d.Lines, frame.Remark{Token: e.Tone, Text: strings.Join(parts, " ")})
	}
	if noLoad(s) {
		d.Lines = append(d.Lines, frame.Remark{Token: cell.Warn, Text: "No requests now: the advice is for an earlier load, and a change cannot be judged until there is load again."})
	}
	d.Lines = append(d.Lines, frame.Remark{Token: cell.Body, Text: "Downtime: " + downtime(s)})
	for _, cost := range s.Advice.Costs {
		d.Lines = append(d.Lines, frame.Remark{Token: cell.Body, Text: "Costs: " + cost})
	}
	if s.Advice.Launch != "" {
		d.Lines = append(d.Lines, frame.Remark{Token: cell.Muted, Text: "Starts: " + s.Advice.Launch})
	}
	m.Settings.Ask = d
	m.Open(frame.OverlayAsk)
}

// aboutOf identifies what a command would change: the recommendation that it applies, or the
// iteration that it reverts. It returns "" for other commands.
func aboutOf(s *loop.Snapshot, c loop.Command) string {
	switch {
	case s == nil:
	case c == loop.CommandApply && s.Advice != nil:
		return tuning.Action(s.Advice) + "\n" + s.Advice.Launch
	case c == loop.CommandRevert && len(s.Iterations) > 0:
		return fmt.Sprint(s.Iterations[len(s.Iterations)-1].N)
	}
	return ""
}

// downtime returns how long the last restart took. It is unknown before the first restart.
func downtime(s *loop.Snapshot) string {
	for _, it := range slices.Backward(s.Iterations) {
		if it.Up > it.At {
			return "about " + figure.Duration((it.Up - it.At)) + ", like the last restart. Requests in flight are lost."
		}
	}
	return "not known before the first restart; the model is loaded again. Requests in flight are lost."
}

// askRevert reverts at once if the run waits for that decision. Otherwise it asks for confirmation.
func (m *model) askRevert() {
	s := m.latest
	if s == nil || whyNot(s, loop.CommandRevert) != "" || s.Phase == loop.PhaseWorse {
		m.do(loop.CommandRevert, "")
		return
	}
	what := cmp.Or(lastChange(s), "the last change")
	m.Settings.Ask = frame.Dialog{
		Title: "Undo the last change?", Yes: "Yes, undo it", No: "No", Command: loop.CommandRevert, About: aboutOf(s, loop.CommandRevert),
		Lines: frame.Remarks{{Token: cell.Accent, Text: "Undo " + what}, {Token: cell.Body, Text: "Downtime: " + downtime(s)}},
	}
	m.Open(frame.OverlayAsk)
}

// askQuit quits the screen. During a change it asks for confirmation and says what is left behind.
func (m *model) askQuit() tea.Cmd {
	left := ""
	if m.latest != nil {
		left = underWay(m.latest)
	}
	if left == "" || m.Options.Playback != nil {
		m.controls.Do(loop.CommandQuit)
		return tea.Quit
	}
	m.Settings.Ask = frame.Dialog{Title: "Quit now?", Yes: "Yes, quit", No: "No, stay", Command: loop.CommandQuit, Lines: frame.Remarks{{Token: cell.Warn, Text: left}}}
	m.Open(frame.OverlayAsk)
	return nil
}

// underWay returns what quitting now leaves behind, "" if nothing.
func underWay(s *loop.Snapshot) string {
	if s.RevertsFirst {
		return "The server runs with a change that is not kept. rooftop reverts it first, with one more restart."
	}
	const measured = "A change is being measured. The server keeps it, and there is no verdict."
	return map[loop.Phase]string{
		loop.PhaseDown:     "The server does not answer. It is left as it is; the change will not be measured.",
		loop.PhaseSettling: measured, loop.PhaseMeasuring: measured,
		loop.PhaseCanary:    "A canary runs beside the server. It is removed, and there is no verdict.",
		loop.PhaseWorse:     "The last change made it worse. The server keeps it.",
		loop.PhaseReverting: "The previous settings are not restored yet. The server keeps the ones that it runs with now.",
	}[s.Phase]
}

// mustRevert reports whether the command to type is the one that reverts.
func mustRevert(s *loop.Snapshot) bool {
	return s.Phase == loop.PhaseWorse || s.Phase == loop.PhaseReverting
}

// commandOf returns the command to type now: to revert if that is due, otherwise to make the
// recommended change. It returns "" if no flag helps.
func commandOf(s *loop.Snapshot) string {
	switch {
	case s == nil:
		return ""
	case mustRevert(s):
		return s.Kept
	case s.Preliminary != "":
		return ""
	case s.Advice != nil && s.Advice.Launch != "":
		return s.Advice.Launch
	case s.Advice != nil && s.Advice.Kind == engine.KindFlag:
		return s.Advice.Command
	case s.Finished != nil:
		return s.Finished.Command
	}
	return ""
}

// commandLines returns the command to type, with remarks.
func commandLines(s *loop.Snapshot) frame.Remarks {
	list := frame.Remarks{{Token: cell.Accent, Text: commandOf(s)}}
	if s.Advice != nil && s.Advice.Launch != "" && s.Advice.Command != "" && commandOf(s) == s.Advice.Launch {
		list = append(list, frame.Remark{Token: cell.Body, Text: ""}, frame.Remark{Token: cell.Muted, Text: "That is: " + figure.Stopped(s.Advice.Command)})
	}
	return append(list, frame.Remark{Token: cell.Muted, Text: "rooftop notices the restart by itself."})
}

// copyCommand copies the command to the clipboard, and also shows it: not every terminal accepts
// clipboard data.
func (m *model) copyCommand() tea.Cmd {
	s := m.latest
	command := commandOf(s)
	switch {
	case command == "" && s != nil && mustRevert(s):
		m.Notify(frame.Remark{Token: cell.Warn, Text: "The launch command before the change is unknown."})
		return nil
	case command == "" && s != nil && s.Preliminary != "":
		m.Notify(frame.Remark{Token: cell.Warn, Text: loop.WhyPreliminary(s.Preliminary)})
		return nil
	case command == "":
		m.Notify(frame.Remark{Token: cell.Warn, Text: "There is no command to copy now: no flag of the server is recommended."})
		return nil
	}
	m.Settings.Ask = frame.Dialog{Title: "Copied, if the terminal allows it", Lines: commandLines(s)}
	m.Open(frame.OverlayText)
	return tea.SetClipboard(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) { // what a server is called could end a paste and begin a command
			return unicode.ReplacementChar
		}
		return r
	}, command))
}

// export requests a report. The journal reports whether it was written.
func (m *model) export() {
	if !m.controls.Export() {
		m.Notify(frame.Remark{Token: cell.Warn, Text: "Too busy to write a report now: press e again."})
		return
	}
	m.noteAfter = lastEntry(m.latest)
	m.waitsForNote = true
	m.Notify(frame.Remark{Token: cell.OK, Text: "Writing a report …"})
}

// lastEntry returns the number of the last journal entry, or -1 without entries: they count from 0.
func lastEntry(s *loop.Snapshot) int {
	if s == nil || len(s.Journal) == 0 {
		return -1
	}
	return s.Journal[len(s.Journal)-1].Seq
}

// noticeExport shows the journal's result of an export once it is there.
func (m *model) noticeExport() {
	if !m.waitsForNote || m.latest == nil {
		return
	}
	for _, e := range m.latest.Journal {
		if e.Seq > m.noteAfter && e.Noted {
			token := cell.OK
			if e.Level >= loop.LevelWarn {
				token = cell.Bad
			}
			m.waitsForNote = false
			m.Notify(frame.Remark{Token: token, Text: e.Text})
			m.NoticeLeft *= 2
		}
	}
}
