package apply

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// A server with the same words that ran before the stop did not start it again.
func TestAttachTellsATwinFromAComeback(t *testing.T) {
	t.Parallel()
	l := usual(t)
	s := begun(t, l)
	twin := &exec.Cmd{Path: l.Argv[0], Args: l.Argv, Env: []string{"FAKE=absent"}}
	must(t, twin.Start())
	t.Cleanup(func() {
		_ = twin.Process.Kill()
		_ = twin.Wait()
	})
	a := attached(t, s.at, newNotebook(t))
	if got := a.Apply(t.Context(), slots(4, 8)); got.Err != "" {
		t.Fatalf("answer %+v", got)
	}
	if got := a.Apply(t.Context(), back()); got.Err != "" {
		t.Fatalf("revert %+v", got)
	}
	if got := stateOf(t, s.at); gone(twin.Process.Pid) || !slices.Equal(got.Args, l.Argv) {
		t.Errorf("the twin is gone: %v, the server runs %q", gone(twin.Process.Pid), got.Args)
	}
}

// TestAStrangersTwinIsNoComeback: any user can start a process with the words of a server, and answer in its place.
func TestAStrangersTwinIsNoComeback(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: that another user's process is not taken for the server; only root can start one")
	}
	l := usual(t, "--max-num-seqs", "4")
	s := begunBy(t, l, openProgram(t))
	a := attached(t, s.at, newNotebook(t))
	stranger := &exec.Cmd{Path: l.Argv[0], Args: l.Argv, Dir: "/", Env: []string{"FAKE=absent"}}
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65533, Gid: 65533}}
	a.plan.Progress = func(step string) {
		if stranger.Process == nil && strings.HasPrefix(step, "checking") {
			must(t, stranger.Start())
		}
	}
	t.Cleanup(func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	})
	if got := a.Apply(t.Context(), slots(4, 8)); got.Err != "" || stranger.Process == nil {
		t.Errorf("answer %+v", got)
	}
}

// A loop that goes on while rooftop's own server is starting is seen: that one makes way.
func TestAttachMakesWayForAServerThatComesBackLater(t *testing.T) {
	t.Parallel()
	at := programtest.Address(t)
	vllm := strings.Join(command(program(t), at, "--max-num-seqs", "4"), " ")
	goOn := filepath.Join(t.TempDir(), "go on")
	script := fmt.Sprintf("%[1]s; until [ -e '%[2]s' ]; do sleep 0.02; done; FAKE=late %[1]s", vllm, goOn)
	loop := exec.Command("sh", "-c", script)
	loop.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, loop.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-loop.Process.Pid, syscall.SIGKILL)
		_ = loop.Wait()
	})
	waitForPort(t, at)
	n := newNotebook(t)
	a := attached(t, at, n)
	a.plan.Progress = func(step string) {
		if strings.HasPrefix(step, "waiting") {
			must(t, os.WriteFile(goOn, nil, 0o600))
		}
	}
	got := a.Apply(t.Context(), slots(4, slotsHangAsked))
	if !got.Back || !strings.Contains(got.Err, "--apply-cmd") {
		t.Fatalf("answer %+v, want the shell's server left alone", got)
	}
	after := stateOf(t, at)
	around := surroundings(t, after.PID)
	if around.PPID != loop.Process.Pid || slotsOf(after) != "4" {
		t.Errorf("process %d of %d with %q answers, want the shell's", after.PID, around.PPID, after.Args)
	}
	for _, r := range n.records {
		if r.Kind == journal.Started && !gone(r.Process.PID) {
			t.Errorf("process %d, which rooftop started, is left", r.Process.PID)
		}
	}
	if s := journal.Reduce(n.records); !s.Settled() {
		t.Errorf("the journal leaves %v", s.Stage)
	}
}

// What came back while the change stood in the config file is not said to run as before.
func TestAttachDoesNotVouchForAServerThatReadTheChange(t *testing.T) {
	t.Parallel()
	l := usual(t, "--config", "server.yaml")
	path := filepath.Join(l.Cwd, "server.yaml")
	old := time.Now().Add(-time.Hour)
	for _, err := range []error{os.WriteFile(path, []byte(configText), 0o644), os.Chtimes(path, old, old)} {
		must(t, err)
	}
	s := begun(t, l)
	a := attached(t, s.at, newNotebook(t))
	twin := &exec.Cmd{Path: l.Argv[0], Args: l.Argv, Dir: l.Cwd, Env: []string{"FAKE=late"}}
	a.plan.Progress = func(step string) {
		if twin.Process == nil && strings.HasPrefix(step, "waiting") {
			must(t, twin.Start())
		}
	}
	t.Cleanup(func() {
		_ = twin.Process.Kill()
		_ = twin.Wait()
	})
	got := a.Apply(t.Context(), slots(4, slotsHangAsked))
	if got.Back || !strings.Contains(got.Err, "may run with settings other") {
		t.Errorf("answer %+v, want it said that the change may be in place", got)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != configText {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if gone(twin.Process.Pid) {
		t.Error("the other server was stopped")
	}
}
