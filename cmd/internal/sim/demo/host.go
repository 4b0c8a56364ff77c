package demo

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/bench"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Host is a simulated server in this process, with the clients of a scenario. The clients survive a
// restart: their connections break, and they connect again.
type Host struct {
	Scenario settings.Scenario
	Port     int // 0 means a free port
	Seed     uint64
	// Startup is the time from the start to health.
	Startup time.Duration

	host    *vllmsim.Host
	planned []*time.Timer // restarts of the scenario
	mu      sync.Mutex    // held during a planned restart; protects starts
	starts  int           // number of starts; a restart planned for an earlier start is skipped
	clients sync.WaitGroup
	stop    context.CancelFunc
}

// URL returns the server's base URL. The server must have been started.
func (h *Host) URL() string { return h.host.URL() }

// Start starts the server, or restarts it, and returns when it answers. The
// first start also starts the clients.
func (h *Host) Start(ctx context.Context, c *launch.Config) error {
	s, err := h.settings(c)
	if err != nil {
		return err
	}
	h.unplan()
	h.mu.Lock()
	h.starts++
	h.mu.Unlock()
	first := h.host == nil
	if first {
		h.host, err = vllmsim.Open(s)
	} else {
		err = h.host.Restart(s)
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

// plan sets timers for the restarts of the scenario, from now.
func (h *Host) plan(s *settings.Settings) {
	again, starts := *s, h.starts
	again.Faults = nil
	for _, at := range h.Scenario.Restarts {
		h.planned = append(h.planned, time.AfterFunc(at, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.starts == starts {
				_ = h.host.Restart(&again) // it has just started with these flags
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
	if h.host != nil { // the same for every start
		port = h.host.Settings().Port
	}
	s, err := bench.Settings(c, &h.Scenario, h.Seed, "--sim-startup-time", h.Startup.String(), "--port", strconv.Itoa(port))
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
	target, err := collect.ParseTarget(h.URL())
	if err != nil {
		return err
	}
	for i := range h.Scenario.Load {
		load := bench.Load(&h.Scenario.Load[i], h.Seed*31+uint64(i))
		load.Stagger = stagger
		if err := load.Validate(); err != nil {
			return err
		}
		client, err := probe.NewClient(target, probe.Options{})
		if err != nil {
			return err
		}
		h.clients.Go(func() {
			defer client.Close()
			_, _ = loadgen.Run(ctx, client, load, nil) // errors of the clients show in the server's metrics
		})
	}
	return nil
}

// stagger is the time over which the first requests of a demonstration are spread: short enough for
// people who wait, and long enough to avoid lock-step.
const stagger = 2 * time.Second

// Close ends the clients and the server.
func (h *Host) Close() {
	h.unplan()
	h.mu.Lock()
	h.starts++
	h.mu.Unlock()
	if h.stop != nil {
		h.stop()
		h.clients.Wait()
	}
	if h.host != nil {
		h.host.Close(context.Background(), false)
	}
}

// Clients returns a short description of the scenario's clients.
func Clients(s *settings.Scenario) string {
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
