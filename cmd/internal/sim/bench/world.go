package bench

import (
	"errors"
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
)

// epoch is the wall time at which every world begins.
var epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// World is a virtual clock with a server, its clients and timers. Times are since the beginning of
// the world. It is not safe for concurrent use.
type World struct {
	now     time.Duration
	server  *vllmsim.Server // nil if no server runs
	live    *settings.Settings
	clients []*clients
	timers  vllmsim.Queue[func()]
}

// NewWorld returns a world at time 0, without a server.
func NewWorld() *World { return &World{} }

// Now returns the time since the beginning of the world.
func (w *World) Now() time.Duration { return w.now }

// Launch starts a server now. The error is the server's refusal; the world then has no server.
func (w *World) Launch(s *settings.Settings) error {
	v, err := vllmsim.Start(s, w.now, epoch.Add(w.now))
	if err != nil {
		return err
	}
	w.server, w.live = v, s
	return nil
}

// Restart ends the server now, which breaks every connection, and starts another one.
func (w *World) Restart(s *settings.Settings) error {
	w.Kill()
	return w.Launch(s)
}

// Kill ends the server now, which breaks every connection.
func (w *World) Kill() {
	w.server, w.live = nil, nil
	for _, c := range w.clients {
		c.broken(w.now, errReset)
	}
}

// Healthy returns the time at which the current server listens; false without a server.
func (w *World) Healthy() (time.Duration, bool) {
	if w.server == nil {
		return 0, false
	}
	return w.server.Healthy(), true
}

// Listening reports whether the server answers now.
func (w *World) Listening() bool { return w.server != nil && w.now >= w.server.Healthy() }

// Errors of a connection.
var (
	errRefused = errors.New("dial tcp 127.0.0.1:8000: connect: connection refused")
	errReset   = errors.New("read tcp 127.0.0.1:8000: connection reset by peer")
)

// At calls f at time t, after the events of the server at that time. A time in the past means now.
func (w *World) At(t time.Duration, f func()) {
	w.timers.Push(max(t, w.now), f)
}

// Until advances time to t and handles everything that is due. At equal times, events of the server
// come first, then timers and clients, each in the order in which they were added.
func (w *World) Until(t time.Duration) {
	for {
		next := w.next()
		if next > t {
			break
		}
		w.now = max(w.now, next)
		if w.server != nil {
			w.server.Advance(w.now)
		}
		for w.timers.Next() <= w.now {
			_, call := w.timers.Pop()
			call()
		}
		for _, c := range w.clients {
			c.step(w)
		}
	}
	w.now = t
	if w.server != nil {
		w.server.Advance(t)
	}
	for _, c := range w.clients {
		c.step(w)
	}
}

// next returns the time of the next event, vllmsim.Never if there is none.
func (w *World) next() time.Duration {
	least := w.timers.Next()
	if w.server != nil {
		if t, ok := w.server.Next(); ok {
			least = min(least, t)
		}
	}
	for _, c := range w.clients {
		if t, ok := c.next(); ok {
			least = min(least, t)
		}
	}
	return least
}

// Health returns what /health of the server answers now.
func (w *World) Health() engine.Health {
	switch {
	case !w.Listening():
		return engine.Health{}
	case w.server.Dead():
		return engine.Health{State: engine.HealthFailed, Why: "/health answers 503"}
	}
	return engine.Health{State: engine.HealthOK}
}

// Page returns the result of a scrape of the metrics page now, appended to buf.
func (w *World) Page(buf []byte) ([]byte, error) {
	if !w.Listening() {
		return nil, fmt.Errorf("%s: %w", metricsURL, errRefused)
	}
	return w.server.Page(buf, w.now), nil
}
