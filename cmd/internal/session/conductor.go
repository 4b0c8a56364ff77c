package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// heartbeat is the longest time between two steps of the loop. Without other input the loop gets
// loop.Ticked, so that the screen shows the growing age of a page that hangs.
const heartbeat = time.Second

// machine is the state machine of a session. It is a [loop.Loop] except in tests.
type machine interface {
	Step(now time.Duration, in loop.Input) []loop.Action
	Snapshot() *loop.Snapshot
}

// conductor owns the loop of a live session: it passes inputs to the loop, performs the actions
// that the loop returns, and publishes its snapshots. Only its own goroutine uses it.
type conductor struct {
	live  *Live
	plan  *LivePlan
	loop  machine
	began time.Duration // start of the session, by the plan's clock

	watch  *watch // of the server that was attached last, nil before the first
	paused bool
	// results carries the results of attaching, changing and exporting. A sender must give up
	// when ended is closed.
	results      chan result
	ended        chan struct{}
	tasks        sync.WaitGroup     // running tasks
	attachID     uint64             // of the latest attach; results of earlier ones are dropped
	cancelAttach context.CancelFunc // cancels the latest attach
	pending      *result            // server that was attached but not passed to the loop yet
	change       *change            // nil if no change is in progress
	canary       chan canaryPoll    // of the canary and the servers beside it, nil without one
	finished     bool
	recordFailed bool         // a write to the recording failed, which the journal shows
	queue        []loop.Input // results of actions that were ready at once
	heartbeat    *time.Timer
}

func newConductor(l *Live) *conductor {
	return &conductor{
		live: l, plan: &l.plan, loop: l.loop, began: l.plan.Clock(),
		results: make(chan result), ended: make(chan struct{}), cancelAttach: func() {},
	}
}

func (c *conductor) now() time.Duration { return c.plan.Clock() - c.began }

// run passes inputs to the loop until the loop has finished. When ctx ends, the loop gets a quit.
func (c *conductor) run(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	c.heartbeat = time.NewTimer(heartbeat)
	defer c.heartbeat.Stop()
	c.handle(work, loop.Begin{}, line{Header: c.header()})
	cancelled := ctx.Done()
	for !c.finished {
		var polls chan polled
		var observed chan loop.Observed
		var remarks chan loop.Noted
		if w := c.watch; w != nil {
			polls, observed, remarks = w.polls, w.observed, w.remarks
		}
		select {
		case <-cancelled:
			// An automatic run may restore the kept configuration first: it continues until
			// that is done.
			cancelled = nil
			c.pressed(work, loop.CommandQuit)
		case p := <-polls:
			c.sampled(work, p)
		case p := <-c.canary:
			c.canarySampled(work, p)
		case o := <-observed:
			c.observed(work, o)
		case noted := <-remarks:
			c.step(work, noted)
		case r := <-c.results:
			c.result(work, r)
		case command := <-c.live.commands:
			c.pressed(work, command)
		case <-c.live.exports:
			c.export()
		case <-c.heartbeat.C:
			c.step(work, loop.Ticked{})
		}
	}
}

// pressed passes a command to the loop. A quit does not wait for a change to be made.
func (c *conductor) pressed(ctx context.Context, command loop.Command) {
	if command == loop.CommandQuit {
		c.cancelChange()
	}
	c.step(ctx, loop.Pressed{Command: command})
}

// header returns the first line of the session's recording.
func (c *conductor) header() *Header {
	p := &c.plan.Loop
	return &Header{Schema: RecordingSchema, Version: p.Version, Started: p.Started, Session: p}
}

// sampled passes a poll to the loop. A poll that was in progress when the session was paused is
// dropped.
func (c *conductor) sampled(ctx context.Context, p polled) {
	if c.paused {
		return
	}
	c.handle(ctx, loop.Sampled{Sample: p.sample}, line{Poll: p.poll})
	c.passAttached(ctx)
}

func (c *conductor) observed(ctx context.Context, o loop.Observed) {
	if !c.paused {
		c.step(ctx, o)
	}
}

// step handles an input whose line in the recording is lineOf.
func (c *conductor) step(ctx context.Context, in loop.Input) { c.handle(ctx, in, lineOf(in)) }

// handle records a line, passes its input to the loop and performs the actions that the loop
// returns, then does the same for the results that are ready at once.
func (c *conductor) handle(ctx context.Context, in loop.Input, l line) {
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

// publish stores the current snapshot, and pauses or resumes the watch with the loop.
func (c *conductor) publish() {
	s := c.loop.Snapshot()
	c.live.latest.Store(s)
	if s.Paused != c.paused {
		c.paused = s.Paused
		if c.watch != nil {
			c.watch.setPaused(c.paused)
		}
	}
}

func (c *conductor) record(l line) {
	r := c.plan.Record
	r.write(l)
	if r != nil && r.err != nil && !c.recordFailed {
		c.recordFailed = true
		c.queue = append(c.queue, loop.Noted{Text: "the recording ends here: " + r.err.Error(), Bad: true})
	}
}

func (c *conductor) perform(ctx context.Context, a loop.Action) {
	switch a := a.(type) {
	case loop.Attach:
		c.startAttach(ctx, a.After)
	case loop.Apply:
		c.apply(ctx, a)
	case loop.StartCanary:
		c.startCanary(ctx, a)
	case loop.EndCanary:
		if c.change != nil && c.change.finish != nil {
			c.change.finish()
		}
	case loop.Emit:
		if c.plan.Tell != nil {
			c.plan.Tell(a.Event)
		}
	case loop.Finish:
		c.finished = true
	}
}

// result handles the result of a task.
func (c *conductor) result(ctx context.Context, r result) {
	switch {
	case r.applied != nil:
		c.change = nil
		c.watch.stranger.Store(r.applied.Err != "" && !r.applied.Back && !r.applied.Untouched)
		c.step(ctx, *r.applied)
	case r.canary != nil:
		if _, ended := r.canary.(loop.CanaryEnded); ended {
			c.change, c.canary = nil, nil
		}
		c.step(ctx, r.canary)
	case r.exported != nil:
		c.step(ctx, *r.exported)
		c.live.writing.Store(false)
	case r.attachID != c.attachID:
		if r.server != nil {
			c.tasks.Go(r.server.close)
		}
	case r.err != nil:
		var cut interface{ WayCut() }
		c.step(ctx, loop.AttachFailed{Why: r.err.Error(), Starting: errors.Is(r.err, ErrStarting), WayCut: errors.As(r.err, &cut)})
	default:
		c.attached(ctx, r)
	}
}
