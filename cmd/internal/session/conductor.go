package session

import (
	"context"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// heartbeat is how long nothing may happen before the loop is told that time
// passes: a page that hangs grows old on the screen too.
const heartbeat = time.Second

// machine is the loop: an [engine.Loop].
type machine interface {
	Step(now time.Duration, in engine.Input) []engine.Action
	Snapshot() *engine.Snapshot
}

// conductor owns the loop of a live session: it takes what happened, lets the loop
// step, does what the loop asks for, and publishes. Only its own goroutine touches
// it.
type conductor struct {
	live  *Live
	plan  *LivePlan
	loop  machine
	began time.Duration // time 0 by the plan's clock

	watch  *watch // of the server that was attached last, nil before
	paused bool
	// results are what attaching, changing and exporting came to. Whoever sends
	// must give up when gone is closed.
	results   chan result
	gone      chan struct{}
	tasks     sync.WaitGroup     // every errand
	attach    uint64             // the one under way; results of older ones are void
	stop      context.CancelFunc // stops it
	facts     *result            // of a server whose first page has not come yet
	change    *change            // nil while none is under way
	finished  bool
	unwritten bool           // the recording broke, and that was said
	queue     []engine.Input // what doing an action came to at once
	heartbeat *time.Timer
}

func newConductor(l *Live) *conductor {
	return &conductor{
		live: l, plan: &l.plan, loop: l.loop, began: l.plan.Clock(),
		results: make(chan result), gone: make(chan struct{}), stop: func() {},
	}
}

func (c *conductor) now() time.Duration { return c.plan.Clock() - c.began }

// run conducts until the loop has finished.
func (c *conductor) run(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	c.heartbeat = time.NewTimer(heartbeat)
	defer c.heartbeat.Stop()
	c.take(work, engine.Begin{}, line{Header: sessionHeader(&c.plan.Loop)})
	over := ctx.Done()
	for !c.finished {
		var polls chan polled
		var observed chan engine.Observed
		var remarks chan string
		if w := c.watch; w != nil {
			polls, observed, remarks = w.polls, w.observed, w.remarks
		}
		select {
		case <-over:
			// An automatic run may put the kept configuration back first: it goes on
			// until that is done, or a second quit ends it.
			over = nil
			c.step(work, engine.Pressed{Command: engine.CommandQuit})
		case p := <-polls:
			c.sampled(work, p)
		case o := <-observed:
			c.observed(work, o)
		case text := <-remarks:
			c.step(work, engine.Noted{Text: text})
		case r := <-c.results:
			c.result(work, r)
		case command := <-c.live.commands:
			c.step(work, engine.Pressed{Command: command})
		case <-c.live.exports:
			c.export()
		case <-c.heartbeat.C:
			c.step(work, engine.Ticked{})
		}
	}
}

// sampled hands over a poll. One that was under way when the session was paused
// is let go.
func (c *conductor) sampled(ctx context.Context, p polled) {
	if c.paused {
		return
	}
	c.take(ctx, engine.Sampled{Sample: p.sample}, line{Poll: p.poll})
	c.tellFacts(ctx)
}

func (c *conductor) observed(ctx context.Context, o engine.Observed) {
	if !c.paused {
		c.step(ctx, o)
	}
}

// step lets the loop take an input, and whatever that leads to at once.
func (c *conductor) step(ctx context.Context, in engine.Input) { c.take(ctx, in, lineOf(in)) }

func (c *conductor) take(ctx context.Context, in engine.Input, l line) {
	for {
		now := c.now()
		l.At = now
		c.record(l)
		actions := c.loop.Step(now, in)
		c.publish()
		for _, a := range actions {
			c.perform(ctx, a)
		}
		if c.finished || len(c.queue) == 0 {
			break
		}
		in, c.queue = c.queue[0], c.queue[1:]
		l = lineOf(in)
	}
	c.heartbeat.Reset(heartbeat)
}

// publish shows the loop as it is now, and follows its pause.
func (c *conductor) publish() {
	s := c.loop.Snapshot()
	c.live.latest.Store(s)
	if s.Paused != c.paused {
		c.paused = s.Paused
		if c.watch != nil {
			c.watch.hold(c.paused)
		}
	}
}

func (c *conductor) record(l line) {
	r := c.plan.Record
	r.write(l)
	if r != nil && r.err != nil && !c.unwritten {
		c.unwritten = true
		c.queue = append(c.queue, engine.Noted{Text: "the recording ends here: " + r.err.Error(), Bad: true})
	}
}

func (c *conductor) perform(ctx context.Context, a engine.Action) {
	switch a := a.(type) {
	case engine.Attach:
		c.find(ctx, a.After)
	case engine.Apply:
		c.apply(ctx, a)
	case engine.Tell:
		if c.plan.Tell != nil {
			c.plan.Tell(a.Event)
		}
	case engine.Finish:
		c.finished = true
	}
}

// result takes what an errand came to.
func (c *conductor) result(ctx context.Context, r result) {
	switch {
	case r.applied != nil:
		c.change = nil
		c.step(ctx, *r.applied)
	case r.exported != nil:
		c.step(ctx, *r.exported)
		c.live.writing.Store(false)
	case r.attach != c.attach:
		if r.server != nil {
			c.tasks.Go(r.server.close)
		}
	case r.err != nil:
		c.step(ctx, engine.AttachFailed{Why: r.err.Error()})
	default:
		c.attached(ctx, r)
	}
}
