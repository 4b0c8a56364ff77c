package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui"
)

// runner is a session of the loop: on a server, or played from a recording.
type runner interface {
	Run(ctx context.Context) error
	tui.Feed
	tui.Controls
}

// following is a session with the view that follows it, and what is kept of it.
type following struct {
	session runner
	view    view
	stderr  io.Writer
	// keep writes the files of the run once the session has ended; nil keeps none.
	keep func(*engine.Snapshot) kept
	// patience bounds the end of the run once it was asked for; 0 is endPatience.
	patience time.Duration
	// settle, where it is not nil, puts in order what the run did to a server, after
	// a session that came to its end. Where that did not, unsettled is said.
	settle    func(*engine.Snapshot) error
	unsettled string

	over  chan struct{} // closed once the session has ended and the files are written
	hurry chan struct{} // closed by a second signal: nothing is waited for any more
	rush  sync.Once
	// rushed says that the second signal was taken notice of.
	rushed bool

	filing sync.Once // files are written once, also where a session ends late
	filed  kept
}

// kept is what a run leaves behind.
type kept struct {
	files []string // that say more than the report at the end
	note  string   // why there are none, "" where nothing went wrong
	err   error    // why a file that was asked for is not whole
}

// Bounds of the end of a run, once it was asked for.
const (
	// changeGrace is for a change under way: a server that rooftop itself is
	// restarting is not left half started.
	changeGrace = 8 * time.Second
	// endPatience is for all of it: the change, and the sources.
	endPatience = 15 * time.Second
	// quietEnd is how long nothing is said about it.
	quietEnd = time.Second
	// lastPatience is what is left of it after a second signal.
	lastPatience = time.Second
)

// errLeft is the cause of a session's end when the person left its view.
var errLeft = errors.New("the view was left")

// run shows a session until it ends, and ends it in order, whatever ends it: the
// loop takes no more commands and ends, its actions are performed, its sources
// stop, its files are written, the terminal is given back, the report is printed.
// The error carries the exit code.
func (f *following) run(ctx context.Context) error {
	f.over, f.hurry = make(chan struct{}), make(chan struct{})
	session, end := context.WithCancelCause(ctx)
	defer end(nil)
	results := make(chan ending, 1)
	go func() {
		defer close(f.over)
		results <- f.runSession(session)
	}()
	if v, screen := f.view.(*screenView); screen {
		defer f.guard(takeBack(v.w))()
	} else if f.settle != nil {
		defer f.guard(func() {})()
	}
	showErr := f.view.show(ctx, f)
	end(errLeft)
	result := f.await(ctx, results)
	last := f.session.Latest()
	reportErr := f.view.report(last, result.kept)
	if result.kept.note != "" {
		fmt.Fprintln(f.stderr, "rooftop:", result.kept.note)
	}
	if code := signalOf(ctx); code != 0 {
		// The terminal may be gone: what shows there has failed for that reason.
		return fail(code, errors.Join(result.err, result.kept.err))
	}
	if err := errors.Join(result.err, showErr, reportErr, result.kept.err); err != nil {
		return fail(exitError, err)
	}
	if last != nil && last.Finished != nil {
		return exit(exitCode(last.Finished.ExitCode))
	}
	return nil
}

// ending is how a session ended.
type ending struct {
	err  error
	kept kept
}

// runSession runs the session and writes its files. A panic is an error like any
// other here: the terminal has to be given back first.
func (f *following) runSession(ctx context.Context) (e ending) {
	defer func() {
		if p := recover(); p != nil {
			e.err = fmt.Errorf("internal error: %v; please report this with the command line\n%s", p, debug.Stack())
		}
	}()
	if err := f.session.Run(ctx); !errors.Is(err, context.Canceled) {
		e.err = err
	}
	if f.settle != nil {
		e.err = errors.Join(e.err, f.settle(f.session.Latest()))
	}
	e.kept = f.files()
	return e
}

func (f *following) files() kept {
	f.filing.Do(func() {
		if last := f.session.Latest(); f.keep != nil && last != nil {
			f.filed = f.keep(last)
		}
	})
	return f.filed
}

// await waits for the end of a session that was told to end. What one that does
// not end has measured is kept all the same.
func (f *following) await(ctx context.Context, results <-chan ending) ending {
	signalled := ctx.Done()
	if ctx.Err() != nil {
		signalled = nil // it is what ended the run
	}
	patience := cmp.Or(f.patience, endPatience)
	limit, news := time.NewTimer(patience), time.NewTimer(quietEnd)
	defer limit.Stop()
	defer news.Stop()
	for {
		select {
		case e := <-results:
			return e
		case <-news.C:
			fmt.Fprintln(f.stderr, "rooftop: ending what is under way; Ctrl-C ends at once")
		case <-signalled:
			signalled = nil
			f.hasten()
		case <-f.hurried():
			limit.Reset(lastPatience)
			f.rushed = true
		case <-limit.C:
			e := ending{kept: f.files()}
			if !f.rushed {
				e.err = fmt.Errorf("the session did not end within %v", patience)
			}
			if f.unsettled != "" {
				e.err = errors.Join(e.err, errors.New(f.unsettled))
			}
			return e
		}
	}
}

// hurried is closed by a second signal, once.
func (f *following) hurried() <-chan struct{} {
	if f.rushed {
		return nil
	}
	return f.hurry
}

// hasten ends whatever waits for the session, which cuts short what it waits for.
func (f *following) hasten() {
	f.rush.Do(func() {
		f.session.Do(engine.CommandQuit)
		close(f.hurry)
	})
}

// guard waits for further signals while a run must not simply be cut off: its
// screen is up, or a server is in its hands. The first one ends the run in order
// (signalContext); the second waits for nothing any more; the third ends the
// process, after give. The returned function ends it.
func (f *following) guard(give func()) func() {
	return hearing(func(n int, s syscall.Signal) {
		switch n {
		case 1:
		case 2:
			f.hasten()
		default:
			give()
			os.Exit(128 + int(s))
		}
	})
}
