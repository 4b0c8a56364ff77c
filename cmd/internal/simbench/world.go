package simbench

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// server is a life of a simulated server: a [vllmsim.Server].
type server interface {
	Healthy() time.Duration
	Submit(now time.Duration, c vllmsim.Call, sink vllmsim.Sink) (core.ID, error)
	Cancel(now time.Duration, id core.ID)
	Next() (time.Duration, bool)
	Advance(now time.Duration)
	Page(buf []byte, now time.Duration) []byte
	GPUs(now time.Duration) []perf.Reading
	Inject(now time.Duration, f settings.Fault) error
	Dead() bool
}

// start begins a life; a variable of World so that tests can put a fake there.
type start func(s *settings.Settings, device []byte, now time.Duration, wall time.Time) (server, error)

func startSimulated(s *settings.Settings, device []byte, now time.Duration, wall time.Time) (server, error) {
	v, err := vllmsim.Start(s, device, now, wall)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// epoch is the wall time at which every world begins.
var epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// World is one clock with a server, its clients and timers on it. Time is since
// the world's beginning, when its first server is started. It is not safe for
// concurrent use.
type World struct {
	now     time.Duration
	start   start
	server  server // nil between two lives
	live    *settings.Settings
	clients []*clients
	timers  timers
	order   uint64 // of timers at the same time
	log     *eventLog
	events  int // that were let happen
}

// NewWorld returns a world at its beginning, without a server. log receives one
// JSON object a line for everything that happens; nil receives nothing.
func NewWorld(log io.Writer) *World {
	return &World{start: startSimulated, log: newEventLog(log)}
}

// Now is the time since the world's beginning.
func (w *World) Now() time.Duration { return w.now }

// Launch starts a server now. The error is its refusal; the world has no server
// then.
func (w *World) Launch(s *settings.Settings) error {
	w.log.write(w.now, "start", "argv", s.Argv)
	v, err := w.start(s, nil, w.now, epoch.Add(w.now))
	if err != nil {
		w.log.write(w.now, "refused", "error", err.Error())
		return err
	}
	w.server, w.live = v, s
	w.At(v.Healthy(), func() { w.log.write(w.now, "healthy") })
	return nil
}

// Restart ends the server now, breaking every connection, and starts another
// one.
func (w *World) Restart(s *settings.Settings) error {
	w.Kill()
	return w.Launch(s)
}

// Kill ends the server now: every connection breaks.
func (w *World) Kill() {
	w.log.write(w.now, "kill")
	w.server, w.live = nil, nil
	for _, c := range w.clients {
		c.broken(w.now, errReset)
	}
}

// Healthy returns when the present server listens; false without a server.
func (w *World) Healthy() (time.Duration, bool) {
	if w.server == nil {
		return 0, false
	}
	return w.server.Healthy(), true
}

// Listening says whether the server answers now.
func (w *World) Listening() bool { return w.server != nil && w.now >= w.server.Healthy() }

// Errors of a connection.
var (
	errRefused = errors.New("dial tcp 127.0.0.1:8000: connect: connection refused")
	errReset   = errors.New("read tcp 127.0.0.1:8000: connection reset by peer")
)

// At has f called when the time t has come, after the server has done what is due
// then. A time that has passed is now.
func (w *World) At(t time.Duration, f func()) {
	w.order++
	heap.Push(&w.timers, timer{max(t, w.now), w.order, f})
}

// Until lets time pass up to t, everything at its own time: first what the server
// does, then timers in the order they were set, then clients in theirs.
func (w *World) Until(t time.Duration) {
	for {
		next, ok := w.next()
		if !ok || next > t {
			break
		}
		w.now = max(w.now, next)
		w.events++
		if w.server != nil {
			w.server.Advance(w.now)
		}
		for len(w.timers) > 0 && w.timers[0].at <= w.now {
			heap.Pop(&w.timers).(timer).f()
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

// next is when something happens by itself.
func (w *World) next() (time.Duration, bool) {
	var least time.Duration
	found := false
	consider := func(t time.Duration, ok bool) {
		if ok && (!found || t < least) {
			least, found = t, true
		}
	}
	if w.server != nil {
		consider(w.server.Next())
	}
	if len(w.timers) > 0 {
		consider(w.timers[0].at, true)
	}
	for _, c := range w.clients {
		consider(c.next())
	}
	return least, found
}

// Page is what a scrape of the metrics page gets now.
func (w *World) Page(buf []byte) ([]byte, error) {
	if !w.Listening() {
		return nil, fmt.Errorf("%s: %w", metricsURL, errRefused)
	}
	return w.server.Page(buf, w.now), nil
}

type timer struct {
	at    time.Duration
	order uint64
	f     func()
}

// timers is a heap by time, then by the order they were set in.
type timers []timer

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if t[i].at != t[j].at {
		return t[i].at < t[j].at
	}
	return t[i].order < t[j].order
}
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)   { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	(*t)[len(*t)-1] = timer{}
	*t = (*t)[:len(*t)-1]
	return last
}
