package tui

import (
	"strings"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

type fakeFeed struct{ s *loop.Snapshot }

func (f *fakeFeed) Latest() *loop.Snapshot { return f.s }

type fakeControls struct {
	done    []loop.Command
	exports int
	busy    bool
}

func (c *fakeControls) Do(command loop.Command) bool {
	if !c.busy {
		c.done = append(c.done, command)
	}
	return !c.busy
}

func (c *fakeControls) Export() bool {
	if !c.busy {
		c.exports++
	}
	return !c.busy
}

type fakeTape struct {
	mu      sync.Mutex
	now, of time.Duration
	speed   float64
}

func (f *fakeTape) Seek(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = min(max(0, f.now+by), f.of)
}

func (f *fakeTape) Speed(times float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.speed = times
}

func (f *fakeTape) At() (now, of time.Duration, speed float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now, f.of, f.speed
}

// testModel returns a model of 80 by 24 that has drawn its first frame.
func testModel(s *loop.Snapshot, o frame.Options) (*model, *fakeFeed, *fakeControls) {
	feed, controls := &fakeFeed{s: s}, &fakeControls{}
	m := newModel(feed, controls, o)
	m.Init()
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.View()
	return m, feed, controls
}

// press presses keys, draws a frame after each, and returns the last command.
func press(m *model, names string) tea.Cmd {
	var cmd tea.Cmd
	for name := range strings.FieldsSeq(names) {
		_, cmd = m.Update(screentest.KeyPress(name))
		m.View()
	}
	return cmd
}

func withHands(s *loop.Snapshot) *loop.Snapshot {
	s.Can[loop.CommandApply], s.Can[loop.CommandRevert] = loop.Availability{OK: true}, loop.Availability{OK: true}
	return s
}

// clientAdvice returns a snapshot of a server whose clients could send more requests.
func clientAdvice() *loop.Snapshot {
	s := waitingSnapshot()
	s.Advice = &engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{Kind: engine.KindClient, Command: "send more requests at once", Why: "The server has room."}}
	s.Can[loop.CommandApply].Why = "This is for the client and no flag of the server: nothing can be applied here."
	return s
}
