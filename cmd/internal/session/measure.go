package session

import (
	"context"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

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
	poller := poller{pages: p.Pages, gpus: p.GPUs, clock: p.Clock, began: p.Clock()}
	poller.run(ctx, p.Duration, func(poll *Poll) {
		p.Record.write(line{Poll: poll})
		s, w := a.Add(poll)
		if p.Progress != nil {
			p.Progress(&Progress{Elapsed: poll.T, Duration: p.Duration, Sample: s, Window: w, Interval: poller.interval, Slow: poller.slow})
		}
	})
	end := End{Duration: poller.now().Round(time.Millisecond), Notes: closing(ctx, &poller, p.Duration)}
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

// closing is what a measurement has to say of itself.
func closing(ctx context.Context, p *poller, length time.Duration) []string {
	var out []string
	if ctx.Err() != nil {
		out = append(out, fmt.Sprintf("interrupted after %.1f s of %v", p.now().Seconds(), length))
	}
	if 2*p.slowed >= p.polls && p.slow != "" {
		out = append(out, p.slow)
	}
	return out
}
