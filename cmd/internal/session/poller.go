package session

import (
	"context"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/engine"
)

// Pages fetches the server's metrics page, appended to buf.
type Pages interface {
	Page(ctx context.Context, buf []byte) ([]byte, error)
}

// GPUs reads the server's devices.
type GPUs interface {
	// Read returns one reading, at the latest when ctx ends.
	Read(ctx context.Context) (engine.GPUReading, error)
	// Missing says what the devices could not tell so far, and what that
	// switches off.
	Missing() []engine.Missing
	// Notes says what a reader must know about the devices.
	Notes() []string
}

const (
	// gpuDeadline bounds one reading: a stuck driver must not hold up the page.
	gpuDeadline = 800 * time.Millisecond
	// downAfter is how many scrapes in a row must fail before a live session asks
	// less often, and downInterval how often then.
	downAfter    = 8
	downInterval = 500 * time.Millisecond
	// standstill is more than a process waits for a CPU: it was stopped, or the
	// machine slept.
	standstill = 10 * time.Second
)

// poller reads page and GPUs of one server on the clock, with one request in
// flight.
type poller struct {
	pages Pages
	gpus  GPUs // nil where none is readable
	clock func() time.Duration
	began time.Duration // the run's time 0, by the clock
	first time.Duration // of the first poll, since the run began
	// deadline bounds one page; 0 leaves that to the pages.
	deadline time.Duration
	// patient asks a server that does not answer less often.
	patient bool
	// stood is told when the process itself did not run for a while, which is no
	// tick missed then; nil counts that time like any other.
	stood func(time.Duration)
	// hold takes true to stop reading and false to go on; nil for a poller that
	// is never held.
	hold <-chan bool
	held bool // from the start

	interval time.Duration
	pacer    vllm.Pacer
	polls    int    // pages that answered
	failures int    // in a row
	slowed   int    // of the polls, after how many the interval was longer than asked for
	slow     string // why, the last time
	body     []byte
}

// now is the time since the run began.
func (p *poller) now() time.Duration { return p.clock() - p.began }

// run polls from its first poll on, the last time at until; with 0 it goes on
// until ctx ends. take is handed every poll, after the interval to the next was settled.
func (p *poller) run(ctx context.Context, until time.Duration, take func(*Poll)) {
	p.interval = engine.PollInterval
	if p.held {
		if !p.wait(ctx) {
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
		case held := <-p.hold:
			if held && !p.wait(ctx) {
				return
			}
			due = max(due, p.now())
			continue
		case <-timer.C:
		}
		// A wake-up that comes whole intervals late is a tick that this process
		// lost: its host is short of CPU, and the reader must know.
		tick := p.now()
		missed := int((tick - due) / p.interval)
		poll := p.poll(ctx, tick)
		if ctx.Err() != nil {
			return
		}
		poll.Missed = missed
		if stood := tick - due; p.stood != nil && stood >= standstill {
			poll.Missed = 0
			p.stood(stood)
		}
		p.pace(poll)
		take(poll)
		due += time.Duration(missed+1) * p.interval
		// Neither sooner than the interval nor in the past: time that the server
		// took to answer is no tick lost.
		due = max(due, tick+p.interval, p.now())
	}
}

// wait returns when reading may go on; false says that ctx ended before.
func (p *poller) wait(ctx context.Context) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case held := <-p.hold:
			if !held {
				return true
			}
		}
	}
}

// pace leaves a server alone for longer where its page is slow to render, or
// where there is none.
func (p *poller) pace(poll *Poll) {
	if poll.PageErr != "" {
		p.failures++
		if p.patient && p.failures >= downAfter {
			p.interval = max(p.pacer.Interval(), downInterval)
		}
		return
	}
	p.failures = 0
	p.pacer.Observe(poll.Took)
	p.interval = p.pacer.Interval()
	p.polls++
	if why, slowed := p.pacer.Slowed(); slowed {
		p.slow = why
		p.slowed++
	}
}

// poll reads page and GPUs side by side; each is stamped when it is complete. A
// GPU reading carries its own time: an exporter's page may be seconds old.
func (p *poller) poll(ctx context.Context, tick time.Duration) *Poll {
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
	return poll
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

// recovered turns a panic of the function that defers it into an error.
func recovered(what string, err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%s: internal error: %v", what, v)
	}
}
