package session

import (
	"context"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// Plan configures one measurement of a server. It starts at the present time of the server's Clock.
type Plan struct {
	*Server
	Version  string // of this rooftop
	Duration time.Duration
	Record   *Recorder       // nil records nothing
	Progress func(*Progress) // called after each poll on the measuring goroutine; may be nil
}

// Progress is the state of a measurement after a poll.
type Progress struct {
	Elapsed, Duration time.Duration
	Sample            *engine.Sample
	Window            *engine.Window // completed by this poll, or nil
	Interval          time.Duration
	Slow              string // why the interval is longer than engine.PollInterval, "" if it is not
}

// Measure polls until the duration has passed or ctx ends, and returns the diagnosis of the polls
// up to then. An interruption is not an error: the diagnosis notes it.
func Measure(ctx context.Context, p Plan) (engine.Diagnosis, error) {
	a, err := NewAnalysis(p.Header)
	if err != nil {
		return engine.Diagnosis{}, err
	}
	p.Record.write(line{Header: &p.Header})
	poller := poller{pages: p.Pages, health: p.Health, gpus: p.GPUs, clock: p.Clock, began: p.Clock()}
	poller.run(ctx, p.Duration, func(poll *Poll) {
		p.Record.write(line{Poll: poll})
		s, w := a.Add(poll)
		if p.Progress != nil {
			p.Progress(&Progress{Elapsed: poll.T, Duration: p.Duration, Sample: s, Window: w, Interval: poller.interval, Slow: poller.slow})
		}
	})
	end := End{Duration: poller.now().Round(time.Millisecond), Notes: closingNotes(ctx, &poller, p.Duration)}
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

// closingNotes returns the notes about the measurement itself: that it was interrupted, or that the
// polls were slowed.
func closingNotes(ctx context.Context, p *poller, length time.Duration) []string {
	var out []string
	if ctx.Err() != nil {
		out = append(out, fmt.Sprintf("interrupted after %.1f s of %v", p.now().Seconds(), length))
	}
	if 2*p.slowed >= p.polls && p.slow != "" {
		out = append(out, p.slow)
	}
	return out
}
