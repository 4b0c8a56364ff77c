// Package vllmsim is one simulated vLLM server: front end, engines, KV cache,
// metrics and GPUs, as a machine that is driven by events. [Server] has no clock:
// an HTTP server drives it by the wall ([github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/serve]),
// the scenario bench by a virtual clock, and both see the same server.
//
// A request passes an API server process (HTTP, tokenizer), waits in the queue of
// one engine, is computed in steps, and each step's tokens pass the process again
// on their way to the client. Engines of a data-parallel group step on their own
// here: the dummy steps by which vLLM keeps the ranks of a mixture of experts in
// pace are not simulated.
package vllmsim

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/page"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// never is the time of what does not happen by itself.
const never time.Duration = math.MaxInt64

// Server is one life of a server process. Its methods are not safe for
// concurrent use. Times are since one origin, the same for every life on one
// clock, and never go back: a time before the last one is taken as the last one.
//
// A [Sink] may call Submit and Cancel, and none of the others.
type Server struct {
	settings *settings.Settings
	machine  *perf.Machine
	sizing   perf.Sizing
	book     *page.Book

	started, healthy time.Duration
	now              time.Duration
	dead             bool // the engine died
	closed           bool // the process ended

	ranks    []*rank
	fronts   []*front
	balancer balancer
	faults   []*window
	events   eventQueue
	costs    perf.FrontEnd

	requests map[core.ID]*request // that have not been answered to their end
	lastID   core.ID
	lengths  lognormal
	spare    []*delivery
}

// Start begins a life at time now, whose process starts on the wall at start. The
// error is the server's refusal, in vLLM's words.
func Start(s *settings.Settings, device []byte, now time.Duration, start time.Time) (*Server, error) {
	for _, f := range s.Faults {
		if err := s.CheckFault(f); err != nil {
			return nil, err
		}
	}
	machine, err := perf.New(s, device)
	if err != nil {
		return nil, err
	}
	sizing, err := machine.Size()
	if err != nil {
		return nil, err
	}
	v := &Server{
		settings: s,
		machine:  machine,
		sizing:   sizing,
		started:  now,
		healthy:  now + machine.Startup(),
		now:      now,
		costs:    machine.FrontEnd(),
		requests: map[core.ID]*request{},
		lengths:  defaultLengths,
	}
	v.book = page.NewBook(s, page.Cache{
		NumBlocks:      sizing.NumBlocks,
		SizeTokens:     sizing.TokenCapacity,
		MaxConcurrency: sizing.MaxConcurrency,
	}, start)
	for i := range max(1, s.DataParallel) {
		v.ranks = append(v.ranks, newRank(v, i))
	}
	for range max(1, s.APIServers) {
		v.fronts = append(v.fronts, &front{})
	}
	v.balancer.init(len(v.ranks), len(v.fronts), minor(s.Release) >= 32)
	for _, f := range s.Faults {
		v.addFault(v.healthy+f.At, f)
	}
	return v, nil
}

// minor returns the minor release of "0.32" or "0.32.0".
func minor(release string) int {
	_, rest, _ := strings.Cut(release, ".")
	rest, _, _ = strings.Cut(rest, ".")
	n, _ := strconv.Atoi(rest)
	return n
}

// Healthy returns when the server listens: the start and its start-up time.
func (v *Server) Healthy() time.Duration { return v.healthy }

// Dead says that a fault ended the engine: health answers 503.
func (v *Server) Dead() bool { return v.dead }

// Next returns when something will happen by itself; false while nothing will.
func (v *Server) Next() (time.Duration, bool) {
	at := v.next()
	return at, at != never
}

func (v *Server) next() time.Duration {
	at := v.events.next()
	for _, r := range v.ranks {
		at = min(at, r.ends, r.wakes)
	}
	for _, f := range v.fronts {
		at = min(at, f.deliveries.next())
	}
	return min(at, v.nextFault())
}

// Advance lets time pass up to now: everything due happens at its own time, and
// what happens at the same time in the order fault, arrival, end of a step,
// delivery.
func (v *Server) Advance(now time.Duration) {
	for {
		at := v.next()
		if at > now || at == never {
			break
		}
		v.now = max(v.now, at)
		v.happen(at)
	}
	v.now = max(v.now, now)
}

// happen lets the first thing happen that is due at that time.
func (v *Server) happen(at time.Duration) {
	if v.nextFault() <= at {
		v.strike(at)
		return
	}
	if v.events.next() <= at {
		v.handle(v.events.pop())
		return
	}
	for _, r := range v.ranks {
		switch {
		case r.ends <= at:
			r.complete(at)
			return
		case r.wakes <= at:
			r.wakes = never
			r.begin(at)
			return
		}
	}
	for _, f := range v.fronts {
		if f.deliveries.next() <= at {
			c := f.deliveries.pop()
			v.deliver(c)
			return
		}
	}
}

// handle lets an event of the front end happen.
func (v *Server) handle(e event) {
	q := e.request
	switch e.kind {
	case arrives:
		v.arrive(q, e.at)
	case queues:
		v.queue(q, e.at)
	case leaves:
		v.leave(q, e.at)
	case reaches:
		q.outside--
		v.send(q, e.update)
	}
}

// Page appends the metrics page as a scrape at now would get it.
func (v *Server) Page(buf []byte, now time.Duration) []byte {
	v.Advance(now)
	for _, f := range v.fronts {
		v.book.CPU(f.spent(v.now))
	}
	return v.book.Append(buf, v.now-v.started)
}

// GPUs returns the simulated devices at now, all ranks.
func (v *Server) GPUs(now time.Duration) []perf.Reading {
	v.Advance(now)
	var all []perf.Reading
	for _, r := range v.ranks {
		all = append(all, r.meter.Read(v.now)...)
	}
	return all
}

// Sizing returns the KV pool of one rank.
func (v *Server) Sizing() perf.Sizing { return v.sizing }

// Totals returns the counters of the page, for checks of conservation.
func (v *Server) Totals() page.Totals { return v.book.Totals() }

// HTTP counts an answer that the front end gave without the machine's help: any
// but those to requests that were given to Submit, which it counts itself.
func (v *Server) HTTP(method, handler string, status int, took time.Duration, requestBytes, responseBytes int) {
	v.book.HTTP(method, handler, status, took, requestBytes, responseBytes)
}

// Observe has every event of the engines told to f from now on; nil ends that.
// [core.Log] writes those of one rank as lines of JSON.
func (v *Server) Observe(f func(rank int, e core.Event)) {
	for i, r := range v.ranks {
		if f == nil {
			r.engine.Observe(nil)
			continue
		}
		r.engine.Observe(func(e core.Event) { f(i, e) })
	}
}

// purposes keep the random streams of a server apart, so that drawing more of
// one moves none of the others.
const (
	forHiccups uint64 = iota + 1
	forLengths
)

func stream(seed, purpose, index uint64) *rand.PCG {
	return rand.NewPCG(seed, purpose<<32|index)
}
