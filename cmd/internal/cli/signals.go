package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is the time within which further signals count as the first one: timeout(1) sends one
// to its child and one to the process group, and a terminal that closes may send several.
const sameSignal = 250 * time.Millisecond

// Time limits for the end of a run after it was requested.
const (
	// EndPatience limits the whole end: work in progress, and the sources.
	EndPatience = 15 * time.Second
	// QuietEnd is how long the end may take without a message.
	QuietEnd = time.Second
)

// endings returns the signals that end a run. SIGHUP stays ignored if rooftop was started with
// nohup(1).
func endings() []os.Signal {
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// OnSignals calls on for each signal that ends a run, with its number from 1, until stop is called.
// Signals that belong together count once. Meanwhile they do not end the process.
func OnSignals(on func(n int, s syscall.Signal)) (stop func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endings()...)
	done := make(chan struct{})
	go func() {
		var last time.Time
		for n := 1; ; {
			select {
			case <-done:
				return
			case s := <-signals:
				if time.Since(last) < sameSignal {
					continue
				}
				on(n, s.(syscall.Signal))
				n, last = n+1, time.Now()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// SignalContext returns a context that ends with the first signal, with a [*SignalError] as its
// cause. The second signal ends the process at once, as if it were not caught.
func SignalContext() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, endings()...)
	go func() {
		select {
		case s := <-ch:
			cancel(&SignalError{Signal: s.(syscall.Signal)})
			time.Sleep(sameSignal)
			signal.Stop(ch)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(ch); cancel(nil) }
}

// CatchBrokenPipes makes writes to a closed pipe fail with an error, so that a run ends in order
// and writes its files. The signal is caught rather than ignored, because started programs would
// inherit that, and a shell cannot undo it.
func CatchBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
