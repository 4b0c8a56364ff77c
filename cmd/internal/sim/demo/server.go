package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Server is the server of a demonstration: it runs in this process, is read over HTTP like any other,
// and rooftop may restart it.
type Server struct {
	Host   *Host
	Clock  func() time.Duration
	Config *launch.Config // current configuration; callers must not change it after Start

	mu   sync.Mutex     // guards Config and kept
	kept *launch.Config // configuration that a revert restores; nil means the first one
}

// Start starts the server with its clients and waits until the load has run for settle: an automatic
// run must not measure the beginning.
func (s *Server) Start(ctx context.Context, settle time.Duration, show *cli.Progress) error {
	defer show.Done()
	show.Show("the simulated server starts")
	if err := s.Host.Start(ctx, s.Config); err != nil {
		if ctx.Err() != nil {
			return cli.Interrupted(ctx)
		}
		return err
	}
	end := time.NewTimer(settle)
	defer end.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for began := s.Clock(); ; {
		select {
		case <-ctx.Done():
			return cli.Interrupted(ctx)
		case <-end.C:
			return nil
		case <-tick.C:
			show.Show(fmt.Sprintf("the load begins %2.0f/%.0f s", (s.Clock() - began).Seconds(), settle.Seconds()))
		}
	}
}

// Attach returns the server with its facts, for a session.
func (s *Server) Attach(ctx context.Context) (*session.Server, error) {
	s.mu.Lock()
	l := attach.NewLocator(&attach.Options{
		URL: s.Host.URL(), Ceiling: attach.PhysicalCeiling,
		Flags: pflag.NewFlagSet("demo", pflag.ContinueOnError), // no flags and no environment variables, which are meant for other servers
		Env:   func(string) (string, bool) { return "", false },
	})
	l.Launch, l.Clock = s.Config, s.Clock
	s.mu.Unlock()
	a, err := l.Open(ctx)
	if err != nil {
		return nil, err
	}
	if !a.Simulated() {
		a.Close()
		return nil, errors.New("another server answers on the port of the simulated one")
	}
	server := a.Session()
	server.CannotApply, server.Apply, server.Steps = "", s.apply, autopilot.StepsByHand
	return server, nil
}

// apply restarts the server with changes to the kept configuration, or with that configuration. If
// the server does not start with the changes, it is started with the kept configuration.
func (s *Server) apply(ctx context.Context, a loop.Apply) loop.Applied {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = s.Config
	}
	next := s.kept
	if !a.Revert {
		next = loop.WithChanges(s.kept, a.Changes...)
	}
	err := s.Host.Start(ctx, next)
	if err == nil {
		s.Config = next
		return loop.Applied{}
	}
	if back := s.Host.Start(context.WithoutCancel(ctx), s.kept); back != nil {
		return loop.Applied{Err: fmt.Sprintf("the server does not start with the change (%v), nor as before: %v", err, back)}
	}
	s.Config = s.kept
	return loop.Applied{Err: fmt.Sprintf("the server does not start with the change, and runs as before: %v", err), Back: true}
}

// Follow returns a handler for the events of a run. It updates the kept configuration and then calls
// tell.
func (s *Server) Follow(tell func(loop.Event)) func(loop.Event) {
	return func(e loop.Event) {
		if e.Kind == loop.EventKept || e.Kind == loop.EventContinued {
			s.mu.Lock()
			s.kept = s.Config
			s.mu.Unlock()
		}
		tell(e)
	}
}
