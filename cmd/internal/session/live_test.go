package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

// TestLiveStoodStill: a rooftop that was stopped (ctrl-z, a laptop's lid) says so
// and does not blame its host for the ticks that it lost.
func TestLiveStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		began := time.Now()
		var ahead atomic.Int64
		l := NewLive(LivePlan{
			Attach: finds(&Server{Pages: newServer()}),
			Clock:  func() time.Duration { return time.Since(began) + time.Duration(ahead.Load()) },
		})
		l.loop = loop
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		pass(5*time.Second + 100*time.Millisecond)
		ahead.Store(int64(time.Minute))
		pass(5 * time.Second)
		ahead.Store(int64(time.Minute + 2*time.Second)) // this is a host short of CPU
		pass(5 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		missed := 0
		for _, s := range loop.polls {
			missed += s.Missed
		}
		if missed < 7 || missed > 9 {
			t.Errorf("%d ticks missed, want the 8 of two seconds", missed)
		}
		if want := []string{"Begin", "Attached", "Noted: rooftop stood still for 1m0s: it was stopped, or its machine slept", "quit"}; !slices.Equal(loop.spoken(), want) {
			t.Errorf("heard %q, want %q", loop.spoken(), want)
		}
	})
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

func TestLivePollsAndPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		pages := newServer()
		closed := false
		s := &Server{Header: Header{Inputs: seats("4")}, Pages: pages, Close: func() { closed = true }, Processes: func() ([]engine.Process, []string, error) {
			return []engine.Process{{PID: 1}}, nil, nil
		}}
		err := live(t, loop, LivePlan{Attach: finds(s)}, 10*time.Second, func(l *Live) {
			pass(5 * time.Second)
			if got := l.Latest(); got == nil || got.Seq < 20 {
				t.Errorf("after 5 s the snapshot is %+v", got)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"Begin", "Attached", "quit"}; !slices.Equal(loop.spoken(), want) {
			t.Errorf("heard %q, want %q", loop.spoken(), want)
		}
		if n := len(loop.polls); n < 59 || n > 61 || loop.polls[30].Page == nil {
			t.Errorf("%d polls in 15 s, want 60", n)
		}
		observed := 0
		for _, w := range loop.heard {
			if w == "Observed" {
				observed++
			}
		}
		if observed < 7 || observed > 8 {
			t.Errorf("processes read %d times in 15 s, want 8", observed)
		}
		if !slices.IsSorted(loop.times) {
			t.Error("time ran backwards")
		}
		if !closed {
			t.Error("the server was not closed")
		}
	})
}

func TestLiveTriesUntilTheServerAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		tries := 0
		attach := func(context.Context) (*Server, error) {
			switch tries++; {
			case tries == 2:
				panic("a table without legs")
			case tries == 3:
				return nil, nil
			case tries < 5:
				return nil, errors.New("connection refused")
			}
			return &Server{Pages: newServer()}, nil
		}
		if err := live(t, loop, LivePlan{Attach: attach}, 6*time.Second, nil); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"Begin", "AttachFailed: connection refused",
			"AttachFailed: the server could not be attached to: internal error: a table without legs",
			"AttachFailed: no server was found", "AttachFailed: connection refused", "Attached", "quit",
		}
		if diff := cmp.Diff(want, loop.spoken()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
		if at := loop.times[slices.Index(loop.heard, "Attached")]; at != 4*time.Second {
			t.Errorf("attached at %v, want 4s: one try a second", at)
		}
	})
}

func TestLiveQuitsDuringAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		attach := func(ctx context.Context) (*Server, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		err := live(t, loop, LivePlan{Attach: attach}, time.Minute, func(l *Live) {
			time.Sleep(3 * time.Second)
			if !l.Do(engine.CommandQuit) {
				t.Error("the quit was not taken")
			}
		})
		if err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("ended after %v with %v, want at once after 3s", time.Since(began), err)
		}
	})
}

func TestLiveGivesUpAnAttachThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		tries := 0
		attach := func(ctx context.Context) (*Server, error) {
			if tries++; tries > 1 {
				return &Server{Pages: newServer()}, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if err := live(t, loop, LivePlan{Attach: attach}, time.Minute, nil); err != nil {
			t.Fatal(err)
		}
		want := []string{"Begin", "AttachFailed: the server did not tell what it is within 30s: context deadline exceeded", "Attached", "quit"}
		if diff := cmp.Diff(want, loop.spoken()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
	})
}

