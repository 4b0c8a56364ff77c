package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

const (
	// samplesWaiting bounds the polls that the loop has not taken: sixteen seconds
	// of them. When it is full the oldest goes and counts as missed.
	samplesWaiting = 64
	// processInterval is the time between two readings of the server's processes.
	processInterval = 2 * time.Second
)

// watch reads one server: page and GPUs in one goroutine, its processes in
// another.
type watch struct {
	server *Server
	cancel context.CancelFunc
	done   sync.WaitGroup
	polls  chan polled
	// observed holds the latest reading of the processes: one that nobody took is
	// replaced.
	observed chan engine.Observed
	remarks  chan string // what the journal should know of the reading
	holds    [2]chan bool
}

// polled is one poll, as it was read and as the engine takes it.
type polled struct {
	poll   *Poll
	sample *engine.Sample
}

// newWatch begins to read a server, unless it is held from the start; began is the
// session's time 0 by the clock.
func newWatch(ctx context.Context, s *Server, clock func() time.Duration, began time.Duration, held bool) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{
		server: s, cancel: cancel,
		polls: make(chan polled, samplesWaiting), observed: make(chan engine.Observed, 1), remarks: make(chan string, 4),
	}
	for i := range w.holds {
		w.holds[i] = make(chan bool, 1)
	}
	w.done.Go(func() { w.poll(ctx, clock, began, held) })
	if s.Processes != nil {
		w.done.Go(func() { w.observe(ctx, held) })
	}
	return w
}

// poll reads the page and the GPUs until ctx ends.
func (w *watch) poll(ctx context.Context, clock func() time.Duration, began time.Duration, held bool) {
	p := poller{
		pages: w.server.Pages, gpus: w.server.GPUs, clock: clock, began: began,
		deadline: pageWithin, patient: true, hold: w.holds[0], held: held,
	}
	p.stood = func(d time.Duration) {
		w.remark(fmt.Sprintf("rooftop stood still for %v: it was stopped, or its machine slept", d.Round(time.Second)))
	}
	p.first = p.now()
	parser, told := newParser(w.server.Header.Model), false
	p.run(ctx, 0, func(poll *Poll) {
		w.offer(polled{poll, parser.sample(poll)})
		if p.slow != "" && !told {
			told = true
			w.remark(p.slow)
		}
	})
}

// remark leaves a sentence for the journal. Where several wait already it goes
// unsaid.
func (w *watch) remark(text string) {
	select {
	case w.remarks <- text:
	default:
	}
}

// offer queues a poll. Where the queue is full the oldest goes, and is counted as
// missed.
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
		default: // it was taken meanwhile
		}
	}
}

// observe reads the processes until ctx ends.
func (w *watch) observe(ctx context.Context, held bool) {
	ticker := time.NewTicker(processInterval)
	defer ticker.Stop()
	for {
		if !held {
			w.look()
		}
		select {
		case <-ctx.Done():
			return
		case held = <-w.holds[1]:
		case <-ticker.C:
		}
	}
}

// look reads the processes once.
func (w *watch) look() {
	var o engine.Observed
	err := func() (err error) {
		defer recovered("the server's processes could not be read", &err)
		o.Processes, o.Problems, err = w.server.Processes()
		return err
	}()
	if err != nil {
		o = engine.Observed{Err: err.Error()}
	}
	select {
	case <-w.observed: // older
	default:
	}
	w.observed <- o // this is the only sender
}

// hold stops reading, or goes on. It does not wait.
func (w *watch) hold(held bool) {
	for _, h := range w.holds {
		select {
		case <-h: // not seen yet
		default:
		}
		h <- held // this is the only sender
	}
}

// close stops reading and closes the server once nothing reads it any more.
func (w *watch) close() {
	w.cancel()
	w.done.Wait()
	w.server.close()
}
