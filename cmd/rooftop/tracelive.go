package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// How a live trace keeps time.
const (
	// stepTime bounds one wait for events, and with it how long a key waits.
	stepTime = 100 * time.Millisecond
	// publishEvery is the least time between two snapshots with new figures.
	publishEvery = 300 * time.Millisecond
	// publishShare is by how much more time than a snapshot took passes before the
	// next: adding up stays within 1 % of a core.
	publishShare = 100
	// publishLatest is how old figures get all the same.
	publishLatest = 2 * time.Second
	// idleAfter is after how long without an event a target computes nothing that is
	// not within a call or a graph, busyAtMost one that is.
	idleAfter  = 2 * time.Second
	busyAtMost = 30 * time.Second
	// rateSeconds are the seconds that the screen has rates of.
	rateSeconds = 120
)

// liveTrace is a trace that a person looks at and steers while it goes on. All but its
// feed and its wishes belongs to the goroutine of run.
type liveTrace struct {
	*tracing
	latest atomic.Pointer[optrace.Live]

	wishing sync.Mutex
	wishes  []func() // what keys ask for, and what became of errands
	wake    chan struct{}
	errands sync.WaitGroup

	began  time.Time
	detail optrace.Detail // is recorded, or will be after a pause
	aimed  optrace.Detail // is asked for
	weigh  *weighing      // nil while nothing is weighed
	ask    liveQuestion
	// granted is the share of the target's speed that a person has said yes to.
	granted  float64
	settled  bool // recording has begun
	paused   bool
	counting bool // events count, by what was seen last in their stream
	notice   string
	said     string // the last notice of what a level costs
	ended    bool
	failure  error  // why it ended, where that is an error
	cut      string // how and after how long it did, in words

	keeper   *keeper
	window   recentEvents
	recorded time.Duration // before the stretch that goes on
	stretch  time.Time     // its begin
	newest   liveClock
	busy     bool // within a call or a graph

	fresh   bool // events came since the last figures
	summary *optrace.Summary
	graph   optrace.LiveGraph // the newest as of then
	next    time.Time         // when the next figures are due
	target  optrace.Target
	lost    int64
	gaps    []optrace.Gap
	load    *optrace.HostLoad
	roof    optrace.Roof
	lanes   int           // that the roof is of
	missing []optrace.Gap // of the roof
	files   []string      // that were exported
}

// liveClock is the newest event, and when it came.
type liveClock struct {
	at   time.Duration
	came time.Time
}

// newLiveTrace is a trace of what source hands over.
func newLiveTrace(o *traceOptions, source operatorSource) *liveTrace {
	l := &liveTrace{tracing: &tracing{o: o, source: source}, wake: make(chan struct{}, 1), keeper: newKeeper(source.Tables(), 0), began: time.Now()}
	l.window.most = maxRecent
	l.look()
	l.publish()
	return l
}

// Latest implements tui.TraceFeed.
func (l *liveTrace) Latest() *optrace.Live { return l.latest.Load() }

// wish has something done between two batches of events. It does not block.
func (l *liveTrace) wish(do func()) {
	l.wishing.Lock()
	l.wishes = append(l.wishes, do)
	l.wishing.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// obey does what was wished, in its order.
func (l *liveTrace) obey() {
	l.wishing.Lock()
	wishes := l.wishes
	l.wishes = nil
	l.wishing.Unlock()
	for _, do := range wishes {
		do()
	}
	if len(wishes) > 0 {
		l.publish()
	}
}

// run traces until ctx ends, and detaches. After the target's end it waits for ctx: what
// was recorded is there to be read. A panic is an error like any other: the terminal has
// to be given back.
func (l *liveTrace) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v; please report this with the command line\n%s", p, debug.Stack())
		}
		err = errors.Join(err, l.source.Close())
	}()
	l.aim(l.o.detail)
	l.publish()
	for ctx.Err() == nil {
		l.obey()
		if l.ended {
			select {
			case <-ctx.Done():
			case <-l.wake:
			}
			continue
		}
		l.step(ctx)
		l.refresh()
	}
	if !l.ended {
		l.stop()
		l.keeper.assembler.Flush(l.now())
		l.reckon()
	}
	l.errands.Wait()
	l.obey()
	l.publish()
	return l.failure
}

// step takes in the next events.
func (l *liveTrace) step(ctx context.Context) {
	step, cancel := context.WithTimeout(ctx, stepTime)
	events, err := l.source.Next(step)
	late := step.Err() != nil
	cancel()
	l.take(events)
	if err != nil && !late {
		l.end(err)
	}
}

// take takes in events, in the order of time.
func (l *liveTrace) take(events []optrace.Event) {
	if len(events) == 0 {
		return
	}
	if w := l.weigh; w != nil {
		w.take(events)
	}
	l.watch(events)
	for len(events) > 0 {
		if events[0].Kind == optrace.DetailChanged {
			l.counting = l.settled && !l.paused
		}
		n := 1
		for n < len(events) && events[n].Kind != optrace.DetailChanged {
			n++
		}
		if l.counting {
			l.keeper.take(events[:n])
			l.window.add(events[:n])
			l.fresh = true
		}
		events = events[n:]
	}
	if l.weigh == nil || !l.weigh.enough() {
		return
	}
	if !l.weigh.counts && l.uncounted(l.weigh) {
		l.count()
		return
	}
	l.weighed()
}

