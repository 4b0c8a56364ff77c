package demo

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/programtest"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// page reads the metrics page of a host.
func page(t *testing.T, h *Host) string {
	t.Helper()
	response, err := http.Get(h.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// waitFor polls until a page says something.
func waitFor(t *testing.T, h *Host, what string) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for l := range strings.Lines(page(t, h)) {
			if strings.HasPrefix(l, what) && !strings.HasSuffix(l, " 0.0\n") {
				return
			}
		}
	}
	t.Fatalf("the page never had %s above 0", what)
}

// A restart keeps the address, and the clients continue by themselves.
func TestHostRestartsUnderItsClients(t *testing.T) {
	found, err := settings.Select(settings.Default)
	if err != nil {
		t.Fatal(err)
	}
	config, err := launch.Parse(strings.Fields(found[0].Server), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := programtest.Address(t)
	config = config.With("--host", at.Addr().String())
	h := &Host{Scenario: found[0], Seed: 1, Startup: 10 * time.Millisecond, Port: int(at.Port())}
	defer h.Close()
	if err := h.Start(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	url := h.URL()
	waitFor(t, h, "vllm:generation_tokens_total")
	if err := h.Start(t.Context(), config.With("--max-num-seqs", "64")); err != nil {
		t.Fatal(err)
	}
	if h.URL() != url || url != "http://"+at.String() {
		t.Errorf("it moved from %s to %s", url, h.URL())
	}
	waitFor(t, h, "vllm:generation_tokens_total")
	if err := h.Start(t.Context(), config.With("--max-num-seqs", "nonsense")); err == nil {
		t.Error("a command that no server takes was started")
	}
}

func TestClients(t *testing.T) {
	phase := func(users int, rate float64) []settings.Phase { return []settings.Phase{{Users: users, Rate: rate}} }
	for _, c := range []struct {
		want string
		load []settings.Stream
	}{
		{"no requests at all", nil},
		{"no requests at all", []settings.Stream{{Name: "later"}}},
		{"one client with one request at a time", []settings.Stream{{Phases: phase(1, 0)}}},
		{"chat: 64 clients, each with one request at a time; batch: 2.5 requests a second", []settings.Stream{{Name: "chat", Phases: phase(64, 0)}, {Name: "batch", Phases: phase(0, 2.5)}}},
	} {
		if got := Clients(&settings.Scenario{Load: c.load}); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
