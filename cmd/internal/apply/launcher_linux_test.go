package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Limits of a launcher process in tests: one that only a stopped one reaches, and one that only a hang does.
const (
	launcherShort = 200 * time.Millisecond
	launcherLong  = 3 * time.Minute
)

// Steps of a launcher process at which a faulty one is killed or stopped.
const (
	stepStart  = "start"
	stepLaunch = "launch" // it has read the launch
	stepAnswer = "answer" // it has answered
	stepGo     = "go"     // it may become the server
)

var faults = map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGSTOP}

// faultyLauncher kills or stops this process at a step if its program has the name of [faulty]. One that
// is continued after stepStart is a real launcher.
func faultyLauncher() {
	self, _ := os.Readlink("/proc/self/exe")
	fault, step, ok := strings.Cut(filepath.Base(self), "-at-")
	if !ok || !slices.Contains(os.Args, launcher.Flag) {
		return
	}
	runtime.LockOSThread()
	at := func(now string) {
		if now == step { // a signal for this thread takes effect before the next instruction
			_ = unix.Tgkill(os.Getpid(), unix.Gettid(), faults[fault])
		}
	}
	at(stepStart)
	if step == stepStart {
		return
	}
	socket := os.NewFile(3, "launcher")
	orders := json.NewDecoder(socket)
	var order launcher.Order
	_ = orders.Decode(&order)
	at(stepLaunch)
	_ = json.NewEncoder(socket).Encode(launcher.Answer{})
	at(stepAnswer)
	_ = orders.Decode(&order)
	at(stepGo)
	os.Exit(7)
}

// faulty returns the program of a launcher that is killed or stopped at a step.
func faulty(t *testing.T, fault, step string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(program(t)), fault+"-at-"+step)
	must(t, os.Rename(filepath.Join(filepath.Dir(path), "vllm"), path))
	return path
}

// noneLeft checks that no process runs a program of [faulty].
func noneLeft(t *testing.T, h *host, program string) {
	t.Helper()
	tree, err := h.fs.Tree(os.Getpid())
	must(t, err)
	for _, one := range tree {
		if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", one.PID)); exe == program {
			t.Errorf("process %d is a launcher that is left", one.PID)
		}
	}
}

// stopped waits until a process is stopped.
func stopped(h *host, pid int) {
	for {
		if one, err := h.fs.Find(pid); err != nil || one.State == "T" {
			return
		}
		runtime.Gosched()
	}
}

// A launcher that dies or is stopped before the server was stopped has touched nothing; one that does so
// later leaves the server as it was.
func TestALauncherThatDiesOrStops(t *testing.T) {
	for fault := range faults {
		for _, step := range []string{stepStart, stepLaunch, stepAnswer, stepGo} {
			t.Run(fault+" at "+step, func(t *testing.T) {
				t.Parallel()
				e, port := started(t, newNotebook(t), "--max-num-seqs", "4")
				before := stateOf(t, port)
				broken, sound := faulty(t, fault, step), e.self
				set := func(self string, within time.Duration) { e.self, e.launches = self, within }
				limit := launcherLong
				if fault == "stopped" {
					limit = launcherShort
				}
				if step == stepStart || step == stepLaunch { // later ones do not disturb a rehearsal
					set(broken, limit)
					if got := e.Apply(t.Context(), slots(4, 8)); !got.Untouched || !strings.Contains(got.Err, "the launcher (process ") {
						t.Errorf("a rehearsal: %+v", got)
					}
					set(sound, launcherLong)
				}
				e.plan.Progress = func(text string) {
					switch {
					case strings.HasPrefix(text, "stopping"):
						set(broken, limit)
					case strings.HasPrefix(text, "putting"):
						set(sound, launcherLong)
						e.plan.Progress = nil
					}
				}
				got := e.Apply(t.Context(), slots(4, 8))
				why := "it was killed (signal 9"
				if fault == "stopped" {
					why = fmt.Sprintf("did not answer within %v", launcherShort)
				}
				if !got.Back || !strings.Contains(got.Err, why) || !strings.HasSuffix(got.Err, "; it runs as before") {
					t.Errorf("a start: %+v, want back and %q", got, why)
				}
				if after := stateOf(t, port); !slices.Equal(after.Args, before.Args) {
					t.Errorf("the server runs %q, want %q", after.Args, before.Args)
				}
				noneLeft(t, e.host, broken)
			})
		}
	}
}

