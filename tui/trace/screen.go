// Package trace is the screen of an operator trace: keys, views and layout. The contents of views
// come from engine/page/trace.
package trace

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// Feed supplies snapshots. Latest returns the latest one, nil before the first. It must not block,
// and returns the same pointer until there is a new one.
type Feed interface{ Latest() *optrace.Live }

// Controls are the actions of keys on a trace. None may block; later snapshots report the result in
// Live.Notice. If one is nil, its key shows that it does nothing here.
type Controls struct {
	// SetDetail requests another level of detail.
	SetDetail func(optrace.Detail)
	// Pause stops or resumes recording; the probes stay.
	Pause func(paused bool)
	// Answer answers Live.Question.
	Answer func(yes bool)
	// Export writes files of what was recorded so far.
	Export func()
}

// leastRefresh is the minimum time between two frames: the screen runs on the machine that is
// measured.
const leastRefresh = 250 * time.Millisecond

// Screen is the screen of a trace, a Bubble Tea model.
type Screen struct {
	frame.Display
	keys     keyMap
	feed     Feed
	controls Controls

	latest *optrace.Live
	shown  *optrace.Live // differs from latest while the display is frozen
	set    choices

	// want is the requested level of detail until it takes effect.
	want optrace.Detail
	// steps are the key presses that led to the current level of detail, the newest last. The
	// opposite key undoes them.
	steps []levelStep
}

// New returns the screen of a trace. It ignores the option Playback.
func New(feed Feed, controls Controls, o frame.Options) *Screen {
	o.Refresh, o.Playback = max(o.Refresh, leastRefresh), nil
	k := boundKeys()
	return &Screen{Display: frame.NewDisplay(o, k.KeyMap, tabs()), keys: k, feed: feed, controls: controls}
}

// Run shows the screen until the user quits or ctx ends, and restores the terminal. It returns an
// error if the terminal fails.
func (t *Screen) Run(ctx context.Context) error { return t.Show(ctx, t) }

// Init fetches the first snapshot and starts the ticks.
func (t *Screen) Init() tea.Cmd {
	t.Pull()
	return t.Begin()
}

// Update handles one message. It never blocks.
func (t *Screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) { return t, t.Receive(msg, t) }

// View returns the frame.
func (t *Screen) View() tea.View {
	return t.Draw(func() (*cell.Canvas, frame.Extent) {
		return drawScreen(t.shown, &t.Settings, &t.set, t.Width, t.Height)
	})
}

// Pull fetches the latest snapshot. It never closes the screen: the figures stay readable after the
// trace has ended.
func (t *Screen) Pull() (ended bool) {
	if t.NoticeLeft == 0 {
		t.want = 0
	}
	s, before := t.feed.Latest(), t.latest
	if s == nil || s == before {
		return false
	}
	t.latest = s
	if s.Detail == t.want {
		t.want = 0
	}
	if s.Notice != "" && (before == nil || before.Notice != s.Notice) {
		t.Notify(frame.Remark{Token: cell.Strong, Text: s.Notice})
		t.Changed = true
	}
	asks := s.State == optrace.LiveAsking && (before == nil || before.State != optrace.LiveAsking)
	switch {
	case !t.Settings.Frozen:
		t.Changed = t.Changed || differs(t.shown, s)
		t.shown = s
	case asks:
		t.Notify(frame.Remark{Token: cell.Bad, Text: t.Settings.Glyphs.Bad + " A question waits behind the frozen display: space goes on."})
		t.Changed = true
	}
	return false
}

// differs reports whether snapshot b looks different from a.
func differs(a, b *optrace.Live) bool {
	return a == nil || a.State != b.State || a.Detail != b.Detail || a.Question != b.Question || a.Notice != b.Notice ||
		a.Summary != b.Summary || a.Graph.Index != b.Graph.Index || len(a.Graph.Threads) != len(b.Graph.Threads) ||
		frame.WholeSeconds(a.Since) != frame.WholeSeconds(b.Since) || frame.WholeSeconds(a.Now) != frame.WholeSeconds(b.Now)
}

// Press handles a key.
func (t *Screen) Press(k tea.KeyPressMsg) tea.Cmd { return t.Handle(k, t.actions, nil) }

func (t *Screen) actions() []frame.Action {
	k := &t.keys
	return append(t.Moves(),
		frame.Action{Binding: k.Back, Do: func(k tea.KeyPressMsg) tea.Cmd {
			if t.Back(k) {
				t.freeze()
			}
			return nil
		}},
		frame.OnKey(k.Freeze, t.freeze),
		frame.OnKey(k.Order, func() { t.sort(func(s *choices) { s.order = (s.order + 1) % trace.SortKeys }) }),
		frame.OnKey(k.Reverse, func() { t.sort(func(s *choices) { s.least = !s.least }) }),
		frame.OnKey(k.Names, func() { t.sort(func(s *choices) { s.names = !s.names }) }),
		frame.OnKey(k.Phase, t.nextPhase),
		frame.OnKey(k.More, func() { t.detail(true) }), frame.OnKey(k.Less, func() { t.detail(false) }),
		frame.OnKey(k.Pause, t.pause),
		frame.OnKey(k.Yes, func() { t.answer(true) }), frame.OnKey(k.No, func() { t.answer(false) }),
		frame.OnKey(k.Export, t.export),
		frame.Action{Binding: k.Quit, Do: func(tea.KeyPressMsg) tea.Cmd { return tea.Quit }},
	)
}

