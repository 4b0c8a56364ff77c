package tui

import (
	"strings"
	"time"

	"charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// puttingBack is said where a run is told to end while something else than what was
// kept runs.
const puttingBack = "what was kept is put back, then the run ends; ctrl+c ends it at once"

// press answers a key: what always works first, then what lies over the view, then
// the view.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	m.changed = true
	switch {
	case hits(k, m.keys.Interrupt) && putsBack(m.latest) && !m.interrupted:
		m.interrupted = true
		m.open(overlayNone)
		m.do(engine.CommandQuit, puttingBack)
		return nil
	case hits(k, m.keys.Interrupt):
		m.controls.Do(engine.CommandQuit)
		return tea.Quit
	case hits(k, m.keys.Suspend):
		return tea.Suspend
	case m.look.typing:
		m.typeFilter(k)
		return nil
	case m.look.over != overlayNone:
		return m.pressOver(k)
	}
	return m.act(k, m.actions())
}

// actions are what the keys do, in the order in which they are looked at: those of
// a recording stand before those that share a key with them.
func (m *model) actions() []action {
	k := &m.keys
	var list []action
	if m.o.Playback != nil {
		list = append(list,
			does(k.SeekBack, func() { m.o.Playback.Seek(-seekStep) }), does(k.SeekOn, func() { m.o.Playback.Seek(seekStep) }),
			does(k.Faster, func() { m.speed(1) }), does(k.Slower, func() { m.speed(-1) }),
			does(k.Pause, m.stopTape),
		)
	}
	return append(append(list, m.moves()...),
		does(k.Filter, func() { m.look.view, m.look.typing = viewEvidence, true }),
		does(k.Detail, m.evidence),
		does(k.Back, func() {
			if m.back() {
				m.freeze()
			}
		}),
		does(k.Freeze, m.freeze),
		does(k.Apply, m.askApply),
		does(k.Revert, m.askRevert),
		does(k.Continue, func() { m.do(engine.CommandContinue, "continued: this is the new baseline") }),
		does(k.Skip, func() { m.do(engine.CommandSkip, "skipped") }),
		does(k.Measure, func() { m.do(engine.CommandRemeasure, "measuring again") }),
		does(k.Hold, m.hold),
		does(k.Pause, func() { m.do(engine.CommandPause, "") }),
		action{k.Copy, func(tea.KeyPressMsg) tea.Cmd { return m.copyCommand() }},
		does(k.Export, m.export),
		action{k.Quit, func(tea.KeyPressMsg) tea.Cmd { return m.askQuit() }},
	)
}

func (m *model) freeze() {
	m.look.frozen = !m.look.frozen
	if !m.look.frozen {
		m.shown = m.latest
	}
}

// pressOver answers a key while something lies over the view. Whatever is asked,
// the answer is no until yes is chosen.
func (m *model) pressOver(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch asks := m.look.over == overlayAsk; {
	case asks && (name == "k" || name == "j"):
		return nil
	case m.moved(k):
		return nil
	case asks:
		return m.answer(name)
	case m.look.over == overlayText && hits(k, m.keys.Copy):
		m.open(overlayNone)
		return nil
	}
	m.leave(k)
	return nil
}

func (m *model) answer(name string) tea.Cmd {
	u := &m.look
	switch name {
	case "left", "right", "tab", "shift+tab", "h", "l":
		u.yes = !u.yes
	case "n", "N", "esc", "q":
		m.open(overlayNone)
	case "y", "Y":
		return m.yes()
	case "enter":
		if u.yes {
			return m.yes()
		}
		m.open(overlayNone)
	}
	return nil
}

// yes does what was asked about, if it is still the same.
func (m *model) yes() tea.Cmd {
	d := m.look.ask
	m.open(overlayNone)
	switch {
	case d.command == engine.CommandQuit && putsBack(m.latest):
		m.interrupted = true
		m.do(engine.CommandQuit, puttingBack)
	case d.command == engine.CommandQuit:
		m.controls.Do(engine.CommandQuit)
		return tea.Quit
	case aboutOf(m.latest, d.command) != d.about && d.command == engine.CommandApply:
		m.say(remark{cell.Warn, "Nothing was changed: the recommendation is another one now. Look again."})
	case aboutOf(m.latest, d.command) != d.about:
		m.say(remark{cell.Warn, "Nothing was undone: the last change is another one now. Look again."})
	default:
		m.do(d.command, "")
	}
	return nil
}

// do tells the loop a command, or the person why it does nothing now.
func (m *model) do(c engine.Command, done string) {
	if m.latest == nil {
		m.say(remark{cell.Warn, "The run has not begun yet."})
		return
	}
	if why := whyNot(m.latest, c); why != "" {
		m.say(remark{cell.Warn, m.keyOf(c) + ": " + sentence(why)})
		return
	}
	if !m.controls.Do(c) {
		m.say(remark{cell.Warn, "Too busy to take that now: press it again."})
		return
	}
	if done != "" {
		m.say(remark{cell.OK, sentence(strings.ToUpper(done[:1]) + done[1:])})
	}
}

// hold stops the autopilot before its next act, or lets it go on.
func (m *model) hold() {
	done := "held: nothing more is changed until " + m.keys.Hold.Help().Key + " is pressed again"
	if m.latest != nil && m.latest.Held {
		done = "autopilot goes on"
	}
	m.do(engine.CommandHold, done)
}

func (m *model) keyOf(c engine.Command) string {
	for _, k := range m.keys.commands() {
		if k.command == c {
			return k.binding.Help().Key
		}
	}
	return ""
}

const seekStep = 10 * time.Second

// evidence shows what the recommendation rests on, elsewhere everything.
func (m *model) evidence() {
	if s := m.shown; s != nil && s.Advice != nil && (m.look.view == viewNow || m.look.view == viewRoofline) {
		m.look.filter = string(s.Advice.Finding)
	}
	m.look.view, m.look.scroll[viewEvidence] = viewEvidence, 0
}
