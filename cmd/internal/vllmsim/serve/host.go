package serve

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

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// Host keeps the port of a simulated server, on which one life follows another.
// Its methods may be called from several goroutines.
type Host struct {
	address string // host:port
	clock   *clock
	log     *journal

	mu   sync.Mutex // one change at a time; guards life
	life *life
}

// ErrPort says that the server's port is taken.
var ErrPort = errors.New("address already in use")

// Open starts a simulated server. The error is the server's refusal to start, in
// vLLM's words, or wraps [ErrPort]. The server answers once it is up, which
// [Host.Ready] waits for. Port 0 is one that is free, and stays the same for
// every later life.
func Open(s *settings.Settings) (*Host, error) {
	address, err := claim(s.Host, s.Port)
	if err != nil {
		return nil, err
	}
	h := &Host{address: address, clock: newClock(s.Scale), log: &journal{}}
	if err := h.start(s); err != nil {
		return nil, err
	}
	return h, nil
}

// claim makes sure that a port can be had, long before the server listens on
// it: a real one binds first of all, too.
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

// A free port is looked for where the system hands out none by itself (Linux gives
// outgoing connections those from 32768 on): while a server is down, a client that
// comes back, or anybody else, would now and then be given its port.
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

// start begins a life. The caller holds mu, or nobody else knows h.
func (h *Host) start(s *settings.Settings) error {
	own := *s // the caller's may change
	server, err := vllmsim.Start(&own, own.Device, h.clock.now(), time.Now())
	if err != nil {
		return err
	}
	h.begin(server, &own)
	return nil
}

func (h *Host) begin(m machine, s *settings.Settings) {
	f := newLife(m, s, h.clock, h.log)
	h.life = f
	h.log.add(h.clock.now(), "start", f.started, entry{Command: f.command})
	go f.serve(h.address)
}

func (h *Host) current() *life {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.life
}

// URL is the server's base URL, by an address that can be connected to.
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

// Settings is the configuration that the present life was started with.
func (h *Host) Settings() settings.Settings { return *h.current().settings }

// Sizing is the KV pool of one rank of the present life.
func (h *Host) Sizing() perf.Sizing { return h.current().m.Sizing() }

// Ready waits until the present life answers. The error is that of ctx, or says
// why the life never will.
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

// Wait waits until ctx ends, which is no error, or the present life ends by
// itself.
func (h *Host) Wait(ctx context.Context) error {
	f := h.current()
	select {
	case <-ctx.Done():
		return nil
	case <-f.gone:
		return f.why()
	}
}

// StartsIn is the wall time until the present life will answer, 0 where it does.
func (h *Host) StartsIn() time.Duration {
	return max(0, h.clock.until(h.current().m.Healthy()))
}

// Restart ends the present life and starts another one on the same port, with a
// configuration of its own. With drain it waits for the requests under way, as
// long as ctx allows; else, and afterwards, connections break. KV cache, queues
// and counters begin anew. The error is the new configuration's refusal: then
// nothing runs any more, and Restart may be tried again.
func (h *Host) Restart(ctx context.Context, s *settings.Settings, drain bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop(ctx, drain)
	if s.Scale != h.clock.rate() {
		h.clock.rescale(s.Scale)
	}
	return h.start(s)
}

// Close ends the present life, with drain once its requests have ended or ctx
// has. It may be called again.
func (h *Host) Close(ctx context.Context, drain bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop(ctx, drain)
}

// stop ends the life that runs, if one does.
func (h *Host) stop(ctx context.Context, drain bool) {
	f := h.life
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
