package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// diary records events in order, from any goroutine.
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

// scripted is a session that ends by itself after a time, or some time after it was asked to.
type scripted struct {
	*diary
	ends   time.Duration // by itself; 0 is never
	lasts  time.Duration // from the request to end until the end
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

func (s *scripted) Latest() *loop.Snapshot {
	return &loop.Snapshot{Finished: &loop.Finished{ExitCode: s.code}}
}
func (s *scripted) Do(loop.Command) bool { return true }
func (s *scripted) Export() bool         { return false }

// scriptedView is a view that the user leaves after a time; 0 is never.
type scriptedView struct {
	*diary
	leaves time.Duration
	hurry  time.Duration // when a second signal comes; 0 is never
	err    error
}

func (v *scriptedView) handle(loop.Event) {}

func (v *scriptedView) noServer(time.Duration, string) {}

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

func (v *scriptedView) report(*loop.Snapshot, kept) error {
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
		code    cli.ExitCode
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
			name: "a signal, and the server could not be restored", session: scripted{lasts: 2 * time.Second, code: 1}, signal: time.Minute,
			want: ordered, code: cli.ExitError, took: 62 * time.Second,
		},
		{
			name: "a signal while something is left undone", session: scripted{lasts: time.Second, err: errors.New("the server is half started")}, signal: time.Minute,
			want: ordered, code: 143, says: "half started", took: 61 * time.Second,
		},
		{
			name: "the user leaves before the loop ended", session: scripted{lasts: time.Second, code: 4}, view: scriptedView{leaves: time.Minute},
			want: []string{"terminal restored", "session ended", "files", "report"}, code: 4, took: 61 * time.Second,
		},
		{
			name: "a session that does not end is left behind", session: scripted{lasts: time.Hour}, view: scriptedView{leaves: time.Minute},
			want: []string{"terminal restored", "files", "report"}, code: cli.ExitError, says: "did not end within 15s", took: 75 * time.Second,
		},
		{
			name: "a second signal waits for nothing", session: scripted{lasts: time.Hour}, signal: time.Minute, view: scriptedView{hurry: 62 * time.Second},
			want: []string{"terminal restored", "files", "report"}, code: 143, took: 63 * time.Second,
		},
		{
			name: "the session fails", session: scripted{ends: time.Minute, err: errors.New("no page")},
			want: ordered, code: cli.ExitError, says: "no page", took: time.Minute,
		},
		{
			name: "the terminal fails", session: scripted{}, view: scriptedView{leaves: time.Second, err: errors.New("no tty")},
			want: []string{"terminal restored", "session ended", "files", "report"}, code: cli.ExitError, says: "no tty", took: time.Second,
		},
		{
			name: "a panic is reported once the terminal is back", session: scripted{ends: time.Minute, panics: true},
			want: []string{"terminal restored", "report"}, code: cli.ExitError, says: "out of range", took: time.Minute,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.signal > 0 {
					time.AfterFunc(c.signal, func() { cancel(&cli.SignalError{Signal: syscall.SIGTERM}) })
				}
				var d diary
				c.session.diary, c.view.diary = &d, &d
				began := time.Now()
				f := &following{session: &c.session, view: &c.view, stderr: &bytes.Buffer{}, keep: func(*loop.Snapshot) kept {
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
				var coded *cli.CodedError
				code := cli.ExitDone
				if errors.As(err, &coded) {
					code = coded.Code
				}
				if code != c.code || (c.says == "") != (coded == nil || coded.Err == nil) || c.says != "" && !strings.Contains(err.Error(), c.says) {
					t.Errorf("ended with code %d: %v", code, err)
				}
				time.Sleep(2 * time.Hour) // a session that was left behind ends with the test
			})
		})
	}
}

