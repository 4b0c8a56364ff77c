package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// cutOff leaves a site as a run does that is killed after some records. Each may
// take its process from the server that runs.
func (s *site) cutOff(t *testing.T, records func(kept, next string, p *journal.Process) []journal.Record) {
	t.Helper()
	store, err := serverdir.OpenStore(s.Root, s.identity(), "test")
	must(t, err)
	l := &launcher.Launch{Argv: s.Argv, Env: []string{"HOME=/nowhere", "VLLM_API_KEY=sk-test-secret", "EMPTY="}, Cwd: s.dir, Inherit: true, Umask: -1, Std: [3]string{os.DevNull, "", ""}}
	if s.config != "" {
		file, err := launcher.ReadFile(s.config)
		must(t, err)
		l.Files = []launcher.File{file}
	}
	kept, err := store.Keep(l)
	must(t, err)
	tried, err := l.With(slots(4, 8).Changes, false)
	must(t, err)
	next, err := store.Keep(tried)
	must(t, err)
	var p *journal.Process
	if s.server != nil {
		h, err := newHost(testGrace)
		must(t, err)
		one, err := h.fs.Find(s.server.Process.Pid)
		must(t, err)
		p = &journal.Process{PID: one.PID, Ticks: one.Ticks, Boot: h.boot}
	}
	for _, r := range records(kept, next, p) {
		must(t, store.Write(r))
	}
	must(t, store.Release()) // as a kill does: nothing is tidied
}

// survey finds the one run that was cut off.
func (s *site) survey(t *testing.T) *Left {
	t.Helper()
	list, err := Survey(s.Root)
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("%d runs were cut off, want one", len(list))
	}
	return &list[0]
}

func (s *site) repaired(t *testing.T, l *Left) error {
	t.Helper()
	r := Repair{Version: "test", Grace: testGrace, Ready: s.ready()}
	return r.Do(t.Context(), l)
}

func foundRunning(kept string, p *journal.Process) journal.Record {
	return journal.Record{Kind: journal.Begin, Mode: "attach", Launch: kept, Process: p}
}

func intent(next string) journal.Record {
	return journal.Record{Kind: journal.Intent, Launch: next, Iteration: 1, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}}}
}

func said(t *testing.T, lines []string, want string) {
	t.Helper()
	if !strings.Contains(strings.Join(lines, "\n"), want) {
		t.Errorf("%q is not said in %q", want, lines)
	}
}

func TestServerThatWasNotToldToStopGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 1)
	before := stateOf(t, s.At).PID
	s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, p), intent(next)}
	})
	l := s.survey(t)
	if l.Remedy != AwaitKept {
		t.Fatalf("remedy %q, found %q", l.Remedy, l.Found)
	}
	want := s.truth(t)
	must(t, s.repaired(t, l))
	s.check(t, want, "after the repair")
	if now := stateOf(t, s.At).PID; now != before {
		t.Errorf("process %d was replaced by %d", before, now)
	}
}

func TestServerOnItsWayDownIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 2)
	s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, p), intent(next)}
	})
	want := s.truth(t)
	must(t, s.server.Process.Signal(syscall.SIGTERM))
	until(t, "the server has ended", func() bool { return gone(s.server.Process.Pid) })
	l := s.survey(t)
	if l.Remedy != PutBack {
		t.Fatalf("remedy %q", l.Remedy)
	}
	said(t, l.Found, "no server runs")
	must(t, s.repaired(t, l))
	s.check(t, want, "after the repair")
}

// Its first thread is gone, and others hold its port for a while: whose that is cannot
// be seen then.
func TestServerWhoseFirstThreadIsGoneIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 2)
	want := s.swapped(t, "first-thread-first")
	must(t, s.server.Process.Signal(syscall.SIGTERM))
	until(t, "the server has ended", func() bool { return gone(s.server.Process.Pid) })
	l := s.survey(t)
	if l.Remedy != PutBack {
		t.Fatalf("remedy %q, found %q", l.Remedy, l.Found)
	}
	said(t, l.Found, "no server runs")
	must(t, s.repaired(t, l))
	s.check(t, want, "after the repair")
}

