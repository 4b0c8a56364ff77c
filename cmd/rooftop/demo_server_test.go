package main

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/demo"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

func simulated(t *testing.T) *simulatedServer {
	t.Helper()
	found, err := scenarios.Select(scenarios.Default)
	if err != nil {
		t.Fatal(err)
	}
	config, err := launch.Parse(strings.Fields(found[0].Server), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &simulatedServer{host: &demo.Host{Scenario: found[0], Seed: 1}, config: config, clock: stopwatch()}
	t.Cleanup(s.host.Close)
	if err := s.start(t.Context(), 0, &progress{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// seats attaches and reads the seats of the launch that the server shows.
func seats(t *testing.T, s *simulatedServer) string {
	t.Helper()
	server, err := s.attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if !server.Header.Target.Simulated || server.Apply == nil || server.NoHands != "" || server.GPUs == nil {
		t.Errorf("attached to %+v, hands %v, %q", server.Header.Target, server.Apply != nil, server.NoHands)
	}
	return server.Header.Inputs.Launch["max_num_seqs"].Value
}

func TestTheSimulatedServerIsChanged(t *testing.T) {
	s := simulated(t)
	if got := seats(t, s); got != "16" {
		t.Fatalf("starts with %s seats, want the scenario's 16", got)
	}
	url := s.host.URL()
	tell := s.follow(func(engine.Event) {})
	for _, c := range []struct {
		name    string
		apply   engine.Apply
		want    string
		refused bool
		kept    bool
	}{
		{"more seats", engine.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "16", To: "64"}}}, "64", false, false},
		{"the kept launch is changed, not what runs", engine.Apply{Changes: []engine.Change{{Flag: "--enable-prefix-caching", To: "off"}}}, "16", false, false},
		{"more again, and kept", engine.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "16", To: "32"}}}, "32", false, true},
		{"refused by the server", engine.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "32", To: "0"}}}, "32", true, false},
		{"left out", engine.Apply{Changes: []engine.Change{{Flag: "--max-num-seqs", From: "32", To: ""}}}, "", false, false},
		{"the way back", engine.Apply{Revert: true}, "32", false, false},
	} {
		err := s.apply(t.Context(), c.apply).Err
		if (err != "") != c.refused || c.refused && !strings.Contains(err, "runs as before") {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.kept {
			tell(engine.Event{Kind: engine.EventKept})
		}
		if got := seats(t, s); got != c.want {
			t.Errorf("%s: runs with %q seats, want %q", c.name, got, c.want)
		}
		if s.host.URL() != url {
			t.Errorf("%s: moved to %s", c.name, s.host.URL())
		}
	}
}

func TestASimulatedServerThatDoesNotStart(t *testing.T) {
	s := simulated(t)
	other := &simulatedServer{host: &demo.Host{Scenario: s.host.Scenario, Port: portOf(t, s.host.URL())}, config: s.config, clock: stopwatch()}
	err := other.start(t.Context(), 0, &progress{})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("on a port that is taken: %v", err)
	}
}

func portOf(t *testing.T, url string) int {
	t.Helper()
	target, err := parseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	_, port := splitHostPort(target)
	return int(port)
}
