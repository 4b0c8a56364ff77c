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

	"github.com/rooftop-dev/rooftop/engine/loop"
)

func TestLivePollsAndPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{answer: attaches}
		pages := newServer()
		closed := false
		s := &Server{Header: Header{Inputs: slots("4")}, Pages: pages, Close: func() { closed = true }, Processes: func() (loop.Observed, error) {
			return loop.Observed{Processes: []loop.Process{{PID: 1}}}, nil
		}}
		err := live(t, scripted, LivePlan{Attach: finds(s)}, 10*time.Second, func(l *Live) {
			pass(5 * time.Second)
			if got := l.Latest(); got == nil || got.Seq < 20 {
				t.Errorf("after 5 s the snapshot is %+v", got)
			}
		})
		must(t, err)
		if want := []string{"Begin", "Attached", "quit"}; !slices.Equal(scripted.events(), want) {
			t.Errorf("heard %q, want %q", scripted.events(), want)
		}
		if n := len(scripted.polls); n < 59 || n > 61 || scripted.polls[30].Page == nil {
			t.Errorf("%d polls in 15 s, want 60", n)
		}
		observed := 0
		for _, w := range scripted.inputs {
			if w == "Observed" {
				observed++
			}
		}
		if observed < 7 || observed > 8 {
			t.Errorf("processes read %d times in 15 s, want 8", observed)
		}
		if !slices.IsSorted(scripted.times) {
			t.Error("time ran backwards")
		}
		if !closed {
			t.Error("the server was not closed")
		}
	})
}

func TestLiveTriesUntilTheServerAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{answer: attaches}
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
		must(t, live(t, scripted, LivePlan{Attach: attach}, 6*time.Second, nil))
		want := []string{
			"Begin", "AttachFailed: connection refused",
			"AttachFailed: the server could not be attached to: internal error: a table without legs",
			"AttachFailed: no server was found", "AttachFailed: connection refused", "Attached", "quit",
		}
		if diff := cmp.Diff(want, scripted.events()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
		if at := scripted.times[slices.Index(scripted.inputs, "Attached")]; at != 4*time.Second {
			t.Errorf("attached at %v, want 4s: one try a second", at)
		}
	})
}

func TestLiveQuitsDuringAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{answer: attaches}
		attach := func(ctx context.Context) (*Server, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		err := live(t, scripted, LivePlan{Attach: attach}, time.Minute, func(l *Live) {
			time.Sleep(3 * time.Second)
			if !l.Do(loop.CommandQuit) {
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
		scripted := &script{answer: attaches}
		tries := 0
		attach := func(ctx context.Context) (*Server, error) {
			if tries++; tries > 1 {
				return &Server{Pages: newServer()}, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		must(t, live(t, scripted, LivePlan{Attach: attach}, time.Minute, nil))
		want := []string{"Begin", "AttachFailed: the server did not identify itself within 30s: context deadline exceeded", "Attached", "quit"}
		if diff := cmp.Diff(want, scripted.events()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
	})
}

// TestLiveTurnsToTheNextRun attaches a second time: the old server is closed after the new one is
// attached, and only the new one is read from then on.
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
		scripted := &script{}
		scripted.answer = func(in loop.Input) []loop.Action {
			switch in.(type) {
			case loop.Sampled:
				if len(scripted.polls) == 20 {
					return []loop.Action{loop.Attach{}}
				}
			case loop.Attached:
				if len(scripted.polls) > 0 && pages[1].asked.Load() != 1 {
					t.Errorf("the facts came behind %d pages of the new server, want 1", pages[1].asked.Load())
				}
			}
			return attaches(in)
		}
		must(t, live(t, scripted, LivePlan{Attach: attach}, 10*time.Second, nil))
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
		scripted := &script{answer: attaches}
		pages := newServer()
		var looked atomic.Int32
		s := &Server{Pages: pages, Processes: func() (loop.Observed, error) { looked.Add(1); return loop.Observed{}, nil }}
		err := live(t, scripted, LivePlan{Attach: finds(s)}, 5*time.Second, func(l *Live) {
			pass(5*time.Second + 100*time.Millisecond)
			l.Do(loop.CommandPause)
			synctest.Wait()
			asked, told, read := int(pages.asked.Load()), len(scripted.sampled()), looked.Load()
			pass(time.Minute)
			if int(pages.asked.Load()) != asked || len(scripted.sampled()) != told || looked.Load() != read {
				t.Errorf("while paused: %d scrapes, %d samples, %d looks at processes", int(pages.asked.Load())-asked, len(scripted.sampled())-told, looked.Load()-read)
			}
			l.Do(loop.CommandPause)
			pass(2 * time.Second)
			if n := int(pages.asked.Load()) - asked; n < 8 || n > 9 {
				t.Errorf("%d scrapes in 2 s after the pause, want 8 or 9", n)
			}
			if last := scripted.sampled()[len(scripted.sampled())-1]; last.Missed != 0 {
				t.Errorf("%d ticks missed: a pause is none", last.Missed)
			}
		})
		must(t, err)
	})
}

// TestLiveCommandFlood checks that too many commands are refused, that none is dropped silently, and
// that a quit is always accepted.
func TestLiveCommandFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		scripted := &script{}
		scripted.answer = func(in loop.Input) []loop.Action {
			if p, ok := in.(loop.Pressed); ok && p.Command == loop.CommandRemeasure {
				<-block
			}
			return attaches(in)
		}
		attach := finds(&Server{Pages: newServer()})
		err := live(t, scripted, LivePlan{Attach: attach}, time.Minute, func(l *Live) {
			l.Do(loop.CommandRemeasure)
			synctest.Wait()
			taken := 0
			for range 100 {
				if l.Do(loop.CommandSkip) {
					taken++
				}
			}
			if taken != maxQueuedCommands {
				t.Errorf("%d of 100 commands were taken while the scripted was busy, want %d", taken, maxQueuedCommands)
			}
			for range 2 {
				if !l.Do(loop.CommandQuit) {
					t.Error("a quit must be taken")
				}
			}
			if l.Do(loop.NumCommands) {
				t.Error("what is no command was taken")
			}
			close(block)
		})
		must(t, err)
		skips := 0
		for _, w := range scripted.inputs {
			if w == "skip" {
				skips++
			}
		}
		if skips != maxQueuedCommands {
			t.Errorf("%d of %d commands arrived", skips, maxQueuedCommands)
		}
	})
}

func TestLiveExport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scripted := &script{answer: attaches}
		var fail error
		write := func(s *loop.Snapshot) ([]string, error) {
			time.Sleep(3 * time.Second)
			if s == nil || s.Seq == 0 {
				return nil, errors.New("nothing to see")
			}
			return []string{"report.md", "report.json"}, fail
		}
		err := live(t, scripted, LivePlan{Attach: finds(&Server{Pages: newServer()}), Export: write}, time.Second, func(l *Live) {
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
		must(t, err)
		want := []string{"Begin", "Attached", "Noted: report written: report.md, report.json", "Noted: no report was written: no space left on device", "quit"}
		if diff := cmp.Diff(want, scripted.events()); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
		if NewLive(LivePlan{}).Export() {
			t.Error("a session without an export takes none")
		}
	})
}
