package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// diary notes what happens, in order, from any goroutine.
type diary struct {
	mu   sync.Mutex
	list []string
}

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, what)
}

func (d *diary) notes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}

// scripted is a session that ends by itself after a time, or some time after it
// was told to.
type scripted struct {
	*diary
	ends   time.Duration // by itself; 0 is never
	lasts  time.Duration // from being told to end to the end
	code   int
	err    error
	panics bool
	told   error // cause of its end
}

func (s *scripted) Run(ctx context.Context) error {
	own := make(<-chan time.Time)
	if s.ends > 0 {
		own = time.After(s.ends)
	}
	select {
	case <-own:
		if s.panics {
			panic("out of range")
		}
	case <-ctx.Done():
		s.told = context.Cause(ctx)
		time.Sleep(s.lasts)
	}
	s.note("session ended")
	return s.err
}

func (s *scripted) Latest() *engine.Snapshot {
	return &engine.Snapshot{Finished: &engine.Finished{ExitCode: s.code}}
}
func (s *scripted) Do(engine.Command) bool { return true }
func (s *scripted) Export() bool           { return false }

// scriptedView is a view that the person leaves after a time, 0 is never.
type scriptedView struct {
	*diary
	leaves time.Duration
	hurry  time.Duration // when a second signal comes; 0 is never
	err    error
}

func (v *scriptedView) tell(engine.Event) {}

func (v *scriptedView) show(ctx context.Context, f *following) error {
	left, hurry := make(<-chan time.Time), make(<-chan time.Time)
	if v.leaves > 0 {
		left = time.After(v.leaves)
	}
	if v.hurry > 0 {
		hurry = time.After(v.hurry)
	}
	select {
	case <-f.over:
	case <-left:
	case <-ctx.Done():
		select {
		case <-f.over:
		case <-hurry:
			f.hasten()
		}
	}
	v.note("terminal restored")
	return v.err
}

func (v *scriptedView) report(*engine.Snapshot, kept) error {
	v.note("report")
	return nil
}

func TestTheEndIsInOrder(t *testing.T) {
	ordered := []string{"session ended", "files", "terminal restored", "report"}
	for _, c := range []struct {
		name    string
		session scripted
		view    scriptedView
		signal  time.Duration // when SIGTERM comes; 0 is never
		want    []string
		code    exitCode
		says    string
		took    time.Duration
	}{
		{name: "the loop finishes", session: scripted{ends: time.Minute, code: 3}, want: ordered, code: 3, took: time.Minute},
		{name: "nothing left to do", session: scripted{ends: time.Minute}, want: ordered, took: time.Minute},
		{
			name: "a signal", session: scripted{lasts: 2 * time.Second, code: 3}, signal: time.Minute,
			want: ordered, code: 143, took: 62 * time.Second,
		},
		{
			name: "a signal while something is left undone", session: scripted{lasts: time.Second, err: errors.New("the server is half started")}, signal: time.Minute,
			want: ordered, code: 143, says: "half started", took: 61 * time.Second,
		},
		{
			name: "the person leaves before the loop ended", session: scripted{lasts: time.Second, code: 4}, view: scriptedView{leaves: time.Minute},
			want: []string{"terminal restored", "session ended", "files", "report"}, code: 4, took: 61 * time.Second,
		},
		{
			name: "a session that does not end is left behind", session: scripted{lasts: time.Hour}, view: scriptedView{leaves: time.Minute},
			want: []string{"terminal restored", "files", "report"}, code: exitError, says: "did not end within 15s", took: 75 * time.Second,
		},
		{
			name: "a second signal waits for nothing", session: scripted{lasts: time.Hour}, signal: time.Minute, view: scriptedView{hurry: 62 * time.Second},
			want: []string{"terminal restored", "files", "report"}, code: 143, took: 63 * time.Second,
		},
		{
			name: "the session fails", session: scripted{ends: time.Minute, err: errors.New("no page")},
			want: ordered, code: exitError, says: "no page", took: time.Minute,
		},
		{
			name: "the terminal fails", session: scripted{}, view: scriptedView{leaves: time.Second, err: errors.New("no tty")},
			want: []string{"terminal restored", "session ended", "files", "report"}, code: exitError, says: "no tty", took: time.Second,
		},
		{
			name: "a panic is told once the terminal is back", session: scripted{ends: time.Minute, panics: true},
			want: []string{"terminal restored", "report"}, code: exitError, says: "out of range", took: time.Minute,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.signal > 0 {
					time.AfterFunc(c.signal, func() { cancel(&signalError{syscall.SIGTERM}) })
				}
				var d diary
				c.session.diary, c.view.diary = &d, &d
				began := time.Now()
				f := &following{session: &c.session, view: &c.view, stderr: &bytes.Buffer{}, keep: func(*engine.Snapshot) kept {
					d.note("files")
					return kept{}
				}}
				err := f.run(ctx)
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if got := d.notes(); !slices.Equal(got, c.want) {
					t.Errorf("in the order %q, want %q", got, c.want)
				}
				var coded *codedError
				code := exitDone
				if errors.As(err, &coded) {
					code = coded.code
				}
				if code != c.code || (c.says == "") != (coded == nil || coded.err == nil) || c.says != "" && !strings.Contains(err.Error(), c.says) {
					t.Errorf("ended with code %d: %v", code, err)
				}
				time.Sleep(2 * time.Hour) // a session that was left behind ends with the test
			})
		})
	}
}

func TestASessionIsToldWhyItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{diary: &diary{}}
		f := &following{session: s, view: &scriptedView{diary: s.diary, leaves: time.Second}, stderr: &bytes.Buffer{}}
		if err := f.run(t.Context()); err != nil || !errors.Is(s.told, errLeft) {
			t.Errorf("%v, told %v", err, s.told)
		}
	})
}

func TestWhatCannotBeKeptIsSaidInOneLine(t *testing.T) {
	var stderr bytes.Buffer
	s := &scripted{diary: &diary{}, ends: time.Nanosecond}
	f := &following{session: s, view: &scriptedView{diary: s.diary}, stderr: &stderr, keep: func(*engine.Snapshot) kept {
		return kept{note: "the full report could not be written: no space"}
	}}
	if err := f.run(t.Context()); err != nil {
		t.Errorf("it is no error of the run, got %v", err)
	}
	if got, want := stderr.String(), "rooftop: the full report could not be written: no space\n"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// latest is a feed of one snapshot.
type latest struct{ s *engine.Snapshot }

func (l latest) Latest() *engine.Snapshot { return l.s }

func TestTheScreenStaysUntilTheFilesAreWritten(t *testing.T) {
	over := make(chan struct{})
	feed := &latest{}
	h := &heldFeed{feed: feed, over: over}
	if h.Latest() != nil {
		t.Error("there is something before the first snapshot")
	}
	feed.s = &engine.Snapshot{Seq: 7, Phase: engine.PhaseDone, Finished: &engine.Finished{}}
	if s := h.Latest(); s == feed.s || s.Finished != nil || s.Seq != 7 {
		t.Errorf("the run is shown as finished: %+v", s)
	}
	if a, b := h.Latest(), h.Latest(); a != b {
		t.Error("the same snapshot is copied again")
	}
	close(over)
	if h.Latest() != feed.s {
		t.Error("the end is not shown once the files are written")
	}
}

func TestPickView(t *testing.T) {
	for _, c := range []struct {
		name          string
		o             output
		stdin, stdout bool
		term          string
		want          viewKind
	}{
		{"a terminal", output{}, true, true, "xterm-256color", viewScreen},
		{"a terminal of no name", output{}, true, true, "", viewScreen},
		{"stdout is a file", output{}, true, false, "xterm", viewLines},
		{"stdin is a pipe", output{}, false, true, "xterm", viewLines},
		{"a dumb terminal", output{}, true, true, "dumb", viewLines},
		{"plain", output{plain: true}, true, true, "xterm", viewLines},
		{"events", output{json: true}, true, true, "xterm", viewEvents},
		{"events win", output{json: true, plain: true}, false, false, "dumb", viewEvents},
	} {
		if got := pickView(&c.o, c.stdin, c.stdout, c.term); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestBare(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{nil, []string{"tune"}},
		{[]string{"--url", "x"}, []string{"tune", "--url", "x"}},
		{[]string{"-m", "4"}, []string{"tune", "-m", "4"}},
		{[]string{"--help"}, []string{"--help"}},
		{[]string{"-h"}, []string{"-h"}},
		{[]string{"diagnose", "--json"}, []string{"diagnose", "--json"}},
		{[]string{"nonsense"}, []string{"nonsense"}},
		{[]string{"--version"}, []string{"version"}},
	} {
		if got := bare(c.args); !slices.Equal(got, c.want) {
			t.Errorf("%q means %q, want %q", c.args, got, c.want)
		}
	}
}