// swapped replaces the site's server by one that behaves otherwise and leaves it as a
// run does that is cut off: told to stop, and no more.
func (s *site) swapped(t *testing.T, fake string) *launcher.Launch {
	t.Helper()
	must(t, s.server.Process.Kill())
	until(t, "the server has ended", func() bool { return gone(s.server.Process.Pid) })
	s.fake = fake
	s.begin(t)
	s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, p), intent(next)}
	})
	return s.truth(t)
}

// It ends between the look and the act: what was said covers that.
func TestServerThatEndsMeanwhileIsStartedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 2)
	s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, p), intent(next)}
	})
	l := s.survey(t)
	if l.Remedy != AwaitKept {
		t.Fatalf("remedy %q", l.Remedy)
	}
	said(t, l.Steps, "restart it exactly as it was")
	want := s.truth(t)
	must(t, s.server.Process.Kill())
	must(t, s.repaired(t, l))
	s.check(t, want, "after the repair")
}

func TestServerThatRunCouldNotTouchIsLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 0)
	s.cutOff(t, func(kept, _ string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, p)}
	})
	must(t, s.server.Process.Kill())
	until(t, "the server has ended", func() bool { return gone(s.server.Process.Pid) })
	l := s.survey(t)
	if l.Remedy != CloseRun {
		t.Fatalf("remedy %q: nothing was touched, and it has ended by itself", l.Remedy)
	}
	must(t, s.repaired(t, l))
	if pids := s.serving(t); len(pids) > 0 {
		t.Errorf("processes %v run, want none", pids)
	}
	s.clean(t, "after the repair")
}

// Someone has started a server by hand since: it is theirs.
func TestServerOfSomebodyElseIsLeft(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 1)
	s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
		other := *p
		other.Ticks++ // the number was used again
		return []journal.Record{foundRunning(kept, &other), intent(next), {Kind: journal.Stopped, Process: &other}}
	})
	must(t, os.WriteFile(s.config, []byte("max-num-seqs: 99\n"), 0o640))
	l := s.survey(t)
	if l.Remedy != CloseRun {
		t.Fatalf("remedy %q, found %q", l.Remedy, l.Found)
	}
	said(t, l.Found, fmt.Sprintf("process %d, which this run did not start", s.server.Process.Pid))
	said(t, l.Steps, "someone changed it since")
	must(t, s.repaired(t, l))
	if gone(s.server.Process.Pid) {
		t.Error("it was stopped")
	}
	if text, _ := os.ReadFile(s.config); string(text) != "max-num-seqs: 99\n" {
		t.Errorf("their file holds %q", text)
	}
	s.clean(t, "after the repair")
}

func TestFileThatSomebodyChangedIsSetAside(t *testing.T) {
	t.Parallel()
	s := newSite(t, "exec", 1)
	s.cutOff(t, func(kept, next string, _ *journal.Process) []journal.Record {
		first := foundRunning(kept, nil)
		first.Mode = "exec"
		return []journal.Record{first, intent(next), {Kind: journal.Stopped}}
	})
	const theirs = "max-num-seqs: 99\n"
	must(t, os.WriteFile(s.config, []byte(theirs), 0o600))
	want := s.truth(t)
	l := s.survey(t)
	said(t, l.Steps, "move "+s.config+" to ")
	must(t, s.repaired(t, l))
	s.check(t, want, "after the repair")
	found, err := filepath.Glob(filepath.Join(l.Dir, "found-*"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("set aside: %v", found)
	}
	if text, _ := os.ReadFile(found[0]); string(text) != theirs {
		t.Errorf("set aside: %q", text)
	}
}

func TestPortOfAnotherIsSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t, "exec", 0)
	s.cutOff(t, func(kept, next string, _ *journal.Process) []journal.Record {
		first := foundRunning(kept, nil)
		first.Mode = "exec"
		return []journal.Record{first, intent(next), {Kind: journal.Stopped}}
	})
	l := s.survey(t)
	if l.Remedy != PutBack {
		t.Fatalf("remedy %q", l.Remedy)
	}
	listener, err := net.Listen("tcp", s.At.String())
	must(t, err)
	defer listener.Close()
	var changed *ChangedError
	if err := s.repaired(t, l); !errors.As(err, &changed) {
		t.Errorf("someone took the port since: %v", err)
	}
}

