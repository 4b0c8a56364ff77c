package tracing

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

// Timing of a live trace.
const (
	// stepTime limits one wait for events, and thus the delay of a key.
	stepTime = 100 * time.Millisecond
	// publishEvery is the minimum time between two snapshots with new figures.
	publishEvery = 300 * time.Millisecond
	// publishShare is the minimum ratio of the time between snapshots to the time that a snapshot
	// takes, so that summarizing uses at most 1 % of a core.
	publishShare = 100
	// publishLatest is the maximum age of figures.
	publishLatest = 2 * time.Second
	// idleAfter is the time without events after which a target outside a call or graph counts as
	// idle; busyAtMost is that of a target within one.
	idleAfter  = 2 * time.Second
	busyAtMost = 30 * time.Second
	// rateSeconds is how many seconds of rates the screen shows.
	rateSeconds = 120
)

// liveTrace is a trace that a user watches and controls while it runs. Everything except its feed
// and its queue belongs to the goroutine of run.
type liveTrace struct {
	*tracing
	latest atomic.Pointer[optrace.Live]

	queueing sync.Mutex
	queue    []func() // requests of keys, and results of background work
	wake     chan struct{}
	errands  sync.WaitGroup

	began       time.Time
	detail      optrace.Detail // being recorded, or after a pause
	requested   optrace.Detail // requested by the user
	calibrating *calibration   // nil without a calibration in progress
	ask         liveQuestion
	// granted is the cost that the user accepted, as a share of the target's speed.
	granted        float64
	settled        bool // recording has begun
	paused         bool
	counting       bool // events count, according to the last change in their stream
	notice         string
	lastCostNotice string // the last notice of a level's cost
	ended          bool
	failure        error  // why the trace ended, if that is an error
	cut            string // description of an early end

	collector *collector
	window    recentEvents
	recorded  time.Duration // before the current stretch
	stretch   time.Time     // start of the current stretch
	newest    liveClock
	busy      bool // within a call or a graph

	fresh   bool // events arrived since the last figures
	summary *optrace.Summary
	graph   optrace.LiveGraph // the newest graph at that time
	next    time.Time         // when the next figures are due
	target  optrace.Target
	lost    int64
	gaps    []optrace.Gap
	load    *optrace.HostLoad
	peak    optrace.Peak
	threads int           // number of threads of the peak
	missing []optrace.Gap // of the peak
	files   []string      // exported files
}

// liveClock is the newest event, and when it arrived.
type liveClock struct {
	at   time.Duration
	came time.Time
}

// newLiveTrace returns a trace of the events of source.
func newLiveTrace(o *Options, source Source) *liveTrace {
	l := &liveTrace{tracing: &tracing{o: o, source: source}, wake: make(chan struct{}, 1), collector: newCollector(source.Tables(), 0), began: time.Now()}
	l.window.most = maxRecent
	l.refreshTarget()
	l.publish()
	return l
}

// Latest implements trace.Feed of the screen.
func (l *liveTrace) Latest() *optrace.Live { return l.latest.Load() }

// enqueue runs do between two batches of events. It does not block.
func (l *liveTrace) enqueue(do func()) {
	l.queueing.Lock()
	l.queue = append(l.queue, do)
	l.queueing.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// runQueue runs the queued functions in order.
func (l *liveTrace) runQueue() {
	l.queueing.Lock()
	queue := l.queue
	l.queue = nil
	l.queueing.Unlock()
	for _, do := range queue {
		do()
	}
	if len(queue) > 0 {
		l.publish()
	}
}

// run traces until ctx ends, and detaches. After the target's end it waits for ctx, so that the
// recording can be read. It returns a panic as an error, because the terminal has to be restored.
func (l *liveTrace) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error: %v; please report this with the command line\n%s", p, debug.Stack())
		}
		err = errors.Join(err, l.source.Close())
	}()
	l.request(l.o.detail)
	l.publish()
	for ctx.Err() == nil {
		l.runQueue()
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
		l.collector.assembler.Flush(l.now())
		l.summarize()
	}
	l.errands.Wait()
	l.runQueue()
	l.publish()
	return l.failure
}

// step processes the next events.
func (l *liveTrace) step(ctx context.Context) {
	step, cancel := context.WithTimeout(ctx, stepTime)
	events, err := l.source.Next(step)
	late := step.Err() != nil
	cancel()
	l.addEvents(events)
	if err != nil && !late {
		l.end(err)
	}
}