// A revert whose launchers are all stopped ends too, with a sentence.
func TestALauncherThatStopsInARevert(t *testing.T) {
	t.Parallel()
	e, _ := started(t, newNotebook(t), "--max-num-seqs", "4")
	e.restores = time.Nanosecond // one attempt
	sound, broken := e.self, faulty(t, "stopped", stepStart)
	e.plan.Progress = func(text string) {
		if strings.HasPrefix(text, "stopping") {
			e.self, e.launches = broken, launcherShort
		}
	}
	got := e.Apply(t.Context(), slots(4, 8))
	if got.Back || strings.Count(got.Err, "did not answer within") != 2 || !strings.Contains(got.Err, "and it could not be put back") {
		t.Errorf("%+v", got)
	}
	noneLeft(t, e.host, broken)
	e.plan.Progress, e.self, e.launches = nil, sound, launcherLong
	if got := e.Apply(t.Context(), back()); got.Err != "" {
		t.Errorf("the next revert: %+v", got)
	}
}

// observedNotebook calls started with each process before it becomes the server.
type observedNotebook struct {
	*notebook
	started func(p journal.Process)
}

func (n *observedNotebook) Write(r journal.Record) error {
	if r.Kind == journal.Started && n.started != nil {
		n.started(*r.Process)
	}
	return n.notebook.Write(r)
}

// A launcher that was recorded and does not become the server is ended.
func TestALauncherThatStopsOnceRecorded(t *testing.T) {
	for _, c := range []struct {
		name   string
		revert bool
		do     func(e *Exec, pid int, cancel func())
		want   string // "" if the change is made
	}{
		{"killed", false, func(_ *Exec, pid int, _ func()) { _ = syscall.Kill(pid, syscall.SIGKILL) }, "it was killed (signal 9"},
		{"stopped", false, func(e *Exec, pid int, _ func()) {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			stopped(e.host, pid)
			e.launches = launcherShort
		}, "did not answer within"},
		{"stopped, and the run is canceled", false, func(e *Exec, pid int, cancel func()) {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			stopped(e.host, pid)
			cancel()
		}, "it was canceled"},
		{"slow", false, slowly, ""},
		{"slow, in a revert that cannot be canceled", true, func(e *Exec, pid int, cancel func()) {
			cancel()
			slowly(e, pid, nil)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := &observedNotebook{notebook: newNotebook(t)}
			e, port := started(t, n.notebook, "--max-num-seqs", "4")
			e.plan.Journal, e.launches = n, launcherLong
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			launched := 0
			n.started = func(p journal.Process) {
				launched, n.started = p.PID, nil // the restore is undisturbed
				e.plan.Progress = func(text string) {
					if strings.HasPrefix(text, "putting") {
						e.launches = launcherLong
					}
				}
				c.do(e, p.PID, cancel)
			}
			a, slots := slots(4, 8), "8"
			if c.revert {
				a, slots = back(), "4"
			}
			got := e.Apply(ctx, a)
			if c.want != "" {
				slots = "4"
				if !got.Back || !strings.Contains(got.Err, c.want) || !strings.HasSuffix(got.Err, "; it runs as before") {
					t.Errorf("%+v, want back and %q", got, c.want)
				}
			} else if got.Err != "" {
				t.Errorf("%+v", got)
			}
			if now := slotsOf(stateOf(t, port)); now != slots {
				t.Errorf("the server has %s slots, want %s", now, slots)
			}
			if gone(launched) != (c.want != "") {
				t.Errorf("the launcher (process %d) has ended: %v", launched, gone(launched))
			}
		})
	}
}

// A change that was canceled does not stop the server, and a revert does.
func TestAChangeThatIsCanceledBefore(t *testing.T) {
	t.Parallel()
	e, port := started(t, newNotebook(t), "--max-num-seqs", "4")
	before := stateOf(t, port).PID
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("SIGTERM"))
	got := e.Apply(ctx, slots(4, 8))
	if now := stateOf(t, port).PID; got.Err != "it was canceled; nothing was touched" || !got.Back || !got.Untouched || now != before {
		t.Errorf("%+v; process %d, before %d", got, now, before)
	}
	if got := e.Apply(ctx, back()); got.Err != "" || stateOf(t, port).PID == before {
		t.Errorf("a revert: %+v", got)
	}
}

