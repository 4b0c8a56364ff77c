//go:build e2e && linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
)

// engine is a real server that a shell started in its background, so that `$!` is the PID of the shell and not of the
// server.
type engine struct {
	*vllm
	name    string
	wrapper int // PID that `$!` gave: a shell that waits for the server
}

// behind starts "$@" in directory $0, its working directory. The list of two commands makes the shell fork another
// shell for the background; a single command would replace it. The trap ends the server if the whole test binary
// dies.
const behind = `trap 'trap - TERM; kill 0' TERM; cd "$0" && "$@" > server.log 2>&1 & echo $! > wrapper.pid; wait`

func startVLLM(t *testing.T, script string) *engine {
	t.Helper()
	dir := installation(t)
	s := &vllm{at: programtest.Address(t), args: []string{"--max-num-seqs", "16"}}
	python := filepath.Join(dir, "venv", "bin", "python")
	return wrapped(t, &engine{vllm: s, name: "vLLM"}, script, append([]string{python}, s.command(dir)...))
}

func startLlamaCPP(t *testing.T, script string) *engine {
	t.Helper()
	dir := os.Getenv("ROOFTOP_E2E_LLAMACPP")
	if dir == "" {
		t.Fatal("ROOFTOP_E2E_LLAMACPP is not set: run .ci/install-llamacpp and give its last line")
	}
	serve, err := filepath.Abs(filepath.Join("..", "..", ".ci", "serve-llamacpp.py"))
	must(t, err)
	s := &vllm{at: programtest.Address(t)}
	return wrapped(t, &engine{vllm: s, name: "llama.cpp"}, script, []string{
		filepath.Join(dir, "venv", "bin", "python"), serve, filepath.Join(dir, "model.gguf"), s.at.String(),
	})
}

// wrapped starts a command through a shell, and ends all of it at the end of the test.
func wrapped(t *testing.T, e *engine, script string, command []string) *engine {
	t.Helper()
	if _, err := binary(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	e.log, e.gone = filepath.Join(dir, "server.log"), make(chan struct{})
	cmd := exec.Command("bash", append([]string{"-c", script, dir}, command...)...)
	cmd.Dir, cmd.Env = dir, serverEnvironment()
	t.Cleanup(e.stop)
	e.start(t, cmd)
	text := readFile(t, filepath.Join(dir, "wrapper.pid"))
	e.wrapper = number(t, strings.TrimSpace(string(text)))
	if comm, err := os.ReadFile("/proc/" + strconv.Itoa(e.wrapper) + "/comm"); err != nil || string(comm) != "bash\n" {
		t.Fatalf("process %d, that $! named, is %q (%v), want a shell", e.wrapper, comm, err)
	}
	t.Logf("%s: healthy after %.0f s behind shell %d", e.name, e.took.Seconds(), e.wrapper)
	return e
}
