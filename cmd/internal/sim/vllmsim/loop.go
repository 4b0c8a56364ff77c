package vllmsim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// machine is a [vllmsim.Server]; tests implement a fake.
type machine interface {
	Healthy() time.Duration
	Dead() bool
	Submit(now time.Duration, c Call, sink Sink) (core.ID, error)
	Cancel(now time.Duration, id core.ID)
	Next() (time.Duration, bool)
	Advance(now time.Duration)
	Page(buf []byte, now time.Duration) []byte
	GPUs(now time.Duration) []perf.Reading
	Inject(now time.Duration, f settings.Fault) error
	Sizing() perf.Sizing
	HTTP(path string, status int)
}

// quantum is the shortest sleep: steps that follow each other faster are handled together.
const quantum = time.Millisecond

// errEnded is the error of a loop whose incarnation has ended.
var errEnded = errors.New("the simulated server has ended")

// loop owns a machine and advances its time with a clock.
type loop struct {
	m        machine
	clock    *clock
	commands chan func(now time.Duration)
	quit     chan struct{} // closed by end
	gone     chan struct{} // closed after run has returned
	broken   error         // why it returned by itself; valid once gone is closed

	// Only the owning goroutine uses these.
	dirty []*stream // have chunks that their handlers do not know of
}

func newLoop(m machine, c *clock) *loop {
	return &loop{
		m: m, clock: c,
		commands: make(chan func(time.Duration), 64),
		quit:     make(chan struct{}), gone: make(chan struct{}),
	}
}

// run advances time until end is called.
func (l *loop) run() {
	defer close(l.gone)
	// A panic of the machine ends this server, not the program.
	defer func() {
		if p := recover(); p != nil {
			l.broken = fmt.Errorf("simulated server: internal error: %v", p)
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.advance()
		var due <-chan time.Time
		if next, ok := l.m.Next(); ok {
			timer.Reset(max(quantum, l.clock.until(next)))
			due = timer.C
		}
		select {
		case <-l.quit:
			return
		case <-due:
		case c := <-l.commands:
			l.serve(c)
		}
	}
}

// serve runs a command and all queued ones, at the same simulated time.
func (l *loop) serve(c func(time.Duration)) {
	now := l.advance()
	for {
		c(now)
		select {
		case c = <-l.commands:
		default:
			return
		}
	}
}

// advance handles all events that are due, and wakes each handler whose stream has new output once, however many
// steps passed. It returns the time until the next event.
func (l *loop) advance() time.Duration {
	now := l.clock.now()
	l.m.Advance(now)
	for i, s := range l.dirty {
		s.dirty = false
		s.notify()
		l.dirty[i] = nil
	}
	l.dirty = l.dirty[:0]
	return now
}

// mark adds a stream to those whose handlers must be woken.
func (l *loop) mark(s *stream) {
	if !s.dirty {
		s.dirty = true
		l.dirty = append(l.dirty, s)
	}
}

// do runs f on the owning goroutine and waits for it. The error is that of ctx, or errEnded.
func (l *loop) do(ctx context.Context, f func(now time.Duration)) error {
	done := make(chan struct{})
	err := l.post(ctx, func(now time.Duration) {
		defer close(done)
		f(now)
	})
	if err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-l.gone:
		return errEnded
	}
}

// reached runs f like do. It returns false if the client or the server has gone, so that no answer is needed.
func (l *loop) reached(ctx context.Context, f func(now time.Duration)) bool {
	return l.do(ctx, f) == nil
}

// post queues f for the owning goroutine and does not wait for it.
func (l *loop) post(ctx context.Context, f func(now time.Duration)) error {
	select {
	case l.commands <- f:
		return nil
	case <-l.gone:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end stops the loop and waits for it.
func (l *loop) end() {
	close(l.quit)
	<-l.gone
}

// why returns why the loop has ended. It is called once gone is closed.
func (l *loop) why() error {
	if l.broken != nil {
		return l.broken
	}
	return errEnded
}