// slowly stops a launcher, and continues it a little later.
func slowly(e *Exec, pid int, _ func()) {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	stopped(e.host, pid)
	time.AfterFunc(launcherShort, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
}

// A change that is canceled does not wait for a launcher that is stopped, and a launch that does not fit into
// the socket does not either.
func TestALauncherThatDoesNotRead(t *testing.T) {
	t.Parallel()
	h, err := newHost(testGrace)
	must(t, err)
	h.self, h.launches = faulty(t, "stopped", stepStart), launcherLong
	l := &launcher.Launch{Argv: []string{"/bin/true"}, Cwd: "/", Inherit: true, Env: []string{"LONG=" + strings.Repeat("x", 4<<20)}}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the run was ended")
	cancel(why)
	if err := h.rehearse(ctx, l); !errors.Is(err, why) {
		t.Errorf("canceled: %v", err)
	}
	h.launches = launcherShort
	if err := h.rehearse(t.Context(), l); err == nil || !strings.Contains(err.Error(), "did not answer within") {
		t.Errorf("stopped: %v", err)
	}
	h.self, h.launches = faulty(t, "stopped", stepAnswer), launcherLong
	if err := h.rehearse(t.Context(), l); err != nil {
		t.Errorf("stopped after it was ready: %v", err)
	}
	noneLeft(t, h, h.self)
}

// A launcher that is killed, stopped, or stopped and continued as soon as it is seen leaves the server with
// the configuration that was kept or with the change.
func TestALauncherAtAnyInstant(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(signal.String(), func(t *testing.T) {
			e, port := started(t, newNotebook(t), "--max-num-seqs", "4")
			e.launches = launcherLong
			over, hunted := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(hunted)
				for struck := 0; struck < 2; {
					select {
					case <-over:
						return
					default:
					}
					tree, _ := e.fs.Tree(os.Getpid())
					for _, one := range tree {
						if e.isLauncher(one.PID) && one.State != "Z" {
							struck++
							_ = syscall.Kill(one.PID, signal)
							stopped(e.host, one.PID)
							_ = syscall.Kill(one.PID, syscall.SIGCONT)
						}
					}
				}
			}()
			var applied []loop.Applied
			for range 2 {
				applied = append(applied, e.Apply(t.Context(), slots(4, 8)))
			}
			close(over)
			<-hunted
			got := e.Apply(t.Context(), back())
			if now := slotsOf(stateOf(t, port)); got.Err != "" || now != "4" {
				t.Errorf("%+v after %+v, with %s slots", got, applied, now)
			}
		})
	}
}

// A process whose first thread has ended is a zombie that nobody can reap before its other threads end.
func TestStopWaitsForAllThreads(t *testing.T) {
	t.Parallel()
	h, err := newHost(testGrace)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Args = []string{"halfdead"}
	ready, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, _ = ready.Read(make([]byte, 1))
	found, err := h.fs.Find(cmd.Process.Pid)
	must(t, err)
	p := &process{Process: journal.Process{PID: found.PID, Ticks: found.Ticks, Boot: h.boot}, known: map[int]uint64{found.PID: found.Ticks}, ended: make(chan struct{})}
	go func() { _ = cmd.Wait(); p.state = cmd.ProcessState; close(p.ended) }()
	if err := h.stop(p, netip.AddrPort{}, testGrace); err != nil || h.over(p) == "" {
		t.Errorf("stop: %v, ended %q", err, h.over(p))
	}
	if diff := cmp.Diff("it was killed (signal 9; unless someone did it, the machine ran out of memory)", h.over(p)); diff != "" {
		t.Error(diff)
	}
}

// halfDead ends the first thread of this process, and stays.
func halfDead() {
	runtime.LockOSThread()
	signal.Ignore(syscall.SIGTERM)
	go func() {
		for main := fmt.Sprintf("/proc/self/task/%d/stat", os.Getpid()); ; runtime.Gosched() {
			text, _ := os.ReadFile(main)
			if _, rest, _ := strings.Cut(string(text), ") "); strings.HasPrefix(rest, "Z") {
				break
			}
		}
		fmt.Println("ready")
		time.Sleep(time.Hour)
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}
