package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Host is the machine that a simulated server runs on. Its methods may be called from any goroutine;
// the server's time is that of the calls, real or fake.
type Host struct {
	scenario settings.Scenario
	seed     uint64
	began    time.Time

	mu      sync.Mutex
	world   *World
	command *launch.Config // of the current start
	kept    *launch.Config // configuration that changes are applied to and reverted to
	starts  int            // number of starts
	started time.Duration  // time of the current start
	hung    time.Time      // until when pages are not answered
	offered bool
}

// New returns a host without a running server. The scenario determines the launch command, the load,
// the hardware, the faults of the first start, and the startup time.
func New(sc *settings.Scenario, seed uint64) *Host {
	return &Host{scenario: *sc, seed: seed, began: time.Now(), world: NewWorld()}
}

// Clock returns the time since the host was created. It is the clock for sessions on the host.
func (h *Host) Clock() time.Duration { return time.Since(h.began) }

// now locks the host and advances its world to the current time.
func (h *Host) now() {
	h.mu.Lock()
	if t := h.Clock(); t > h.world.Now() {
		h.world.Until(t)
	}
}

// Start starts the server with a launch command, "" for the scenario's, after ending one that runs. It
// does not wait until the server answers. The clients start with the first server and outlive all of
// them. The error is the server's refusal.
func (h *Host) Start(command string) error {
	if command == "" {
		command = h.scenario.Server
	}
	c, err := launch.Parse(strings.Fields(command), nil, nil)
	if err != nil {
		return err
	}
	h.now()
	defer h.mu.Unlock()
	if err := h.start(c); err != nil {
		return err
	}
	if h.kept == nil {
		h.kept = c
	}
	return nil
}

func (h *Host) start(c *launch.Config) error {
	s, err := Settings(c, &h.scenario, h.seed)
	if err != nil {
		return err
	}
	if h.starts == 0 {
		s.Faults = h.scenario.Faults
	}
	if err := h.world.Restart(s); err != nil {
		return err
	}
	h.command = c
	h.starts++
	h.started = h.world.Now()
	if h.offered {
		return nil
	}
	h.offered = true
	healthy, _ := h.world.Healthy()
	for i := range h.scenario.Load {
		o := Offering{Origin: healthy, Seed: h.seed*31 + uint64(i)}
		if err := h.world.Offer(&h.scenario.Load[i], o); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends the server; its clients keep sending.
func (h *Host) Kill() {
	h.now()
	defer h.mu.Unlock()
	h.world.Kill()
}

// Hang leaves metrics pages unanswered for a time; the server continues to work.
func (h *Host) Hang(d time.Duration) {
	h.now()
	defer h.mu.Unlock()
	h.hung = time.Now().Add(d)
}

// Command returns the launch command of the server that was started last.
func (h *Host) Command() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.command == nil {
		return ""
	}
	return h.command.Shell()
}

// pageTook is how long fetching a page over loopback takes.
const pageTook = 3 * time.Millisecond

// Page returns the metrics page, appended to buf; an error without a server or if ctx ends.
func (h *Host) Page(ctx context.Context, buf []byte) ([]byte, error) {
	h.now()
	wait := max(pageTook, time.Until(h.hung))
	h.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
	}
	h.now()
	defer h.mu.Unlock()
	return h.world.Page(buf)
}

// health returns what /health of the server answers.
func (h *Host) health(context.Context) engine.Health {
	h.now()
	defer h.mu.Unlock()
	return h.world.Health()
}

// errGone is the error of a host without a server.
var errGone = errors.New("no simulated server runs")

// devices reads the host's GPUs.
type devices struct{ *Host }

func (d devices) Read(context.Context) (engine.GPUReading, error) {
	d.now()
	defer d.mu.Unlock()
	r := d.world.GPUs(d.Clock())
	if r == nil {
		return engine.GPUReading{}, errGone
	}
	return *r, nil
}

func (devices) Missing() []engine.Missing { return nil }
func (devices) Notes() []string           { return nil }

// Attach returns the server for a session that may restart it.
func (h *Host) Attach(ctx context.Context) (*session.Server, error) { return h.attach(ctx, true) }

// AttachOnly returns the server for a session that cannot restart it.
func (h *Host) AttachOnly(ctx context.Context) (*session.Server, error) { return h.attach(ctx, false) }

func (h *Host) attach(ctx context.Context, canApply bool) (*session.Server, error) {
	if _, err := h.Page(ctx, nil); err != nil {
		return nil, err
	}
	h.now()
	defer h.mu.Unlock()
	if !h.world.Listening() {
		return nil, errGone
	}
	starts := h.starts
	s := &session.Server{
		Header: h.world.Header(h.command), Pages: h, Health: h.health, GPUs: devices{h}, Identity: fmt.Sprintf("4242 since start %d", starts),
		Processes:   func() (loop.Observed, error) { return h.processes(starts) },
		CannotApply: "this simulated server is restarted by the test alone",
	}
	if canApply {
		s.Apply, s.CannotApply = h.apply, ""
	}
	return s, nil
}

// processes returns the processes of a start of the server as a reading of the machine would show
// them.
func (h *Host) processes(starts int) (loop.Observed, error) {
	h.now()
	defer h.mu.Unlock()
	if h.starts != starts {
		return loop.Observed{Problems: []string{"the server's process has ended"}}, nil
	}
	age := h.Clock() - h.started
	pid := 4000 + 100*starts
	return loop.Observed{Processes: []loop.Process{
		{PID: pid, PPID: 1, Role: "api-server", Name: "vllm", State: "S", Age: age, RSSBytes: 2 << 30, Threads: 40},
		{PID: pid + 1, PPID: pid, Role: "engine-core", Name: "VLLM::EngineCore", State: "R", Age: age, RSSBytes: 8 << 30, Threads: 60},
	}}, nil
}

// Follow returns a handler of session.LivePlan (its field Tell) for a session that may restart the server. It
// updates the kept configuration and then calls tell, which may be nil.
func (h *Host) Follow(tell func(loop.Event)) func(loop.Event) {
	return func(e loop.Event) {
		if e.Kind == loop.EventKept || e.Kind == loop.EventContinued {
			h.mu.Lock()
			h.kept = h.command
			h.mu.Unlock()
		}
		if tell != nil {
			tell(e)
		}
	}
}

// apply restarts the server with changes to the kept configuration, or with that configuration, and
// returns when it answers. If the server does not start with the changes, it is started as before.
func (h *Host) apply(ctx context.Context, a loop.Apply) loop.Applied {
	h.mu.Lock()
	kept, next := h.kept, h.kept
	if !a.Revert {
		next = loop.WithChanges(kept, a.Changes...)
	}
	h.mu.Unlock()
	if err := h.restart(ctx, next); err != nil {
		if back := h.restart(context.WithoutCancel(ctx), kept); back != nil {
			return loop.Applied{Err: fmt.Sprintf("%v, nor as before: %v", err, back)}
		}
		return loop.Applied{Err: err.Error(), Back: !a.Revert}
	}
	return loop.Applied{}
}

// restart starts the server with a configuration and waits until it answers.
func (h *Host) restart(ctx context.Context, c *launch.Config) error {
	h.now()
	err := h.start(c)
	healthy, _ := h.world.Healthy()
	wait := healthy - h.world.Now()
	h.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}