func (t *Screen) freeze() {
	t.Settings.Frozen = !t.Settings.Frozen
	if !t.Settings.Frozen {
		t.shown = t.latest
	}
}

// sort changes the order of the operators and switches to their view. In another view the first
// press only switches.
func (t *Screen) sort(by func(*choices)) {
	if t.Settings.View == viewOperators {
		by(&t.set)
	}
	t.Settings.View, t.Settings.Scroll[viewOperators] = viewOperators, 0
}

// nextPhase shows the next phase that occurred.
func (t *Screen) nextPhase() {
	if t.shown == nil || t.shown.Summary == nil || len(t.shown.Summary.Phases) < 2 {
		t.Notify(frame.Remark{Token: cell.Warn, Text: t.keys.Phase.Help().Key + ": there is no other phase yet."})
		return
	}
	list := t.shown.Summary.Phases
	now := t.set.phaseOf(t.shown.Summary)
	for i := range list {
		if list[i].Phase == now {
			t.set.phase = list[(i+1)%len(list)].Phase
			return
		}
	}
}

// refuse shows why a key does nothing now. It reports whether that is so.
func (t *Screen) refuse(key string, can bool) bool {
	why := ""
	switch {
	case t.latest != nil && t.latest.State == optrace.LiveRecorded:
		t.Notify(frame.Remark{Token: cell.Warn, Text: key + ": " + whyRecorded})
		return true
	case !can:
		why = "this trace cannot do that."
	case t.latest == nil:
		why = "the trace has not begun yet."
	case t.latest.State == optrace.LiveEnded:
		why = "the trace has ended."
	}
	if why != "" {
		t.Notify(frame.Remark{Token: cell.Warn, Text: key + ": " + why})
	}
	return why != ""
}

func (t *Screen) pause() {
	if t.refuse(t.keys.Pause.Help().Key, t.controls.Pause != nil) {
		return
	}
	t.controls.Pause(t.latest.State != optrace.LivePaused)
}

// answer answers the open question, unless the frozen display shows a different one.
func (t *Screen) answer(yes bool) {
	key := t.keys.No.Help().Key
	if yes {
		key = t.keys.Yes.Help().Key
	}
	switch {
	case t.refuse(key, t.controls.Answer != nil):
	case t.latest.State != optrace.LiveAsking:
		t.Notify(frame.Remark{Token: cell.Warn, Text: key + ": there is no question open."})
	case t.Settings.Frozen && (t.shown == nil || t.shown.Question != t.latest.Question):
		t.Notify(frame.Remark{Token: cell.Warn, Text: key + ": the question is not on the frozen display. Space goes on."})
	default:
		t.controls.Answer(yes)
	}
}

func (t *Screen) export() {
	if t.latest != nil && t.latest.State == optrace.LiveEnded && t.controls.Export != nil {
		t.controls.Export() // the recording is still available
		t.Notify(frame.Remark{Token: cell.OK, Text: "Writing files …"})
		return
	}
	if t.refuse(t.keys.Export.Help().Key, t.controls.Export != nil) {
		return
	}
	t.controls.Export()
	t.Notify(frame.Remark{Token: cell.OK, Text: "Writing files …"})
}

// levelStep is a change of detail by a key.
type levelStep struct {
	from, to optrace.Detail
	up       bool
}

// detail requests the next step of detail, or undoes the last step if that went the other way.
func (t *Screen) detail(up bool) {
	key, step, end := t.keys.More.Help().Key, moreDetail, "highest"
	if !up {
		key, step, end = t.keys.Less.Help().Key, lessDetail, "lowest"
	}
	if t.refuse(key, t.controls.SetDetail != nil) {
		return
	}
	from := t.latest.Detail
	if t.want != 0 { // pressed again before the first press took effect
		from = t.want
	}
	if n := len(t.steps); n > 0 && t.steps[n-1].to != from {
		t.steps = nil // something else changed the level
	}
	to, what := step(from)
	back := false
	if n := len(t.steps); n > 0 && t.steps[n-1].up != up {
		to, what, back = t.steps[n-1].from, "as before", true
	}
	if to == from {
		t.Notify(frame.Remark{Token: cell.Warn, Text: key + ": " + from.String() + " is the " + end + " level of detail."})
		return
	}
	if back {
		t.steps = t.steps[:len(t.steps)-1]
	} else {
		t.steps = append(t.steps, levelStep{from, to, up})
	}
	t.want = to
	t.controls.SetDetail(to)
	t.Notify(frame.Remark{Token: cell.OK, Text: "Detail: " + to.String() + ", " + what + "."})
}
