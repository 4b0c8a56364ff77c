package tui

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// revertingFirst is the notice when the user quits while the server runs with a change that is not
// kept.
const revertingFirst = "reverting first, then the run ends; ctrl+c leaves the screen"

// revertsFirst reports whether quitting reverts a change first. The screen stays until that is done.
func (m *model) revertsFirst() bool { return m.latest != nil && m.latest.RevertsFirst }

// Press handles a key. An interrupt first reverts what is not kept.
func (m *model) Press(k tea.KeyPressMsg) tea.Cmd {
	if !frame.Pressed(k, m.Keys.Interrupt) {
		return m.Handle(k, m.actions, m.pressOver)
	}
	m.Changed = true
	if m.revertsFirst() && !m.interrupted {
		m.interrupted = true
		m.Open(frame.OverlayNone)
		m.do(loop.CommandQuit, revertingFirst)
		return nil
	}
	m.controls.Do(loop.CommandQuit)
	return tea.Quit
}

// actions returns what the keys do, in the order of precedence: the keys of a recording come before
// others that share a key with them.
func (m *model) actions() []frame.Action {
	k := &m.Keys
	var list []frame.Action
	if m.Options.Playback != nil {
		list = append(list, frame.OnKey(k.Pause, m.stopTape))
	}
	return append(append(list, m.Moves()...),
		frame.OnKey(k.SeekBack, func() { m.seek(-1) }), frame.OnKey(k.SeekOn, func() { m.seek(1) }),
		frame.OnKey(k.Faster, func() { m.speed(1) }), frame.OnKey(k.Slower, func() { m.speed(-1) }),
		frame.OnKey(k.Window, m.nextWindow),
		frame.OnKey(k.Detail, m.evidence),
		frame.Action{Binding: k.Back, Do: func(k tea.KeyPressMsg) tea.Cmd {
			if m.Back(k) {
				m.freeze()
			}
			return nil
		}},
		frame.OnKey(k.Freeze, m.freeze),
		frame.OnKey(k.Apply, m.askApply),
		frame.OnKey(k.Revert, m.askRevert),
		frame.OnKey(k.Continue, func() { m.do(loop.CommandContinue, "continued: this is the new baseline") }),
		frame.OnKey(k.Skip, func() { m.do(loop.CommandSkip, "skipped: u undoes it") }),
		frame.OnKey(k.Unskip, func() { m.do(loop.CommandUnskip, "the skip was undone") }),
		frame.OnKey(k.Measure, func() { m.do(loop.CommandRemeasure, "measuring again") }),
		frame.OnKey(k.Hold, m.hold),
		frame.OnKey(k.Pause, func() { m.do(loop.CommandPause, "") }),
		frame.Action{Binding: k.Copy, Do: func(tea.KeyPressMsg) tea.Cmd { return m.copyCommand() }},
		frame.OnKey(k.Export, m.export),
		frame.Action{Binding: k.Quit, Do: func(tea.KeyPressMsg) tea.Cmd { return m.askQuit() }},
	)
}

func (m *model) freeze() {
	m.Settings.Frozen = !m.Settings.Frozen
	if !m.Settings.Frozen {
		m.shown = m.latest
	}
}

// pressOver handles a key while an overlay is open. The default answer to any question is no.
func (m *model) pressOver(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch asks := m.Settings.Over == frame.OverlayAsk; {
	case !(asks && (name == "k" || name == "j")) && m.ScrollOverlay(k):
		return nil
	case asks:
		return m.answer(name)
	case m.Settings.Over == frame.OverlayText && frame.Pressed(k, m.Keys.Copy):
		m.Open(frame.OverlayNone)
		return nil
	}
	m.CloseOverlay(k)
	return nil
}

func (m *model) answer(name string) tea.Cmd {
	u := &m.Settings
	switch name {
	case "left", "right", "tab", "shift+tab", "h", "l":
		u.Yes = !u.Yes
	case "n", "N", "esc", "q":
		m.Open(frame.OverlayNone)
	case "y", "Y":
		return m.yes()
	case "enter":
		if u.Yes {
			return m.yes()
		}
		m.Open(frame.OverlayNone)
	default:
		m.Notify(frame.Remark{Token: cell.Warn, Text: name + ": answer the question first, y or n."})
	}
	return nil
}

// yes performs the confirmed command, if it still means the same change.
func (m *model) yes() tea.Cmd {
	d := m.Settings.Ask
	m.Open(frame.OverlayNone)
	switch {
	case d.Command == loop.CommandQuit && m.revertsFirst():
		m.interrupted = true
		m.do(loop.CommandQuit, revertingFirst)
	case d.Command == loop.CommandQuit:
		m.controls.Do(loop.CommandQuit)
		return tea.Quit
	case aboutOf(m.latest, d.Command) != d.About && d.Command == loop.CommandApply:
		m.Notify(frame.Remark{Token: cell.Warn, Text: "Nothing was changed: the recommendation is a different one now. Check it again."})
	case aboutOf(m.latest, d.Command) != d.About:
		m.Notify(frame.Remark{Token: cell.Warn, Text: "Nothing was undone: the last change is a different one now. Check it again."})
	default:
		m.do(d.Command, "")
	}
	return nil
}

