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
	planned []*time.Timer // restarts of the scenario
	mu      sync.Mutex    // held while a planned restart is under way; guards life
	life    int           // counts starts, so that a restart planned for an older life is none
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
	h.unplan()
	h.mu.Lock()
	h.life++
	h.mu.Unlock()
	first := h.host == nil
	if first {
		h.host, err = serve.Open(s)
	} else {
		err = h.host.Restart(ctx, s, false)
	}
	if err != nil {
		return err
	}
	if err := h.host.Ready(ctx); err != nil {
		return err
	}
	h.plan(s)
	if first {
		return h.send()
	}
	return nil
}

// plan sets the restarts of the scenario, counted from now.
func (h *Host) plan(s *settings.Settings) {
	again, life := *s, h.life
	again.Faults = nil
	for _, at := range h.Scenario.Restarts {
		h.planned = append(h.planned, time.AfterFunc(at, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.life == life {
				_ = h.host.Restart(context.Background(), &again, false) // it started with these flags just now
			}
		}))
	}
}

func (h *Host) unplan() {
	for _, t := range h.planned {
		t.Stop()
	}
	h.planned = nil
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
	h.unplan()
	h.mu.Lock()
	h.life++
	h.mu.Unlock()
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
		switch p := stream.Phases[0]; {
		case p.Users == 1:
			parts = append(parts, name+"one client with one request at a time")
		case p.Users > 0:
			parts = append(parts, name+strconv.Itoa(p.Users)+" clients, each with one request at a time")
		default:
			parts = append(parts, name+strconv.FormatFloat(p.Rate, 'g', 3, 64)+" requests a second")
		}
	}
	if len(parts) == 0 {
		return "no requests at all"
	}
	return strings.Join(parts, "; ")
}
