package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// TestLiveStoodStill checks that a rooftop that was suspended (ctrl-z, a laptop's lid) notes it and
// does not count the time as missed ticks.
func TestLiveStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{answer: attaches}
		began := time.Now()
		var ahead atomic.Int64
		l := NewLive(LivePlan{
			Attach: finds(&Server{Pages: newServer()}),
			Clock:  func() time.Duration { return time.Since(began) + time.Duration(ahead.Load()) },
		})
		l.loop = scripted
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		pass(5*time.Second + 100*time.Millisecond)
		ahead.Store(int64(time.Minute))
		pass(5 * time.Second)
		ahead.Store(int64(time.Minute + 2*time.Second)) // a delay this short means a host short of CPU
		pass(5 * time.Second)
		cancel()
		must(t, <-done)
		missed := 0
		for _, s := range scripted.polls {
			missed += s.Missed
		}
		if missed < 7 || missed > 9 {
			t.Errorf("%d ticks missed, want the 8 of two seconds", missed)
		}
		if want := []string{"Begin", "Attached", "Noted: rooftop was not running for 1m0s: it was stopped, or its machine was suspended", "quit"}; !slices.Equal(scripted.events(), want) {
			t.Errorf("heard %q, want %q", scripted.events(), want)
		}
	})
}

// TestLiveAPollThatHangs checks that a page that never arrives is a failed scrape after its deadline,
// and that the loop gets ticks meanwhile.
func TestLiveAPollThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{answer: attaches}
		pages := newServer()
		pages.took = time.Hour
		must(t, live(t, scripted, LivePlan{Attach: finds(&Server{Pages: pages})}, 20*time.Second, nil))
		if len(scripted.polls) != 3 || !strings.Contains(scripted.polls[0].PageErr, "deadline") {
			t.Errorf("%d polls in 20 s, the first %+v; want 3 that failed", len(scripted.polls), scripted.polls)
		}
		for i := 1; i < len(scripted.times); i++ {
			if gap := scripted.times[i] - scripted.times[i-1]; gap > heartbeat {
				t.Errorf("the scripted got nothing for %v", gap)
			}
		}
	})
}

// TestLiveADeadServerIsAskedLessOften checks that polling continues after a server has died, at half
// the rate.
func TestLiveADeadServerIsAskedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{answer: attaches}
		pages := newServer()
		pages.took = 0
		pages.fault = func(at time.Duration) error {
			if at > 10*time.Second && at < 40*time.Second {
				return errors.New("connection refused")
			}
			return nil
		}
		err := live(t, scripted, LivePlan{Attach: finds(&Server{Pages: pages})}, 5*time.Second, func(*Live) {
			pass(10 * time.Second)
			before := int(pages.asked.Load())
			pass(30 * time.Second)
			if n := int(pages.asked.Load()) - before; n < 60 || n > 66 {
				t.Errorf("%d scrapes of a dead server in 30 s, want about 64", n)
			}
			back := len(scripted.sampled())
			pass(2 * time.Second)
			if n := len(scripted.sampled()) - back; n < 7 {
				t.Errorf("%d polls in the 2 s after it came back", n)
			}
		})
		must(t, err)
	})
}

type panicking struct{}

func (p *panicking) Page(context.Context, []byte) ([]byte, error) { panic("no page today") }

func TestLiveAPanicOfASourceIsAFailedPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{answer: attaches}
		s := &Server{Pages: &panicking{}, Processes: func() (loop.Observed, error) { panic("no processes") }}
		must(t, live(t, scripted, LivePlan{Attach: finds(s)}, 2*time.Second, nil))
		if len(scripted.polls) != 8 || scripted.polls[7].PageErr != "the metrics page could not be read: internal error: no page today" {
			t.Errorf("%d polls, the last %+v", len(scripted.polls), scripted.polls[len(scripted.polls)-1])
		}
	})
}

func TestLiveAPanicOfTheLoopEndsInAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := false
		scripted := &script{}
		scripted.answer = func(in loop.Input) []loop.Action {
			if len(scripted.polls) == 3 {
				panic("lost")
			}
			return attaches(in)
		}
		err := live(t, scripted, LivePlan{Attach: finds(&Server{Pages: newServer(), Close: func() { closed = true }})}, time.Minute, nil)
		if err == nil || !strings.Contains(err.Error(), "internal error: lost") || !closed {
			t.Errorf("error %v, server closed %v", err, closed)
		}
	})
}

// TestLiveALoopThatStallsLosesTheOldestPolls checks that the lost polls count as missed.
func TestLiveALoopThatStallsLosesTheOldestPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{}
		block := make(chan struct{})
		scripted.answer = func(in loop.Input) []loop.Action {
			if p, ok := in.(loop.Pressed); ok && p.Command == loop.CommandRemeasure {
				<-block
			}
			return attaches(in)
		}
		pages := newServer()
		err := live(t, scripted, LivePlan{Attach: finds(&Server{Pages: pages})}, time.Second, func(l *Live) {
			l.Do(loop.CommandRemeasure)
			time.Sleep(30 * time.Second)
			close(block)
		})
		must(t, err)
		missed := 0
		for _, s := range scripted.polls {
			missed += s.Missed
		}
		// The last poll may have been in progress when the session ended.
		if lost := int(pages.asked.Load()) - missed - len(scripted.polls); missed == 0 || lost < 0 || lost > 1 {
			t.Errorf("%d polls taken, %d missed, %d made", len(scripted.polls), missed, int(pages.asked.Load()))
		}
	})
}
