//go:build e2e && linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/porttest"
)

// engine is a real server that a shell started in its background, the way in which
// `$!` names the shell and not the server.
type engine struct {
	*vllm
	name    string
	wrapper int // PID that `$!` gave: a shell that waits for the server
	levels  int // of processes that its tree has at least, the wrapper included
	cgroup  string
}

// behind starts "$@" in directory $0, which it is in already. The list of two
// commands is what makes the shell fork one of its own for the background, where a
// lone command would take its place. As the whole test binary dies, the trap takes the server along.
const behind = `trap 'trap - TERM; kill 0' TERM; cd "$0" && "$@" > server.log 2>&1 & echo $! > wrapper.pid; wait`

// restless is behind with a helper beside the server whose children, each of
// about a tenth of a second of CPU, come and go.
const restless = `trap 'trap - TERM; kill 0' TERM; cd "$0" && {
  while :; do (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done); sleep 0.2; done &
  "$@"
} > server.log 2>&1 & echo $! > wrapper.pid; wait`

// engines returns a start of each engine. Both use every core of a small machine.
func engines(t *testing.T) []func(*testing.T, string) *engine {
	t.Helper()
	return []func(*testing.T, string) *engine{startLlamaCPP, startVLLM}
}

func startVLLM(t *testing.T, script string) *engine {
	t.Helper()
	dir := installation(t)
	s := &vllm{at: porttest.Address(t), args: []string{"--max-num-seqs", "16"}}
	python := filepath.Join(dir, "venv", "bin", "python")
	// Wrapper, API server, EngineCore, Worker.
	return wrapped(t, &engine{vllm: s, name: "vLLM", levels: 4}, script, append([]string{python}, s.command(dir)...))
}

func startLlamaCPP(t *testing.T, script string) *engine {
	t.Helper()
	dir := os.Getenv("ROOFTOP_E2E_LLAMACPP")
	if dir == "" {
		t.Fatal("ROOFTOP_E2E_LLAMACPP is not set: run .ci/install-llamacpp and give its last line")
	}
	serve, err := filepath.Abs(filepath.Join("..", "..", ".ci", "serve-llamacpp.py"))
	if err != nil {
		t.Fatal(err)
	}
	s := &vllm{at: porttest.Address(t)}
	return wrapped(t, &engine{vllm: s, name: "llama.cpp", levels: 2}, script, []string{
		filepath.Join(dir, "venv", "bin", "python"), serve, filepath.Join(dir, "model.gguf"), s.at.String(),
	})
}

// wrapped starts a command through a shell, in a control group of its own where
// this machine lets us, and ends all of it at the end of the test.
func wrapped(t *testing.T, e *engine, script string, command []string) *engine {
	t.Helper()
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	e.log, e.gone = filepath.Join(dir, "server.log"), make(chan struct{})
	cmd := exec.Command("bash", append([]string{"-c", script, dir}, command...)...)
	cmd.Dir, cmd.Env = dir, serverEnvironment()
	if group := newCgroup(t); group != nil {
		e.cgroup = group.Name()
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	}
	t.Cleanup(e.stop)
	e.start(t, cmd)
	text, err := os.ReadFile(filepath.Join(dir, "wrapper.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if e.wrapper, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		t.Fatal(err)
	}
	if comm, err := os.ReadFile("/proc/" + strconv.Itoa(e.wrapper) + "/comm"); err != nil || string(comm) != "bash\n" {
		t.Fatalf("process %d, that $! named, is %q (%v), want a shell", e.wrapper, comm, err)
	}
	t.Logf("%s: healthy after %.0f s behind shell %d", e.name, e.took.Seconds(), e.wrapper)
	return e
}

// newCgroup makes a control group of version 2, to be removed when its processes
// are gone. It is nil where we cannot: then what it would have shown is said not to
// be checked.
func newCgroup(t *testing.T) *os.File {
	t.Helper()
	// The second is where both versions are mounted side by side.
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
			continue
		}
		dir := filepath.Join(root, "rooftop-e2e-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatInt(time.Now().UnixNano(), 36))
		if err := os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		t.Cleanup(func() {
			// Processes that ended leave it a moment later.
			for deadline := time.Now().Add(stopTimeout); os.Remove(dir) != nil; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Errorf("control group %s is still in use", dir)
					return
				}
			}
		})
		group, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = group.Close() })
		return group
	}
	return nil
}