func TestLeftAlone(t *testing.T) {
	t.Parallel()
	closing := func(kept, next string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, p), intent(next)}
	}
	t.Run("another rooftop is on it", func(t *testing.T) {
		s := newSite(t, "attach", 0)
		s.cutOff(t, closing)
		other, err := serverdir.OpenUnfinished(s.serverDir(), "")
		must(t, err)
		defer other.Close()
		l := s.survey(t)
		if l.Remedy != LeaveAlone || s.repaired(t, l) == nil {
			t.Errorf("remedy %q", l.Remedy)
		}
	})
	t.Run("another machine", func(t *testing.T) {
		s := newSite(t, "attach", 0)
		s.cutOff(t, closing)
		id, err := serverdir.ReadIdentity(s.serverDir())
		must(t, err)
		id.Machine = "gpu-7"
		data, err := json.Marshal(id)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(s.serverDir(), "server.json"), data, 0o600))
		l := s.survey(t)
		if l.Remedy != LeaveAlone || !strings.Contains(l.Why, "gpu-7") {
			t.Errorf("remedy %q: %s", l.Remedy, l.Why)
		}
	})
}

func TestLostLaunchCanBeGivenUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 0)
	s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, p), intent(next)}
	})
	for _, name := range names(t, s.serverDir()) {
		if serverdir.IsLaunch(name) {
			must(t, os.Remove(filepath.Join(s.serverDir(), name)))
		}
	}
	l := s.survey(t)
	if l.Remedy != Impossible || !strings.Contains(l.Why, "--leave") {
		t.Fatalf("remedy %q: %s", l.Remedy, l.Why)
	}
	r := Repair{Version: "test"}
	must(t, r.Abandon(l))
	if _, err := serverdir.OpenStore(s.Root, s.identity(), ""); err != nil {
		t.Errorf("the next run: %v", err)
	}
	if gone(s.server.Process.Pid) {
		t.Error("the server was stopped")
	}
}

// programCutOff leaves the journal of a run in which a program made the changes.
func (s *site) programCutOff(t *testing.T, program string, records ...journal.Record) {
	t.Helper()
	store, err := serverdir.OpenStore(s.Root, s.identity(), "test")
	must(t, err)
	l, err := hookLaunch(program)
	must(t, err)
	name, err := store.Keep(l)
	must(t, err)
	must(t, store.Write(journal.Record{Kind: journal.Begin, Mode: "hook", Launch: name}))
	for _, r := range records {
		must(t, store.Write(r))
	}
	must(t, store.Release())
}

