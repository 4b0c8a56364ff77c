package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
)

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
