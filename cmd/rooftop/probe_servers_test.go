package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// ownTree makes a probe of a test server sample this process, which is small and exists.
func ownTree() []string { return []string{"--pid", strconv.Itoa(os.Getpid()), "--max-tokens", "4"} }

// TestProbeAnyMetrics checks that a server can be probed whatever its /metrics is.
func TestProbeAnyMetrics(t *testing.T) {
	saying := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
	}
	for _, tc := range []struct {
		name    string
		metrics http.HandlerFunc
		said    string
	}{
		{"none (Ollama)", nil, "Ollama and LM Studio serve none"},
		{"a web page", saying("<!doctype html>"), "it answered with HTML"},
		{"no page, though it looks like one", saying("vllm:num_requests_running{a 1\n"), "has no metrics"},
		{"nothing", saying(""), "it is empty"},
		{"of another program", saying("node_load1 3\n"), "node_load1"},
		{"elsewhere", http.RedirectHandler("http://other.test/metrics", http.StatusFound).ServeHTTP, "redirects to http://other.test/metrics"},
		{"breaks off", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "closed the connection"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newCompletions(t)
			s.metrics = tc.metrics
			stdout, stderr, code := call(t, nil, append([]string{"probe", "--json", "--url", s.URL + "/v1"}, ownTree()...)...)
			if code != cli.ExitDone || stderr != "" {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			if !strings.Contains(stdout, tc.said) {
				t.Errorf("the document does not say %q", tc.said)
			}
		})
	}
}

// TestProbeModel checks the model name of requests: never silently another model's.
func TestProbeModel(t *testing.T) {
	for _, tc := range []struct {
		name   string
		served []string
		args   []string
		asked  string // "" is a refusal
		said   string
	}{
		{"the first", []string{"a", "b"}, nil, "a", ""},
		{"one of them", []string{"a", "b"}, []string{"--model", "b"}, "b", ""},
		{"by a short name (Ollama)", []string{"qwen3:8b", "llama3:latest"}, []string{"--model", "llama3"}, "llama3", ""},
		{"not listed: a gateway may know it", []string{"a", "b"}, []string{"--model", "c"}, "c", ""},
		{"the catalog's name of the one model", []string{"/models/w"}, []string{"--model", "Llama-3.1-8B-Instruct"}, "/models/w", `requests carry "/models/w"`},
		{"nothing is listed", nil, []string{"--model", "c"}, "c", ""},
		{"nothing is listed or given", nil, nil, "", "give --model NAME"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newCompletions(t)
			s.models = tc.served
			stdout, stderr, code := call(t, nil, append(append([]string{"probe", "--json", "--url", s.URL}, ownTree()...), tc.args...)...)
			if tc.asked == "" {
				if code != cli.ExitUnreachable || !strings.Contains(stderr, tc.said) {
					t.Errorf("exit code %d: %s", code, stderr)
				}
				return
			}
			if code != cli.ExitDone || len(s.asked) != 1 || s.asked[0] != tc.asked {
				t.Fatalf("exit code %d, asked for %q: %s", code, s.asked, stderr)
			}
			var got probed
			probeDocument(t, stdout, "probe.v1.schema.json", &got)
			said, err := json.Marshal(tc.said)
			if err != nil || got.Target.Model != tc.asked || !strings.Contains(stdout, strings.Trim(string(said), `"`)) {
				t.Errorf("model %q; want the document to say %q", got.Target.Model, tc.said)
			}
		})
	}
}

