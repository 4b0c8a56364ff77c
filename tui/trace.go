package tui

import (
	"context"
	"time"

	"charm.land/bubbletea/v2"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// TraceFeed hands out the latest snapshot of a trace, nil before the first. It must
// not block, and hands out the same one until there is news.
type TraceFeed interface{ Latest() *optrace.Live }

// TraceControls are what keys do to a trace. None may block; what became of it is
// told by later snapshots (Live.Notice). A nil one is a key that says that it does
// nothing here.
type TraceControls struct {
	// SetDetail asks for another level of detail.
	SetDetail func(optrace.Detail)
	// Pause stops recording while the probes stay, or goes on.
	Pause func(paused bool)
	// Answer answers Live.Question.
	Answer func(yes bool)
	// Export asks for files of what was recorded so far.
	Export func()
}

// Least time between two frames of a trace, and how often its terminal is written to
// at most: the screen runs on the machine that is measured. A key shows within 100 ms.
const (
	traceRefresh = 250 * time.Millisecond
	traceFPS     = 10
)

// Trace is the screen of a trace, a Bubble Tea model.
type Trace struct {
	display
	keys     traceKeys
	feed     TraceFeed
	controls TraceControls

	latest *optrace.Live
	shown  *optrace.Live // behind it while the display is frozen
	set    traceSet

	// want is the level of detail that was asked for last, while it is on its way.
	want optrace.Detail
	// steps are those that led to the level that is watched, the newest last: the key the
	// other way takes them back.
	steps []levelStep
}

// NewTrace returns the screen of a trace. Playback of the options is of no account.
func NewTrace(feed TraceFeed, controls TraceControls, o Options) *Trace {
	o.Refresh, o.Playback = max(o.Refresh, traceRefresh), nil
	k := tracingKeys()
	return &Trace{display: newDisplay(o, k.keyMap, numTraceViews), keys: k, feed: feed, controls: controls}
}

// Run shows the screen until the person quits or ctx ends. The terminal is as it was
// when it returns. The error is that of the terminal.
func (t *Trace) Run(ctx context.Context) error { return t.run(ctx, t, traceFPS) }

// Init starts the beat.
func (t *Trace) Init() tea.Cmd {
	t.pull()
	return t.begin()
}

// Update takes one message. Nothing here waits for anything.
func (t *Trace) Update(msg tea.Msg) (tea.Model, tea.Cmd) { return t, t.update(msg, t) }

// View returns the frame.
func (t *Trace) View() tea.View {
	return t.view(func() (*cell.Canvas, extent) { return traceFrame(t.shown, &t.look, &t.set, t.w, t.h) })
}

// pull takes the latest snapshot. The screen stays when the trace has ended: its
// figures are there to be read.
func (t *Trace) pull() (ended bool) {
	if t.noticeLeft == 0 {
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
		t.say(remark{cell.Strong, s.Notice})
		t.changed = true
	}
	asks := s.State == optrace.LiveAsking && (before == nil || before.State != optrace.LiveAsking)
	switch {
	case !t.look.frozen:
		t.changed = t.changed || differs(t.shown, s)
		t.shown = s
	case asks:
		t.say(remark{cell.Bad, t.look.glyphs.Bad + " A question waits behind the frozen display: space goes on."})
		t.changed = true
	}
	return false
}

// differs says that a snapshot has something to draw that the one before had not.
func differs(a, b *optrace.Live) bool {
	return a == nil || a.State != b.State || a.Detail != b.Detail || a.Question != b.Question || a.Notice != b.Notice ||
		a.Summary != b.Summary || a.Graph.Index != b.Graph.Index || len(a.Graph.Lanes) != len(b.Graph.Lanes) ||
		seconds(a.Since) != seconds(b.Since) || seconds(a.Now) != seconds(b.Now)
}

// press answers a key: what always works first, then what lies over the view, then
// the view.
func (t *Trace) press(k tea.KeyPressMsg) tea.Cmd {
	t.changed = true
	switch {
	case hits(k, t.keys.Interrupt):
		return tea.Quit
	case hits(k, t.keys.Suspend):
		return tea.Suspend
	case t.look.typing:
		t.typeFilter(k)
		return nil
	case t.look.over != overlayNone:
		if !t.moved(k) {
			t.leave(k)
		}
		return nil
	}
	return t.act(k, t.actions())
}

func (t *Trace) actions() []action {
	k := &t.keys
	return append(t.moves(),
		does(k.Filter, func() { t.look.view, t.look.typing = viewOperators, true }),
		does(k.Back, func() {
			if t.back() {
				t.freeze()
			}
		}),
		does(k.Freeze, t.freeze),
		does(k.Order, func() { t.sort(func(s *traceSet) { s.order = (s.order + 1) % numOrders }) }),
		does(k.Reverse, func() { t.sort(func(s *traceSet) { s.least = !s.least }) }),
		does(k.Names, func() { t.sort(func(s *traceSet) { s.names = !s.names }) }),
		does(k.Phase, t.nextPhase),
		does(k.More, func() { t.detail(true) }), does(k.Less, func() { t.detail(false) }),
		does(k.Pause, t.pause),
		does(k.Yes, func() { t.answer(true) }), does(k.No, func() { t.answer(false) }),
		does(k.Export, t.export),
		action{k.Quit, func(tea.KeyPressMsg) tea.Cmd { return tea.Quit }},
	)
}

func (t *Trace) freeze() {
	t.look.frozen = !t.look.frozen
	if !t.look.frozen {
		t.shown = t.latest
	}
}

// sort changes the table of operators, and shows it.
func (t *Trace) sort(by func(*traceSet)) {
	if t.look.view == viewOperators {
		by(&t.set)
	}
	t.look.view, t.look.scroll[viewOperators] = viewOperators, 0
}

// nextPhase shows another phase, of those that occurred.
func (t *Trace) nextPhase() {
	if t.shown == nil || t.shown.Summary == nil || len(t.shown.Summary.Phases) < 2 {
		t.say(remark{cell.Warn, t.keys.Phase.Help().Key + ": there is no other phase yet."})
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

// refuse says why a key does nothing now, and whether it does not.
func (t *Trace) refuse(key string, can bool) bool {
	why := ""
	switch {
	case !can:
		why = "this trace cannot do that."
	case t.latest == nil:
		why = "the trace has not begun yet."
	case t.latest.State == optrace.LiveEnded:
		why = "the trace has ended."
	}
	if why != "" {
		t.say(remark{cell.Warn, key + ": " + why})
	}
	return why != ""
}

func (t *Trace) pause() {
	if t.refuse(t.keys.Pause.Help().Key, t.controls.Pause != nil) {
		return
	}
	t.controls.Pause(t.latest.State != optrace.LivePaused)
}

// answer answers the question that is asked now, not one that is frozen on the screen.
func (t *Trace) answer(yes bool) {
	key := t.keys.No.Help().Key
	if yes {
		key = t.keys.Yes.Help().Key
	}
	switch {
	case t.refuse(key, t.controls.Answer != nil):
	case t.latest.State != optrace.LiveAsking:
		t.say(remark{cell.Warn, key + ": there is no question open."})
	case t.look.frozen && (t.shown == nil || t.shown.Question != t.latest.Question):
		t.say(remark{cell.Warn, key + ": the question is not on the frozen display. Space goes on."})
	default:
		t.controls.Answer(yes)
	}
}

func (t *Trace) export() {
	if t.latest != nil && t.latest.State == optrace.LiveEnded && t.controls.Export != nil {
		t.controls.Export() // what was recorded is still there
		t.say(remark{cell.OK, "Writing files …"})
		return
	}
	if t.refuse(t.keys.Export.Help().Key, t.controls.Export != nil) {
		return
	}
	t.controls.Export()
	t.say(remark{cell.OK, "Writing files …"})
}

// levelStep is a step of detail that a key took.
type levelStep struct {
	from, to optrace.Detail
	up       bool
}

// detail asks for the next step of detail, up or down, or takes the last one back that went
// the other way.
func (t *Trace) detail(up bool) {
	key, step, end := t.keys.More.Help().Key, more, "highest"
	if !up {
		key, step, end = t.keys.Less.Help().Key, less, "lowest"
	}
	if t.refuse(key, t.controls.SetDetail != nil) {
		return
	}
	from := t.latest.Detail
	if t.want != 0 { // pressed again before the first came into effect
		from = t.want
	}
	if n := len(t.steps); n > 0 && t.steps[n-1].to != from {
		t.steps = nil // something else changed it
	}
	to, what := step(from)
	back := false
	if n := len(t.steps); n > 0 && t.steps[n-1].up != up {
		to, what, back = t.steps[n-1].from, "as before", true
	}
	if to == from {
		t.say(remark{cell.Warn, key + ": " + from.String() + " is the " + end + " level of detail."})
		return
	}
	if back {
		t.steps = t.steps[:len(t.steps)-1]
	} else {
		t.steps = append(t.steps, levelStep{from, to, up})
	}
	t.want = to
	t.controls.SetDetail(to)
	t.say(remark{cell.OK, "Detail: " + to.String() + ", " + what + "."})
}
