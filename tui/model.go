package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// model is the Bubble Tea model of the main screen. A frame depends only on the snapshot, the
// settings and the size.
type model struct {
	frame.Display
	feed     Feed
	controls Controls

	latest *loop.Snapshot // from the feed
	shown  *loop.Snapshot // differs from latest while the display is frozen
	drawn  *loop.Snapshot // the one that caused the latest frame

	waitsForNote bool
	noteAfter    int

	// interrupted is set when the run will end as soon as the kept configuration is restored.
	interrupted bool
}

func newModel(feed Feed, controls Controls, o frame.Options) *model {
	m := &model{Display: frame.NewDisplay(o, frame.Keys(), viewNames()), feed: feed, controls: controls}
	m.Follows[viewLog] = true
	m.Settings.Scroll[viewLog] = frame.ToEnd
	return m
}

// Init fetches the first snapshot and starts the ticks.
func (m *model) Init() tea.Cmd {
	m.Pull()
	return m.Begin()
}

// Update handles one message. It never blocks.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) { return m, m.Receive(msg, m) }

// Pull fetches the latest snapshot and reports whether the run has ended. At the end of a recording
// the screen stays open, because the user can seek back.
func (m *model) Pull() (ended bool) {
	m.readTape()
	s := m.feed.Latest()
	if s == nil || s == m.latest {
		return false
	}
	asks := s.Ask != "" && (m.latest == nil || m.latest.Ask == "")
	m.latest = s
	m.noticeExport()
	switch {
	case !m.Settings.Frozen:
		m.shown = s
		if differs(m.drawn, s) {
			m.drawn, m.Changed = s, true
		}
	case asks:
		m.Notify(frame.Remark{Token: cell.Bad, Text: m.Settings.Glyphs.Bad + " A question waits behind the frozen display: press space."})
		m.Changed = true
	}
	return s.Finished != nil && m.Options.Playback == nil
}

// Time between two frames if nothing but the figures changes: a window takes 2 s, so new
// figures trigger a frame first, unless a countdown is on the screen.
const (
	steadyFrame  = 2500 * time.Millisecond
	countedFrame = time.Second
)

// differs reports whether b has to be drawn while a is on the screen. Actions and questions are
// drawn at once, figures with each window, and the clock as often as a countdown needs it.
func differs(a, b *loop.Snapshot) bool {
	if a == nil || a.Phase != b.Phase || a.Ask != b.Ask || a.Can != b.Can || a.Paused != b.Paused || a.Held != b.Held ||
		a.Pending.Text != b.Pending.Text || lastEntry(a) != lastEntry(b) || a.Attached != b.Attached || a.AttachWhy != b.AttachWhy ||
		a.Finished != b.Finished || endOfPoints(a) != endOfPoints(b) || source(a).State != source(b).State || a.Condition.State != b.Condition.State {
		return true
	}
	every := steadyFrame
	if b.Phase != loop.PhaseWaiting || b.Pending.Text != "" || source(b).State != loop.SourceFresh {
		every = countedFrame
	}
	return b.Now < a.Now || b.Now-a.Now >= every
}

// endOfPoints returns the end of the latest window, 0 before the first.
func endOfPoints(s *loop.Snapshot) time.Duration {
	if len(s.Points) == 0 {
		return 0
	}
	return s.Points[len(s.Points)-1].T
}

// View returns the frame.
func (m *model) View() tea.View {
	return m.Draw(func() (*cell.Canvas, frame.Extent) { return drawRun(m.shown, &m.Settings, m.Width, m.Height) })
}

// Feed supplies snapshots. Latest returns the latest one, nil before the first. It must not block.
type Feed interface{ Latest() *loop.Snapshot }

// Controls receives commands. Do must not block. It returns false if the session cannot accept the
// command now.
type Controls interface {
	Do(c loop.Command) bool
	// Export requests a report of the current state, and returns false like Do. The journal reports
	// whether it was written.
	Export() bool
}

// Run shows the screen until the run ends, the user quits, or ctx ends, and restores the terminal.
// It returns an error if the terminal fails.
func Run(ctx context.Context, feed Feed, controls Controls, o frame.Options) error {
	m := newModel(feed, controls, o)
	return m.Show(ctx, m)
}
