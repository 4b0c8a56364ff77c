// Package autopilot makes the changes of a run within its limits: it selects the applier that restarts the
// server, records each change in the journal, and prints the events of the run in lines.
package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Pilot makes the changes of a run with the applier of one server and its journal. The
// session calls its methods one at a time, but may end while a change that it canceled is
// still being reverted.
type Pilot struct {
	changing chan struct{} // has an element while applier changes the server
	longest  time.Duration // of a change with what puts the server back; all its waits are shorter
	applier  apply.Applier
	journal  serverJournal // nil in a dry run, which writes nothing
	record   *serverdir.Recorder
	past     serverdir.Past
	dry      bool // show the steps and change nothing
	quiet    bool // stdout is for events
	settled  bool // the session ended normally
	// broken is why no further change is made: the kept configuration could not be recorded.
	broken error
	canary bool // changes are tried on a canary first
	// beside starts a canary; nil if none are wanted.
	beside func(context.Context, loop.StartCanary) (session.Canary, error)
	// left describes what keeps running after rooftop ends, "" if nothing does.
	left  func() string
	noted int           // notes of the applier that were shown
	step  *atomic.Value // the latest step of a change or a revert, a string; nil if none is known
}

// serverJournal is the journal of one server during a run: a [serverdir.Store].
type serverJournal interface {
	apply.Journal
	Run() string
	State() journal.State
	Past() (serverdir.Past, error)
	End(exit int, why string) error
	Close() error
}

// newPilot returns a pilot with an applier, a journal and the measurements of earlier runs.
func newPilot(applier apply.Applier, b serverJournal) (*Pilot, error) {
	past, err := b.Past()
	if err != nil {
		return nil, err
	}
	usual := Default()
	return &Pilot{changing: make(chan struct{}, 1), longest: usual.longest(), applier: applier, journal: b, past: past, record: serverdir.NewRecorder(b)}, nil
}

// Journalled returns the [RunName] of the run; "" if it has no journal.
func (p *Pilot) Journalled() string {
	if p == nil || p.journal == nil {
		return ""
	}
	return RunName(p.journal.Dir(), p.journal.Run())
}

// RunName returns a name that is unique among the runs of all servers: the base name of the
// server's directory and the name of the run in its journal.
func RunName(dir, run string) string { return filepath.Base(dir) + "/" + run }

// errDry is the error of every change in a dry run.
const errDry = "--dry-run touches nothing"

// Attaching wraps attach so that the session can change its servers.
func (p *Pilot) Attaching(attach func(context.Context) (*session.Server, error)) func(context.Context) (*session.Server, error) {
	if p == nil {
		return attach
	}
	return func(ctx context.Context) (*session.Server, error) {
		s, err := attach(ctx)
		if err == nil {
			s.CannotApply, s.Apply, s.Steps = "", p.apply, p.steps
			if p.beside != nil {
				s.Canary = p.startCanary
			}
		}
		return s, err
	}
}

// change waits until the applier is free or ctx ends, and takes it until the returned function is called.
func (p *Pilot) change(ctx context.Context) (done func(), err error) {
	select {
	case p.changing <- struct{}{}:
		return func() { <-p.changing }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("another change of the server is still under way: %w", context.Cause(ctx))
	}
}