// TestLiveTurnsToTheNextRun has the loop attach anew: the old server is closed
// after the new one is there, and only the new one is read from then on.
func TestLiveTurnsToTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		note := func(word string, n int) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprintf("%s %d", word, n))
		}
		pages := []*server{newServer(), newServer()}
		tries := 0
		attach := func(context.Context) (*Server, error) {
			n := tries
			tries++
			note("attached", n)
			return &Server{Pages: pages[n], Close: func() { note("closed", n) }}, nil
		}
		loop := &script{}
		loop.answer = func(in engine.Input) []engine.Action {
			switch in.(type) {
			case engine.Sampled:
				if len(loop.polls) == 20 {
					return []engine.Action{engine.Attach{}}
				}
			case engine.Attached:
				if len(loop.polls) > 0 && pages[1].asked.Load() != 1 {
					t.Errorf("the facts came behind %d pages of the new server, want 1", pages[1].asked.Load())
				}
			}
			return attaches(in)
		}
		if err := live(t, loop, LivePlan{Attach: attach}, 10*time.Second, nil); err != nil {
			t.Fatal(err)
		}
		if want := []string{"attached 0", "attached 1", "closed 0", "closed 1"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
		if int(pages[0].asked.Load()) > 21 || int(pages[1].asked.Load()) < 19 {
			t.Errorf("the old server was asked %d times, the new one %d", int(pages[0].asked.Load()), int(pages[1].asked.Load()))
		}
	})
}

func TestLivePauseStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		pages := newServer()
		var looked atomic.Int32
		s := &Server{Pages: pages, Processes: func() ([]engine.Process, []string, error) { looked.Add(1); return nil, nil, nil }}
		err := live(t, loop, LivePlan{Attach: finds(s)}, 5*time.Second, func(l *Live) {
			pass(5*time.Second + 100*time.Millisecond)
			l.Do(engine.CommandPause)
			synctest.Wait()
			asked, told, read := int(pages.asked.Load()), len(loop.sampled()), looked.Load()
			pass(time.Minute)
			if int(pages.asked.Load()) != asked || len(loop.sampled()) != told || looked.Load() != read {
				t.Errorf("while paused: %d scrapes, %d samples, %d looks at processes", int(pages.asked.Load())-asked, len(loop.sampled())-told, looked.Load()-read)
			}
			l.Do(engine.CommandPause)
			pass(2 * time.Second)
			if n := int(pages.asked.Load()) - asked; n < 8 || n > 9 {
				t.Errorf("%d scrapes in 2 s after the pause, want 8 or 9", n)
			}
			if last := loop.sampled()[len(loop.sampled())-1]; last.Missed != 0 {
				t.Errorf("%d ticks missed: a pause is none", last.Missed)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestLiveASlowPageIsPolledLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		pages := newServer()
		pages.took = 100 * time.Millisecond
		if err := live(t, loop, LivePlan{Attach: finds(&Server{Pages: pages})}, 30*time.Second, nil); err != nil {
			t.Fatal(err)
		}
		if int(pages.asked.Load()) > 18 {
			t.Errorf("%d scrapes of a page that takes 100 ms in 30 s", int(pages.asked.Load()))
		}
		said := 0
		for _, w := range loop.heard {
			if strings.HasPrefix(w, "Noted: the metrics page takes 100ms") {
				said++
			}
		}
		if said != 1 {
			t.Errorf("said %d times that the page is slow: %q", said, loop.spoken())
		}
	})
}

// TestLiveAPollThatHangs: a page that never comes is a failed scrape after its
// deadline, and time goes on for the loop meanwhile.
func TestLiveAPollThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		pages := newServer()
		pages.took = time.Hour
		if err := live(t, loop, LivePlan{Attach: finds(&Server{Pages: pages})}, 20*time.Second, nil); err != nil {
			t.Fatal(err)
		}
		if len(loop.polls) != 3 || !strings.Contains(loop.polls[0].PageErr, "deadline") {
			t.Errorf("%d polls in 20 s, the first %+v; want 3 that failed", len(loop.polls), loop.polls)
		}
		for i := 1; i < len(loop.times); i++ {
			if gap := loop.times[i] - loop.times[i-1]; gap > heartbeat {
				t.Errorf("the loop was told nothing for %v", gap)
			}
		}
	})
}

