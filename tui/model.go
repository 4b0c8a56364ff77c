package tui

import (
	"charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// model is the Bubble Tea model of the main screen. What is drawn is a function of
// the snapshot, the look and the size.
type model struct {
	display
	feed     Feed
	controls Controls

	latest *engine.Snapshot // of the feed
	shown  *engine.Snapshot // behind it while the display is frozen

	waitsForNote bool
	noteAfter    int

	// interrupted says that the run was told to end, and puts back first what was kept.
	interrupted bool
}

func newModel(feed Feed, controls Controls, o Options) *model {
	m := &model{display: newDisplay(o, keys(), numViews), feed: feed, controls: controls}
	m.follows[viewLog] = true
	m.look.scroll[viewLog] = toEnd
	return m
}

// Init starts the beat.
func (m *model) Init() tea.Cmd {
	m.pull()
	return m.begin()
}

// Update takes one message. Nothing here waits for anything.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) { return m, m.update(msg, m) }

// pull takes the latest snapshot of the feed, and says whether the run has ended.
// A recording stays on the screen at its end: one can go back.
func (m *model) pull() (ended bool) {
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

// View returns the frame.
func (m *model) View() tea.View {
	return m.view(func() (*cell.Canvas, extent) { return frame(m.shown, &m.look, m.w, m.h) })
}
