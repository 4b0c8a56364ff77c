package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// machine is what a life drives: a [vllmsim.Server], in tests a fake.
type machine interface {
	Healthy() time.Duration
	Submit(now time.Duration, c vllmsim.Call, sink vllmsim.Sink) (core.ID, error)
	Cancel(now time.Duration, id core.ID)
	Next() (time.Duration, bool)
	Advance(now time.Duration)
	Page(buf []byte, now time.Duration) []byte
	GPUs(now time.Duration) []perf.Reading
	Inject(now time.Duration, f settings.Fault) error
	Dead() bool
	Totals() page.Totals
	Sizing() perf.Sizing
	HTTP(method, handler string, status int, took time.Duration, requestBytes, responseBytes int)
}

// quantum is the shortest sleep: steps that follow each other faster are let
// pass together.
const quantum = time.Millisecond

// errEnded is the answer of a loop whose life is over.
var errEnded = errors.New("the simulated server has ended")

// loop owns a machine and lets its time pass by a clock.
type loop struct {
	m        machine
	clock    *clock
	commands chan func(now time.Duration)
	quit     chan struct{} // closed by end
	gone     chan struct{} // closed when run has returned
	broken   error         // why it returned by itself; valid once gone is closed

	// Of the owning goroutine alone.
	dirty []*stream // have chunks that their handlers were not told of
}

func newLoop(m machine, c *clock) *loop {
	return &loop{
		m: m, clock: c,
		commands: make(chan func(time.Duration), 64),
		quit:     make(chan struct{}), gone: make(chan struct{}),
	}
}

// run lets time pass until end is called.
func (l *loop) run() {
	defer close(l.gone)
	// A fault of the machine ends this server, not the program around it.
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

// serve runs a command and those that wait behind it, all at the same time.
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

// advance lets everything happen that is due, and wakes the handlers whose
// streams got something of it: once each, however many steps passed.
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

// mark notes that a stream has chunks for its handler.
func (l *loop) mark(s *stream) {
	if !s.dirty {
		s.dirty = true
		l.dirty = append(l.dirty, s)
	}
}

// do runs f in the owning goroutine and waits for it. The error is that of the
// context, or errEnded.
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

// post has f run in the owning goroutine, some time.
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

// why says why the loop has ended. It is called once gone is closed.
func (l *loop) why() error {
	if l.broken != nil {
		return l.broken
	}
	return errEnded
}
