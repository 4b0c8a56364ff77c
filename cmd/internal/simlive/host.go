package simlive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/simbench"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Host is the machine that a simulated server runs on. Its methods may be called
// from any goroutine; the server's time is the time of the calls, real or fake.
type Host struct {
	scenario scenarios.Scenario
	seed     uint64
	began    time.Time

	mu      sync.Mutex
	world   *simbench.World
	command *launch.Config // of the present life
	kept    *launch.Config // what changes are made to, and undone
	life    int            // counts starts
	started time.Duration  // when it began
	hung    time.Time      // until when pages do not come
	offered bool
}

// New returns a host on which nothing runs yet. The scenario gives launch command,
// load, hardware, faults of the first life, and startup time.
func New(sc *scenarios.Scenario, seed uint64) *Host {
	return &Host{scenario: *sc, seed: seed, began: time.Now(), world: simbench.NewWorld(nil)}
}

// Clock is the host's time since it was made: the clock of a session on it.
func (h *Host) Clock() time.Duration { return time.Since(h.began) }

// now locks the host and brings it to the present.
func (h *Host) now() {
	h.mu.Lock()
	if t := h.Clock(); t > h.world.Now() {
		h.world.Until(t)
	}
}

// Start starts the server with a launch command, "" for the scenario's, ending one
// that runs. It does not wait until the server answers. The clients begin with the
// first start, and outlive every server. The error is the server's refusal.
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
	s, err := simbench.Settings(c, &h.scenario, h.seed)
	if err != nil {
		return err
	}
	if h.life == 0 {
		s.Faults = h.scenario.Faults
	}
	if err := h.world.Restart(s); err != nil {
		return err
	}
	h.command = c
	h.life++
	h.started = h.world.Now()
	if h.offered {
		return nil
	}
	h.offered = true
	healthy, _ := h.world.Healthy()
	for i := range h.scenario.Load {
		o := simbench.Offering{Origin: healthy, Seed: h.seed*31 + uint64(i)}
		if err := h.world.Offer(&h.scenario.Load[i], o); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends the server; its clients go on asking.
func (h *Host) Kill() {
	h.now()
	defer h.mu.Unlock()
	h.world.Kill()
}

// Hang keeps every page from coming for a time; the server works on.
func (h *Host) Hang(d time.Duration) {
	h.now()
	defer h.mu.Unlock()
	h.hung = time.Now().Add(d)
}

// Command is the launch command of the server that was started last.
func (h *Host) Command() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.command == nil {
		return ""
	}
	return h.command.Shell()
}

// pageTook is what fetching a page takes over loopback.
const pageTook = 3 * time.Millisecond

// Page is what a scrape gets.
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

// errGone is what a host without a server answers.
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

// Attach finds the server as a session does that has hands: it may restart it.
func (h *Host) Attach(ctx context.Context) (*session.Server, error) { return h.attach(ctx, true) }

// AttachOnly finds the server for a session that cannot restart it.
func (h *Host) AttachOnly(ctx context.Context) (*session.Server, error) { return h.attach(ctx, false) }

func (h *Host) attach(ctx context.Context, hands bool) (*session.Server, error) {
	if _, err := h.Page(ctx, nil); err != nil {
		return nil, err
	}
	h.now()
	defer h.mu.Unlock()
	if !h.world.Listening() {
		return nil, errGone
	}
	life := h.life
	s := &session.Server{
		Header: h.world.Header(h.command), Pages: h, GPUs: devices{h}, Identity: fmt.Sprintf("4242 since start %d", life),
		Processes: func() ([]engine.Process, []string, error) { return h.processes(life) },
		NoHands:   "this simulated server is restarted by the test alone",
	}
	if hands {
		s.Apply, s.NoHands = h.apply, ""
	}
	return s, nil
}

// processes are those of a life of the server, as a reading of the machine would
// show them.
func (h *Host) processes(life int) ([]engine.Process, []string, error) {
	h.now()
	defer h.mu.Unlock()
	if h.life != life {
		return nil, []string{"the server's process has ended"}, nil
	}
	age := h.Clock() - h.started
	pid := 4000 + 100*life
	return []engine.Process{
		{PID: pid, PPID: 1, Role: "api-server", Name: "vllm", State: "S", Age: age, RSSBytes: 2 << 30, Threads: 40},
		{PID: pid + 1, PPID: pid, Role: "engine-core", Name: "VLLM::EngineCore", State: "R", Age: age, RSSBytes: 8 << 30, Threads: 60},
	}, nil, nil
}

// Follow keeps what a run keeps, before anybody is told of it: for the Tell of a
// session with hands. tell may be nil.
func (h *Host) Follow(tell func(engine.Event)) func(engine.Event) {
	return func(e engine.Event) {
		if e.Kind == engine.EventKept || e.Kind == engine.EventContinued {
			h.mu.Lock()
			h.kept = h.command
			h.mu.Unlock()
		}
		if tell != nil {
			tell(e)
		}
	}
}

// apply restarts the server with changes made to the kept launch, or with that one,
// and returns when it answers. Where it does not start with them it runs as before.
func (h *Host) apply(ctx context.Context, a engine.Apply) engine.Applied {
	h.mu.Lock()
	kept, next := h.kept, h.kept
	if !a.Revert {
		next = engine.Changed(kept, a.Changes...)
	}
	h.mu.Unlock()
	if err := h.restart(ctx, next); err != nil {
		if back := h.restart(context.WithoutCancel(ctx), kept); back != nil {
			return engine.Applied{Err: fmt.Sprintf("%v, nor as before: %v", err, back)}
		}
		return engine.Applied{Err: err.Error(), Back: !a.Revert}
	}
	return engine.Applied{}
}

// restart starts the server with a launch and waits until it answers.
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
