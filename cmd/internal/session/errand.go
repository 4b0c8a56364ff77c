package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// result is what an errand came to; the conductor takes it as an input. One part
// is set.
type result struct {
	attach   uint64 // which attach this answers
	server   *Server
	attached engine.Attached
	err      error // of attaching

	applied  *engine.Applied
	exported *engine.Noted
}

// change is a change of the server that is under way.
type change struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once it is done
}

// deliver hands over a result; false says that nobody takes it any more.
func (c *conductor) deliver(r result) bool {
	select {
	case c.results <- r:
		return true
	case <-c.gone:
		return false
	}
}

// find attaches after a time. An attach that is under way is given up.
func (c *conductor) find(ctx context.Context, after time.Duration) {
	c.stop()
	ctx, c.stop = context.WithCancel(ctx)
	c.attach++
	c.facts = nil
	id := c.attach
	c.tasks.Go(func() {
		if !sleep(ctx, after) {
			return
		}
		s, err := c.tryAttach(ctx)
		r := result{attach: id, err: err}
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

// tryAttach looks for the server once.
func (c *conductor) tryAttach(ctx context.Context) (s *Server, err error) {
	defer recovered("the server could not be attached to", &err)
	ctx, cancel := context.WithTimeout(ctx, attachWithin)
	defer cancel()
	s, err = c.plan.Attach(ctx)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("the server did not tell what it is within %v: %w", attachWithin, err)
	case err == nil && s == nil:
		return nil, errors.New("no server was found")
	}
	return s, err
}

// attached is what the loop is told of a server. The devices are read once, so
// that what they cannot tell is known.
func (s *Server) attached(ctx context.Context) (engine.Attached, error) {
	h := &s.Header
	if s.GPUs != nil {
		p := poller{gpus: s.GPUs}
		_, _ = p.readGPUs(ctx) // the polls will say why it failed
		h.Missing = slices.Concat(h.Missing, s.GPUs.Missing())
		h.Notes = slices.Concat(h.Notes, s.GPUs.Notes())
	}
	a := attachedLine{Header: *h, Identity: s.Identity, Hands: s.Apply != nil, NoHands: s.NoHands}
	return a.input()
}

func (s *Server) close() {
	if s.Close != nil {
		s.Close()
	}
}

// attached turns to another server, or to the next run of the same one. The loop
// hears of the facts behind the first page of the run that they are of: it must
// not take that page for another restart.
func (c *conductor) attached(ctx context.Context, r result) {
	old := c.watch
	c.watch = newWatch(ctx, r.server, c.plan.Clock, c.began, c.paused)
	c.facts = &r
	if old != nil {
		c.tasks.Go(old.close)
	}
	if old == nil || c.paused {
		c.tellFacts(ctx)
	}
}

// tellFacts tells the loop of the server that was attached last, where it does not
// know yet.
func (c *conductor) tellFacts(ctx context.Context) {
	r := c.facts
	if r == nil {
		return
	}
	c.facts = nil
	a := attachedLine{Header: r.server.Header, Identity: r.attached.Identity, Hands: r.attached.Hands, NoHands: r.attached.NoHands}
	c.take(ctx, r.attached, line{Attached: &a})
}

// apply has the server changed. The errand outlives ctx: a change that was begun
// is finished, or given up when it takes too long.
func (c *conductor) apply(ctx context.Context, a engine.Apply) {
	if why := c.noHands(); why != "" {
		c.queue = append(c.queue, engine.Applied{Err: why})
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.plan.ApplyWithin)
	change, server := &change{cancel: cancel, done: make(chan struct{})}, c.watch.server
	c.change = change
	c.tasks.Go(func() {
		defer cancel()
		var r engine.Applied
		if err := func() (err error) {
			defer recovered("the change was not made", &err)
			r = server.Apply(ctx, a)
			return nil
		}(); err != nil {
			r = engine.Applied{Err: err.Error()}
		}
		if r.Err != "" {
			change.err = errors.New(r.Err)
		}
		close(change.done)
		c.deliver(result{applied: &r})
	})
}

// noHands says why nothing can be changed now, "" where it can.
func (c *conductor) noHands() string {
	switch {
	case c.watch == nil:
		return "no server is attached"
	case c.change != nil:
		return "another change is under way"
	case c.watch.server.Apply == nil && c.watch.server.NoHands != "":
		return c.watch.server.NoHands
	case c.watch.server.Apply == nil:
		return "rooftop cannot restart this server"
	}
	return ""
}

// export writes a report of what is seen now.
func (c *conductor) export() {
	s := c.live.latest.Load()
	c.tasks.Go(func() {
		text, err := writeReport(c.plan.Export, s)
		c.deliver(result{exported: &engine.Noted{Text: text, Bad: err != nil}})
	})
}

// writeReport writes a report and says in words what became of it.
func writeReport(write func(*engine.Snapshot) ([]string, error), s *engine.Snapshot) (text string, err error) {
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

// end stops everything that was started, waits for it, and closes the recording.
// The error says what did not end, or was left undone.
func (c *conductor) end() error {
	c.live.close()
	close(c.gone)
	c.stop()
	end := End{Duration: c.now().Round(time.Millisecond)}
	if w := c.watch; w != nil {
		if w.server.GPUs != nil {
			end.Missing = w.server.GPUs.Missing()
		}
		c.tasks.Go(w.close)
	}
	err := c.awaitChange()
	if !within(endWithin, c.tasks.Wait) {
		err = errors.Join(err, fmt.Errorf("something that reads the server did not end within %v and was left", endWithin))
	}
	c.plan.Record.write(line{At: c.now(), End: &end})
	return err
}

// awaitChange lets a change that is under way come to its end, for a while.
func (c *conductor) awaitChange() error {
	change := c.change
	if change == nil {
		return nil
	}
	grace := time.NewTimer(c.plan.Grace)
	defer grace.Stop()
	select {
	case <-change.done:
	case <-grace.C:
		change.cancel()
		return fmt.Errorf("the server was being changed when the run ended, and the change was given up after %v", c.plan.Grace)
	case <-c.live.hurry:
		change.cancel()
		return errors.New("the server was being changed when the run ended, and the change was given up")
	}
	if change.err != nil {
		return fmt.Errorf("the change that was under way when the run ended: %w", change.err)
	}
	return nil
}

// sleep waits; false says that ctx ended before.
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

// within runs a function in a goroutine of its own and reports whether it returned
// in time.
func within(d time.Duration, f func()) bool {
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
