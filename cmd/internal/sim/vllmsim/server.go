// Package vllmsim is a simulated vLLM server: front end, engines, KV cache, metrics, GPUs and HTTP. [Server] is
// an event-driven state machine without a clock: a [Host] drives it with the wall clock and answers HTTP, the
// bench with a virtual clock.
//
// A request passes an API server process (HTTP, tokenizer), waits in the queue of one engine, and is computed in
// steps; the tokens of each step pass the API server again on their way to the client. The engines of a data-
// parallel group step independently: the dummy steps with which vLLM synchronizes the ranks of a mixture of
// experts are not simulated.
package vllmsim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// Server is one start of a server process. Its methods are not safe for concurrent use. Times are since an
// origin that is the same for every start on one clock, and never decrease: an earlier time counts as the
// latest one.
//
// A [Sink] may call Submit and Cancel, but no other method.
type Server struct {
	settings *settings.Settings
	machine  *perf.Machine
	sizing   perf.Sizing
	book     *Book

	started, healthy time.Duration
	now              time.Duration
	dead             bool // whether the engine died

	ranks    []*rank
	fronts   []*front
	balancer balancer
	faults   faults
	failures float64                       // of requests, that are due and have not happened, below 1
	events   Queue[func(at time.Duration)] // of the front end
	costs    perf.FrontEnd

	requests map[core.ID]*request // requests whose answer is not complete
	lastID   core.ID
}

// Start starts a server at time now; start is the wall time of its process start. The error is the server's
// refusal, with vLLM's text.
func Start(s *settings.Settings, now time.Duration, start time.Time) (*Server, error) {
	for _, f := range s.Faults {
		if err := s.CheckFault(f); err != nil {
			return nil, err
		}
	}
	machine, err := perf.New(s)
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
	}
	v.book = NewBook(s, Cache{
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
	v.balancer.init(len(v.ranks), len(v.fronts), settings.Minor(s.Release) >= 32)
	for _, f := range s.Faults {
		v.faults.add(v.healthy+f.At, f)
	}
	return v, nil
}

// Healthy returns the time at which the server listens: its start plus the start-up time.
func (v *Server) Healthy() time.Duration { return v.healthy }

// Dead reports whether a fault ended the engine; /health then answers 503.
func (v *Server) Dead() bool { return v.dead }

// Next returns the time of the next event; false if there is none.
func (v *Server) Next() (time.Duration, bool) {
	at := v.next()
	return at, at != Never
}

func (v *Server) next() time.Duration {
	at := v.events.Next()
	for _, r := range v.ranks {
		at = min(at, r.ends, r.wakes)
	}
	for _, f := range v.fronts {
		at = min(at, f.deliveries.Next())
	}
	return min(at, v.faults.next())
}

// Advance advances time to now and handles all events that are due, each at its own time. At equal times
// the order is fault, arrival, end of a step, delivery.
func (v *Server) Advance(now time.Duration) {
	for {
		at := v.next()
		if at > now || at == Never {
			break
		}
		v.now = max(v.now, at)
		v.happen(at)
	}
	v.now = max(v.now, now)
}

// happen handles the first event that is due at a time.
func (v *Server) happen(at time.Duration) {
	if v.faults.next() <= at {
		v.strike(at)
		return
	}
	if v.events.Next() <= at {
		at, call := v.events.Pop()
		call(at)
		return
	}
	for _, r := range v.ranks {
		switch {
		case r.ends <= at:
			r.complete(at)
			return
		case r.wakes <= at:
			r.wakes = Never
			r.begin(at)
			return
		}
	}
	for _, f := range v.fronts {
		if f.deliveries.Next() <= at {
			v.deliver(f.deliveries.Pop())
			return
		}
	}
}

// Page appends the metrics page at time now to buf and returns it.
func (v *Server) Page(buf []byte, now time.Duration) []byte {
	v.Advance(now)
	for _, f := range v.fronts {
		v.book.CPU(f.spent(v.now))
	}
	return v.book.Append(buf, v.now-v.started)
}

// GPUs returns the readings of the simulated devices of all ranks at time now.
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

// HTTP counts a request to generate on the page that was refused before Submit, which counts the others.
func (v *Server) HTTP(path string, status int) { v.book.HTTP(path, status) }

// outputLength draws the output length of a request that does not determine it: a mean of about 250 tokens with a
// long tail, as in recorded chats. Assumed. Each request has a random stream of its own.
func (v *Server) outputLength(id core.ID) int {
	const median, sigma = 180, 0.8
	z := rand.New(rand.NewPCG(v.settings.Seed, 2<<32|uint64(id))).NormFloat64()
	return max(1, int(math.Round(median*math.Exp(sigma*z))))
}
