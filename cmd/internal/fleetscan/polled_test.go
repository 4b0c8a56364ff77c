package fleetscan

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/fleet"
)

// written returns options with a file of lines.
func written(t *testing.T, lines ...string) *Polled {
	t.Helper()
	file := filepath.Join(t.TempDir(), "urls")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Polled{File: file}
}

// given returns options of servers that are polled for a short time.
func given() *attach.Options {
	return &attach.Options{Flags: pflag.NewFlagSet("fleet", pflag.ContinueOnError), Env: func(string) (string, bool) { return "", false }, Duration: 600 * time.Millisecond, Ceiling: attach.PhysicalCeiling}
}

// page serves a vLLM page whose counters grow.
func page(t *testing.T) *httptest.Server {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "vllm:num_requests_running{model_name=\"m\"} 2\nvllm:num_requests_waiting{model_name=\"m\"} 0\nvllm:generation_tokens_total{model_name=\"m\"} %d\n", 50*n.Add(1))
	}))
	t.Cleanup(s.Close)
	return s
}

// Servers of a file are polled at the same time. One that is down, and one that is not vLLM, are rows beside those
// that answer.
func TestFleetOfAFile(t *testing.T) {
	one, two := page(t), page(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "<html>") }))
	defer other.Close()
	o := written(t, "# ours", one.URL+"  # the first", "", strings.TrimPrefix(two.URL, "http://")+"/metrics", "http://127.0.0.1:1", other.URL)
	last := 0
	list, err := o.Fleet(t.Context(), given(), func(done, all int) {
		if last = max(last, done); all != 4 {
			t.Errorf("%d servers, want 4", all)
		}
	})
	if err != nil || len(list) != 4 || last != 4 {
		t.Fatalf("%d servers, progress reached %d: %v", len(list), last, err)
	}
	byName := map[string]*fleet.Server{}
	for i := range list {
		byName[list[i].Name] = &list[i]
	}
	at := func(s *httptest.Server) *fleet.Server { return byName[strings.TrimPrefix(s.URL, "http://")] }
	for _, s := range []*fleet.Server{at(one), at(two)} {
		if s == nil || s.Unread != "" || s.Condition.Ill() || s.Target.Model != "m" || s.Command != "rooftop tune --url http://"+s.Name {
			t.Errorf("a server that answers: %+v", s)
		}
	}
	if s := byName["127.0.0.1:1"]; s == nil || s.Condition.State != engine.Down || s.Condition.Reason == "" {
		t.Errorf("a server that does not answer: %+v", s)
	}
	if s := at(other); s == nil || s.Unread == "" || s.Condition.Ill() {
		t.Errorf("a server that is not vLLM: %+v", s)
	}
	if !list[0].Condition.Ill() || list[1].Unread == "" {
		t.Errorf("first %s, then %s: the ill come first, then what was not read", list[0].Name, list[1].Name)
	}
}

// An interruption by the user does not count as a fault of a server.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if list, err := written(t, page(t).URL).Fleet(ctx, given(), nil); err == nil {
		t.Errorf("%d servers", len(list))
	}
}

func TestFilesThatNameNoServers(t *testing.T) {
	for _, c := range []struct {
		lines []string
		says  string
	}{
		{nil, "names no server"},
		{[]string{"# nothing", " "}, "names no server"},
		{[]string{"http://a:8000", "", "ftp://b"}, "line 3"},
		{[]string{"http://a:8000", "a:8000/metrics"}, "lines 1 and 2 name the same server"},
	} {
		err := written(t, c.lines...).Check(given())
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: error %v, want %q", c.lines, err, c.says)
		}
	}
	if err := (&Polled{File: filepath.Join(t.TempDir(), "none")}).Check(given()); err == nil || !strings.Contains(err.Error(), "--urls") {
		t.Errorf("error %v", err)
	}
}
