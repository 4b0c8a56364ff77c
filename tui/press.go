package tui

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// puttingBack is said where a run is told to end while something else than what was
// kept runs.
const puttingBack = "what was kept is put back, then the run ends; ctrl+c ends it at once"

// hits says whether a key is one of a binding.
func hits(k tea.KeyPressMsg, b key.Binding) bool { return slices.Contains(b.Keys(), k.String()) }

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
	for _, a := range m.actions() {
		if hits(k, a.binding) {
			m.say(remark{})
			return a.do(k)
		}
	}
	return nil
}

// action is what a key does where nothing lies over the view.
type action struct {
	binding key.Binding
	do      func(tea.KeyPressMsg) tea.Cmd
}

// actions are what the keys do, in the order in which they are looked at: those of
// a recording stand before those that share a key with them.
func (m *model) actions() []action {
	k := &m.keys
	does := func(b key.Binding, f func()) action {
		return action{b, func(tea.KeyPressMsg) tea.Cmd { f(); return nil }}
	}
	var list []action
	if m.o.Playback != nil {
		list = append(list,
			does(k.SeekBack, func() { m.o.Playback.Seek(-seekStep) }), does(k.SeekOn, func() { m.o.Playback.Seek(seekStep) }),
			does(k.Faster, func() { m.speed(1) }), does(k.Slower, func() { m.speed(-1) }),
			does(k.Pause, m.stopTape),
		)
	}
	return append(list,
		does(k.Help, func() { m.open(overlayHelp) }),
		does(k.Next, func() { m.look.view = (m.look.view + 1) % numViews }),
		does(k.Previous, func() { m.look.view = (m.look.view + numViews - 1) % numViews }),
		action{k.Digit, m.digit},
		does(k.Filter, func() { m.look.view, m.look.typing = viewEvidence, true }),
		does(k.Detail, m.evidence),
		does(k.Back, m.back),
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
		does(k.Up, func() { m.scroll(-1) }), does(k.Down, func() { m.scroll(1) }),
		does(k.PageUp, func() { m.scroll(-m.page()) }), does(k.PageDown, func() { m.scroll(m.page()) }),
		does(k.Top, func() { m.scroll(-toEnd) }), does(k.Bottom, func() { m.scroll(toEnd) }),
		action{k.Quit, func(tea.KeyPressMsg) tea.Cmd { return m.askQuit() }},
	)
}

const (
	seekStep = 10 * time.Second
	toEnd    = 1 << 20 // lines; more than any view has
)

func (m *model) digit(k tea.KeyPressMsg) tea.Cmd {
	m.look.view = viewID(k.String()[0] - '1')
	return nil
}

// back leaves the innermost thing: a filter, then scrolling, then a display that
// stands still.
func (m *model) back() {
	v := m.look.view
	switch {
	case m.look.filter != "":
		m.look.filter = ""
	case m.look.scroll[v] != rest(v):
		m.look.scroll[v] = rest(v)
	case m.look.frozen:
		m.freeze()
	}
}

func (m *model) freeze() {
	m.look.frozen = !m.look.frozen
	if !m.look.frozen {
		m.shown = m.latest
	}
}

func (m *model) typeFilter(k tea.KeyPressMsg) {
	m.look.scroll[viewEvidence] = 0
	switch name := k.String(); {
	case name == "esc":
		m.look.typing, m.look.filter = false, ""
	case name == "enter":
		m.look.typing = false
	case name == "backspace":
		_, size := utf8.DecodeLastRuneInString(m.look.filter)
		m.look.filter = m.look.filter[:len(m.look.filter)-size]
	case name == "ctrl+u":
		m.look.filter = ""
	case k.Text != "":
		m.paste(k.Text)
	}
}

// paste adds to the filter what fits a line.
func (m *model) paste(text string) {
	const most = 40
	words := strings.Join(strings.Fields(m.look.filter+text), " ")
	if words != "" && strings.TrimRightFunc(text, unicode.IsSpace) != text {
		words += " " // the next word begins
	}
	if utf8.RuneCountInString(words) <= most {
		m.look.filter = words
	}
}

// open lays something over the view.
func (m *model) open(o overlay) {
	m.look.over, m.look.down, m.look.yes = o, 0, false
}

// pressOver answers a key while something lies over the view. Whatever is asked,
// the answer is no until yes is chosen.
func (m *model) pressOver(k tea.KeyPressMsg) tea.Cmd {
	u, name := &m.look, k.String()
	switch {
	case hits(k, m.keys.Up) && name != "k":
		m.scroll(-1)
	case hits(k, m.keys.Down) && name != "j":
		m.scroll(1)
	case hits(k, m.keys.PageUp):
		m.scroll(-m.page())
	case hits(k, m.keys.PageDown):
		m.scroll(m.page())
	case hits(k, m.keys.Top):
		m.scroll(-toEnd)
	case hits(k, m.keys.Bottom):
		m.scroll(toEnd)
	case u.over == overlayAsk:
		return m.answer(name)
	case name == "k":
		m.scroll(-1)
	case name == "j":
		m.scroll(1)
	case hits(k, m.keys.Back), hits(k, m.keys.Help), hits(k, m.keys.Quit), name == "enter":
		m.open(overlayNone)
	case u.over == overlayText && hits(k, m.keys.Copy):
		m.open(overlayNone)
	case u.over == overlayHelp && hits(k, m.keys.Digit):
		m.open(overlayNone)
		return m.digit(k)
	}
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

// say puts a notice into the footer for some seconds.
func (m *model) say(r remark) {
	m.look.notice = r
	m.noticeLeft = int(noticeFor / m.refresh())
}

const noticeFor = 6 * time.Second

// scroll moves by lines; where it ends is only known when it is drawn.
func (m *model) scroll(by int) {
	first := max(0, m.extent.first+by)
	first = min(first, max(0, m.extent.lines-m.extent.page))
	if m.look.over != overlayNone {
		m.look.down = first
		return
	}
	if v := m.look.view; v == viewLog && first >= m.extent.lines-m.extent.page {
		first = toEnd // go on with what is added
	}
	m.look.scroll[m.look.view] = first
}

// rest is where a view stands before it is scrolled: the log shows the latest.
func rest(v viewID) int {
	if v == viewLog {
		return toEnd
	}
	return 0
}

// evidence shows what the recommendation rests on, elsewhere everything.
func (m *model) evidence() {
	if s := m.shown; s != nil && s.Advice != nil && (m.look.view == viewNow || m.look.view == viewRoofline) {
		m.look.filter = string(s.Advice.Finding)
	}
	m.look.view, m.look.scroll[viewEvidence] = viewEvidence, 0
}

func (m *model) page() int { return max(1, m.extent.page-1) }
