//go:build e2e && linux

package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
)

// runtimes are the unmodified GGML runtimes of .ci/install-ggml that are always available: llama.cpp v0.5.0, b4753 of
// February 2025, and a stripped one that is linked into a single file.
var runtimes = []string{"npm-new", "npm-old", "npm-static"}

// installed returns the available runtimes: in addition Debian's llama-server, the newest, stripped, with OpenMP and
// in a separate file system, if it could be installed.
func installed(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(ggmlHome(t), "debian", ".complete")); err != nil {
		t.Log("NOT CHECKED: Debian's llama.cpp (.ci/install-ggml could not install it)")
		return runtimes
	}
	return append(slices.Clone(runtimes), "debian")
}

// ggmlHome is the directory that .ci/install-ggml prints.
func ggmlHome(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ROOFTOP_E2E_GGML")
	if dir == "" {
		t.Fatal("ROOFTOP_E2E_GGML is not set: run .ci/install-ggml and give its last line")
	}
	return dir
}

// needsRoot skips a test, with a message, if attaching is impossible.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT CHECKED: operators of real GGML runtimes (attaching takes root here)")
	}
}

// driven is a runtime with a model, which follows commands (.ci/drive-ggml.mjs).
type driven struct {
	pid   int
	model gguf.Shape
	stdin io.WriteCloser
	lines chan string
}

// did is the result of one run.
type did struct {
	Ready    bool    `json:"ready"`
	PID      int     `json:"pid"`
	Prompt   int     `json:"prompt"`
	Tokens   int     `json:"tokens"`
	Distinct int     `json:"distinct"`
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"rate"`
	Hash     string  `json:"hash"`
	Error    string  `json:"error"`
}

// drive starts a runtime with a model, and ends it with the test.
func drive(t *testing.T, runtime string, model gguf.Shape, threads int) *driven {
	t.Helper()
	return driveAs(t, exec.Command, runtime, model, threads)
}

// driveAs is like drive, but makes the command with a given function. The end of its stdin, which is also that of this
// process, ends the runtime.
func driveAs(t *testing.T, command func(string, ...string) *exec.Cmd, runtime string, model gguf.Shape, threads int) *driven {
	t.Helper()
	home := ggmlHome(t)
	script, err := filepath.Abs(filepath.Join("..", "..", ".ci", "drive-ggml.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := command("node", script, filepath.Join(home, runtime), modelFile(t, home, model), strconv.Itoa(threads))
	d := &driven{model: model, lines: make(chan string, 16)}
	if d.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			if strings.HasPrefix(s.Text(), "{") {
				d.lines <- s.Text()
			}
		}
	}()
	t.Cleanup(func() {
		_ = d.stdin.Close()
		for range d.lines { // until it ends
		}
		if err := cmd.Wait(); err != nil {
			end := said.String()
			t.Errorf("%s with %s: %v: …%s", runtime, model.Name, err, end[max(0, len(end)-2000):])
		}
	})
	d.pid = d.answer(t).PID
	return d
}

// modelFile returns a model's file. It writes the file if .ci/install-ggml does not.
func modelFile(t *testing.T, home string, model gguf.Shape) string {
	t.Helper()
	if slices.Contains(gguf.Models(), model) {
		return filepath.Join(home, "models", model.Name+".gguf")
	}
	path := filepath.Join(t.TempDir(), model.Name+".gguf")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gguf.Write(f, model), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// tell sends a command to the runtime; answer waits for its result.
func (d *driven) tell(t *testing.T, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(d.stdin, format+"\n", args...); err != nil {
		t.Fatalf("process %d: %v", d.pid, err)
	}
}

func (d *driven) answer(t *testing.T) did {
	t.Helper()
	select {
	case line, ok := <-d.lines:
		var a did
		if err := json.Unmarshal([]byte(line), &a); !ok || err != nil || a.Error != "" {
			t.Fatalf("process %d says %q (%v); it runs: %v", d.pid, line, err, ok)
		}
		return a
	case <-time.After(2 * time.Minute):
		t.Fatalf("process %d does not answer", d.pid)
	}
	return did{}
}

// run clears the context, processes a prompt, and decodes a number of tokens.
func (d *driven) run(t *testing.T, prompt, tokens int) did {
	t.Helper()
	d.tell(t, "run %d %d", prompt, tokens)
	return d.answer(t)
}
