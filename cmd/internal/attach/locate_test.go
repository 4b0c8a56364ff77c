package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect/proc"
)

// smallPage is a small page of vLLM.
const smallPage = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 1
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny"} 0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="tiny"} 10
`

// metricsServer serves a page; status other than 200 is served without one.
func metricsServer(t *testing.T, status *atomic.Int32) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		if code := int(status.Load()); code != http.StatusOK {
			w.WriteHeader(code)
			return
		}
		_, _ = io.WriteString(w, smallPage)
	}))
	t.Cleanup(s.Close)
	return s
}

func locating(url string, servers ...*proc.Server) *Locator {
	l := NewLocator(&Options{
		URL: url, Ceiling: ClassicCeiling, Flags: pflag.NewFlagSet("test", pflag.ContinueOnError),
		Env: func(string) (string, bool) { return "", false },
	})
	l.servers = func() []*proc.Server { return servers }
	return l
}

// at is a server among this machine's processes that is gone already: only its
// address is of use.
func at(addr string) *proc.Server {
	return &proc.Server{Addr: netip.MustParseAddrPort(addr)}
}

func address(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }

func TestTheServerIsFoundAgainAndAgain(t *testing.T) {
	var status atomic.Int32
	status.Store(http.StatusServiceUnavailable)
	s := metricsServer(t, &status)
	l := locating(s.URL)
	if err := l.Begin(t.Context(), &cli.World{}, false); err != nil {
		t.Fatal(err)
	}
	if got := l.Watch(); got != s.URL {
		t.Errorf("looks for %q, want %q", got, s.URL)
	}
	// If a server refuses or is not there, the locator continues to wait.
	if _, err := l.Attach(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("attached to a server that refuses: %v", err)
	}
	status.Store(http.StatusOK)
	for range 2 { // the second time as after a restart
		a, err := l.Attach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		server := a.Session()
		if server.Header.Ceiling != ClassicCeiling || server.GPUs != nil || server.Header.Target.URL != s.URL+"/metrics" {
			t.Errorf("the header is %+v", server.Header)
		}
		if server.Apply != nil || server.CannotApply == "" {
			t.Error("rooftop has hands on a server that it did not start")
		}
		server.Close()
	}
	s.Close()
	if _, err := l.Attach(t.Context()); err == nil {
		t.Error("attached to a server that is gone")
	}
}

func TestTheServerIsLookedFor(t *testing.T) {
	var ok atomic.Int32
	ok.Store(http.StatusOK)
	one, other := metricsServer(t, &ok), metricsServer(t, &ok)
	var list []*proc.Server
	l := locating("")
	l.servers = func() []*proc.Server { return list }
	if err := l.Begin(t.Context(), &cli.World{}, true); err != nil {
		t.Fatalf("no server yet, got error %v", err)
	}
	if got := l.Watch(); !strings.Contains(got, "processes") || !strings.Contains(got, "http://localhost:8000") {
		t.Errorf("looks for %q", got)
	}
	list = []*proc.Server{at(address(one)), at(address(other))}
	if _, err := l.Attach(t.Context()); err == nil || !strings.Contains(err.Error(), one.URL) || !strings.Contains(err.Error(), other.URL) {
		t.Errorf("of two servers: %v", err)
	}
	list = list[:1]
	for range 2 {
		a, err := l.Attach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if a.Target.String() != one.URL {
			t.Errorf("attached to %s, want %s", a.Target, one.URL)
		}
		a.Close()
		// The first that answers is the one that is meant from then on.
		list = []*proc.Server{at(address(other))}
	}
}

func TestBeginChooses(t *testing.T) {
	list := []*proc.Server{at("127.0.0.1:8000"), at("0.0.0.0:8001")}
	for _, c := range []struct {
		name, typed string
		ask         bool
		want        string // address
		code        cli.ExitCode
	}{
		{"not asked", "", false, "", cli.ExitUsage},
		{"the second", "2\n", true, "http://127.0.0.1:8001", cli.ExitDone},
		{"asked again", "0\nfirst\n1\n", true, "http://127.0.0.1:8000", cli.ExitDone},
		{"left", "q\n", true, "", cli.ExitDone},
		{"nothing typed", "", true, "", cli.ExitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := locating("", list...)
			var prompt bytes.Buffer
			in := strings.NewReader(c.typed + "more")
			err := l.Begin(t.Context(), &cli.World{Stdin: in, Stderr: &prompt}, c.ask)
			code := cli.ExitDone
			var coded *cli.CodedError
			if errors.As(err, &coded) {
				code = coded.Code
			}
			if code != c.code {
				t.Fatalf("exit code %d, want %d: %v", code, c.code, err)
			}
			if (err == nil) != (c.want != "") || err == nil && l.Target.String() != c.want {
				t.Errorf("chose %s, want %s: %v", l.Target, c.want, err)
			}
			if c.ask && !strings.Contains(prompt.String(), "2  http://127.0.0.1:8001") {
				t.Errorf("asked:\n%s", &prompt)
			}
			if rest, _ := io.ReadAll(in); c.code == cli.ExitDone && string(rest) != "more" {
				t.Errorf("left %q of what was typed, want what came after the line", rest)
			}
		})
	}
}

func TestAChoiceEndsWithASignal(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	in, typed := io.Pipe()
	defer func() { _ = typed.Close() }()
	l := locating("", at("127.0.0.1:8000"), at("127.0.0.1:8001"))
	cancel(&cli.SignalError{Signal: syscall.SIGINT})
	err := l.Begin(ctx, &cli.World{Stdin: in, Stderr: io.Discard}, true)
	var coded *cli.CodedError
	if !errors.As(err, &coded) || coded.Code != 130 || coded.Err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAnAttachThatIsCutShortFails(t *testing.T) {
	var ok atomic.Int32
	ok.Store(http.StatusOK)
	s := metricsServer(t, &ok)
	l := locating(s.URL)
	if err := l.Begin(t.Context(), &cli.World{}, false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := l.Attach(ctx); err == nil {
		t.Errorf("attached to %s", a.Target)
	}
}
