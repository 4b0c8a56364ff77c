package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// result is the result of a task: of an attach, a change (applied), a canary or an export (exported).
type result struct {
	attachID uint64 // of the attach
	server   *Server
	attached *attachedLine
	err      error // of the attach

	applied  *loop.Applied
	canary   loop.Input // loop.CanaryStarted or loop.CanaryEnded, nil for others
	exported *loop.Noted
}

// change is a change of the server in progress, or a canary.
type change struct {
	cancel context.CancelFunc
	revert bool   // which is not canceled when the session ends
	finish func() // ends a canary, nil for a change
	done   chan struct{}
	err    error // valid once done is closed
}

// deliver sends a result; it reports false if the session has ended.
func (c *conductor) deliver(r result) bool {
	select {
	case c.results <- r:
		return true
	case <-c.ended:
		return false
	}
}

// startAttach attaches after a delay. It cancels an attach that is in progress.
func (c *conductor) startAttach(ctx context.Context, delay time.Duration) {
	c.cancelAttach()
	ctx, c.cancelAttach = context.WithCancel(ctx)
	c.attachID++
	c.pending = nil
	id := c.attachID
	c.tasks.Go(func() {
		if !sleep(ctx, delay) {
			return
		}
		s, err := c.tryAttach(ctx)
		r := result{attachID: id, err: err}
		if err == nil {
			r.server = s
			r.attached, r.err = s.attached(ctx)
		}
		if r.err != nil && s != nil {
			s.close()
			r.server = nil
		}
		if !c.deliver(r) && r.server != nil {
			s.close()
		}
	})
}

// tryAttach attaches to the server once, within attachWithin.
func (c *conductor) tryAttach(ctx context.Context) (s *Server, err error) {
	defer recovered("the server could not be attached to", &err)
	ctx, cancel := context.WithTimeout(ctx, attachWithin)
	defer cancel()
	s, err = c.plan.Attach(ctx)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("the server did not identify itself within %v: %w", attachWithin, err)
	case err == nil && s == nil:
		return nil, errors.New("no server was found")
	}
	return s, err
}

// attached returns the recording's line for a server that was attached. It reads the devices once to
// learn what they do not report.
func (s *Server) attached(ctx context.Context) (*attachedLine, error) {
	h := &s.Header
	if s.GPUs != nil {
		p := poller{gpus: s.GPUs}
		_, _ = p.readGPUs(ctx) // the polls report an error
		h.Missing = slices.Concat(h.Missing, s.GPUs.Missing())
		h.Notes = slices.Concat(h.Notes, s.GPUs.Notes())
	}
	a := &attachedLine{Header: *h, Identity: s.Identity, CanApply: s.Apply != nil, CannotApply: s.CannotApply}
	_, err := a.input()
	return a, err
}

func (s *Server) close() {
	if s.Close != nil {
		s.Close()
	}
}

// attached switches to another server, or to the same one after a restart. The loop gets the facts
// after the first page of that server, because it would take that page for another restart.
func (c *conductor) attached(ctx context.Context, r result) {
	old := c.watch
	c.watch = newWatch(ctx, r.server, c.plan.Clock, c.began, c.paused)
	c.pending = &r
	if old != nil {
		c.tasks.Go(old.close)
	}
	if old == nil || c.paused {
		c.passAttached(ctx)
	}
}

// passAttached passes the server that was attached last to the loop, unless it has it already.
func (c *conductor) passAttached(ctx context.Context) {
	r := c.pending
	if r == nil {
		return
	}
	c.pending = nil
	in, _ := r.attached.input() // Server.attached has checked it
	c.handle(ctx, in, line{Attached: r.attached})
}

// apply starts a change of the server. The task outlives ctx: a change that has started is completed,
// or cancelled by a quit or after ApplyWithin.
func (c *conductor) apply(ctx context.Context, a loop.Apply) {
	if why := c.cannotApply(); why != "" {
		c.queue = append(c.queue, loop.Applied{Err: why})
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.plan.ApplyWithin)
	change, server := &change{cancel: cancel, revert: a.Revert, done: make(chan struct{})}, c.watch.server
	c.change = change
	c.watch.stranger.Store(true)
	c.tasks.Go(func() {
		defer cancel()
		var r loop.Applied
		if err := func() (err error) {
			defer recovered("the change was not made", &err)
			r = server.Apply(ctx, a)
			return nil
		}(); err != nil {
			r = loop.Applied{Err: err.Error()}
		}
		if r.Err != "" {
			change.err = errors.New(r.Err)
		}
		close(change.done)
		c.deliver(result{applied: &r})
	})
}

// cannotApply returns why the server cannot be changed now, "" if it can.
func (c *conductor) cannotApply() string {
	switch {
	case c.watch == nil:
		return "no server is attached"
	case c.change != nil:
		return "another change is under way"
	case c.watch.server.Apply == nil && c.watch.server.CannotApply != "":
		return c.watch.server.CannotApply
	case c.watch.server.Apply == nil:
		return "rooftop cannot restart this server"
	}
	return ""
}

// export starts writing a report of the current snapshot.
func (c *conductor) export() {
	s := c.live.latest.Load()
	c.tasks.Go(func() {
		text, err := writeReport(c.plan.Export, s)
		c.deliver(result{exported: &loop.Noted{Text: text, Bad: err != nil}})
	})
}

// writeReport writes a report and returns a sentence about the result.
func writeReport(write func(*loop.Snapshot) ([]string, error), s *loop.Snapshot) (text string, err error) {
	var files []string
	err = func() (err error) {
		defer recovered("report", &err)
		files, err = write(s)
		return err
	}()
	if err != nil {
		return "no report was written: " + err.Error(), err
	}
	return "report written: " + strings.Join(files, ", "), nil
}

// end stops everything that was started, waits for it, and writes the end of the recording. The error
// names what did not end in time and what was not completed.
func (c *conductor) end() error {
	c.live.close()
	close(c.ended)
	c.cancelAttach()
	end := End{Duration: c.now().Round(time.Millisecond)}
	if w := c.watch; w != nil {
		if w.server.GPUs != nil {
			end.Missing = w.server.GPUs.Missing()
		}
		c.tasks.Go(w.close)
	}
	err := c.awaitChange()
	if !finishesWithin(endWithin, c.tasks.Wait) {
		err = errors.Join(err, fmt.Errorf("a reader of the server did not stop within %v", endWithin))
	}
	c.plan.Record.write(line{At: c.now(), End: &end})
	return err
}

// cancelChange cancels a change in progress, which its applier then puts back. A revert goes on.
func (c *conductor) cancelChange() {
	if c.change != nil && c.change.finish == nil && !c.change.revert {
		c.change.cancel()
	}
}

// awaitChange waits for a change in progress, at most for the grace of the plan. It returns the error
// of the change, or that the change was cancelled.
func (c *conductor) awaitChange() error {
	change := c.change
	if change == nil {
		return nil
	}
	if change.finish != nil {
		change.finish()
	}
	grace := time.NewTimer(c.plan.Grace)
	defer grace.Stop()
	select {
	case <-change.done:
	case <-grace.C:
		change.cancel()
		return fmt.Errorf("the server was being changed when the run ended, and the change was cancelled after %v", c.plan.Grace)
	}
	if change.err != nil {
		return fmt.Errorf("the change that was under way when the run ended: %w", change.err)
	}
	return nil
}

// sleep waits for d and returns true, or false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// finishesWithin runs f on a new goroutine and reports whether it returned within d.
func finishesWithin(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
