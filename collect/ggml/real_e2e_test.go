//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// real is a real runtime with a loaded model that takes orders by line (.ci/drive-ggml.mjs).
type real struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// ggmlHome returns the folder of .ci/install-ggml's runtimes and models.
func ggmlHome() string {
	if dir := os.Getenv("ROOFTOP_E2E_GGML"); dir != "" {
		return dir
	}
	home := os.Getenv("ROOFTOP_E2E_HOME")
	if home == "" {
		cache, _ := os.UserCacheDir()
		home = filepath.Join(cache, "rooftop-e2e")
	}
	return filepath.Join(home, "ggml-1")
}

// startReal starts a runtime of .ci/install-ggml, or skips the test with a message.
func startReal(t *testing.T, name, model string, threads int) *real {
	t.Helper()
	needRoot(t)
	runtime, file := filepath.Join(ggmlHome(), name), filepath.Join(ggmlHome(), "models", model)
	script := filepath.Join("..", "..", ".ci", "drive-ggml.mjs")
	for _, need := range []string{runtime, file, script} {
		if _, err := os.Stat(need); err != nil {
			t.Skipf("NOT CHECKED: a real runtime (%s is missing; .ci/install-ggml gets it)", need)
		}
	}
	cmd := exec.Command("node", script, runtime, file, strconv.Itoa(threads))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("NOT CHECKED: a real runtime (%v)", err)
	}
	r := &real{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	r.answer(t)
	return r
}

// answer returns the next line of JSON.
func (r *real) answer(t *testing.T) string {
	t.Helper()
	for r.out.Scan() {
		if line := r.out.Text(); strings.HasPrefix(line, "{") {
			return line
		}
	}
	t.Fatalf("the runtime ended: %v", r.out.Err())
	return ""
}

// say sends an order and waits until it is done.
func (r *real) say(t *testing.T, order string) string {
	t.Helper()
	if _, err := io.WriteString(r.in, order+"\n"); err != nil {
		t.Fatal(err)
	}
	return r.answer(t)
}

// attach traces the runtime at a detail.
func (r *real) attach(t *testing.T, d optrace.Detail) *Session {
	t.Helper()
	found, err := binary.FromProcess(r.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(found, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.SetDetail(d); err != nil {
		t.Fatal(err)
	}
	return s
}

// collect returns the events until there are none for a while.
func collect(t *testing.T, s *Session, quiet time.Duration) []optrace.Event {
	t.Helper()
	var all []optrace.Event
	for {
		ctx, cancel := context.WithTimeout(context.Background(), quiet)
		events, err := s.Next(ctx)
		cancel()
		all = append(all, events...)
		if err != nil {
			return all
		}
	}
}
