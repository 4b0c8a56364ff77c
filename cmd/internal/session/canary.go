package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Canary is a copy of a server that runs beside others.
type Canary interface {
	// Name is what the user calls it: "pod vllm-canary-x7k2".
	Name() string
	// Sources reads the canary, first, and each of the servers beside it.
	Sources() []CanarySource
	// Ended returns why the canary does not answer, or can no longer be compared; nil while it can. An error
	// with a method CopyFailed is one of the canary itself, others say nothing of its change.
	Ended(ctx context.Context) error
	// Remove ends the canary. It can be repeated.
	Remove(ctx context.Context) error
}

// CanarySource reads one server, as Server does.
type CanarySource struct {
	Pages  Pages
	Health func(context.Context) engine.Health
}

// canaryPoll is one poll of the canary, or of a server beside it.
type canaryPoll struct {
	server int // 0 is the canary
	polled
}

const (
	// canaryInterval is the time between polls of one server: each page passes through the API server of a
	// cluster. It makes windows of five polls.
	canaryInterval = 2 * engine.PollInterval
	// canaryWatch is the time between two looks at whether the canary can still be compared.
	canaryWatch = 2 * time.Second
)

// startCanary starts a canary, which is read until it ends or is to end.
func (c *conductor) startCanary(ctx context.Context, a loop.StartCanary) {
	why := c.cannotApply()
	if why == "" && c.watch.server.Canary == nil {
		why = "rooftop cannot start a canary of this server"
	}
	if why != "" {
		c.queue = append(c.queue, loop.CanaryEnded{Err: why})
		return
	}
	ctx, finish := context.WithCancel(context.WithoutCancel(ctx))
	change, server := &change{cancel: finish, finish: finish, done: make(chan struct{})}, c.watch.server
	polls := make(chan canaryPoll, maxQueuedPolls)
	c.change, c.canary = change, polls
	c.tasks.Go(func() {
		defer finish()
		r := c.guardCanary(ctx, server, a, polls)
		if r.Left {
			change.err = fmt.Errorf("the canary is left: %s; 'rooftop recover' removes it", r.Err)
		}
		close(change.done)
		c.deliver(result{canary: r})
	})
}

// guardCanary is runCanary, but a panic in it leaves the canary.
func (c *conductor) guardCanary(ctx context.Context, server *Server, a loop.StartCanary, polls chan<- canaryPoll) (r loop.CanaryEnded) {
	err := func() (err error) {
		defer recovered("the canary was not ended", &err)
		r = c.runCanary(ctx, server, a, polls)
		return nil
	}()
	if err != nil {
		r = loop.CanaryEnded{Err: err.Error(), Left: true}
	}
	return r
}

// canaryEnded returns what an error of a canary says of it.
func canaryEnded(err error) loop.CanaryEnded {
	var failed interface{ CopyFailed() }
	var left interface{ CopyLeft() }
	return loop.CanaryEnded{Err: err.Error(), Failed: errors.As(err, &failed), Left: errors.As(err, &left)}
}

// runCanary starts a canary, reads it until ctx ends or it cannot be compared, and removes it.
func (c *conductor) runCanary(ctx context.Context, server *Server, a loop.StartCanary, polls chan<- canaryPoll) (r loop.CanaryEnded) {
	start, cancel := context.WithTimeout(ctx, c.plan.ApplyWithin)
	canary, err := server.Canary(start, a)
	cancel()
	if err != nil {
		return canaryEnded(err)
	}
	sources := canary.Sources()
	c.deliver(result{canary: loop.CanaryStarted{Name: canary.Name(), Others: len(sources) - 1}})
	read, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for i := range sources {
		readers.Go(func() { c.readCanary(read, server.Header.Model, i, &sources[i], polls) })
	}
	if err := watchCanary(ctx, canary); err != nil {
		r = canaryEnded(err)
	}
	stop()
	readers.Wait()
	removal, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.plan.ApplyWithin)
	defer cancel()
	if err := canary.Remove(removal); err != nil {
		return loop.CanaryEnded{Err: err.Error(), Left: true}
	}
	return r
}

// watchCanary waits until ctx ends, or returns why the canary can no longer be compared.
func watchCanary(ctx context.Context, canary Canary) error {
	ticker := time.NewTicker(canaryWatch)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := canary.Ended(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// readCanary polls the canary, or a server beside it, until ctx ends.
func (c *conductor) readCanary(ctx context.Context, model string, i int, source *CanarySource, polls chan<- canaryPoll) {
	p := poller{pages: source.Pages, health: source.Health, clock: c.plan.Clock, began: c.began, deadline: pageWithin, least: canaryInterval}
	p.first = p.now()
	parser := newParser(model)
	p.run(ctx, 0, func(poll *Poll) {
		select {
		case polls <- canaryPoll{i, polled{poll, parser.sample(poll)}}:
		case <-ctx.Done():
		}
	})
}

// canarySampled passes a poll of the canary, or of a server beside it, to the loop.
func (c *conductor) canarySampled(ctx context.Context, p canaryPoll) {
	if !c.paused {
		c.handle(ctx, loop.CanarySampled{Server: p.server, Sample: p.sample}, line{Canary: &canaryLine{Server: p.server, Poll: p.poll}})
	}
}
