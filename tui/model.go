package tui

import (
	"time"

	"charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// model is the one Bubble Tea model of the program. What is drawn is a function of
// the snapshot, the look and the size; the last frame is kept until one of them
// changes, because View is called after every message.
type model struct {
	feed     Feed
	controls Controls
	o        Options
	keys     keyMap
	profile  colorprofile.Profile
	theme    theme

	latest *engine.Snapshot // of the feed
	shown  *engine.Snapshot // behind it while the display is frozen
	look   look
	w, h   int
	beat   int // tag of the ticks that count

	noticeLeft   int // ticks
	waitsForNote bool
	noteAfter    int

	// interrupted says that the run was told to end, and puts back first what was kept.
	interrupted bool

	changed bool
	text    string
	extent  extent
	drawn   int // frames, for tests
}

func newModel(feed Feed, controls Controls, o Options) *model {
	m := &model{feed: feed, controls: controls, o: o, keys: keys(), profile: profileOf(o), changed: true}
	m.look.glyphs = cell.Unicode()
	m.look.scroll[viewLog] = rest(viewLog)
	if o.ASCII {
		m.look.glyphs = cell.ASCII()
	}
	m.theme = themeOf(o.Theme, m.profile)
	return m
}

func (m *model) refresh() time.Duration {
	if m.o.Refresh > 0 {
		return m.o.Refresh
	}
	return 250 * time.Millisecond
}

// tick is one beat of the display. Ticks of an older chain are of no account.
type tick struct{ beat int }

func (m *model) next() tea.Cmd {
	beat := m.beat
	return tea.Tick(m.refresh(), func(time.Time) tea.Msg { return tick{beat} })
}

// Init starts the beat and asks the terminal for its background, which not every
// terminal tells.
func (m *model) Init() tea.Cmd {
	m.pull()
	if m.o.Theme == "auto" || m.o.Theme == "" {
		return tea.Batch(m.next(), tea.RequestBackgroundColor)
	}
	return m.next()
}

// Update takes one message. Nothing here waits for anything.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tick:
		if msg.beat != m.beat {
			return m, nil
		}
		if m.pull() {
			return m, tea.Quit
		}
		return m, m.next()
	case tea.WindowSizeMsg:
		m.changed = m.changed || m.w != msg.Width || m.h != msg.Height
		m.w, m.h = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		if m.o.Theme == "auto" || m.o.Theme == "" {
			name := "light"
			if msg.IsDark() {
				name = "dark"
			}
			m.theme, m.changed = themeOf(name, m.profile), true
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.PasteMsg:
		if m.look.typing {
			m.paste(msg.Content)
			m.changed = true
		}
	case tea.ResumeMsg:
		m.beat++ // what was due while the program stood still is not made up for
		m.changed = true
		return m, m.next()
	}
	return m, nil
}

// pull takes the latest snapshot of the feed, and says whether the run has ended.
// A recording stays on the screen at its end: one can go back.
func (m *model) pull() (ended bool) {
	if m.noticeLeft > 0 {
		m.noticeLeft--
		if m.noticeLeft == 0 {
			m.look.notice, m.changed = remark{}, true
		}
	}
	m.readTape()
	s := m.feed.Latest()
	if s == nil || s == m.latest {
		return false
	}
	asks := s.Ask != "" && (m.latest == nil || m.latest.Ask == "")
	m.latest = s
	m.hear()
	switch {
	case !m.look.frozen:
		m.changed = m.changed || m.shown == nil || m.shown.Seq != s.Seq || m.shown.Now != s.Now || m.shown.Finished != s.Finished
		m.shown = s
	case asks:
		m.say(remark{cell.Bad, m.look.glyphs.Bad + " A question waits behind the frozen display: space goes on."})
		m.changed = true
	}
	return s.Finished != nil && m.o.Playback == nil
}

// View returns the frame, drawn anew only where something of it changed.
func (m *model) View() tea.View {
	if m.changed && m.w > 0 && m.h > 0 {
		c, e := frame(m.shown, &m.look, m.w, m.h)
		m.text, m.extent, m.changed = c.Render(m.theme.paint), e, false
		m.drawn++
	}
	v := tea.NewView(m.text)
	v.AltScreen = true
	return v
}