func TestASessionKnowsWhyItEnds(t *testing.T) {
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
	f := &following{session: s, view: &scriptedView{diary: s.diary}, stderr: &stderr, keep: func(*loop.Snapshot) kept {
		return kept{note: "the full report could not be written: no space"}
	}}
	if err := f.run(t.Context()); err != nil {
		t.Errorf("the run failed: %v", err)
	}
	if got, want := stderr.String(), "rooftop: the full report could not be written: no space\n"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// latest is a feed of one snapshot.
type latest struct{ s *loop.Snapshot }

func (l latest) Latest() *loop.Snapshot { return l.s }

func TestTheScreenStaysUntilTheFilesAreWritten(t *testing.T) {
	over := make(chan struct{})
	feed := &latest{}
	h := &heldFeed{feed: feed, over: over}
	if h.Latest() != nil {
		t.Error("there is something before the first snapshot")
	}
	feed.s = &loop.Snapshot{Seq: 7, Phase: loop.PhaseDone, Finished: &loop.Finished{}}
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

// Events are printed only with --json; without a terminal a run is printed in lines.
func TestViewOf(t *testing.T) {
	w := &cli.World{Stdin: strings.NewReader(""), Stdout: io.Discard, Env: variables()}
	for out, want := range map[cli.Output]viewKind{
		{}: viewLines, {Plain: true}: viewLines, {JSON: true}: viewEvents, {JSON: true, Plain: true}: viewEvents,
	} {
		if got := viewOf(w, &out); got != want {
			t.Errorf("%+v: %s, want %s", out, got, want)
		}
	}
}

func TestDefaultCommand(t *testing.T) {
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
		if got := withDefaultCommand(c.args); !slices.Equal(got, c.want) {
			t.Errorf("%q means %q, want %q", c.args, got, c.want)
		}
	}
}

// A run that controls a server waits until the server is restored, says what it waits for, and reports
// if that took too long. A second signal cuts short everything else.
func TestAServerInHandIsSettledOrSaidNotToBe(t *testing.T) {
	signalsBegin()
	for _, c := range []struct {
		name     string
		lasts    time.Duration // of the session's end
		hurry    time.Duration // of the second signal, 0 none
		restored time.Duration // when the server is restored
		want     string
		says     string
		notes    string
		took     time.Duration
	}{
		{name: "in order", lasts: 2 * time.Minute, want: "session ended, settled, files, terminal restored, report", took: 3 * time.Minute},
		{
			name: "cut short", lasts: time.Hour, hurry: 90 * time.Second,
			want: "terminal restored, files, report", took: 91 * time.Second,
		},
		{
			name: "a second signal during a revert", lasts: 21500 * time.Millisecond, hurry: 61 * time.Second, restored: 81500 * time.Millisecond,
			want: "terminal restored, session ended, settled, files, report", took: 81500 * time.Millisecond,
			notes: "rooftop: reverting to the kept configuration: stopping process 7; a third signal, or kill -9, leaves the server as it is then, and 'rooftop recover' restores it\n" +
				"rooftop: reverting to the kept configuration: stopping process 7\nrooftop: reverting to the kept configuration: stopping process 7\n",
		},
		{
			name: "an endless revert", lasts: time.Hour, hurry: 9 * time.Minute, restored: 2 * time.Hour,
			want: "terminal restored, files, report", says: "rooftop recover", took: 19 * time.Minute,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				d := &diary{}
				time.AfterFunc(time.Minute, func() { cancel(&cli.SignalError{Signal: 15}) })
				began := time.Now()
				var stderr bytes.Buffer
				f := &following{
					session: &scripted{diary: d, lasts: c.lasts}, view: &scriptedView{diary: d, hurry: c.hurry}, stderr: &stderr,
					restoring: func() string {
						if time.Since(began) < c.restored {
							return "stopping process 7"
						}
						return ""
					},
					keep:     func(*loop.Snapshot) kept { d.note("files"); return kept{} },
					patience: 10 * time.Minute,
					settle:   func(*loop.Snapshot) error { d.note("settled"); return nil },
				}
				err := f.run(ctx)
				if got := strings.Join(d.notes(), ", "); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
				if errCode(err) != 143 || c.says != "" && !strings.Contains(err.Error(), c.says) {
					t.Errorf("code %d: %v, want 143 and %q", errCode(err), err, c.says)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if c.notes != "" && stderr.String() != c.notes {
					t.Errorf("said\n%swant\n%s", stderr.String(), c.notes)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
