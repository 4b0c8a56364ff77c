package session

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

const (
	// maxQueuedPolls bounds the polls that the loop has not handled, to 16 s of them. If the
	// queue is full, the oldest is dropped and counts as missed.
	maxQueuedPolls = 64
	// processInterval is the time between two readings of the server's processes.
	processInterval = 2 * time.Second
	// aroundInterval is the time between two looks around the server.
	aroundInterval = 10 * time.Second
)

// watch reads one server: page and GPUs on one goroutine, its processes on another.
type watch struct {
	server *Server
	cancel context.CancelFunc
	done   sync.WaitGroup
	polls  chan polled
	// observed holds the latest reading of the processes; a newer one replaces it.
	observed chan loop.Observed
	remarks  chan loop.Noted // sentences for the journal
	pauses   [2]chan bool    // for poll and observe
	stranger atomic.Bool     // another process may answer, during a restart
}

// polled is one poll, as read and as parsed for the engine.
type polled struct {
	poll   *Poll
	sample *engine.Sample
}

// newWatch starts reading a server, unless paused; began is the start of the session by the clock.
func newWatch(ctx context.Context, s *Server, clock func() time.Duration, began time.Duration, paused bool) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{
		server: s, cancel: cancel,
		polls: make(chan polled, maxQueuedPolls), observed: make(chan loop.Observed, 1), remarks: make(chan loop.Noted, 4),
	}
	for i := range w.pauses {
		w.pauses[i] = make(chan bool, 1)
	}
	w.done.Go(func() { w.poll(ctx, clock, began, paused) })
	if s.Processes != nil {
		w.done.Go(func() { w.observe(ctx, paused) })
	}
	if s.Around != nil {
		w.done.Go(func() { w.lookAround(ctx) })
	}
	return w
}

// poll reads the page and the GPUs until ctx ends.
func (w *watch) poll(ctx context.Context, clock func() time.Duration, began time.Duration, paused bool) {
	p := poller{
		pages: w.server.Pages, health: w.server.Health, gpus: w.server.GPUs, clock: clock, began: began,
		deadline: pageWithin, backOff: true, pause: w.pauses[0], paused: paused, stranger: &w.stranger,
	}
	p.onSuspend = func(d time.Duration) {
		w.remark(fmt.Sprintf("rooftop was not running for %v: it was stopped, or its machine was suspended", d.Round(time.Second)))
	}
	p.first = p.now()
	parser, noted := newParser(w.server.Header.Model), false
	p.run(ctx, 0, func(poll *Poll) {
		w.offer(polled{poll, parser.sample(poll)})
		if p.slow != "" && !noted {
			noted = true
			w.remark(p.slow)
		}
	})
}

// remark queues a sentence for the journal.
func (w *watch) remark(text string) { w.note(loop.Noted{Text: text}) }

// note queues a sentence for the journal. It drops the sentence if the queue is full.
func (w *watch) note(n loop.Noted) {
	select {
	case w.remarks <- n:
	default:
	}
}

// offer queues a poll. If the queue is full, it drops the oldest poll, which then counts as missed.
func (w *watch) offer(p polled) {
	for {
		select {
		case w.polls <- p:
			return
		default:
		}
		select {
		case old := <-w.polls:
			lost := old.poll.Missed + 1
			p.poll.Missed += lost
			p.sample.Missed += lost
		default: // the loop has taken it meanwhile
		}
	}
}

// observe reads the processes until ctx ends.
func (w *watch) observe(ctx context.Context, paused bool) {
	ticker := time.NewTicker(processInterval)
	defer ticker.Stop()
	for {
		if !paused {
			w.observeOnce()
		}
		select {
		case <-ctx.Done():
			return
		case paused = <-w.pauses[1]:
		case <-ticker.C:
		}
	}
}

// observeOnce reads the processes once.
func (w *watch) observeOnce() {
	var o loop.Observed
	err := func() (err error) {
		defer recovered("the server's processes could not be read", &err)
		o, err = w.server.Processes()
		return err
	}()
	if err != nil {
		o = loop.Observed{Err: err.Error()}
	}
	select {
	case <-w.observed: // drops the older reading
	default:
	}
	w.observed <- o // never blocks: this is the only sender
}

// lookAround writes what happens around the server into the journal until ctx ends.
func (w *watch) lookAround(ctx context.Context) {
	ticker := time.NewTicker(aroundInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if text := w.server.Around(ctx); text != "" {
			w.note(loop.Noted{Text: text, Warn: true})
		}
	}
}

// setPaused pauses or resumes reading. It does not wait.
func (w *watch) setPaused(paused bool) {
	for _, h := range w.pauses {
		select {
		case <-h: // drops a value that was not received yet
		default:
		}
		h <- paused // never blocks: this is the only sender
	}
}

// close stops reading, waits for the readers, and closes the server.
func (w *watch) close() {
	w.cancel()
	w.done.Wait()
	w.server.close()
}
