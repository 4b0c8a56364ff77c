package demo

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/simbench"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/serve"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Host is a simulated server in this process, with the clients of a scenario. A
// restart leaves the clients as they are: they see their connections break and
// come back.
type Host struct {
	Scenario scenarios.Scenario
	Port     int // 0 is one that is free
	Seed     uint64
	// Startup is the time from the start to health.
	Startup time.Duration

	host    *serve.Host
	clients sync.WaitGroup
	stop    context.CancelFunc
}

// URL is the server's base URL, once it was started.
func (h *Host) URL() string { return h.host.URL() }

// Start starts the server, or starts it anew, and returns when it answers. The
// first start also starts the clients.
func (h *Host) Start(ctx context.Context, c *launch.Config) error {
	s, err := h.settings(c)
	if err != nil {
		return err
	}
	if h.host != nil {
		if err := h.host.Restart(ctx, s, false); err != nil {
			return err
		}
		return h.host.Ready(ctx)
	}
	if h.host, err = serve.Open(s); err != nil {
		return err
	}
	if err := h.host.Ready(ctx); err != nil {
		return err
	}
	return h.send()
}

func (h *Host) settings(c *launch.Config) (*settings.Settings, error) {
	port := h.Port
	if h.host != nil { // the same for every life
		port = h.host.Settings().Port
	}
	s, err := simbench.Settings(c, &h.Scenario, h.Seed, "--sim-startup-time", h.Startup.String(), "--port", strconv.Itoa(port))
	if err != nil {
		return nil, err
	}
	s.Faults = append(s.Faults, h.Scenario.Faults...)
	return s, nil
}

// send starts the scenario's clients.
func (h *Host) send() error {
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	for i := range h.Scenario.Load {
		load := simbench.Load(&h.Scenario.Load[i], h.Seed*31+uint64(i))
		load.Stagger = stagger
		if err := load.Validate(); err != nil {
			return err
		}
		client, err := probe.NewClient(h.URL(), probe.Options{})
		if err != nil {
			return err
		}
		h.clients.Go(func() {
			defer client.Close()
			_, _ = probe.Run(ctx, client, load, nil) // what the clients meet shows in the server's own figures
		})
	}
	return nil
}

// stagger spreads the first requests of a demonstration: soon enough for people
// who wait, and not in lock-step.
const stagger = 2 * time.Second

// Close ends clients and server.
func (h *Host) Close() {
	if h.stop != nil {
		h.stop()
		h.clients.Wait()
	}
	if h.host != nil {
		h.host.Close(context.Background(), false)
	}
}

// Clients says in a few words what the scenario's clients do.
func Clients(s *scenarios.Scenario) string {
	var parts []string
	for _, stream := range s.Load {
		name := ""
		if stream.Name != "" {
			name = stream.Name + ": "
		}
		if len(stream.Phases) == 0 {
			continue
		}
		p := stream.Phases[0]
		if p.Users > 0 {
			parts = append(parts, name+strconv.Itoa(p.Users)+" clients, each with one request at a time")
		} else {
			parts = append(parts, name+strconv.FormatFloat(p.Rate, 'g', 3, 64)+" requests a second")
		}
	}
	return strings.Join(parts, "; ")
}
