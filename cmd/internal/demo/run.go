package demo

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Server is the server that a demonstration changes.
type Server interface {
	// Start starts it with a launch command, stopping the one that runs, and
	// returns when it is healthy. The error is the server's refusal of the
	// command, or that of ctx; the old one is then gone.
	Start(ctx context.Context, c *launch.Config) error
	// Measure attaches to it and measures once.
	Measure(ctx context.Context, c *launch.Config) (engine.Diagnosis, error)
}

// Teller is told of a run as it happens. [report.Events] is one.
type Teller interface {
	ServerUp(command string, took time.Duration)
	ServerDown(why string)
	Settling(d time.Duration)
	Measured(iteration int, d *engine.Diagnosis)
	Diagnosis(iteration int, d *engine.Diagnosis)
	Recommendation(iteration int, r *engine.Recommendation)
	Applying(iteration int, c report.Change)
	Verdict(iteration int, d *engine.Delta, predictions []engine.Prediction)
	Kept(iteration int, c report.Change)
	Reverted(iteration int, c report.Change)
	Error(err error)
	Finished(f report.Finish)
}

// Plan is one demonstration.
type Plan struct {
	Server Server
	Launch *launch.Config // the first launch command
	Settle time.Duration  // from health to the first poll
	Rounds int            // changes at most
	Tell   Teller
	Clock  func() time.Duration
	// Waiting is called about once a second while the load settles; nil is silent.
	Waiting func(elapsed, of time.Duration)
	// Interrupted returns the exit code of a run whose context ended.
	Interrupted func() int
}

// Run goes through the loop. Its end is told in every case; the error is that of
// a server that could not be started or measured, or of ctx.
func Run(ctx context.Context, p Plan) (report.Finish, error) {
	l := loop{Plan: p, kept: p.Launch, tried: map[string]bool{}}
	end, err := l.run(ctx)
	switch {
	case ctx.Err() != nil:
		end.Reason, end.ExitCode = "interrupted", p.Interrupted()
	case err != nil:
		p.Tell.Error(err)
	}
	p.Tell.Finished(end)
	return end, err
}

type loop struct {
	Plan
	kept     *launch.Config
	tried    map[string]bool // flag and value of changes that gained nothing
	restarts int
}

func (l *loop) run(ctx context.Context) (report.Finish, error) {
	first, err := l.measure(ctx, 0, l.kept)
	if err != nil {
		return l.finish("the server could not be measured", exitError, nil, nil), err
	}
	best := first
	for i := 1; i <= l.Rounds; i++ {
		reason, code := l.done(best)
		if r := best.Recommendation; r == nil || !l.tried[r.Flag+"="+r.To] {
			l.Tell.Recommendation(i, r)
		}
		if reason != "" {
			return l.finish(reason, code, first, best), nil
		}
		next, err := l.try(ctx, i, best)
		if err != nil {
			return l.finish(l.undo(ctx), exitError, first, best), err
		}
		best = next
	}
	if best.Recommendation != nil && best.Recommendation.Kind == engine.KindFlag {
		return l.finish(fmt.Sprintf("stopped after %s, the most asked for", changes(l.Rounds)), exitOpen, first, best), nil
	}
	return l.finish("nothing is left to recommend", exitDone, first, best), nil
}

// Exit codes of a finished run, as interfaces.md section 2 settles them.
const (
	exitDone    = 0
	exitError   = 1
	exitOpen    = 3
	exitNothing = 4 // no load, or nothing could be judged
)

// done says why a run is at its end, and with which exit code; "" where there is
// a change to try.
func (l *loop) done(d *engine.Diagnosis) (reason string, code int) {
	r := d.Recommendation
	switch {
	case r == nil && d.Outcome == engine.OutcomeHealthy:
		return "nothing is left to recommend", exitDone
	case r == nil && d.Outcome == engine.OutcomeNoLoad:
		return "no request ran, so there was nothing to judge", exitNothing
	case r == nil:
		return "nothing could be judged: " + cmp.Or(d.Doubt, string(d.Outcome)), exitNothing
	case r.Kind != engine.KindFlag || r.Flag == "" || r.To == "":
		return "what is left is no flag of this server", exitDone
	case l.tried[r.Flag+"="+r.To]:
		return fmt.Sprintf("%s %s was tried and not kept, and nothing else is recommended", r.Flag, r.To), exitDone
	}
	return "", exitDone
}