// watch sees whether the target computes, and what becomes of it. What the kernel tells
// is no computing: threads wait for work on and off a CPU.
func (l *liveTrace) watch(events []optrace.Event) {
	computes := false
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case optrace.CallBegin, optrace.GraphBegin:
			l.busy = true
		case optrace.CallEnd, optrace.GraphEnd:
			l.busy = false
		case optrace.OpBegin, optrace.FusedBegin:
		case optrace.TargetExec:
			l.busy, l.notice = false, "The target became another program: its runtime is looked for."
			continue
		default:
			continue
		}
		computes, l.newest.at = true, e.At
	}
	if computes {
		l.newest.came = time.Now()
	}
}

// idle says that the target computes nothing.
func (l *liveTrace) idle() bool {
	if l.newest.came.IsZero() {
		return true
	}
	quiet := time.Since(l.newest.came)
	return quiet > idleAfter && !l.busy || quiet > busyAtMost
}

// now is the present on the clock of the events, as far as events tell.
func (l *liveTrace) now() time.Duration {
	if l.newest.came.IsZero() {
		return l.newest.at
	}
	return l.newest.at + time.Since(l.newest.came)
}

// since is how long the trace has recorded.
func (l *liveTrace) since() time.Duration {
	if l.stretch.IsZero() {
		return l.recorded
	}
	return l.recorded + time.Since(l.stretch)
}

// stop ends the stretch of recording that goes on.
func (l *liveTrace) stop() { l.recorded, l.stretch = l.since(), time.Time{} }

// end ends the trace: the target has, or it cannot be watched any more.
func (l *liveTrace) end(err error) {
	l.stop()
	l.ended, l.weigh, l.ask = true, nil, liveQuestion{}
	name := "the target"
	if l.target.PID != 0 {
		name = fmt.Sprintf("process %d", l.target.PID)
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, ggml.ErrEnded):
		l.notice = name + " has ended"
	case errors.Is(err, ggml.ErrGone):
		l.notice = err.Error()
	default:
		l.failure = fmt.Errorf("trace: %w", err)
		l.notice = "tracing " + name + " failed: " + err.Error()
	}
	l.keeper.assembler.Flush(l.now())
	l.look()
	cut := endedGap(l.notice, l.since(), 0)
	l.gaps, l.cut = append(l.gaps, cut), cut.Why
	l.fresh = true
	if err := l.source.Close(); err != nil {
		l.failure = errors.Join(l.failure, err)
	}
	l.reckon()
	l.publish()
}

// refresh publishes a snapshot where one is due: new figures in their time, else the
// clocks once a second.
func (l *liveTrace) refresh() {
	shown := l.latest.Load()
	switch now := time.Now(); {
	case l.ended:
	case l.fresh && !now.Before(l.next), l.counting && now.Sub(l.next) > publishLatest: // how long it took grows anyway
		l.reckon()
		l.publish()
	case l.state() != shown.State || l.notice != shown.Notice:
		l.publish()
	case !(l.counting && l.fresh) && now.Sub(l.began)/time.Second != shown.Now/time.Second:
		l.publish()
	}
}

// look asks the session about itself.
func (l *liveTrace) look() {
	if !l.ended || l.target.Runtime == "" {
		l.target = l.source.Target()
	}
	l.lost = l.source.Dropped()
	if !l.ended {
		l.load = l.others.look()
	}
	if lanes := l.keeper.lanes; lanes > 0 && lanes != l.lanes { // nothing is measured here
		l.lanes = lanes
		l.roof, l.missing = l.o.roofOf(context.Background(), lanes)
	}
	l.gaps = slices.Concat(l.source.Gaps(), l.missing)
}

// reckon adds up the figures so far.
func (l *liveTrace) reckon() {
	began := time.Now()
	if !l.ended {
		l.look()
	}
	l.learn()
	k := l.keeper
	partial, _ := k.assembler.Dropped()
	from, to := l.window.span()
	s := k.tally.Summary(optrace.Settings{
		Target: l.target, Roof: l.roof, Observer: l.observer, Gaps: l.gaps, Begin: k.recording.Begin, Span: l.since(), Detail: l.detail,
		Events: k.count, Dropped: l.lost, LeftOut: l.leftOut(), KeptFrom: from, KeptTo: to, Partial: partial, Cut: k.assembler.Cut(), Processes: k.names, Reader: k.recording.Reader, HostLoad: l.load,
	})
	if s.Coverage.Graphs > 0 || s.Coverage.Calls > 0 {
		l.summary, l.graph = s, k.tally.Live()
	}
	l.fresh = false
	took := time.Since(began)
	l.next = began.Add(min(max(publishEvery, publishShare*took), publishLatest))
}

// publish makes a snapshot of how things stand.
func (l *liveTrace) publish() {
	s := &optrace.Live{
		State: l.state(), Target: l.target, Since: l.since(), Now: time.Since(l.began), Detail: l.detail,
		Question: l.ask.text, Notice: l.notice, Summary: l.summary, Observer: l.costsNow(),
	}
	if l.ended {
		s.Now = l.latest.Load().Now
	}
	if !l.settled {
		s.Detail = l.aimed
	}
	if l.summary != nil {
		s.Rates, s.Graph = l.keeper.tally.Rates(l.now(), rateSeconds), l.graph
	}
	l.latest.Store(s)
}

// state is where the trace stands.
func (l *liveTrace) state() optrace.LiveState {
	switch {
	case l.ended:
		return optrace.LiveEnded
	case l.ask.text != "":
		return optrace.LiveAsking
	case l.weigh != nil && l.idle():
		return optrace.LiveWaiting
	case l.weigh != nil:
		return optrace.LiveWeighing
	case l.paused:
		return optrace.LivePaused
	case !l.settled:
		return optrace.LiveAttaching
	case l.idle():
		return optrace.LiveWaiting
	}
	return optrace.LiveTracing
}
