package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// probed has the parts of a document that tests check.
type probed struct {
	Kind   string
	Ended  *string
	Target struct {
		Model     string
		Simulated bool
	}
	Request struct {
		Repeat, Concurrency int
		HeaderNames         []string `json:"header_names"`
	}
}

// probeDocument validates a printed document against its schema and parses it.
func probeDocument(t *testing.T, text, schema string, into any) {
	t.Helper()
	compiled, err := jsonschema.NewCompiler().Compile(filepath.Join("..", "..", "testdata", "schema", schema))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	if err := compiled.Validate(parsed); err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func TestProbeDocumentFollowsItsSchema(t *testing.T) {
	s := newCompletions(t)
	dir := t.TempDir()
	for _, tc := range []struct {
		name                string
		args                []string
		repeat, concurrency int
		chats               int
	}{
		{"one chat", nil, 1, 1, 1},
		{"several completions", []string{"--api", "completion", "--repeat", "6", "--concurrency", "2"}, 6, 2, 0},
		{"as many as clients", []string{"--concurrency", "3", "--system", "Be brief.", "--header", "X-Run: 7"}, 3, 3, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := s.paths["/v1/chat/completions"]
			saved := filepath.Join(dir, "run.json")
			args := append([]string{"probe", "--json", "--url", s.URL, "--pid", strconv.Itoa(os.Getpid()), "--max-tokens", "5", "--save", saved}, tc.args...)
			stdout, stderr, code := call(t, nil, args...)
			if code != cli.ExitDone || stderr != "" {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			var got probed
			probeDocument(t, stdout, "probe.v1.schema.json", &got)
			if got.Kind != "probe" || got.Target.Model != "m" || got.Request.Repeat != tc.repeat || got.Request.Concurrency != tc.concurrency || got.Ended != nil {
				t.Errorf("got %+v", got)
			}
			if n := s.paths["/v1/chat/completions"] - before; n != tc.chats {
				t.Errorf("%d chats, want %d", n, tc.chats)
			}
			if strings.Contains(stdout, "Be brief") || strings.Contains(stdout, `"7"`) {
				t.Error("the document holds the prompt or the value of a header")
			}
			text, err := os.ReadFile(saved)
			if err != nil || string(text) != stdout {
				t.Errorf("--save differs from what was printed (%v)", err)
			}
		})
	}
}

// TestProbePromptIsTheOneThatWasGiven checks that the digest is that of sha256sum.
func TestProbePromptIsTheOneThatWasGiven(t *testing.T) {
	s := newCompletions(t)
	for _, tc := range []struct {
		args   []string
		digest string
		bytes  int
	}{
		{[]string{"--prompt", "hello"}, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", 5},
		{[]string{"--prompt", "hello", "--api", "completion"}, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", 5},
		{[]string{"--prompt", "hello", "--system", "x"}, "", 7},
	} {
		stdout, stderr, code := call(t, nil, append([]string{"probe", "--json", "--url", s.URL, "--pid", strconv.Itoa(os.Getpid()), "--max-tokens", "2"}, tc.args...)...)
		if code != cli.ExitDone {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		var got struct {
			Request struct {
				Digest string `json:"prompt_sha256"`
				Bytes  int    `json:"prompt_bytes"`
			}
		}
		probeDocument(t, stdout, "probe.v1.schema.json", &got)
		if got.Request.Bytes != tc.bytes || tc.digest != "" && got.Request.Digest != tc.digest {
			t.Errorf("%q: %+v, want %d bytes and %s", tc.args, got.Request, tc.bytes, tc.digest)
		}
	}
}

// TestProbeFailures checks that the recorded data is printed whatever failed, and that the exit
// code and one sentence report the failure.
func TestProbeFailures(t *testing.T) {
	calls := 0
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		args   []string
		code   cli.ExitCode
		says   string
	}{
		{"refused", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"message":"this model has no chat template"}}`)
		}, nil, cli.ExitUnreachable, "no chat template"},
		{"an error in the stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"a"}}]}`+"\n\n"+`data: {"error":{"message":"the engine died"}}`+"\n\n")
		}, nil, cli.ExitUnreachable, "the engine died"},
		{"every other request", func(w http.ResponseWriter, _ *http.Request) {
			if calls++; calls%2 == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		}, []string{"--repeat", "4"}, cli.ExitError, "2 of 4 requests were not completed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newCompletions(t)
			s.complete = tc.answer
			args := append([]string{"probe", "--json", "--url", s.URL, "--pid", strconv.Itoa(os.Getpid())}, tc.args...)
			stdout, stderr, code := call(t, nil, args...)
			if code != tc.code || !strings.Contains(stderr, tc.says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d and %q; want %d and one sentence with %q", code, stderr, tc.code, tc.says)
			}
			var got probed
			probeDocument(t, stdout, "probe.v1.schema.json", &got)
		})
	}
}

func TestObserve(t *testing.T) {
	stdout, stderr, code := call(t, nil, "observe", "--pid", strconv.Itoa(os.Getpid()), "--duration", "200ms", "--period", "10ms", "--json")
	if code != cli.ExitDone || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got probed
	probeDocument(t, stdout, "probe.v1.schema.json", &got)
	if got.Kind != "observation" {
		t.Errorf("kind %q", got.Kind)
	}
}
