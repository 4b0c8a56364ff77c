package session

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/engine"
)

// Pages fetches the server's metrics page.
type Pages interface {
	// Page returns the page, appended to buf.
	Page(ctx context.Context, buf []byte) ([]byte, error)
}

// Waiter is implemented by pages that may be of an engine that answers between two of its steps: the time of an
// answer is then no cost to the server, and polls are not slowed by it.
type Waiter interface{ Waits() bool }

// GPUs reads the server's devices.
type GPUs interface {
	// Read returns one reading. It must return when ctx ends.
	Read(ctx context.Context) (engine.GPUReading, error)
	// Missing lists the values that the devices have not reported so far, and the effect of
	// their absence.
	Missing() []engine.Missing
	// Notes returns remarks about the devices for the report.
	Notes() []string
}

const (
	// gpuDeadline bounds one reading: a stuck driver must not delay the page.
	gpuDeadline = 800 * time.Millisecond
	// downAfter is the number of consecutive failed scrapes after which a live session polls at
	// downInterval.
	downAfter    = 8
	downInterval = 500 * time.Millisecond
	// healthLoad bounds the share of time in which /health is requested, to one part in so many.
	healthLoad = 20
	// suspendedAfter is longer than a process waits for a CPU: after such a delay it was stopped,
	// or the machine was suspended.
	suspendedAfter = 10 * time.Second
)

// poller reads the page and the GPUs of one server at regular times, with at most one request at a
// time.
type poller struct {
	pages  Pages
	health func(context.Context) engine.Health // nil if it cannot be read
	gpus   GPUs                                // nil if none is readable
	clock  func() time.Duration
	began  time.Duration // start of the run, by the clock
	first  time.Duration // time of the first poll, since the run began
	// deadline bounds one page; 0 means no bound beyond that of pages.
	deadline time.Duration
	// least is the shortest interval between polls; 0 is engine.PollInterval.
	least time.Duration
	// backOff polls a server less often while it does not answer.
	backOff bool
	// onSuspend is called with the delay after this process was suspended; that time then does
	// not count as missed ticks. With nil it does.
	onSuspend func(time.Duration)
	// pause receives true to pause polling and false to resume; nil if it is never paused.
	pause  <-chan bool
	paused bool // at the start
	// stranger is true while another process may answer, which gets no token; nil if none may.
	stranger *atomic.Bool

	interval time.Duration
	pacer    enginepage.Pacer
	polls    int    // pages that answered
	failures int    // consecutive
	slowed   int    // of the polls, those after which the interval was longer than PollInterval
	slow     string // why it was longer, the last time
	body     []byte

	healthDue time.Duration // time of the next health reading
}

// now returns the time since the run began.
func (p *poller) now() time.Duration { return p.clock() - p.began }

// run polls from first to until, since the run began; if until is 0, until ctx ends. It calls handle
// with every poll, after it has set the interval to the next one.
func (p *poller) run(ctx context.Context, until time.Duration, handle func(*Poll)) {
	p.interval = max(engine.PollInterval, p.least)
	if p.paused {
		if !p.waitForResume(ctx) {
			return
		}
		p.first = p.now()
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for due := p.first; until == 0 || due <= until; {
		timer.Reset(due - p.now())
		select {
		case <-ctx.Done():
			return
		case paused := <-p.pause:
			if paused && !p.waitForResume(ctx) {
				return
			}
			due = max(due, p.now())
			continue
		case <-timer.C:
		}
		// If this process wakes up whole intervals late, its host is short of CPU, and the
		// ticks count as missed.
		tick := p.now()
		missed := int((tick - due) / p.interval)
		poll := p.poll(ctx, tick)
		if ctx.Err() != nil {
			return
		}
		poll.Missed = missed
		if delay := tick - due; p.onSuspend != nil && delay >= suspendedAfter {
			poll.Missed = 0
			p.onSuspend(delay)
		}
		p.pace(poll)
		handle(poll)
		due += time.Duration(missed+1) * p.interval
		// The next poll is due one interval after this one at the earliest, and not in the past:
		// the time that the server took to answer is not a missed tick.
		due = max(due, tick+p.interval, p.now())
	}
}

// waitForResume returns true when polling is resumed, false if ctx ends before.
func (p *poller) waitForResume(ctx context.Context) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case paused := <-p.pause:
			if !paused {
				return true
			}
		}
	}
}

// pace sets the interval to the next poll: longer if the page is slow to render, or if the server
// does not answer.
func (p *poller) pace(poll *Poll) {
	if poll.PageErr != "" {
		p.failures++
		if p.backOff && p.failures >= downAfter {
			p.interval = max(p.pacer.Interval(), downInterval)
		}
		return
	}
	p.failures = 0
	if w, ok := p.pages.(Waiter); !ok || !w.Waits() {
		p.pacer.Observe(poll.Took)
	}
	p.interval = max(p.pacer.Interval(), p.least)
	p.polls++
	if why, slowed := p.pacer.Slowed(); slowed {
		p.slow = why
		p.slowed++
	}
}

// poll reads the page and the GPUs concurrently. The page gets the time at which it was complete; a
// GPU reading has its own time, because an exporter's page may be seconds old.
func (p *poller) poll(ctx context.Context, tick time.Duration) *Poll {
	if p.stranger != nil && p.stranger.Load() {
		ctx = collect.WithoutToken(ctx)
	}
	poll := &Poll{T: tick}
	gpu := make(chan struct{})
	go func() {
		defer close(gpu)
		if p.gpus != nil {
			poll.GPU, poll.GPUErr = p.readGPUs(ctx)
		}
	}()
	body, err := p.page(ctx)
	poll.PageT = p.now()
	poll.Took = poll.PageT - tick
	if err != nil {
		poll.PageErr = err.Error()
	} else {
		p.body = body
		poll.Body = string(body)
	}
	<-gpu
	if err == nil {
		poll.Health = p.readHealth(ctx)
	}
	return poll
}

// readHealth reads the health of the server if it is due. It runs after the page, so that at most
// one request is in flight.
func (p *poller) readHealth(ctx context.Context) *engine.Health {
	began := p.now()
	if p.health == nil || began < p.healthDue {
		return nil
	}
	h := func() (h engine.Health) {
		var err error
		defer recovered("the health of the server could not be read", &err)
		return p.health(ctx)
	}()
	h.T = p.now()
	p.healthDue = began + max(engine.WindowLength-engine.WindowSlack, healthLoad*(h.T-began))
	return &h
}

func (p *poller) page(ctx context.Context) (body []byte, err error) {
	defer recovered("the metrics page could not be read", &err)
	if p.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.deadline)
		defer cancel()
	}
	return p.pages.Page(ctx, p.body[:0])
}

func (p *poller) readGPUs(ctx context.Context) (reading *engine.GPUReading, why string) {
	ctx, cancel := context.WithTimeout(ctx, gpuDeadline)
	defer cancel()
	r, err := func() (r engine.GPUReading, err error) {
		defer recovered("the GPUs could not be read", &err)
		return p.gpus.Read(ctx)
	}()
	if err != nil {
		return nil, err.Error()
	}
	r.T -= p.began
	return &r, ""
}

// recovered turns a panic of the function that defers it into an error. what is the failure that
// the message begins with.
func recovered(what string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%s: internal error: %v", what, v)
	}
}