// addEvents adds events in the order of time.
func (l *liveTrace) addEvents(events []optrace.Event) {
	if len(events) == 0 {
		return
	}
	if w := l.calibrating; w != nil {
		w.addEvents(events)
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
			l.collector.addEvents(events[:n])
			l.window.add(events[:n])
			l.fresh = true
		}
		events = events[n:]
	}
	if l.calibrating == nil || !l.calibrating.enough() {
		return
	}
	if !l.calibrating.counting && l.uncounted(l.calibrating) {
		if err := l.beginCount(l.calibrating); err != nil {
			l.end(err)
		}
		return
	}
	l.calibrated()
}

// watch detects whether the target computes or has ended. Kernel events do not count as computing:
// threads wait for work on and off a CPU.
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

// idle reports whether the target computes nothing.
func (l *liveTrace) idle() bool {
	if l.newest.came.IsZero() {
		return true
	}
	quiet := time.Since(l.newest.came)
	return quiet > idleAfter && !l.busy || quiet > busyAtMost
}

// now returns the current time on the clock of the events, as far as events show it.
func (l *liveTrace) now() time.Duration {
	if l.newest.came.IsZero() {
		return l.newest.at
	}
	return l.newest.at + time.Since(l.newest.came)
}

// since returns how long the trace has recorded.
func (l *liveTrace) since() time.Duration {
	if l.stretch.IsZero() {
		return l.recorded
	}
	return l.recorded + time.Since(l.stretch)
}

// stop ends the current stretch of recording.
func (l *liveTrace) stop() { l.recorded, l.stretch = l.since(), time.Time{} }

// end ends the trace, because the target has ended or can no longer be traced.
func (l *liveTrace) end(err error) {
	l.stop()
	l.ended, l.calibrating, l.ask = true, nil, liveQuestion{}
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
	l.collector.assembler.Flush(l.now())
	l.refreshTarget()
	cut := endedGap(l.notice, l.since(), 0)
	l.gaps, l.cut = append(l.gaps, cut), cut.Why
	l.fresh = true
	if err := l.source.Close(); err != nil {
		l.failure = errors.Join(l.failure, err)
	}
	l.summarize()
	l.publish()
}

// refresh publishes a snapshot when one is due: new figures at their interval, otherwise the clocks
// once per second.
func (l *liveTrace) refresh() {
	shown := l.latest.Load()
	switch now := time.Now(); {
	case l.ended:
	case l.fresh && !now.Before(l.next), l.counting && now.Sub(l.next) > publishLatest: // the time that it took grows anyway
		l.summarize()
		l.publish()
	case l.state() != shown.State || l.notice != shown.Notice:
		l.publish()
	case !(l.counting && l.fresh) && now.Sub(l.began)/time.Second != shown.Now/time.Second:
		l.publish()
	}
}

// refreshTarget updates the state of the target, of losses and of other programs.
func (l *liveTrace) refreshTarget() {
	if !l.ended || l.target.Runtime == "" {
		l.target = l.source.Target()
	}
	l.lost = l.source.Dropped()
	if !l.ended {
		l.load = l.others.sample()
	}
	if threads := l.collector.threads; threads > 0 && threads != l.threads { // nothing is measured here
		l.threads = threads
		l.peak, l.missing = l.o.peakOf(context.Background(), threads)
	}
	l.gaps = slices.Concat(l.source.Gaps(), l.missing)
}

// summarize updates the figures.
func (l *liveTrace) summarize() {
	began := time.Now()
	if !l.ended {
		l.refreshTarget()
	}
	l.updateExpectation()
	from, to := l.window.span()
	s := l.collector.summary(l.recording(), l.since(), from, to)
	if s.Coverage.Graphs > 0 || s.Coverage.Calls > 0 {
		l.summary, l.graph = s, l.collector.tally.Live()
	}
	l.fresh = false
	took := time.Since(began)
	l.next = began.Add(min(max(publishEvery, publishShare*took), publishLatest))
}

// publish publishes a snapshot of the current state.
func (l *liveTrace) publish() {
	s := &optrace.Live{
		State: l.state(), Target: l.target, Since: l.since(), Now: time.Since(l.began), Detail: l.detail,
		Question: l.ask.text, Notice: l.notice, Summary: l.summary, Observer: l.currentCost(),
	}
	if l.ended {
		s.Now = l.latest.Load().Now
	}
	if !l.settled {
		s.Detail = l.requested
	}
	if l.summary != nil {
		s.Rates, s.Graph = l.collector.tally.Rates(l.now(), rateSeconds), l.graph
	}
	l.latest.Store(s)
}

// state returns the state of the trace.
func (l *liveTrace) state() optrace.LiveState {
	switch {
	case l.ended:
		return optrace.LiveEnded
	case l.ask.text != "":
		return optrace.LiveAsking
	case l.calibrating != nil && l.idle():
		return optrace.LiveWaiting
	case l.calibrating != nil:
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
