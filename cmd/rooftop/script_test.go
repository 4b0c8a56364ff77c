package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the command lines of testdata/script: flags, exit codes,
// documents and what bad input is told. A script's own commands are
//
//	rooftop CODE ARGS...   runs it, expects the exit code; output in stdout and stderr
//	serve FILE [STATUS]    serves a file as the metrics page; $URL is its address
//	sim ARGS...            runs rooftop sim to the script's end; $URL is its address
//	oneline                the file stderr has one line
func TestScripts(t *testing.T) {
	recordings, err := filepath.Abs(filepath.Join("..", "..", "testdata", "recordings"))
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := filepath.Abs(filepath.Join("..", "..", "testdata", "schema"))
	if err != nil {
		t.Fatal(err)
	}
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
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	// Files of a script lie in its own folder, which is not this process's.
	words := args[1:]
	for i, a := range words {
		if path := ts.MkAbs(a); !strings.HasPrefix(a, "-") && exists(path) {
			words[i] = path
		}
	}
	var stdout, stderr bytes.Buffer
	got := run(world{
		args:   words,
		env:    func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" },
		stdout: &stdout, stderr: &stderr,
	})
	ts.Check(os.WriteFile(ts.MkAbs("stdout"), stdout.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("stderr"), stderr.Bytes(), 0o600))
	if int(got) != want {
		ts.Fatalf("rooftop %s: exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", strings.Join(words, " "), got, want, &stdout, &stderr)
	}
	if strings.Contains(stderr.String(), "internal error") {
		ts.Fatalf("rooftop %s panicked: %s", strings.Join(words, " "), &stderr)
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

// scriptSim runs a simulated server beside the script, until a signal would end
// it.
func scriptSim(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: sim ARGS...")
	}
	s := startSim(args...)
	ts.Defer(func() {
		if code := s.stop(); code != 128+exitCode(syscall.SIGTERM) {
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
