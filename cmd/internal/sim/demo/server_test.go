package demo

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

func simulated(t *testing.T) *Server {
	t.Helper()
	found, err := settings.Select(settings.Default)
	if err != nil {
		t.Fatal(err)
	}
	config, err := launch.Parse(strings.Fields(found[0].Server), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Host: &Host{Scenario: found[0], Seed: 1}, Config: config, Clock: attach.Stopwatch()}
	t.Cleanup(s.Host.Close)
	if err := s.Start(t.Context(), 0, &cli.Progress{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// slots attaches and reads the slots of the launch that the server shows.
func slots(t *testing.T, s *Server) string {
	t.Helper()
	server, err := s.Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if !server.Header.Target.Simulated || server.Apply == nil || server.CannotApply != "" || server.GPUs == nil {
		t.Errorf("attached to %+v, hands %v, %q", server.Header.Target, server.Apply != nil, server.CannotApply)
	}
	return server.Header.Inputs.Launch["max_num_seqs"].Value
}

func TestTheSimulatedServerIsChanged(t *testing.T) {
	s := simulated(t)
	if got := slots(t, s); got != "16" {
		t.Fatalf("starts with %s slots, want the scenario's 16", got)
	}
	url := s.Host.URL()
	tell := s.Follow(func(loop.Event) {})
	for _, c := range []struct {
		name    string
		apply   loop.Apply
		want    string
		refused bool
		kept    bool
	}{
		{"more slots", loop.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "16", To: "64"}}}, "64", false, false},
		{"the kept launch is changed, not what runs", loop.Apply{Changes: []engine.Change{{Flag: "--enable-prefix-caching", To: "off"}}}, "16", false, false},
		{"more again, and kept", loop.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "16", To: "32"}}}, "32", false, true},
		{"refused by the server", loop.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "32", To: "0"}}}, "32", true, false},
		{"left out", loop.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "32", To: ""}}}, "", false, false},
		{"the revert", loop.Apply{Revert: true}, "32", false, false},
	} {
		err := s.apply(t.Context(), c.apply).Err
		if (err != "") != c.refused || c.refused && !strings.Contains(err, "runs as before") {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.kept {
			tell(loop.Event{Kind: loop.EventKept})
		}
		if got := slots(t, s); got != c.want {
			t.Errorf("%s: runs with %q slots, want %q", c.name, got, c.want)
		}
		if s.Host.URL() != url {
			t.Errorf("%s: moved to %s", c.name, s.Host.URL())
		}
	}
}

func TestASimulatedServerThatDoesNotStart(t *testing.T) {
	s := simulated(t)
	other := &Server{Host: &Host{Scenario: s.Host.Scenario, Port: portOf(t, s.Host.URL())}, Config: s.Config, Clock: attach.Stopwatch()}
	err := other.Start(t.Context(), 0, &cli.Progress{})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("on a port that is taken: %v", err)
	}
}

func portOf(t *testing.T, url string) int {
	t.Helper()
	target, err := attach.ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	_, port := attach.HostPort(target)
	return int(port)
}