// do sends a command to the loop and then shows done, or shows why the command does nothing now.
func (m *model) do(c loop.Command, done string) {
	if m.latest == nil {
		m.Notify(frame.Remark{Token: cell.Warn, Text: "The run has not begun yet."})
		return
	}
	if why := whyNot(m.latest, c); why != "" {
		m.Notify(frame.Remark{Token: cell.Warn, Text: m.keyOf(c) + ": " + figure.Stopped(why)})
		return
	}
	if !m.controls.Do(c) {
		m.Notify(frame.Remark{Token: cell.Warn, Text: "Too busy to take that now: press it again."})
		return
	}
	if done != "" {
		m.Notify(frame.Remark{Token: cell.OK, Text: figure.Stopped(strings.ToUpper(done[:1]) + done[1:])})
	}
}

// hold pauses the autopilot before its next action, or resumes it.
func (m *model) hold() {
	done := "paused: no more changes until " + m.Keys.Hold.Help().Key + " is pressed again"
	if m.latest != nil && m.latest.Held {
		done = "autopilot resumed"
	}
	m.do(loop.CommandHold, done)
}

func (m *model) keyOf(c loop.Command) string {
	for _, k := range commands(&m.Keys) {
		if k.command == c {
			return k.binding.Help().Key
		}
	}
	return ""
}

// evidence opens the evidence view. From the views Now and Roofline it filters for the
// recommendation.
func (m *model) evidence() {
	if m.Settings.View == viewEvidence {
		m.Notify(frame.Remark{Token: cell.Warn, Text: "This is the evidence; / searches it."})
	}
	if s := m.shown; s != nil && s.Advice != nil && (m.Settings.View == viewNow || m.Settings.View == viewRoofline) {
		m.Settings.Filter = string(s.Advice.Finding)
	}
	m.Settings.View, m.Settings.Scroll[viewEvidence] = viewEvidence, 0
}

// readTape reads the position in the recording.
func (m *model) readTape() {
	if m.Options.Playback == nil {
		return
	}
	t := frame.Tape{Resume: 1}
	if m.Settings.Tape != nil {
		t.Resume = m.Settings.Tape.Resume
	}
	t.Now, t.Total, t.Speed = m.Options.Playback.At()
	if t.Speed > 0 {
		t.Resume = t.Speed
	}
	if m.Settings.Tape == nil || *m.Settings.Tape != t {
		m.Settings.Tape, m.Changed = &t, true
	}
}

// seekStep is how far left and right move in a recording.
const seekStep = 10 * time.Second

// seek moves in a recording.
func (m *model) seek(by int) {
	if m.Options.Playback == nil {
		m.Notify(frame.Remark{Token: cell.Warn, Text: "Only a recording can be rewound or advanced. w limits the charts to the last minutes; tab opens the next view."})
		return
	}
	m.Options.Playback.Seek(time.Duration(by) * seekStep)
}

// nextWindow lets the charts show the next longer time.
func (m *model) nextWindow() {
	list := [...]time.Duration{0, time.Minute, 5 * time.Minute, 15 * time.Minute}
	u := &m.Settings
	u.Window = list[(slices.Index(list[:], u.Window)+1)%len(list)]
	text := "the whole run."
	if u.Window > 0 {
		text = "the last " + bucketLength(u.Window) + "."
	}
	m.Notify(frame.Remark{Token: cell.OK, Text: "Charts: " + text})
}

// speed selects the next faster or slower speed of a recording.
func (m *model) speed(by int) {
	if m.Options.Playback == nil {
		m.Notify(frame.Remark{Token: cell.Warn, Text: "Only a recording has a speed; this server is live."})
		return
	}
	now := m.Settings.Tape.Resume
	list := frame.Speeds()
	at := 0
	for i, v := range list {
		if v <= now {
			at = i
		}
	}
	at = min(max(0, at+by), len(list)-1)
	m.Settings.Tape.Resume = list[at]
	m.Options.Playback.Speed(list[at])
	m.readTape()
}

// stopTape pauses the recording, or resumes it at the previous speed.
func (m *model) stopTape() {
	if m.Settings.Tape.Speed > 0 {
		m.Options.Playback.Speed(0)
	} else {
		m.Options.Playback.Speed(max(1, m.Settings.Tape.Resume))
	}
	m.readTape()
}
