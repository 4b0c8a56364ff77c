package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// TestScripts runs the command lines of testdata/script: flags, exit codes, documents and errors.
// The additional commands of scripts are
//
//	rooftop CODE ARGS...   runs it, expects the exit code; output in stdout and stderr
//	signal NAME TEXT CODE ARGS...
//	                       runs it until it has printed TEXT, then sends it a signal
//	serve FILE [STATUS]    serves a file as the metrics page; $URL is its address
//	sim ARGS...            runs rooftop sim to the script's end; $URL is its address
//	oneline                the file stderr has one line
func TestScripts(t *testing.T) {
	recordings, err := filepath.Abs(filepath.Join("..", "..", "testdata", "recordings"))
	must(t, err)
	schemas, err := filepath.Abs(filepath.Join("..", "..", "testdata", "schema"))
	must(t, err)
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("..", "..", "testdata", "script"),
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("RECORDINGS", recordings)
			e.Setenv("SCHEMAS", schemas)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"rooftop": scriptRooftop,
			"signal":  scriptSignal,
			"serve":   scriptServe,
			"sim":     scriptSim,
			"oneline": scriptOneLine,
		},
	})
}

func scriptRooftop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: rooftop CODE ARGS...")
	}
	var stdout, stderr bytes.Buffer
	scriptCall(ts, args[0], args[1:], &stdout, &stderr, run)
}

// scriptSignal sends a signal to a command after stdout or stderr contains a text.
func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP}
	if neg || len(args) < 3 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal INT|TERM|HUP TEXT CODE ARGS...")
	}
	limit, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	ctx, cancel := context.WithCancelCause(limit)
	defer cancel(nil)
	told := func() { cancel(&cli.SignalError{Signal: signals[args[0]]}) }
	stdout, stderr := &watched{text: args[1], seen: told}, &watched{text: args[1], seen: told}
	scriptCall(ts, args[2], args[3:], stdout, stderr, func(w cli.World) cli.ExitCode { return execute(ctx, w) })
}

// watched is a buffer that signals when it contains a text. Writes may come from several
// goroutines, reads only after them.
type watched struct {
	mu   sync.Mutex
	held bytes.Buffer
	text string
	seen func()
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.held.Write(p)
	if strings.Contains(w.held.String(), w.text) {
		w.seen()
	}
	return n, err
}

// Bytes returns the written bytes.
func (w *watched) Bytes() []byte { return w.held.Bytes() }

// printed is the output of a command.
type printed interface {
	io.Writer
	Bytes() []byte
}

// scriptCall runs a command line in a script, stores its output in the files stdout and stderr, and
// checks the exit code.
func scriptCall(ts *testscript.TestScript, code string, words []string, stdout, stderr printed, run func(cli.World) cli.ExitCode) {
	want, err := strconv.Atoi(code)
	ts.Check(err)
	// Paths in a script are relative to its own folder, not to this process's.
	for i, a := range words {
		if path := ts.MkAbs(a); !strings.HasPrefix(a, "-") && exists(path) {
			words[i] = path
		}
	}
	got := run(cli.World{
		Args:   words,
		Env:    func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" },
		Stdout: stdout, Stderr: stderr,
	})
	ts.Check(os.WriteFile(ts.MkAbs("stdout"), stdout.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("stderr"), stderr.Bytes(), 0o600))
	if int(got) != want {
		ts.Fatalf("rooftop %s: exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", strings.Join(words, " "), got, want, stdout.Bytes(), stderr.Bytes())
	}
	if bytes.Contains(stderr.Bytes(), []byte("internal error")) {
		ts.Fatalf("rooftop %s panicked: %s", strings.Join(words, " "), stderr.Bytes())
	}
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func scriptServe(ts *testscript.TestScript, _ bool, args []string) {
	body := []byte(ts.ReadFile(args[0]))
	status := http.StatusOK
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		ts.Check(err)
		status = n
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	ts.Defer(s.Close)
	ts.Setenv("URL", s.URL)
}

// scriptSim runs a simulated server beside the script, until the script ends.
func scriptSim(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: sim ARGS...")
	}
	s := startSim(args...)
	ts.Defer(func() {
		if code := s.stop(); code != 128+cli.ExitCode(syscall.SIGTERM) {
			ts.Logf("rooftop sim ended with exit code %d", code)
		}
	})
	url, err := s.ready()
	ts.Check(os.WriteFile(ts.MkAbs("stderr"), []byte(s.told()), 0o600))
	ts.Check(err)
	ts.Setenv("URL", url)
}

func scriptOneLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: oneline")
	}
	text, err := os.ReadFile(ts.MkAbs("stderr"))
	ts.Check(err)
	if bytes.Count(text, []byte("\n")) != 1 {
		ts.Fatalf("not one line:\n%s", text)
	}
}
