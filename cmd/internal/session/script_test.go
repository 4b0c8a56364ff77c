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
)

// script is a loop that a test writes: what it was told stands in heard, and
// answer says what to do about it.
type script struct {
	mu     sync.Mutex
	heard  []string
	times  []time.Duration
	polls  []*engine.Sample
	paused bool
	seq    uint64
	answer func(in engine.Input) []engine.Action
}

func (s *script) Step(now time.Duration, in engine.Input) []engine.Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	word := strings.TrimPrefix(fmt.Sprintf("%T", in), "engine.")
	switch in := in.(type) {
	case engine.Sampled:
		s.polls = append(s.polls, in.Sample)
	case engine.Pressed:
		word = commandNames()[in.Command]
		if in.Command == engine.CommandPause {
			s.paused = !s.paused
		}
	case engine.AttachFailed:
		word += ": " + in.Why
	case engine.Applied:
		word += ": " + in.Err
	case engine.Noted:
		word += ": " + in.Text
	}
	s.heard, s.times = append(s.heard, word), append(s.times, now)
	if s.answer == nil {
		return nil
	}
	return s.answer(in)
}

func (s *script) Snapshot() *engine.Snapshot { return &engine.Snapshot{Seq: s.seq, Paused: s.paused} }

// spoken is what was heard beside the ticks of polls and time.
func (s *script) spoken() []string {
	return slices.DeleteFunc(slices.Clone(s.heard), func(w string) bool {
		return w == "Sampled" || w == "Ticked" || w == "Observed"
	})
}

// pass lets time go by, and everything happen that is due by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// sampled is the polls that it was handed so far.
func (s *script) sampled() []*engine.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls
}

// attaches is what every loop does first, and when attaching failed.
func attaches(in engine.Input) []engine.Action {
	switch in := in.(type) {
	case engine.Begin:
		return []engine.Action{engine.Attach{}}
	case engine.AttachFailed:
		return []engine.Action{engine.Attach{After: time.Second}}
	case engine.Pressed:
		if in.Command == engine.CommandQuit {
			return []engine.Action{engine.Finish{}}
		}
	}
	return nil
}

// finds is an Attach that finds a server at once.
func finds(s *Server) func(context.Context) (*Server, error) {
	return func(context.Context) (*Server, error) { return s, nil }
}

// live runs a session in a bubble until it ends or for as long as is given; the
// error is that of its Run.
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
