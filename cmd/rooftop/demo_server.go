package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/demo"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// simulatedServer is the server of a demonstration: in this process, read as any
// other over HTTP, and the one server that rooftop restarts itself.
type simulatedServer struct {
	host  *demo.Host
	clock func() time.Duration

	mu     sync.Mutex
	config *launch.Config // that it runs with
	kept   *launch.Config // to go back to; nil is what it began with
}

// start starts the server with its clients and lets the load run for a time: a run
// by itself must not judge its beginning.
func (s *simulatedServer) start(ctx context.Context, settle time.Duration, show *progress) error {
	defer show.done()
	show.say("the simulated server starts")
	if err := s.host.Start(ctx, s.config); err != nil {
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		return fail(exitError, err)
	}
	end := time.NewTimer(settle)
	defer end.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for began := s.clock(); ; {
		select {
		case <-ctx.Done():
			return interrupted(ctx)
		case <-end.C:
			return nil
		case <-tick.C:
			show.say(fmt.Sprintf("the load begins %2.0f/%.0f s", (s.clock() - began).Seconds(), settle.Seconds()))
		}
	}
}

// attach learns what can be known of the server.
func (s *simulatedServer) attach(ctx context.Context) (*session.Server, error) {
	s.mu.Lock()
	o := &options{
		url: s.host.URL(), launch: s.config, ceiling: physicalCeiling,
		flags: pflag.NewFlagSet("demo", pflag.ContinueOnError), // nothing given, and no variable meant for another server
		env:   func(string) (string, bool) { return "", false },
	}
	s.mu.Unlock()
	target, err := parseTarget(o.url)
	if err != nil {
		return nil, err
	}
	a, err := attachTo(ctx, o, target, nil, s.clock)
	if err != nil {
		return nil, err
	}
	if !a.simulated() {
		a.close()
		return nil, errors.New("another server answers on the port of the simulated one")
	}
	a.header.Ceiling = o.ceiling
	server := a.server()
	server.NoHands, server.Apply, server.Steps = "", s.apply, stepsByHand
	return server, nil
}

// begins makes sure that there is a launch to go back to. The lock is held.
func (s *simulatedServer) begins() {
	if s.kept == nil {
		s.kept = s.config
	}
}

// apply restarts the server with changes made to the kept launch, or with that one.
// Where it does not start with them, it runs as that one says.
func (s *simulatedServer) apply(ctx context.Context, a engine.Apply) engine.Applied {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begins()
	next := s.kept
	if !a.Revert {
		next = engine.Changed(s.kept, a.Changes...)
	}
	err := s.host.Start(ctx, next)
	if err == nil {
		s.config = next
		return engine.Applied{}
	}
	if back := s.host.Start(context.WithoutCancel(ctx), s.kept); back != nil {
		return engine.Applied{Err: fmt.Sprintf("the server does not start with the change (%v), nor as before: %v", err, back)}
	}
	s.config = s.kept
	return engine.Applied{Err: fmt.Sprintf("the server does not start with the change, and runs as before: %v", err), Back: true}
}

// follow keeps what a run keeps, before anybody is told of it.
func (s *simulatedServer) follow(tell func(engine.Event)) func(engine.Event) {
	return func(e engine.Event) {
		if e.Kind == engine.EventKept || e.Kind == engine.EventContinued {
			s.mu.Lock()
			s.kept = s.config
			s.mu.Unlock()
		}
		tell(e)
	}
}
