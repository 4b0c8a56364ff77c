package apply

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
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
	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// elsewhere is a server that someone else started.
type elsewhere struct {
	at      netip.AddrPort
	process *process
	log     string
}

// begun starts a fake server with a launch, its output going to a file, and waits
// until it listens.
func begun(t *testing.T, l *launcher.Launch) *elsewhere {
	t.Helper()
	return begunBy(t, l, program(t))
}

func begunBy(t *testing.T, l *launcher.Launch, program string) *elsewhere {
	t.Helper()
	h, err := newHost(testGrace)
	must(t, err)
	s := &elsewhere{at: programtest.Address(t), log: filepath.Join(t.TempDir(), "vllm.log")}
	l.Argv = command(program, s.at, l.Argv...)
	must(t, os.WriteFile(s.log, []byte("what was there before\n"), 0o644))
	log, err := os.OpenFile(s.log, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer log.Close()
	if s.process, err = h.start(t.Context(), l, [3]*os.File{nil, log, log}, nil, func(journal.Process) error { return nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pids, _, err := h.fs.Holders(s.at); err == nil {
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		for _, one := range h.alive(s.process) { // its number may be another process's by now
			h.send(one, syscall.SIGKILL)
		}
	})
	waitForPort(t, s.at)
	return s
}

func waitForPort(t *testing.T, at netip.AddrPort) {
	t.Helper()
	until(t, "the fake server listens", func() bool {
		c, err := net.Dial("tcp", at.String())
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// found is the server at an address as rooftop finds it.
func found(t *testing.T, at netip.AddrPort) *proc.Server {
	t.Helper()
	fs, err := proc.Open("/proc")
	must(t, err)
	s, err := fs.Discover([]netip.Addr{at.Addr()}, nil, at.Port())
	must(t, err)
	return s
}

func attached(t *testing.T, at netip.AddrPort, n *notebook) *Attach {
	t.Helper()
	a, err := NewAttach(found(t, at), testPlan(n))
	must(t, err)
	a.returnWithin = 100 * time.Millisecond // the parent, this test, starts nothing
	t.Cleanup(func() {
		_ = a.down()
		_ = a.Close()
	})
	return a
}

func TestAttachRestartsExactly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := &launcher.Launch{
		Argv: []string{"--max-num-seqs", "4", ""}, Env: []string{"B=2", "A=1", "EMPTY=", "HF_TOKEN=hf_secretsecretsecretsecret", "LINES=a\nb"}, Cwd: dir,
		Owner: launcher.Owner{UID: os.Geteuid(), GID: os.Getegid(), Groups: groups(t)}, Limit: map[string][2]int64{"core": {0, 4096}},
		Nice: 3, Umask: 0o027, OOMScoreAdj: 77, CPUs: "0",
	}
	s := begun(t, l)
	before := stateOf(t, s.at)
	n := newNotebook(t)
	a := attached(t, s.at, n)
	around := surroundings(t, before.PID)
	mustApply(t, a, slots(4, 8))
	during := stateOf(t, s.at)
	mustApply(t, a, back())
	after := stateOf(t, s.at)
	if slotsOf(during) != "8" || !gone(before.PID) || !gone(during.PID) {
		t.Errorf("with the change %q", during.Args)
	}
	for _, got := range []fakeState{during, after} {
		want := before
		want.PID, want.Group = got.PID, got.PID
		if got.PID == during.PID {
			want.Args, got.Env = got.Args, unmarked(got.Env)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after a restart (-before +after):\n%s", diff)
		}
	}
	if diff := cmp.Diff(around, surroundings(t, after.PID)); diff != "" {
		t.Errorf("surroundings (-before +after):\n%s", diff)
	}
	if before.Nice != 3 || before.Umask != 0o027 || before.Files != [2]uint64{0, 4096} || before.Score != "77" || before.CPUs != 1 || len(before.Env) != 5 {
		t.Errorf("the first start was given %+v, not what the test asks for", before)
	}
	text, err := os.ReadFile(s.log)
	must(t, err)
	if !bytes.HasPrefix(text, []byte("what was there before\n")) || bytes.Count(text, []byte("API server version")) != 3 {
		t.Errorf("the log, which is to be appended to:\n%s", text)
	}
	want := []string{"begin 0", "intent 1", "stopped 0", "started 1", "ready 1", "intent 0", "stopped 1", "started 0", "back 0"}
	if diff := cmp.Diff(want, n.kinds()); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if n.records[0].Process.PID != before.PID {
		t.Errorf("first record names process %d, want %d", n.records[0].Process.PID, before.PID)
	}
}

// surroundings are those of a process that another start is to have too.
func surroundings(t *testing.T, pid int) proc.Surroundings {
	t.Helper()
	fs, err := proc.Open("/proc")
	must(t, err)
	s, err := fs.Surroundings(pid)
	must(t, err)
	s.Session, s.InnerPID = 0, 0
	return s
}

// A server of another user is restarted as that user.
func TestAttachKeepsTheUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: that a server of another user is restarted as that user; only root can start one")
	}
	const nobody = 65534
	l := &launcher.Launch{Argv: []string{"--max-num-seqs", "4"}, Env: []string{"A=1"}, Cwd: "/", Owner: launcher.Owner{UID: nobody, GID: nobody, Groups: []int{nobody, 4242}}, Umask: 0o077, CPUs: ""}
	s := begunBy(t, l, openProgram(t))
	a := attached(t, s.at, newNotebook(t))
	mustApply(t, a, slots(4, 8))
	if got := surroundings(t, stateOf(t, s.at).PID); got.UID != nobody || got.GID != nobody || got.Mixed || !slices.Equal(got.Groups, []int{4242, nobody}) {
		t.Errorf("user %d, group %d, groups %v", got.UID, got.GID, got.Groups)
	}
}

// openProgram is the fake server's program where any user can start it.
func openProgram(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rooftop-open-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data, err := os.ReadFile(program(t))
	must(t, err)
	path := filepath.Join(dir, "vllm")
	for _, err := range []error{os.Chmod(dir, 0o755), programtest.Write(path, data)} {
		must(t, err)
	}
	return path
}

func groups(t *testing.T) []int {
	t.Helper()
	list, err := os.Getgroups()
	must(t, err)
	return list
}

// usual is a launch without anything particular.
func usual(t *testing.T, args ...string) *launcher.Launch {
	return &launcher.Launch{Argv: args, Env: []string{"PATH=/bin"}, Cwd: t.TempDir(), Inherit: true, Umask: -1}
}

const configText = "# how we serve\nmax-num-seqs: 4   # slots\n\n# the rest\nmax-model-len: 2048\n"

// The config file is changed where the setting stands, through the link that leads
// to it, and is put back byte for byte with mode and time.
func TestAttachChangesTheConfigFile(t *testing.T) {
	t.Parallel()
	l := usual(t, "--config", "conf/server.yaml")
	real := filepath.Join(l.Cwd, "real.yaml")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, err := range []error{
		os.WriteFile(real, []byte(configText), 0o640), os.Chtimes(real, old, old),
		os.Mkdir(filepath.Join(l.Cwd, "conf"), 0o755), os.Symlink("../real.yaml", filepath.Join(l.Cwd, "conf", "server.yaml")),
	} {
		must(t, err)
	}
	s := begun(t, l)
	a := attached(t, s.at, newNotebook(t))
	mustApply(t, a, slots(4, 8))
	want := strings.Replace(configText, "max-num-seqs: 4", "max-num-seqs: 8", 1)
	if got := stateOf(t, s.at); got.Config != want || slices.Contains(got.Args, "--max-num-seqs") {
		t.Errorf("the server read %q with %q", got.Config, got.Args)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v, want it kept", info.Mode(), err)
	}
	if got := a.Apply(t.Context(), slots(4, slotsRefused)); !got.Back {
		t.Fatalf("answer %+v", got)
	}
	f, err := launcher.ReadFile(real)
	if err != nil || string(f.Data) != configText || f.Mode != 0o640 || !f.Time.Equal(old) {
		t.Errorf("put back: %q, mode %o, %v (%v), want it as it was at %v", f.Data, f.Mode, f.Time, err, old)
	}
	if target, err := os.Readlink(filepath.Join(l.Cwd, "conf", "server.yaml")); err != nil || target != "../real.yaml" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if list, err := os.ReadDir(l.Cwd); err != nil || len(list) != 2 {
		t.Errorf("%v, %v, want no more files than there were", list, err)
	}
	// Someone else's edit is not overwritten.
	must(t, os.WriteFile(real, []byte("max-num-seqs: 5\n"), 0o640))
	if got := a.Apply(t.Context(), slots(4, 8)); !strings.Contains(got.Err, "someone else changed") || !got.Back {
		t.Errorf("answer %+v, want the edit respected", got)
	}
}

func TestAttachOverridesAFileThatCannotBeReplaced(t *testing.T) {
	t.Parallel()
	l := usual(t, "--config", "server.yaml")
	path := filepath.Join(l.Cwd, "server.yaml")
	old := time.Now().Add(-time.Hour)
	for _, err := range []error{
		os.WriteFile(path, []byte(configText), 0o644), os.Chtimes(path, old, old), os.Link(path, filepath.Join(l.Cwd, "another name")),
	} {
		must(t, err)
	}
	s := begun(t, l)
	a := attached(t, s.at, newNotebook(t))
	mustApply(t, a, slots(4, 8))
	if got := stateOf(t, s.at); got.Config != configText || slotsOf(got) != "8" {
		t.Errorf("the server read %q with %q, want the file alone and the flag", got.Config, got.Args)
	}
}

func TestAttachChangesAVariable(t *testing.T) {
	t.Parallel()
	l := usual(t)
	l.Env = []string{"VLLM_ATTENTION_BACKEND=FLASH_ATTN", "VLLM_X=1", "LAST=1"}
	s := begun(t, l)
	a := attached(t, s.at, newNotebook(t))
	got := a.Apply(t.Context(), loop.Apply{Changes: []engine.Change{
		{Flag: "--attention-backend", From: "FLASH_ATTN", To: "FLASHINFER"}, {Flag: "VLLM_X", From: "1"}, {Flag: "VLLM_Y", To: "2"},
	}})
	if got.Err != "" {
		t.Fatal(got.Err)
	}
	if diff := cmp.Diff([]string{"VLLM_ATTENTION_BACKEND=FLASHINFER", "LAST=1", "VLLM_Y=2"}, unmarked(stateOf(t, s.at).Env)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// A stream that is a pipe goes on: the reader sees no end.
func TestAttachKeepsAPipe(t *testing.T) {
	t.Parallel()
	h, err := newHost(testGrace)
	must(t, err)
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	l := usual(t, "--max-num-seqs", "4")
	at := programtest.Address(t)
	l.Argv = command(program(t), at, l.Argv...)
	if _, err := h.start(t.Context(), l, [3]*os.File{nil, w, w}, nil, func(journal.Process) error { return nil }); err != nil {
		t.Fatal(err)
	}
	w.Close()
	waitForPort(t, at)
	a := attached(t, at, newNotebook(t))
	mustApply(t, a, slots(4, 8))
	must(t, r.SetReadDeadline(time.Now().Add(hang)))
	text := make([]byte, 4096)
	seen := 0
	for seen < 2 {
		n, err := r.Read(text)
		if err != nil {
			t.Fatalf("the pipe ended after %d starts: %v", seen, err)
		}
		seen += bytes.Count(text[:n], []byte("API server version"))
	}
}

// A server on the same port at another address is another server.
func TestAttachLeavesAnotherAddressAlone(t *testing.T) {
	t.Parallel()
	s := begun(t, usual(t, "--max-num-seqs", "4"))
	bytes := s.at.Addr().As4()
	bytes[1] |= 0x80 // no test process has such an address
	other, err := net.Listen("tcp", netip.AddrPortFrom(netip.AddrFrom4(bytes), s.at.Port()).String())
	must(t, err)
	defer other.Close()
	a := attached(t, s.at, newNotebook(t))
	for _, change := range []loop.Apply{slots(4, 8), back()} {
		if got := a.Apply(t.Context(), change); got.Err != "" {
			t.Errorf("answer %+v", got)
		}
	}
	list, _, err := a.fs.Holders(netip.MustParseAddrPort(other.Addr().String()))
	if err != nil || !slices.Equal(list, []int{os.Getpid()}) {
		t.Errorf("the other is held by %v, %v", list, err)
	}
}

// A server that something starts again by itself is left to that.
func TestAttachLeavesAServerThatComesBack(t *testing.T) {
	t.Parallel()
	at := programtest.Address(t)
	script := fmt.Sprintf("for i in 1 2; do %s; done", strings.Join(command(program(t), at, "--max-num-seqs", "4"), " "))
	loop := exec.Command("sh", "-c", script)
	loop.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, loop.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-loop.Process.Pid, syscall.SIGKILL)
		_ = loop.Wait()
	})
	waitForPort(t, at)
	before := stateOf(t, at)
	n := newNotebook(t)
	a := attached(t, at, n)
	a.returnWithin = hang
	if len(a.Notes()) != 1 || !strings.Contains(a.Notes()[0], "a script (sh, process ") {
		t.Errorf("notes %q, want one of the script", a.Notes())
	}
	got := a.Apply(t.Context(), slots(4, 8))
	if !got.Back || !strings.Contains(got.Err, "--apply-cmd") {
		t.Errorf("answer %+v, want the shell's server left alone", got)
	}
	if after := stateOf(t, at); after.PID == before.PID || slotsOf(after) != "4" {
		t.Errorf("afterwards process %d with %q", after.PID, after.Args)
	}
	if got := a.Apply(t.Context(), slots(4, 8)); !strings.Contains(got.Err, "nothing was touched") {
		t.Errorf("answer %+v, want no other try", got)
	}
	if s := journal.Reduce(n.records); !s.Settled() {
		t.Errorf("the journal leaves %v", s.Stage)
	}
	a.returnWithin = 0 // the loop is over
}

func TestAttachRefuses(t *testing.T) {
	me := os.Geteuid()
	good := proc.Surroundings{UID: me, InnerPID: 4242, PPID: 1, Session: 4242}
	server := found(t, begun(t, usual(t)).at)
	above := func(name string, argv ...string) []proc.Ancestor {
		return []proc.Ancestor{{PID: 7, Name: name, Argv: argv, Session: 7}, {PID: 1, Name: "systemd"}}
	}
	for _, c := range []struct {
		name string
		got  string
		want string
	}{
		{"nothing", readable(server, &good), ""},
		{"program replaced", readable(server, &proc.Surroundings{UID: me, Exe: "/usr/bin/python3", Gone: true}), "/usr/bin/python3, was replaced"},
		{"directory removed", readable(server, &proc.Surroundings{UID: me, Dropped: true}), "working directory"},
		{"several users", readable(server, &proc.Surroundings{UID: me, Mixed: true}), "several users"},
		{"first of a container", contained(server.FS(), server.LaunchPID, &proc.Surroundings{InnerPID: 1}), "main process of its container"},
		{"docker", contained(server.FS(), server.LaunchPID, &proc.Surroundings{InnerPID: 9, Cgroups: []string{"/docker/abc"}}), "in a container"},
		{"supervisord", supervised(above("supervisord"), nil, &good), "process 7 (supervisord)"},
		{"supervisord in Python", supervised(above("python3", "/usr/bin/python3", "/usr/bin/supervisord", "-n"), nil, &good), "(supervisord)"},
		{"pm2", supervised(above("PM2 v5.3.0: God", "PM2 v5.3.0: God Daemon (/root/.pm2)"), nil, &good), "(PM2)"},
		{"tune of another rooftop", supervised(above("rooftop", "rooftop", "tune", "--auto"), nil, &good), "(rooftop)"},
		{"demo of rooftop", supervised(above("rooftop", "rooftop", "demo"), nil, &good), ""},
		{"started rooftop too", supervised(append(above("bash", "bash"), proc.Ancestor{PID: 9, Name: "timeout"}), []proc.Ancestor{{PID: 9, Name: "timeout"}}, &good), ""},
		{"timeout alone", supervised(append(above("bash", "bash"), proc.Ancestor{PID: 9, Name: "timeout"}), nil, &good), "(timeout)"},
		{"shell", supervised(above("bash", "bash"), nil, &good), ""},
		{"orphan", supervised([]proc.Ancestor{{PID: 1, Name: "systemd", Session: 1}}, nil, &good), ""},
		{"entry point", supervised([]proc.Ancestor{{PID: 1, Name: "bash", Session: 4242}}, nil, &good), "process 1 (bash)"},
		{"tini", supervised([]proc.Ancestor{{PID: 1, Name: "tini", Session: 1}}, nil, &good), "(tini)"},
	} {
		if (c.want == "") != (c.got == "") || !strings.Contains(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestNewAttachRefuses(t *testing.T) {
	t.Parallel()
	t.Run("working directory removed", func(t *testing.T) {
		l := usual(t)
		s := begun(t, l)
		must(t, os.RemoveAll(l.Cwd))
		refused := new(RefusedError)
		if _, err := NewAttach(found(t, s.at), testPlan(newNotebook(t))); !errors.As(err, &refused) || !strings.Contains(err.Error(), "working directory") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("program replaced", func(t *testing.T) {
		l := usual(t)
		s := begun(t, l)
		must(t, os.Remove(l.Argv[0]))
		if _, err := NewAttach(found(t, s.at), testPlan(newNotebook(t))); err == nil || !strings.Contains(err.Error(), "was replaced since it started") {
			t.Errorf("error %v", err)
		}
	})
	for how, replace := range map[string]func(path string) error{
		"program replaced in mid-run": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), programtest.Write(path, []byte("#!/bin/false\n")))
		},
		"program removed in mid-run": os.Remove,
	} {
		t.Run(how, func(t *testing.T) {
			s := begun(t, usual(t, "--max-num-seqs", "4"))
			a := attached(t, s.at, newNotebook(t))
			before, path := stateOf(t, s.at).PID, a.kept.Argv[0]
			must(t, replace(path))
			if got := a.Apply(t.Context(), slots(4, 8)); !got.Untouched || !got.Back || !strings.Contains(got.Err, path+" was replaced or removed") || stateOf(t, s.at).PID != before {
				t.Errorf("%+v by process %d, want %d untouched", got, stateOf(t, s.at).PID, before)
			}
		})
	}
	t.Run("confined", func(t *testing.T) {
		l := usual(t)
		var s *elsewhere
		ofItsOwnThread(func() {
			must(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			s = begun(t, l)
		})
		if _, err := NewAttach(found(t, s.at), testPlan(newNotebook(t))); err == nil || !strings.Contains(err.Error(), "other rights than a restart would give it (NoNewPrivs 1, rooftop's is 0)") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("config changed since", func(t *testing.T) {
		l := usual(t, "--config", "server.yaml")
		path := filepath.Join(l.Cwd, "server.yaml")
		must(t, os.WriteFile(path, []byte(configText), 0o644))
		s := begun(t, l)
		later := time.Now().Add(time.Minute)
		must(t, os.Chtimes(path, later, later))
		if _, err := NewAttach(found(t, s.at), testPlan(newNotebook(t))); err == nil || !strings.Contains(err.Error(), "was changed after the server started") {
			t.Errorf("error %v", err)
		}
	})
}

// The log that was renamed away is the one that the server goes on writing to, and
// the one that reasons are read from.
func TestAttachFollowsARotatedLog(t *testing.T) {
	t.Parallel()
	s := begun(t, usual(t, "--max-num-seqs", "4"))
	a := attached(t, s.at, newNotebook(t))
	must(t, os.Rename(s.log, s.log+".1"))
	must(t, os.WriteFile(s.log, nil, 0o644))
	if got := a.Apply(t.Context(), slots(4, slotsOutOfMemory)); !got.Back || !strings.Contains(got.Err, "CUDA out of memory") {
		t.Errorf("answer %+v, want the reason from the log", got)
	}
}

func TestAttachSeesACrash(t *testing.T) {
	t.Parallel()
	s := begun(t, usual(t, "--max-num-seqs", "4"))
	a := attached(t, s.at, newNotebook(t))
	mustApply(t, a, slots(4, 8))
	must(t, syscall.Kill(stateOf(t, s.at).PID, crash))
	until(t, "the crash is seen", func() bool { return a.Trouble() != "" })
	if got := a.Trouble(); !strings.Contains(got, "CUDA error: an illegal memory access") {
		t.Errorf("trouble %q", got)
	}
	if got := a.Apply(t.Context(), back()); got.Err != "" || !strings.Contains(got.Ended, "illegal memory access") {
		t.Fatalf("answer %+v, want why the server had ended", got)
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	l := usual(t, "--max-num-seqs", "4", "--api-key", "sk-abcdefghijklmnopqrstuvwxyz")
	s := begun(t, l)
	a := attached(t, s.at, newNotebook(t))
	text := strings.Join(a.Steps(slots(4, 8)), "\n")
	for _, want := range []string{"SIGTERM", "--max-num-seqs 8", "--max-num-seqs 4", "/health", "[redacted]"} {
		if !strings.Contains(text, want) {
			t.Errorf("steps lack %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "sk-abc") {
		t.Errorf("steps hold a secret:\n%s", text)
	}
}

// ofItsOwnThread calls do in a thread that ends with it, which the first one of a process cannot.
func ofItsOwnThread(do func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			ofItsOwnThread(do)
		} else {
			do()
		}
		close(done)
	}()
	<-done
}
