// Package microscope records a run on one clock: requests are sent, or a window is
// watched, while the server's processes, its GPUs and its metrics page are sampled
// side by side. Each source has a goroutine of its own, so that a slow one holds up
// no other; none of them judges what it reads.
package microscope

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// DefaultPeriod is the time between samples of processes and GPUs unless it is told
// (decisions.md 36).
const DefaultPeriod = 50 * time.Millisecond

// closingTimeout bounds the closing samples, which are taken also after a signal.
const closingTimeout = 2 * time.Second

// Clock is the one clock of a run: time since its origin, monotonic, and the wall
// time that was read at the origin.
type Clock struct {
	Wall time.Time
	Now  func() time.Duration
}

// NewClock starts a clock.
func NewClock() Clock {
	origin := time.Now()
	return Clock{Wall: origin.Round(0), Now: func() time.Duration { return time.Since(origin) }}
}

// Processes samples a process tree and keeps what it saw.
type Processes interface {
	// Sample takes a cheap look; Deep one at everything there is to read, what Sample
	// looks at first.
	Sample()
	Deep()
	// Tree returns all that was seen.
	Tree() capture.Tree
}

// GPUs reads devices.
type GPUs interface {
	Read(ctx context.Context) (engine.GPUReading, error)
}

// Page reads the server's own metrics.
type Page interface {
	Sample(ctx context.Context) capture.PageSample
	// Interval is how long to wait from one read to the next, so that the server is
	// not disturbed.
	Interval() time.Duration
}

// Plan says what to record. Sources that are nil are not sampled.
type Plan struct {
	Clock     Clock
	Period    time.Duration // between samples of processes and GPUs
	Processes Processes
	GPUs      GPUs
	Page      Page
	// Send sends the requests of a probe and returns those that were sent, also when
	// ctx ends early. Nil watches for Window instead.
	Send   func(ctx context.Context) []capture.Request
	Window time.Duration
}

// recorder gathers what the sources of one run tell.
type recorder struct {
	plan Plan
	c    *capture.Capture

	// Each is written by its source's goroutine alone while the run lasts.
	readings []engine.GPUReading
	gpuError error
	pages    []capture.PageSample
}

// Run records one run. It returns what it has when ctx ends early, with the closing
// samples. The capture lacks what only its caller knows: where the sources come from.
func Run(ctx context.Context, p Plan) *capture.Capture {
	r := &recorder{plan: p, c: &capture.Capture{Kind: capture.Observation, Wall: p.Clock.Wall, Period: p.Period}}
	r.open(ctx)
	r.c.Begin = p.Clock.Now()
	stop := r.sample(ctx)
	if p.Send != nil {
		r.c.Kind = capture.Probe
		r.c.Requests = p.Send(ctx)
	} else {
		wait(ctx, p.Window)
	}
	r.end(ctx)
	stop()
	r.close(ctx)
	return r.c
}

// open takes the opening samples: the slow ones first, so that those which figures
// start from lie just before the run.
func (r *recorder) open(ctx context.Context) {
	r.page(ctx)
	if r.plan.Processes != nil {
		r.plan.Processes.Deep()
	}
	r.gpu(ctx)
	if r.plan.Processes != nil {
		r.plan.Processes.Sample()
	}
}

// close takes the closing samples, all at once: what a process used by then is read
// before what takes longer.
func (r *recorder) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closingTimeout)
	defer cancel()
	var all sync.WaitGroup
	if r.plan.Processes != nil {
		all.Go(r.plan.Processes.Deep)
	}
	all.Go(func() { r.gpu(ctx) })
	all.Go(func() { r.page(ctx) })
	all.Wait()
	if r.plan.Processes != nil {
		r.c.Tree = r.plan.Processes.Tree()
	}
	r.c.GPUs.Readings, r.c.Pages = r.readings, r.pages
	if r.gpuError != nil {
		r.c.Notes = append(r.c.Notes, "GPU readings failed now and then: "+r.gpuError.Error())
	}
	r.c.Trim()
}

// end settles when the run ended: a probe with the last byte of its last request.
func (r *recorder) end(ctx context.Context) {
	r.c.End = r.plan.Clock.Now()
	if len(r.c.Requests) > 0 {
		first, last := r.c.Requests[0].Sent, r.c.Requests[0].End
		for i := range r.c.Requests {
			first, last = min(first, r.c.Requests[i].Sent), max(last, r.c.Requests[i].End)
		}
		r.c.Begin, r.c.End = first, last
	}
	if ctx.Err() != nil {
		r.c.Ended = "interrupt"
	}
}

// sample starts the sources and returns what stops them and waits for them.
func (r *recorder) sample(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	var all sync.WaitGroup
	ctx = context.WithoutCancel(ctx)
	begin := r.c.Begin
	period := func() time.Duration { return r.plan.Period }
	if r.plan.Processes != nil {
		all.Go(func() { r.every(done, begin, period, r.plan.Processes.Sample) })
	}
	if r.plan.GPUs != nil {
		all.Go(func() { r.every(done, begin, period, func() { r.gpu(ctx) }) })
	}
	if r.plan.Page != nil {
		all.Go(func() { r.every(done, begin, r.plan.Page.Interval, func() { r.page(ctx) }) })
	}
	return func() {
		close(done)
		all.Wait()
	}
}

// every calls read at multiples of the interval since the begin of the run, until
// done. A read that takes longer than that skips the beats that it missed.
func (r *recorder) every(done <-chan struct{}, begin time.Duration, interval func() time.Duration, read func()) {
	due := begin
	for {
		step := max(interval(), time.Millisecond)
		now := r.plan.Clock.Now()
		due += step
		if due < now {
			due += (now - due).Truncate(step) + step
		}
		timer := time.NewTimer(due - now)
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
		}
		read()
	}
}

// gpu takes one reading of the devices. A reading that fails is a gap.
func (r *recorder) gpu(ctx context.Context) {
	if r.plan.GPUs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closingTimeout)
	defer cancel()
	reading, err := r.plan.GPUs.Read(ctx)
	if err != nil {
		r.gpuError = err
		return
	}
	r.readings = append(r.readings, reading)
}

// page takes one look at the server's metrics.
func (r *recorder) page(ctx context.Context) {
	if r.plan.Page == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closingTimeout)
	defer cancel()
	r.pages = append(r.pages, r.plan.Page.Sample(ctx))
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Missed says how many samples of the processes a run lacks of those that its period
// asks for, where that is more than a fifth; "" where it is not.
func Missed(c *capture.Capture) string {
	want := int(c.Span() / c.Period)
	have := len(c.Tree.Samples)
	if want < 10 || have == 0 || have*5 >= want*4 {
		return ""
	}
	return fmt.Sprintf("%d of %d samples of the processes were taken in time: this machine is too busy, or the tree too large, for one every %v", have, want, c.Period)
}
