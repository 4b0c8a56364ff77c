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

// gpuDeadline bounds one reading: a stuck driver must not hold up the page.
const gpuDeadline = 800 * time.Millisecond

// Plan is one measurement.
type Plan struct {
	Header   Header
	Version  string // of this rooftop
	Duration time.Duration
	Pages    Pages
	GPUs     GPUs // nil where none is readable
	// Clock is the monotonic clock that GPU readings are stamped with; the run
	// begins at whatever it shows then.
	Clock  func() time.Duration
	Record *Recorder // nil records nothing
	// Closing adds what is known of the server's processes at the end; nil adds
	// nothing.
	Closing  func() []string
	Progress func(*Progress) // nil is silent; called from the measuring goroutine
}

// Progress is what a person who waits may be told after each poll.
type Progress struct {
	Elapsed, Duration time.Duration
	Sample            *engine.Sample
	Window            *engine.Window // the one this poll closed, or nil
	Interval          time.Duration
	Slow              string // why the interval is longer than asked for
}

// Measure polls until the duration has passed or ctx ends, and diagnoses what
// was measured by then. Interruption is no error: it is noted in the diagnosis.
func Measure(ctx context.Context, p Plan) (engine.Diagnosis, error) {
	a, err := NewAnalysis(p.Header)
	if err != nil {
		return engine.Diagnosis{}, err
	}
	p.Record.write(line{Header: &p.Header})
	m := measurer{Plan: p, began: p.Clock(), interval: engine.PollInterval}
	m.run(ctx, a)
	end := End{Duration: m.now().Round(time.Millisecond), Notes: m.notes(ctx)}
	if p.GPUs != nil {
		end.Missing = p.GPUs.Missing()
		end.Notes = append(end.Notes, p.GPUs.Notes()...)
	}
	if p.Closing != nil {
		end.Notes = append(end.Notes, p.Closing()...)
	}
	p.Record.write(line{End: &end})
	return a.Diagnose(end, p.Version), nil
}

type measurer struct {
	Plan
	began    time.Duration // by the plan's clock
	interval time.Duration
	pacer    vllm.Pacer
	polls    int    // pages that answered
	slowed   int    // of them, after how many the interval was longer than asked for
	slow     string // why, the last time
	body     []byte
}

// now is the time since the run began.
func (m *measurer) now() time.Duration { return m.Clock() - m.began }

func (m *measurer) run(ctx context.Context, a *Analysis) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for due := time.Duration(0); due <= m.Duration; {
		timer.Reset(due - m.now())
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		// A wake-up that comes whole intervals late is a tick that this process
		// lost: its host is short of CPU, and the reader must know.
		tick := m.now()
		missed := int((tick - due) / m.interval)
		poll := m.poll(ctx, tick)
		if ctx.Err() != nil {
			return
		}
		poll.Missed = missed
		m.Record.write(line{Poll: poll})
		s, w := a.Add(poll)
		if poll.PageErr == "" {
			m.pace(poll.Took)
		}
		if m.Progress != nil {
			m.Progress(&Progress{Elapsed: tick, Duration: m.Duration, Sample: s, Window: w, Interval: m.interval, Slow: m.slow})
		}
		due += time.Duration(missed+1) * m.interval
		// Neither sooner than the interval nor in the past: time that the server
		// took to answer is no tick lost.
		due = max(due, tick+m.interval, m.now())
	}
}

// pace leaves a server alone for longer where its page is slow to render.
func (m *measurer) pace(took time.Duration) {
	m.pacer.Observe(took)
	m.interval = m.pacer.Interval()
	m.polls++
	if why, slowed := m.pacer.Slowed(); slowed {
		m.slow = why
		m.slowed++
	}
}

// poll reads page and GPUs side by side; each is stamped when it is complete. A
// GPU reading carries its own time: an exporter's page may be seconds old.
func (m *measurer) poll(ctx context.Context, tick time.Duration) *Poll {
	p := &Poll{T: tick}
	gpu := make(chan struct{})
	go func() {
		defer close(gpu)
		if m.GPUs == nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, gpuDeadline)
		defer cancel()
		reading, err := m.GPUs.Read(ctx)
		if err != nil {
			p.GPUErr = err.Error()
			return
		}
		reading.T -= m.began
		p.GPU = &reading
	}()
	body, err := m.Pages.Page(ctx, m.body[:0])
	p.PageT = m.now()
	p.Took = p.PageT - tick
	if err != nil {
		p.PageErr = err.Error()
	} else {
		m.body = body
		p.Body = string(body)
	}
	<-gpu
	return p
}

func (m *measurer) notes(ctx context.Context) []string {
	var out []string
	if ctx.Err() != nil {
		out = append(out, fmt.Sprintf("interrupted after %.1f s of %v", m.now().Seconds(), m.Duration))
	}
	if 2*m.slowed >= m.polls && m.slow != "" {
		out = append(out, m.slow)
	}
	return out
}