// A program that makes changes is called with the revert: all that may be in place,
// once what still runs of it has ended.
func TestProgramTakesBackWhatWasCutOff(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 0) // someone has to answer
	dir := t.TempDir()
	program := filepath.Join(dir, "deploy")
	must(t, programtest.Write(program, []byte("#!/bin/sh\ncat > "+dir+"/got\necho \"$ROOFTOP_REVERT\" > "+dir+"/revert\n")))
	s.programCutOff(t, program,
		journal.Record{Kind: journal.Intent, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}}},
		journal.Record{Kind: journal.Ready},
		journal.Record{Kind: journal.Intent, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "6"}, {Flag: "--block-size", From: "", To: "32"}}},
	)
	left := s.survey(t)
	if left.Remedy != CallManager {
		t.Fatalf("remedy %q: %s", left.Remedy, left.Why)
	}
	must(t, s.repaired(t, left))
	got, err := os.ReadFile(filepath.Join(dir, "got"))
	must(t, err)
	for _, want := range []string{`"revert":true`, `{"flag":"--max-num-seqs","from":"6","to":"4"}`, `{"flag":"--block-size","from":"32","to":""}`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the program got %s, want %s in it", got, want)
		}
	}
	s.clean(t, "after the repair")

	t.Run("which fails", func(t *testing.T) {
		must(t, programtest.Write(program, []byte("#!/bin/sh\necho no route to host; exit 3\n")))
		s.programCutOff(t, program, journal.Record{Kind: journal.Intent, Changes: []engine.Change{{Flag: "--a", To: "1"}}})
		if err := s.repaired(t, s.survey(t)); err == nil || !strings.Contains(err.Error(), "could not be reverted") {
			t.Errorf("got %v", err)
		}
		if again := s.survey(t); again.Remedy != CallManager {
			t.Errorf("afterwards: %q", again.Remedy)
		}
	})
}

// What was being tried answers until it is restarted: a program that says it did is not
// believed.
func TestProgramThatRestartsNothingTakesNothingBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 0)
	program := filepath.Join(t.TempDir(), "deploy")
	must(t, programtest.Write(program, []byte("#!/bin/sh\nexit 0\n")))
	s.programCutOff(t, program,
		journal.Record{Kind: journal.Intent, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}}},
		journal.Record{Kind: journal.Ready},
	)
	r := Repair{Version: "test", Ready: s.ready()}
	r.Ready.Within = time.Second
	if err := r.Do(t.Context(), s.survey(t)); err == nil || !strings.Contains(err.Error(), "could not be reverted: the server was not restarted") {
		t.Errorf("got %v", err)
	}
}

func TestSurveyTouchesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 1)
	s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, p), intent(next)}
	})
	path := filepath.Join(s.serverDir(), "journal.jsonl")
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append(text, `{"torn`...), 0o600))
	before := listing(t, s.dir)
	s.survey(t)
	if after := listing(t, s.dir); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// TestAnUnreadableJournalHidesNoOther: what keeps one journal from being read is said, and the others are surveyed.
func TestAnUnreadableJournalHidesNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, "attach", 1)
	s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, p), intent(next)}
	})
	must(t, os.MkdirAll(filepath.Join(s.Root, "0", "journal.jsonl"), 0o700))
	list, err := Survey(s.Root)
	if err != nil || len(list) != 2 || list[0].Remedy != Impossible || !strings.Contains(list[0].Why, "cannot be read") {
		t.Fatalf("%+v, %v", list, err)
	}
	must(t, s.repaired(t, &list[1]))
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			fmt.Fprintln(&b, path, info.Size(), info.Mode(), info.ModTime())
		}
		return err
	}))
	return b.String()
}

// What is left of a run that was over, or had not begun, is removed.
func TestTidy(t *testing.T) {
	root, id := t.TempDir(), server(t)
	s, err := serverdir.OpenStore(root, id, "test")
	must(t, err)
	_, err = s.Keep(&launcher.Launch{Argv: []string{"a"}, Env: []string{"SECRET=1"}})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(s.Dir(), "x"+".tmp"), nil, 0o600))
	must(t, serverdir.Tidy(root)) // someone is on it
	if got := len(names(t, s.Dir())); got != 7 {
		t.Errorf("%v, want the journal, the lock, the identity, the launch, the room, what is half written, and that no run was begun", names(t, s.Dir()))
	}
	must(t, s.Release())
	must(t, serverdir.Tidy(root))
	if got := names(t, s.Dir()); len(got) != 3 {
		t.Errorf("left behind: %v", got)
	}
}
