package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// completions is an OpenAI-compatible server whose words have two tokens.
type completions struct {
	*httptest.Server
	models   []string         // none is 404
	metrics  http.HandlerFunc // nil is 404
	complete http.HandlerFunc // nil is a whole stream

	mu     sync.Mutex
	paths  map[string]int
	words  []int    // of the prompts
	asked  []string // models of requests
	header []http.Header
	keys   map[string]bool // of all paths
}

func newCompletions(t *testing.T) *completions {
	s := &completions{models: []string{"m"}, paths: map[string]int{}, keys: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.Close)
	return s
}

func (s *completions) answer(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model     string
		Prompt    string
		Messages  []struct{ Content string }
		MaxTokens int `json:"max_tokens"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	for _, m := range body.Messages {
		body.Prompt += " " + m.Content
	}
	words := len(strings.Fields(body.Prompt))
	s.mu.Lock()
	s.paths[r.URL.Path]++
	s.keys[r.Header.Get("Authorization")] = true
	completes := strings.HasSuffix(r.URL.Path, "/completions")
	if completes {
		s.words, s.asked, s.header = append(s.words, words), append(s.asked, body.Model), append(s.header, r.Header.Clone())
	}
	s.mu.Unlock()
	w.Header().Set("X-Simulated", "1")
	switch {
	case r.URL.Path == "/v1/models" && len(s.models) > 0:
		fmt.Fprintf(w, `{"data":[{"id":"%s"}]}`, strings.Join(s.models, `"},{"id":"`))
	case r.URL.Path == "/metrics" && s.metrics != nil:
		s.metrics(w, r)
	case r.URL.Path == "/tokenize":
		fmt.Fprintf(w, `{"count":%d}`, 2*words)
	case completes && s.complete != nil:
		s.complete(w, r)
	case completes:
		w.Header().Set("Content-Type", "text/event-stream")
		for range body.MaxTokens {
			fmt.Fprint(w, `data: {"choices":[{"text":" a","delta":{"content":" a"}}]}`+"\n\n")
		}
		fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", 2*words, body.MaxTokens)
	default:
		http.NotFound(w, r)
	}
}

func TestLoadDocumentFollowsItsSchema(t *testing.T) {
	s := newCompletions(t)
	for _, tc := range []struct {
		name  string
		args  []string
		sent  float64
		steps string // their names
	}{
		{"closed loop", []string{"--clients", "3", "--requests", "12", "--output-tokens", "4", "--stagger", "1ms"}, 12, ""},
		{"open loop with objectives", []string{"--rate", "1000", "--requests", "20", "--output-tokens", "2-4", "--slo", "ttft=10s,itl=5s"}, 20, ""},
		{"steps", []string{"--arrival", "constant", "--steps", "500:20ms,500-1000:1h", "--requests", "25", "--output-tokens", "1"}, 25, "500:20ms 500-1000:1h"},
		{"chat sessions", []string{"--clients", "2", "--requests", "6", "--turns", "3", "--chat", "--output-tokens", "3", "--stagger", "1ms"}, 6, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stdout, stderr, code := call(t, nil, append([]string{"load", "--json", "--url", s.URL}, tc.args...)...)
			if code != cli.ExitDone || stderr != "" {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			var got struct {
				Sent, Requests, Cancelled, Errors, Unfinished float64
				Simulated                                     bool
				PerWord                                       float64 `json:"tokens_per_word"`
				Phases                                        []struct{ Name string }
			}
			probeDocument(t, stdout, "load.v1.schema.json", &got)
			var steps []string
			for _, p := range got.Phases {
				steps = append(steps, p.Name)
			}
			if got.Sent != tc.sent || got.Errors != 0 || got.Requests+got.Cancelled+got.Unfinished != got.Sent || !got.Simulated || got.PerWord != 2 || tc.steps != "" && strings.Join(steps, " ") != tc.steps {
				t.Errorf("got %+v", got)
			}
		})
	}
	if s.paths["/v1/chat/completions"] != 6 {
		t.Errorf("%d chats, want 6", s.paths["/v1/chat/completions"])
	}
}

func TestLoadWritesPromptsForTheTokenizer(t *testing.T) {
	s := newCompletions(t)
	stdout, stderr, code := call(t, nil, "load", "--url", s.URL, "--requests", "5", "--clients", "1", "--prompt-tokens", "100", "--output-tokens", "1")
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, n := range s.words {
		if n != 50 {
			t.Errorf("a prompt of %d words, want 50: a word is two tokens", n)
		}
	}
	for _, want := range []string{"SIMULATED", "closed loop of 1 clients, seed 1", "2 tokens a word, says /tokenize", "100 prompt tokens on average", "failed            0 requests", "TTFT", "send lag", "p99"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the summary lacks %q:\n%s", want, stdout)
		}
	}
}

// A load without answers fails, whatever the reason, but the observations are printed.
func TestLoadWithoutAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		name           string
		answer         http.HandlerFunc
		args           []string
		stdout, stderr string
	}{
		{
			"given up at the deadline", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			[]string{"--deadline", "30ms"}, "2 requests had no first token before they were given up; not in TTFT", "2 were given up at their deadline",
		},
		{
			"cut off at the end", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			[]string{"--duration", "30ms"}, "2 cut off at the end", "no request was answered before the end of the run",
		},
		{
			"refused", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such model", http.StatusNotFound) },
			nil, "x status 404: status 404 Not Found: no such model", "the server refuses these requests: status 404",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newCompletions(t)
			s.complete = func(w http.ResponseWriter, r *http.Request) {
				// The server notices that a client disconnected only after reading the body.
				_, _ = io.Copy(io.Discard, r.Body)
				tc.answer(w, r)
			}
			stdout, stderr, code := call(t, nil, append([]string{
				"load", "--url", s.URL, "--model", "m", "--prompt-style", "characters", "--requests", "2", "--clients", "2", "--stagger", "0s",
			}, tc.args...)...)
			if code != cli.ExitUnreachable {
				t.Errorf("exit code %d, want %d", code, cli.ExitUnreachable)
			}
			if !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("got\n%s\n%s\nwant %q and %q", stdout, stderr, tc.stdout, tc.stderr)
			}
		})
	}
}

func TestLoadKeepsItsKey(t *testing.T) {
	s := newCompletions(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("sk-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		env  []string
		args []string
		want string
	}{
		{[]string{"ROOFTOP_API_KEY=sk-variable"}, nil, "Bearer sk-variable"},
		{[]string{"ROOFTOP_API_KEY=sk-variable"}, []string{"--api-key-file", key}, "Bearer sk-file"},
	} {
		clear(s.keys)
		stdout, stderr, code := call(t, tc.env, append([]string{"load", "--url", s.URL, "--requests", "1", "--json"}, tc.args...)...)
		if code != cli.ExitDone || len(s.keys) != 1 || !s.keys[tc.want] {
			t.Errorf("exit code %d, sent %v, want %q", code, s.keys, tc.want)
		}
		if strings.Contains(stdout+stderr, "sk-") {
			t.Error("the key is printed")
		}
	}
}
