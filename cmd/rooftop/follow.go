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

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui"
)

// runner is a session of the loop: on a server, or played from a recording.
type runner interface {
	Run(ctx context.Context) error
	tui.Feed
	tui.Controls
}

// following is a session with its view and its files.
type following struct {
	session runner
	view    view
	stderr  io.Writer
	// keep writes the files of the run after the session has ended; nil writes none.
	keep func(*loop.Snapshot) kept
	// patience limits the end of the run after it was requested; 0 is cli.EndPatience.
	patience time.Duration
	// settle, unless nil, restores the server after a session that ended normally.
	settle func(*loop.Snapshot) error
	// restoring returns what the end waits for until the server is restored, "" once it is; nil if the
	// run changes no server. It may be called from any goroutine.
	restoring func() string

	over  chan struct{} // closed when the session has ended and the files are written
	hurry chan struct{} // closed by a second signal: wait for nothing but the server
	rush  sync.Once
	// rushed reports that the second signal was handled.
	rushed bool

	filing sync.Once // files are written only once, even if a session ends late
	filed  kept
}

// kept is what a run leaves behind.
type kept struct {
	files []string // with more details than the final report
	note  string   // why there are no files, "" without a problem
	err   error    // why a requested file is incomplete
}

// Time limits for the end of a run after it was requested.
const (
	// changeGrace is for a change in progress, so that a restart by rooftop is not interrupted
	// halfway.
	changeGrace = 8 * time.Second
	// lastPatience is the remaining time after a second signal if the server needs nothing.
	lastPatience = time.Second
	// newsEvery is the time between two sentences about what the end waits for.
	newsEvery = 10 * time.Second
)

// errLeft is the cause of a session's end when the user left its view.
var errLeft = errors.New("the view was left")

// run shows a session until it ends for any reason, and ends it in order: the loop accepts no more
// commands and ends, its actions finish, its sources stop, files are written, the terminal is
// restored, and the report is printed. The error carries the exit code.
func (f *following) run(ctx context.Context) error {
	f.over, f.hurry = make(chan struct{}), make(chan struct{})
	session, end := context.WithCancelCause(ctx)
	defer end(nil)
	results := make(chan ending, 1)
	go func() {
		defer close(f.over)
		results <- f.runSession(session)
	}()
	if v, ok := f.view.(*screenView); ok {
		defer f.guard(ctx, terminalRestorer(v.w))()
	} else if f.settle != nil {
		defer f.guard(ctx, func() {})()
	}
	showErr := f.view.show(ctx, f)
	end(errLeft)
	result := f.await(ctx, results)
	last := f.session.Latest()
	reportErr := f.view.report(last, result.kept)
	if result.kept.note != "" {
		fmt.Fprintln(f.stderr, "rooftop:", result.kept.note)
	}
	if code := cli.SignalCode(ctx); code != 0 {
		if last != nil && last.Finished != nil && cli.ExitCode(last.Finished.ExitCode) == cli.ExitError {
			code = cli.ExitError // the server is not as it was meant to be: that counts more than how the run ended
		}
		// The terminal may be gone, which makes writing to it fail.
		return cli.Fail(code, errors.Join(result.err, result.kept.err))
	}
	if err := errors.Join(result.err, showErr, reportErr, result.kept.err); err != nil {
		return cli.Fail(cli.ExitError, err)
	}
	if last != nil && last.Finished != nil {
		return cli.Exit(cli.ExitCode(last.Finished.ExitCode))
	}
	return nil
}

// ending is the result of a session.
type ending struct {
	err  error
	kept kept
}

// runSession runs the session and writes its files. It returns a panic as an error, because the
// terminal has to be restored first.
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

// await waits for the end of a session that was asked to end. If it does not end, its measurements
// are still saved.
func (f *following) await(ctx context.Context, results <-chan ending) ending {
	signalled := ctx.Done()
	if ctx.Err() != nil {
		signalled = nil // this signal ended the run
	}
	patience, began := cmp.Or(f.patience, cli.EndPatience), time.Now()
	limit, news := time.NewTimer(patience), time.NewTimer(cli.QuietEnd)
	defer limit.Stop()
	defer news.Stop()
	for {
		select {
		case e := <-results:
			return e
		case <-news.C:
			f.note(f.news())
			if f.restoring != nil {
				news.Reset(newsEvery)
			}
		case <-signalled:
			signalled = nil
			f.hasten()
		case <-f.hurried():
			f.rushed = true
			if step := f.restores(); step != "" {
				f.note(autopilot.LeavesText("reverting to the kept configuration: " + step))
			} else {
				limit.Reset(lastPatience)
			}
		case <-limit.C:
			if left := patience - time.Since(began); left > 0 && f.restores() != "" {
				limit.Reset(left) // a change began at the instant of the second signal
				continue
			}
			e := ending{kept: f.files()}
			if !f.rushed {
				e.err = fmt.Errorf("the session did not end within %v", patience)
			}
			if f.restores() != "" {
				e.err = errors.Join(e.err, errors.New(autopilot.RecoverText))
			}
			return e
		}
	}
}

func (f *following) note(text string) { fmt.Fprintln(f.stderr, "rooftop:", cli.Printable(text)) }

// news says what the end of a run waits for.
func (f *following) news() string {
	if step := f.restores(); step != "" {
		return "reverting to the kept configuration: " + step
	}
	return "ending what is under way; Ctrl-C ends at once"
}

// restores returns what the end waits for until the server is restored, "" if it needs nothing.
func (f *following) restores() string {
	if f.restoring == nil {
		return ""
	}
	return f.restoring()
}

// hurried returns a channel that is closed by a second signal, nil once that was handled.
func (f *following) hurried() <-chan struct{} {
	if f.rushed {
		return nil
	}
	return f.hurry
}

// hasten makes everything that waits for the session stop waiting.
func (f *following) hasten() {
	f.rush.Do(func() {
		f.session.Do(loop.CommandQuit)
		close(f.hurry)
	})
}

// guard handles further signals while a run must not be cut off: its screen is open, or rooftop may
// be changing a server. The first signal ends the run in order (cli.SignalContext); the second ends
// all waiting except that for the server; the third calls give and ends the process. The returned
// function stops the handling.
func (f *following) guard(ctx context.Context, give func()) func() {
	return cli.OnSignals(ctx, func(n int, s syscall.Signal) {
		switch n {
		case 1:
		case 2:
			f.hasten()
		default:
			give()
			if f.restores() != "" {
				f.note(autopilot.RecoverText)
			}
			os.Exit(128 + int(s))
		}
	})
}