func (p *Pilot) startCanary(ctx context.Context, a loop.StartCanary) (session.Canary, error) {
	done, err := p.change(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return p.beside(ctx, a)
}

// apply makes a change, unless this is a dry run or the journal is broken.
func (p *Pilot) apply(ctx context.Context, a loop.Apply) loop.Applied {
	if p.dry {
		return loop.Applied{Err: errDry, Back: true}
	}
	done, err := p.change(ctx)
	if err != nil {
		return loop.Applied{Err: err.Error()}
	}
	defer done()
	if p.broken != nil {
		return loop.Applied{Err: "no further change is made: " + p.broken.Error(), Back: true}
	}
	ended := ""
	if t, ok := p.applier.(interface{ Trouble() string }); ok && a.Revert {
		ended = t.Trouble() // a revert removes the evidence
	}
	r := p.make(ctx, a)
	r.Ended = cmp.Or(r.Ended, ended)
	return r
}

// make has the applier make a change. Its steps are none of what comes after it.
func (p *Pilot) make(ctx context.Context, a loop.Apply) loop.Applied {
	if p.step != nil {
		defer p.step.Store("")
	}
	return p.applier.Apply(ctx, a)
}

// steps returns the steps of a change.
func (p *Pilot) steps(a loop.Apply) []string {
	if p.applier == nil {
		return StepsByHand(a)
	}
	list := p.applier.Steps(a)
	if p.canary && !a.Revert {
		list = append([]string{
			"start one more pod with " + engine.JoinChanges(a.Changes) + ", beside the others (the canary)",
			"measure it and the others at the same time, and remove it; only if it was better:",
		}, list...)
	}
	return list
}

// StepsByHand returns the steps for a user who restarts the server by hand.
func StepsByHand(a loop.Apply) []string {
	with := "restart it with its original launch command"
	if !a.Revert {
		with = "restart it with " + engine.JoinChanges(a.Changes)
	}
	return []string{"stop the server", with, "wait until /health answers"}
}

// Follow returns a function that records an event in the journal before it passes the event
// on to tell, so that a kept configuration is recorded before anyone sees it.
func (p *Pilot) Follow(tell func(loop.Event)) func(loop.Event) {
	if p == nil {
		return tell
	}
	return func(e loop.Event) {
		if p.dry && e.Kind == loop.EventRecommendation && e.Advice != nil {
			change, back := changeAndRevert(e.Advice)
			e.Steps, e.StepsBack = p.steps(change), p.steps(back)
		}
		if p.record != nil {
			p.record.Tell(e)
		}
		if p.applier != nil && !p.dry && (e.Kind == loop.EventKept || e.Kind == loop.EventContinued) {
			if err := p.applier.Kept(); err != nil {
				p.broken = err
				tell(loop.Event{T: e.T, Kind: loop.EventError, Iteration: e.Iteration, Text: "the kept configuration could not be recorded: " + err.Error()})
			}
		}
		tell(e)
	}
}

// changeAndRevert returns the change of a recommendation and its revert.
func changeAndRevert(r *engine.Recommendation) (change, back loop.Apply) {
	changes := r.Changes()
	return loop.Apply{Changes: changes, Iteration: 1, Predicted: r.Predicted}, loop.Apply{Changes: engine.InverseChanges(changes), Revert: true, Iteration: 1}
}

// end ends the run in the journal after its session. It first waits for a change that is
// still being made or reverted, and reverts one that is not kept, because no one watches it
// after the session.
func (p *Pilot) end(ctx context.Context, s *loop.Snapshot) error {
	if p == nil || p.dry {
		return nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.longest, fmt.Errorf("it did not end within %v", p.longest))
	defer cancel()
	done, err := p.change(limited)
	if err != nil { // the applier and the journal are in use
		return fmt.Errorf("%w; 'rooftop recover' shows what is left and restores the server", err)
	}
	defer done()
	var errs []error
	if state := p.journal.State(); !state.Settled() && p.broken == nil {
		if r := p.make(ctx, p.revert(s)); r.Err != "" && !r.Back {
			errs = append(errs, errors.New("the configuration before the change could not be restored: "+r.Err))
		}
	}
	code, why := int(cli.ExitError), "ended before anything was measured"
	if s != nil && s.Finished != nil {
		code, why = s.Finished.ExitCode, s.Finished.Reason
	}
	errs = append(errs, p.applier.Close())
	if p.broken == nil {
		errs = append(errs, p.journal.End(code, why))
	} else { // an open journal is what recover needs
		next := "records it"
		if state := p.journal.State(); !state.Settled() {
			next = "restores the previous one"
		}
		errs = append(errs, fmt.Errorf("the server runs the kept configuration, which could not be recorded: %w; 'rooftop recover' %s", p.broken, next))
	}
	errs = append(errs, p.journal.Close(), p.record.Err())
	return errors.Join(errs...)
}

// revert returns the revert of the latest change.
func (p *Pilot) revert(s *loop.Snapshot) loop.Apply {
	a := loop.Apply{Revert: true}
	if s == nil || len(s.Iterations) == 0 {
		return a
	}
	it := &s.Iterations[len(s.Iterations)-1]
	a.Iteration, a.Changes = it.N, engine.InverseChanges(it.Changes)
	return a
}

// Restoring returns what a run that ends waits for before the server runs the kept configuration
// again: the latest step. It returns "" if the server runs it and is not being changed. Any goroutine
// may call it.
func (p *Pilot) Restoring() string {
	if state := p.journal.State(); len(p.changing) == 0 && state.Settled() {
		return ""
	}
	if p.step != nil {
		if step, ok := p.step.Load().(string); ok && step != "" {
			return step
		}
	}
	return "a change is not kept"
}

// Acts reports whether the run may change its server. It is false for nil and a dry run.
func (p *Pilot) Acts() bool { return p != nil && !p.dry }

// Past returns the measurements of earlier runs on this server.
func (p *Pilot) Past() serverdir.Past { return p.past }

// Watch sets the function from which the journal gets the state of the run.
func (p *Pilot) Watch(latest func() *loop.Snapshot) { p.record.Latest = latest }

// Settle ends the run after its session ended normally. It reverts a change that is not kept.
func (p *Pilot) Settle(ctx context.Context, s *loop.Snapshot) error {
	p.settled = true
	return p.end(ctx, s)
}

// stopWithin limits the parts of a change other than the start: stopping the server and
// testing the new one.
const stopWithin = 3 * time.Minute

// Within returns the longest time of a change: a start that fails and the start that
// reverts it.
func (o *Options) Within() time.Duration { return 2*o.start + stopWithin }

// longest returns a time that no change exceeds with what puts the server back, which has more patience: a
// revert may be tried again before the server is stopped and after.
func (o *Options) longest() time.Duration { return 2 * (o.Within() + apply.RestoreWithin) }

// LeavesText explains, at a second signal, what a further one leaves. doing describes the work under way.
func LeavesText(doing string) string {
	return doing + "; a third signal, or kill -9, leaves the server as it is then, and 'rooftop recover' restores it"
}

// OnSignals returns a handler for [cli.OnSignals] while a server is restored: at the second signal it
// says what the third one leaves, and at that one it ends the process. doing describes the work under way.
func OnSignals(w *cli.World, doing string) func(n int, s syscall.Signal) {
	return func(n int, s syscall.Signal) {
		switch {
		case n == 2:
			w.Notef("%s", LeavesText(doing))
		case n > 2:
			w.Notef("%s", RecoverText)
			os.Exit(128 + int(s))
		}
	}
}

// RecoverText explains how to restore the server after rooftop was stopped at once.
const RecoverText = "stopped at once: the server may not run the kept configuration; 'rooftop recover' shows what was left and restores the server"

// Report reports what keeps running after a run, or the steps of a dry run.
func (p *Pilot) Report(w *cli.World, s *loop.Snapshot) error {
	switch {
	case p == nil:
		return nil
	case p.dry:
		return p.printSteps(w, s)
	}
	if len(p.changing) == 0 { // else the applier is in use
		p.remarks(w)
	}
	if p.left != nil && p.settled {
		if text := p.left(); text != "" {
			w.Notef("%s", text)
		}
	}
	return nil
}

// printSteps writes the steps that a dry run would have taken.
func (p *Pilot) printSteps(w *cli.World, s *loop.Snapshot) error {
	if p.quiet || s == nil || s.Advice == nil || s.Advice.Kind != engine.KindFlag || s.Advice.Flag == "" {
		return nil
	}
	change, back := changeAndRevert(s.Advice)
	var b strings.Builder
	list := func(title string, steps []string) {
		fmt.Fprintf(&b, "\n%s\n", title)
		for i, step := range steps {
			fmt.Fprintf(&b, "  %d. %s\n", i+1, cli.Printable(step))
		}
	}
	list("DRY RUN: nothing was touched. To make the change:", p.steps(change))
	list("To revert it:", p.steps(back))
	if p.applier == nil {
		b.WriteString("\nYou take these steps yourself. With --restart-in-place, --apply-cmd PROGRAM or\n-- COMMAND rooftop takes them, and --dry-run shows its own.\n")
	}
	_, err := io.WriteString(w.Stdout, b.String())
	return err
}
