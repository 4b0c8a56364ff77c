package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// script is a loop for tests: it keeps its inputs in inputs, and answer returns the actions.
type script struct {
	mu     sync.Mutex
	inputs []string
	times  []time.Duration
	polls  []*engine.Sample
	paused bool
	seq    uint64
	answer func(in loop.Input) []loop.Action
}

func (s *script) Step(now time.Duration, in loop.Input) []loop.Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	word := strings.TrimPrefix(fmt.Sprintf("%T", in), "loop.")
	switch in := in.(type) {
	case loop.Sampled:
		s.polls = append(s.polls, in.Sample)
	case loop.Pressed:
		word = commandNames()[in.Command]
		if in.Command == loop.CommandPause {
			s.paused = !s.paused
		}
	case loop.AttachFailed:
		word += ": " + in.Why
	case loop.Applied:
		word += ": " + in.Err
	case loop.CanaryEnded:
		word += ": " + in.Err
	case loop.Noted:
		word += ": " + in.Text
	}
	s.inputs, s.times = append(s.inputs, word), append(s.times, now)
	if s.answer == nil {
		return nil
	}
	return s.answer(in)
}

func (s *script) Snapshot() *loop.Snapshot { return &loop.Snapshot{Seq: s.seq, Paused: s.paused} }

// events returns the inputs other than polls, observations and ticks.
func (s *script) events() []string {
	return slices.DeleteFunc(slices.Clone(s.inputs), func(w string) bool {
		return w == "Sampled" || w == "Ticked" || w == "Observed" || w == "CanarySampled"
	})
}

// pass advances time and waits until everything that is due has happened.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// sampled returns the polls so far.
func (s *script) sampled() []*engine.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls
}

// attaches returns the actions that every loop needs: attach at the start and after a failure, and
// finish on a quit.
func attaches(in loop.Input) []loop.Action {
	switch in := in.(type) {
	case loop.Begin:
		return []loop.Action{loop.Attach{}}
	case loop.AttachFailed:
		return []loop.Action{loop.Attach{After: time.Second}}
	case loop.Pressed:
		if in.Command == loop.CommandQuit {
			return []loop.Action{loop.Finish{}}
		}
	}
	return nil
}

// finds returns an Attach that finds a server at once.
func finds(s *Server) func(context.Context) (*Server, error) {
	return func(context.Context) (*Server, error) { return s, nil }
}

// live runs a session in a synctest bubble until it ends, or quits it after d, and returns the error
// of Run.
func live(t *testing.T, loop *script, p LivePlan, d time.Duration, during func(*Live)) error {
	t.Helper()
	began := time.Now()
	p.Clock = func() time.Duration { return time.Since(began) }
	l := NewLive(p)
	l.loop = loop
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	synctest.Wait()
	if during != nil {
		during(l)
	}
	select {
	case err := <-done:
		return err
	case <-time.After(d):
	}
	cancel()
	return <-done
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