// TestProbeVariables checks that the command line takes precedence over variables even if two flags
// exclude each other, and that the document has the options in effect.
func TestProbeVariables(t *testing.T) {
	s := newCompletions(t)
	file := filepath.Join(t.TempDir(), "p.txt")
	if err := os.WriteFile(file, []byte("from the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"probe", "--json", "--url", s.URL, "--prompt-file", file, "--repeat", "2", "--concurrency", "5"}, ownTree()...)
	stdout, stderr, code := call(t, []string{"ROOFTOP_PROMPT=from a variable", "ROOFTOP_HEADER=X-Secret: hush-hush"}, args...)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got probed
	probeDocument(t, stdout, "probe.v1.schema.json", &got)
	if got.Request.Concurrency != 2 || len(got.Request.HeaderNames) != 1 || strings.Contains(stdout, "hush") || s.header[0].Get("X-Secret") != "hush-hush" {
		t.Errorf("got %+v", got.Request)
	}
	if _, stderr, code = call(t, nil, append(args, "--prompt", "x")...); code != cli.ExitUsage {
		t.Errorf("exit code %d of two prompts: %s", code, stderr)
	}
}

// TestProbeReadsAHeaderOnce checks that a header's file may be a pipe.
func TestProbeReadsAHeaderOnce(t *testing.T) {
	s := newCompletions(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() { _ = os.WriteFile(pipe, []byte("a-secret\n"), 0) }()
	_, stderr, code := call(t, nil, append([]string{"probe", "--url", s.URL, "--header", "X-Key: @" + pipe}, ownTree()...)...)
	if code != cli.ExitDone || s.header[0].Get("X-Key") != "a-secret" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestProbeSaysWhatFailed checks that a closed stdout does not hide other failures.
func TestProbeSaysWhatFailed(t *testing.T) {
	s := newCompletions(t)
	gone, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	defer w.Close()
	for _, tc := range []struct {
		name string
		args []string
		code cli.ExitCode
		said string
	}{
		{"nothing else", nil, cli.ExitBrokenPipe, ""},
		{"the file fails, too", []string{"--save", "/dev/full"}, cli.ExitError, "/dev/full"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var stderr bytes.Buffer
			args := append(append([]string{"probe", "--url", s.URL}, ownTree()...), tc.args...)
			code := execute(t.Context(), cli.World{Args: args, Env: variables("HOME", t.TempDir()), Stdout: w, Stderr: &stderr})
			if code != tc.code || !strings.Contains(stderr.String(), tc.said) || tc.said == "" && stderr.Len() > 0 {
				t.Errorf("exit code %d, %q; want %d", code, stderr.String(), tc.code)
			}
		})
	}
}

// quietReader is a stdin without input.
type quietReader struct{ end chan struct{} }

func (r quietReader) Read([]byte) (int, error) { <-r.end; return 0, io.EOF }

// TestProbeInterruptedEarly checks that a signal before the first request ends the command with its
// code and without output.
func TestProbeInterruptedEarly(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	for _, tc := range []struct {
		name string
		args []string
		at   string // path at which the signal comes; "" is while stdin is read
	}{
		{"reading the prompt", []string{"probe", "--prompt-file", "-"}, ""},
		{"first look", []string{"probe"}, "/metrics"},
		{"listing models", []string{"probe"}, "/v1/models"},
		{"listing models of an observation", []string{"observe"}, "/v1/models"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			interrupt := func() { cancel(&cli.SignalError{Signal: syscall.SIGINT}) }
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == tc.at {
					interrupt()
				}
				http.NotFound(w, r)
			}))
			defer s.Close()
			var stdout, stderr bytes.Buffer
			in := io.Reader(quietReader{ended})
			if tc.at == "" {
				in = io.MultiReader(hook(interrupt), in)
			}
			saved := filepath.Join(t.TempDir(), "run.json")
			code := execute(ctx, cli.World{Args: append(tc.args, "--url", s.URL, "--save", saved), Stdin: in, Env: variables("HOME", t.TempDir()), Stdout: &stdout, Stderr: &stderr})
			if code != 130 || stdout.Len()+stderr.Len() > 0 {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
			}
			if _, err := os.Stat(saved); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a file of nothing: %v", err)
			}
		})
	}
}

// hook is a reader that calls a function and is then at its end.
type hook func()

func (h hook) Read([]byte) (int, error) { h(); return 0, io.EOF }
