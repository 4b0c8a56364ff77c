package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// sameSignal is the time within which further signals count as the first one: timeout(1) sends one
// to its child and one to the process group, and a terminal that closes may send several.
const sameSignal = 250 * time.Millisecond

// beforeThird is the time after the second signal within which no third one counts: it leaves a
// server that is being restored, and the user must have read what the second one said.
const beforeThird = 2 * time.Second

// queuedSignals is the room for signals that were not handled yet.
const queuedSignals = 8

// Time limits for the end of a run after it was requested.
const (
	// EndPatience limits the whole end: work in progress, and the sources.
	EndPatience = 15 * time.Second
	// QuietEnd is how long the end may take without a message.
	QuietEnd = time.Second
)

// endings returns the signals that end a run. SIGHUP stays ignored if rooftop was started with
// nohup(1), and SIGQUIT if a shell started it in the background of a script.
func endings() []os.Signal {
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}

// counter numbers the signals that a user means.
type counter struct {
	n    int // of the last one
	last time.Time
}

// count returns the number of a signal, from 1, or 0 if it belongs to the previous one.
func (c *counter) count(now time.Time) int {
	within := sameSignal
	if c.n == 2 {
		within = beforeThird
	}
	if c.n > 0 && now.Sub(c.last) < within {
		return 0
	}
	c.n, c.last = c.n+1, now
	return c.n
}

// OnSignals calls on for each signal that ends a run, with its number, until stop is called. The
// first signal ends ctx (see [SignalContext]); OnSignals counts from it also if it came before.
// Signals that belong together count once. Meanwhile they do not end the process.
func OnSignals(ctx context.Context, on func(n int, s syscall.Signal)) (stop func()) {
	signals := make(chan os.Signal, queuedSignals)
	signal.Notify(signals, endings()...)
	done := make(chan struct{})
	var counted counter
	if SignalCode(ctx) != 0 {
		counted.n = 1
	}
	handlers.Add(1)
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				if n := counted.count(time.Now()); n > 0 {
					on(n, s.(syscall.Signal))
				}
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		handlers.Add(-1)
	}
}

// handlers counts the calls of OnSignals in effect.
var handlers atomic.Int32

// SignalContext returns a context that ends with the first signal, with a [*SignalError] as its
// cause. The second signal ends the process at once, as if it were not caught, unless [OnSignals]
// handles it.
func SignalContext() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch, stopped := make(chan os.Signal, queuedSignals), make(chan struct{})
	signal.Notify(ch, endings()...)
	go func() {
		select {
		case s := <-ch:
			cancel(&SignalError{Signal: s.(syscall.Signal)})
			time.Sleep(sameSignal)
			endByQuit(ch, stopped)
		case <-stopped:
		}
	}()
	return ctx, func() { signal.Stop(ch); close(stopped); cancel(nil) }
}

// endByQuit leaves further signals to their defaults, but SIGQUIT, which ends the process as the others do: by
// default the Go runtime prints all stacks, and waits forever for a reader of stderr.
func endByQuit(ch chan os.Signal, stopped <-chan struct{}) {
	quits := make(chan os.Signal, 1)
	if slices.Contains(endings(), os.Signal(syscall.SIGQUIT)) {
		signal.Notify(quits, syscall.SIGQUIT)
	}
	signal.Stop(ch)
	for {
		select {
		case <-stopped:
			signal.Stop(quits)
			return
		case <-quits:
			if handlers.Load() == 0 {
				os.Exit(128 + int(syscall.SIGQUIT))
			}
		}
	}
}

// CatchBrokenPipes makes writes to a closed pipe fail with an error, so that a run ends in order
// and writes its files. The signal is caught rather than ignored, because started programs would
// inherit that, and a shell cannot undo it.
func CatchBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
