package vllmsim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// Host keeps the port of a simulated server over its starts. Its methods may be called from several
// goroutines.
type Host struct {
	address string // host:port
	clock   *clock

	mu      sync.Mutex // held during a change; protects running
	running *incarnation
}

// ErrPort is wrapped by the error of a port that is in use.
var ErrPort = errors.New("address already in use")

// Open starts a simulated server. The error is the server's refusal to start, with vLLM's text, or wraps
// [ErrPort]. [Host.Ready] waits until the server answers. Port 0 means a free port, which later servers on the
// host keep.
func Open(s *settings.Settings) (*Host, error) {
	address, err := claim(s.Host, s.Port)
	if err != nil {
		return nil, err
	}
	h := &Host{address: address, clock: newClock(s.Scale)}
	if err := h.start(s); err != nil {
		return nil, err
	}
	return h, nil
}

// claim checks that a port is free long before the server listens on it: a real server binds first as well.
func claim(host string, port int) (string, error) {
	l, err := listen(net.JoinHostPort(host, strconv.Itoa(port)))
	for try := 0; port == 0 && err == nil && try < quietTries; try++ {
		quiet, taken := listen(net.JoinHostPort(host, strconv.Itoa(quietPort+rand.IntN(quietPorts))))
		if taken == nil {
			_ = l.Close()
			l = quiet
			break
		}
	}
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, taken, err := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, taken), err
}

// Free ports are searched below the system's ephemeral range, which begins at 32768 on Linux. Otherwise the
// system could assign the port of a server that is down to an outgoing connection.
const (
	quietPort  = 20000
	quietPorts = 12000
	quietTries = 20
)

func listen(address string) (net.Listener, error) {
	var c net.ListenConfig
	l, err := c.Listen(context.Background(), "tcp", address)
	if err == nil {
		return l, nil
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: %s; stop what listens there, or give another --port", ErrPort, address)
	}
	return nil, fmt.Errorf("listen on %s: %w; give another --host or --port", address, err)
}

// start starts a server. The caller holds mu, or has the only reference to h.
func (h *Host) start(s *settings.Settings) error {
	own := *s // the caller may change s
	server, err := Start(&own, h.clock.now(), time.Now())
	if err != nil {
		return err
	}
	h.begin(server, &own)
	return nil
}

func (h *Host) begin(m machine, s *settings.Settings) {
	f := newIncarnation(m, s, h.clock)
	h.running = f
	go f.serve(h.address)
}

func (h *Host) current() *incarnation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running
}

// URL returns the server's base URL, with an address that clients can connect to.
func (h *Host) URL() string {
	host, port, _ := net.SplitHostPort(h.address)
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// Settings returns the configuration of the current server.
func (h *Host) Settings() settings.Settings { return *h.current().settings }

// Sizing returns the KV pool of one rank of the current server.
func (h *Host) Sizing() perf.Sizing { return h.current().m.Sizing() }

// Ready waits until the current server answers. The error is that of ctx, or why the server will never answer.
func (h *Host) Ready(ctx context.Context) error {
	f := h.current()
	select {
	case <-f.ready:
		return nil
	case <-f.failed:
		return f.err
	case <-f.gone:
		return f.why()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wait waits until ctx ends and returns nil, or until the current server ends by itself.
func (h *Host) Wait(ctx context.Context) error {
	f := h.current()
	select {
	case <-ctx.Done():
		return nil
	case <-f.gone:
		return f.why()
	}
}

// StartsIn returns the wall time until the current server answers, 0 if it does already.
func (h *Host) StartsIn() time.Duration {
	return max(0, h.clock.until(h.current().m.Healthy()))
}

// Restart ends the current server, which breaks its connections, and starts another one on the same port with
// configuration s. KV cache, queues and counters start at zero. The error is the server's refusal: then no server
// runs, and Restart may be called again.
func (h *Host) Restart(s *settings.Settings) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop(context.Background(), false)
	return h.start(s)
}

// Close ends the current server. With drain it first waits for requests in progress until ctx ends. It may be
// called more than once.
func (h *Host) Close(ctx context.Context, drain bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop(ctx, drain)
}

// stop ends the server that runs, if one does.
func (h *Host) stop(ctx context.Context, drain bool) {
	f := h.running
	select {
	case <-f.quit:
		return
	default:
	}
	if drain {
		_ = f.drain(ctx)
	}
	f.kill()
}
