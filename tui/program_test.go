package tui

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// movingFeed is a server under load: a snapshot every 250 ms, with new figures once per window.
type movingFeed struct {
	mu    sync.Mutex
	base  *loop.Snapshot
	start time.Time
	end   *loop.Finished
}

func (f *movingFeed) Latest() *loop.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	elapsed := time.Since(f.start).Truncate(engine.PollInterval)
	s := *f.base
	s.Seq += uint64(elapsed / engine.PollInterval)
	s.Now += elapsed
	s.Progress.Elapsed += elapsed
	s.Finished = f.end
	s.Sources = freshSources(s.Now)
	wobble := math.Sin(elapsed.Seconds() * 3)
	s.Page = fixturePage(s.Now, 16, math.Round(24+2*wobble))
	s.GPU = fixtureGPU(s.Now)
	s.GPU.Devices[0].Fields[engine.GPUPowerW] = some(287 + 5*wobble)
	s.Points = fixturePoints(s.Now)
	windows := float64(elapsed / engine.WindowLength)
	d := diagnosisAt(16, math.Round(24+2*math.Sin(windows)))
	for i := range d.Measured {
		if q := &d.Measured[i]; q.Unit == "tok/s" || q.Unit == "s" {
			q.Value.V *= 1 + 0.01*math.Sin(windows*1.3)
		}
	}
	s.Live = d
	return &s
}

func (f *movingFeed) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = &loop.Finished{Reason: "done"}
}

// output keeps what a program writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *output) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// Take returns the output since the last call.
func (t *output) Take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.b.String()
	t.b.Reset()
	return s
}

// started is a program in a synctest bubble, 80 by 24.
type started struct {
	p        *tea.Program
	out      output
	controls fakeControls
	err      chan error
}

func start(ctx context.Context, feed Feed, o frame.Options) *started {
	r := &started{err: make(chan error, 1)}
	o.Env = func(name string) (string, bool) {
		v, ok := map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}[name]
		return v, ok
	}
	o.Theme = "dark"
	o.Program = []tea.ProgramOption{
		tea.WithInput(nil), tea.WithOutput(&r.out), tea.WithWindowSize(80, 24), tea.WithEnvironment([]string{"TERM=xterm-256color"}),
		func(p *tea.Program) { r.p = p },
	}
	go func() { r.err <- Run(ctx, feed, &r.controls, o) }()
	time.Sleep(time.Second)
	return r
}

func (r *started) press(names ...string) {
	for _, name := range names {
		r.p.Send(screentest.KeyPress(name))
		time.Sleep(300 * time.Millisecond)
	}
}

func TestProgram(t *testing.T) {
	moving := func() *movingFeed { return &movingFeed{base: waitingSnapshot(), start: time.Now()} }
	for name, run := range map[string]func(t *testing.T){
		"shows views, asks, quits": func(t *testing.T) {
			r := start(t.Context(), moving(), frame.Options{})
			first := ansi.Strip(r.out.Take())
			for _, want := range []string{"rooftop", "Llama-3.1-8B-Instruct", "[1 Now]", "quit"} {
				if !strings.Contains(first, want) {
					t.Errorf("no %q in the first second", want)
				}
			}
			r.press("m", "y", "esc", "q")
			if err := <-r.err; err != nil {
				t.Error(err)
			}
			if want := []loop.Command{loop.CommandRemeasure, loop.CommandQuit}; !slices.Equal(r.controls.done, want) {
				t.Errorf("commands %v, want %v", r.controls.done, want)
			}
			end := r.out.Take()
			if !strings.Contains(end, ansi.SetClipboard('c', commandOf(waitingSnapshot()))) {
				t.Error("the command did not go to the clipboard")
			}
			if !strings.Contains(end, ansi.ResetModeAltScreenSaveCursor) {
				t.Error("the alternate screen stays")
			}
		},
		"a recording stays at its end": func(t *testing.T) {
			f, tape := moving(), &fakeTape{now: 60 * time.Second, of: 60 * time.Second, speed: 1}
			r := start(t.Context(), f, frame.Options{Playback: tape})
			f.finish()
			time.Sleep(5 * time.Second)
			select {
			case err := <-r.err:
				t.Errorf("ended: %v", err)
			default:
			}
			r.press("left", "left", "right", "+", "+", "p")
			if now, _, speed := tape.At(); now != 50*time.Second || speed != 0 {
				t.Errorf("at %v with speed %v, want 50s halted", now, speed)
			}
			r.press("p")
			if _, _, speed := tape.At(); speed != 5 {
				t.Errorf("continues at %v, want 5", speed)
			}
			r.press("q")
			<-r.err
		},
		"ends with its context": func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			r := start(ctx, moving(), frame.Options{})
			cancel(errors.New("hangup"))
			if err := <-r.err; err != nil || !strings.Contains(r.out.Take(), ansi.ResetModeAltScreenSaveCursor) {
				t.Errorf("%v, or the alternate screen stays", err)
			}
		},
		"a panic restores the terminal": func(t *testing.T) {
			r := start(t.Context(), panickyFeed{at: time.Now().Add(2 * time.Second)}, frame.Options{})
			if err := <-r.err; !errors.Is(err, tea.ErrProgramPanic) || !strings.Contains(r.out.Take(), ansi.ResetModeAltScreenSaveCursor) {
				t.Errorf("got %v, want that of a panic, or the alternate screen stays", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run(t)
				time.Sleep(time.Second) // ticks that were due
			})
		})
	}
}

type panickyFeed struct{ at time.Time }

func (f panickyFeed) Latest() *loop.Snapshot {
	if time.Now().After(f.at) {
		panic("a feed that breaks")
	}
	return nil
}

// TestBytesInASteadyState limits the terminal output while only the load changes: two minutes on
// each view.
func TestBytesInASteadyState(t *testing.T) {
	seconds := 120
	if !longtest.Tests {
		seconds = 20
	}
	for v := range numViews {
		t.Run(viewFile(v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				r := start(ctx, &movingFeed{base: waitingSnapshot(), start: time.Now()}, frame.Options{})
				r.press(string('1' + rune(v)))
				time.Sleep(5 * time.Second)
				r.out.Take()
				time.Sleep(time.Duration(seconds) * time.Second)
				perSecond := len(r.out.Take()) / seconds
				t.Logf("%d bytes/s", perSecond)
				if perSecond > 4<<10 {
					t.Errorf("%d bytes/s, want at most 4 KiB/s", perSecond)
				}
				cancel()
				<-r.err
				time.Sleep(time.Second)
			})
		})
	}
}