// TestLiveADeadServerIsAskedLessOften: the old client goes on asking, at half the
// pace.
func TestLiveADeadServerIsAskedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		pages := newServer()
		pages.took = 0
		pages.fault = func(at time.Duration) error {
			if at > 10*time.Second && at < 40*time.Second {
				return errors.New("connection refused")
			}
			return nil
		}
		err := live(t, loop, LivePlan{Attach: finds(&Server{Pages: pages})}, 5*time.Second, func(*Live) {
			pass(10 * time.Second)
			before := int(pages.asked.Load())
			pass(30 * time.Second)
			if n := int(pages.asked.Load()) - before; n < 60 || n > 66 {
				t.Errorf("%d scrapes of a dead server in 30 s, want about 64", n)
			}
			back := len(loop.sampled())
			pass(2 * time.Second)
			if n := len(loop.sampled()) - back; n < 7 {
				t.Errorf("%d polls in the 2 s after it came back", n)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

type panicking struct{}

func (p *panicking) Page(context.Context, []byte) ([]byte, error) { panic("no page today") }

func TestLiveAPanicOfASourceIsAFailedPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		s := &Server{Pages: &panicking{}, Processes: func() ([]engine.Process, []string, error) { panic("no processes") }}
		if err := live(t, loop, LivePlan{Attach: finds(s)}, 2*time.Second, nil); err != nil {
			t.Fatal(err)
		}
		if len(loop.polls) != 8 || loop.polls[7].PageErr != "the metrics page could not be read: internal error: no page today" {
			t.Errorf("%d polls, the last %+v", len(loop.polls), loop.polls[len(loop.polls)-1])
		}
	})
}

func TestLiveAPanicOfTheLoopEndsInAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := false
		loop := &script{}
		loop.answer = func(in engine.Input) []engine.Action {
			if len(loop.polls) == 3 {
				panic("lost")
			}
			return attaches(in)
		}
		err := live(t, loop, LivePlan{Attach: finds(&Server{Pages: newServer(), Close: func() { closed = true }})}, time.Minute, nil)
		if err == nil || !strings.Contains(err.Error(), "internal error: lost") || !closed {
			t.Errorf("error %v, server closed %v", err, closed)
		}
	})
}

// TestLiveCommandFlood: too many commands are refused, none is lost without a
// word, and a quit is always taken.
func TestLiveCommandFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		loop := &script{}
		loop.answer = func(in engine.Input) []engine.Action {
			if p, ok := in.(engine.Pressed); ok && p.Command == engine.CommandRemeasure {
				<-block
			}
			return attaches(in)
		}
		attach := finds(&Server{Pages: newServer()})
		err := live(t, loop, LivePlan{Attach: attach}, time.Minute, func(l *Live) {
			l.Do(engine.CommandRemeasure)
			synctest.Wait()
			taken := 0
			for range 100 {
				if l.Do(engine.CommandSkip) {
					taken++
				}
			}
			if taken != commandsWaiting {
				t.Errorf("%d of 100 commands were taken while the loop was busy, want %d", taken, commandsWaiting)
			}
			for range 2 {
				if !l.Do(engine.CommandQuit) {
					t.Error("a quit must be taken")
				}
			}
			if l.Do(engine.NumCommands) {
				t.Error("what is no command was taken")
			}
			close(block)
		})
		if err != nil {
			t.Fatal(err)
		}
		skips := 0
		for _, w := range loop.heard {
			if w == "skip" {
				skips++
			}
		}
		if skips != commandsWaiting {
			t.Errorf("%d of %d commands arrived", skips, commandsWaiting)
		}
	})
}

// TestLiveALoopThatStallsLosesTheOldestPolls: and counts them.
func TestLiveALoopThatStallsLosesTheOldestPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{}
		block := make(chan struct{})
		loop.answer = func(in engine.Input) []engine.Action {
			if p, ok := in.(engine.Pressed); ok && p.Command == engine.CommandRemeasure {
				<-block
			}
			return attaches(in)
		}
		pages := newServer()
		err := live(t, loop, LivePlan{Attach: finds(&Server{Pages: pages})}, time.Second, func(l *Live) {
			l.Do(engine.CommandRemeasure)
			time.Sleep(30 * time.Second)
			close(block)
		})
		if err != nil {
			t.Fatal(err)
		}
		missed := 0
		for _, s := range loop.polls {
			missed += s.Missed
		}
		// The last one may have been under way when the session ended.
		if lost := int(pages.asked.Load()) - missed - len(loop.polls); missed == 0 || lost < 0 || lost > 1 {
			t.Errorf("%d polls taken, %d missed, %d made", len(loop.polls), missed, int(pages.asked.Load()))
		}
	})
}

func TestLiveExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: attaches}
		var fail error
		write := func(s *engine.Snapshot) ([]string, error) {
			time.Sleep(3 * time.Second)
			if s == nil || s.Seq == 0 {
				return nil, errors.New("nothing to see")
			}
			return []string{"report.md", "report.json"}, fail
		}
		err := live(t, loop, LivePlan{Attach: finds(&Server{Pages: newServer()}), Export: write}, time.Second, func(l *Live) {
			if !l.Export() || l.Export() {
				t.Error("the first report must be taken, a second at the same time refused")
			}
			pass(4 * time.Second)
			fail = errors.New("no space left on device")
			if !l.Export() {
				t.Error("another report must be taken once the first is written")
			}
			pass(4 * time.Second)
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"Begin", "Attached", "Noted: report written: report.md, report.json", "Noted: no report was written: no space left on device", "quit"}
		if diff := cmp.Diff(want, loop.spoken()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
		if NewLive(LivePlan{}).Export() {
			t.Error("a session without an export takes none")
		}
	})
}

// applies asks for a change as soon as a server is attached.
func applies(in engine.Input) []engine.Action {
	if _, ok := in.(engine.Attached); ok {
		return []engine.Action{engine.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "32"}}}}
	}
	return attaches(in)
}

func TestLiveQuitDuringAChange(t *testing.T) {
	broken := errors.New("the server refused to start")
	for _, c := range []struct {
		name   string
		takes  time.Duration
		fails  error
		again  bool // a second quit
		want   string
		within time.Duration
	}{
		{"the change is finished first", 20 * time.Second, nil, false, "", 21 * time.Second},
		{"its failure is told", 20 * time.Second, broken, false, "the server refused to start", 21 * time.Second},
		{"it is given up in the end", time.Hour, nil, false, "given up after 1m0s", 62 * time.Second},
		{"a second quit does not wait", time.Hour, nil, true, "was given up", 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loop := &script{answer: applies}
				var cut atomic.Bool
				s := &Server{Pages: newServer(), Apply: func(ctx context.Context, changes []engine.Change) error {
					if !sleep(ctx, c.takes) {
						cut.Store(true)
						return context.Cause(ctx)
					}
					return c.fails
				}}
				began := time.Now()
				err := live(t, loop, LivePlan{Attach: finds(s)}, time.Second, func(l *Live) {
					if c.again {
						go func() {
							time.Sleep(3 * time.Second)
							l.Do(engine.CommandQuit)
						}()
					}
				})
				if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
					t.Errorf("error %q, want %q", got, c.want)
				}
				if took := time.Since(began); took > c.within || cut.Load() != (c.takes == time.Hour) {
					t.Errorf("ended after %v, change cut off %v", took, cut.Load())
				}
			})
		})
	}
}

func TestLiveAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: applies}
		var got []engine.Change
		s := &Server{Pages: newServer(), Apply: func(_ context.Context, c []engine.Change) error { got = c; time.Sleep(2 * time.Second); return nil }}
		if err := live(t, loop, LivePlan{Attach: finds(s)}, 5*time.Second, nil); err != nil {
			t.Fatal(err)
		}
		if want := []string{"Begin", "Attached", "Applied: ", "quit"}; !slices.Equal(loop.spoken(), want) {
			t.Errorf("heard %q, want %q", loop.spoken(), want)
		}
		if len(got) != 1 || got[0].To != "32" {
			t.Errorf("changes %+v", got)
		}
	})
}

func TestLiveAChangeWithoutHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop := &script{answer: applies}
		s := &Server{Pages: newServer(), NoHands: "it runs in a pod"}
		if err := live(t, loop, LivePlan{Attach: finds(s)}, 5*time.Second, nil); err != nil {
			t.Fatal(err)
		}
		if want := []string{"Begin", "Attached", "Applied: it runs in a pod", "quit"}; !slices.Equal(loop.spoken(), want) {
			t.Errorf("heard %q, want %q", loop.spoken(), want)
		}
	})
}
