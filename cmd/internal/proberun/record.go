// Package proberun runs a probe, an observation or a load: it finds what to sample, records the run, and
// writes report and document as requested.
//
// A run is recorded on one clock: requests are sent, or a window passes, while the server's
// processes, its GPUs and its metrics page are sampled concurrently. Each source has its own
// goroutine, so that a slow one does not delay the others. Sources are recorded as read; package
// capture derives the figures.
package proberun

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// DefaultPeriod is the default time between samples of processes and GPUs: short enough
// for the phases of one request, and below 1 % of a core for a tree of 10 processes.
const DefaultPeriod = 50 * time.Millisecond

// closingTimeout bounds the closing samples, which are taken also after a signal.
const closingTimeout = 2 * time.Second

// Clock is the clock of a run: monotonic time since its origin, and the wall time at the origin.
type Clock struct {
	Wall time.Time
	Now  func() time.Duration
}

// NewClock starts a clock.
func NewClock() Clock {
	origin := time.Now()
	return Clock{Wall: origin.Round(0), Now: func() time.Duration { return time.Since(origin) }}
}

// Processes samples a process tree and stores the samples.
type Processes interface {
	// Sample takes a cheap sample. Deep reads everything, beginning with what Sample reads.
	Sample()
	Deep()
	// Tree returns all samples.
	Tree() capture.Tree
}

// GPUs reads devices.
type GPUs interface {
	Read(ctx context.Context) (engine.GPUReading, error)
}

// Page reads the server's own metrics.
type Page interface {
	Sample(ctx context.Context, clock func() time.Duration) capture.PageSample
	// Interval returns the time between reads that does not disturb the server.
	Interval() time.Duration
}

// Plan describes what to record. Nil sources are not sampled.
type Plan struct {
	Clock     Clock
	Period    time.Duration // between samples of processes and GPUs
	Processes Processes
	GPUs      GPUs
	Page      Page
	// Send sends the requests of a probe and returns those that were sent, even if ctx ends early.
	// If Send is nil, the run observes for Window instead.
	Send   func(ctx context.Context) []capture.Request
	Window time.Duration
}

// recorder collects the samples of one run.
type recorder struct {
	plan Plan
	c    *capture.Capture

	// While the run lasts, only the source's own goroutine writes each of these.
	readings []engine.GPUReading
	gpuError error
	pages    []capture.PageSample
}

// Run records one run. If ctx ends early, it returns what it has, with the closing samples. The
// caller adds the names of the sources.
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

// open takes the opening samples, slow ones first, so that the initial values of figures are read
// just before the run.
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

// close takes the closing samples concurrently, so that CPU times are not delayed by
// slower reads.
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
		r.c.Notes = append(r.c.Notes, "some GPU readings failed: "+r.gpuError.Error())
	}
	r.c.Trim()
}

// end sets when the run ended: for a probe, at the last byte of its last request.
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

// sample starts the sources and returns a function that stops them and waits for them.
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

// every calls read at multiples of the interval since the beginning of the run, until done is
// closed. After a read that takes longer than the interval, the missed ticks are skipped.
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

// gpu takes one reading of the devices. A failed reading is a gap.
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

// page takes one sample of the server's metrics.
func (r *recorder) page(ctx context.Context) {
	if r.plan.Page == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closingTimeout)
	defer cancel()
	r.pages = append(r.pages, r.plan.Page.Sample(ctx, r.plan.Clock.Now))
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Missed describes how many process samples are missing, if more than a fifth of those
// that the period asks for; otherwise it returns "".
func Missed(c *capture.Capture) string {
	want := int(c.Span() / c.Period)
	have := len(c.Tree.Samples)
	if want < 10 || have == 0 || have*5 >= want*4 {
		return ""
	}
	return fmt.Sprintf("only %d of %d process samples were taken in time: the machine is too busy, or the tree too large, for one every %v", have, want, c.Period)
}