// try makes the recommended change, measures, and keeps it where it is better.
// It returns the diagnosis that holds from then on.
func (l *loop) try(ctx context.Context, i int, before *engine.Diagnosis) (*engine.Diagnosis, error) {
	r := before.Recommendation
	config := session.Apply(l.kept, r.Flag, r.To)
	change := report.Change{Flag: r.Flag, From: r.From, To: r.To, Command: config.Shell()}
	l.Tell.Applying(i, change)
	after, err := l.measure(ctx, i, config)
	if err != nil {
		return before, err
	}
	delta := engine.Compare(before, after)
	l.Tell.Verdict(i, &delta, r.Predicted)
	if delta.Direction == engine.Better {
		l.kept = config
		l.Tell.Kept(i, change)
		return after, nil
	}
	l.tried[r.Flag+"="+r.To] = true
	if err := l.start(ctx, l.kept); err != nil {
		return before, err
	}
	l.Tell.Reverted(i, change)
	return before, nil
}

// undo starts the server as it was after a change that could not be tried, and
// says how that went.
func (l *loop) undo(ctx context.Context) string {
	if ctx.Err() != nil {
		return "interrupted"
	}
	if err := l.start(ctx, l.kept); err != nil {
		return "the change could not be tried, and the server does not start as before: " + err.Error()
	}
	return "the change could not be tried; the server runs as before"
}

// leastWindows is how many windows a measurement must have to be judged: the
// gate of a rule needs as many.
const leastWindows = 3

// measure starts the server with a command and measures it under load.
func (l *loop) measure(ctx context.Context, i int, c *launch.Config) (*engine.Diagnosis, error) {
	if err := l.start(ctx, c); err != nil {
		return nil, err
	}
	l.Tell.Settling(l.Settle)
	if err := l.pause(ctx, l.Settle); err != nil {
		return nil, err
	}
	d, err := l.Server.Measure(ctx, c)
	if err == nil && ctx.Err() == nil && d.Windows.Evaluable < leastWindows {
		// A machine short of time lost most of the polls: no basis for a verdict.
		d, err = l.Server.Measure(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l.Tell.Measured(i, &d)
	l.Tell.Diagnosis(i, &d)
	return &d, nil
}

func (l *loop) start(ctx context.Context, c *launch.Config) error {
	if l.restarts++; l.restarts > 1 {
		l.Tell.ServerDown("restarted with another launch command")
	}
	began := l.Clock()
	if err := l.Server.Start(ctx, c); err != nil {
		return err
	}
	l.Tell.ServerUp(c.Shell(), l.Clock()-began)
	return nil
}

func (l *loop) finish(reason string, code int, first, best *engine.Diagnosis) report.Finish {
	f := report.Finish{ExitCode: code, Reason: reason, Command: l.kept.Shell(), Restarts: max(0, l.restarts-1), Gain: stat.None}
	if best == nil {
		return f
	}
	if best != first {
		f.Gain = engine.Compare(first, best).Throughput
	}
	for _, g := range best.Findings {
		if g.State == engine.Fired && g.Significant {
			f.Remains = append(f.Remains, g.ID)
		}
	}
	return f
}

func changes(n int) string {
	if n == 1 {
		return "one change"
	}
	return fmt.Sprintf("%d changes", n)
}

// pause waits, and says how far it is once a second.
func (l *loop) pause(ctx context.Context, d time.Duration) error {
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for began := l.Clock(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end.C:
			return nil
		case <-tick.C:
			if l.Waiting != nil {
				l.Waiting(l.Clock()-began, d)
			}
		}
	}
}
