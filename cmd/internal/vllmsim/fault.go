package vllmsim

import (
	"cmp"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// Kinds of fault, as [settings.Fault] spells them.
const (
	// stall: the engine's process stands still. Its step takes as much longer,
	// the gauges keep what they showed, the API servers go on answering.
	stall = "stall"
	// slow: the GPUs are throttled; steps take Factor times as long.
	slow = "slow"
	// die: the engine's process ends. Whoever waits gets an error, health says 503.
	die = "die"
	// reset: every connection is cut, and those that come while it lasts. Without a
	// duration it is over at once.
	reset = "reset"
	// network: every answer takes Delay longer on its way, outside the server.
	network = "network"
	// skew: every request goes to one rank.
	skew = "skew"
	// hiccup: now and then, at random, a step takes Delay longer.
	hiccup = "hiccup"
)

// hiccupEvery is the computing time between two hiccups on average.
const hiccupEvery = 10 * time.Second

// window is a fault and when it holds: from its start until before its end.
type window struct {
	kind     string
	from, to time.Duration
	rank     int // -1 all
	factor   float64
	delay    time.Duration
	struck   bool // of die and reset: it happened
}

// addFault adds a fault that begins at a time and that the server's settings let
// pass.
func (v *Server) addFault(at time.Duration, f settings.Fault) {
	w := &window{kind: f.Kind, from: at, to: never, rank: f.Rank, factor: f.Factor, delay: f.Delay}
	if f.For > 0 && at < never-f.For {
		w.to = at + f.For
	} else if f.Kind == reset {
		w.to = at
	}
	v.faults = append(v.faults, w)
	slices.SortStableFunc(v.faults, func(a, b *window) int { return cmp.Compare(a.from, b.from) })
}

// Inject adds a fault that begins at now, or f.At later. The error says why the
// server cannot have it; nothing changes then.
func (v *Server) Inject(now time.Duration, f settings.Fault) error {
	if err := v.settings.CheckFault(f); err != nil {
		return err
	}
	v.Advance(now)
	v.addFault(v.now+max(0, f.At), f)
	for _, r := range v.ranks {
		if r.busy {
			r.schedule()
		}
	}
	return nil
}

// holds says whether a fault of a kind holds for a rank; -1 asks for any.
func (w *window) holds(kind string, rank int, now time.Duration) bool {
	return w.kind == kind && w.from <= now && now < w.to && (rank < 0 || w.rank < 0 || w.rank == rank)
}

// active returns the latest fault of a kind that holds, nil where none does.
func (v *Server) active(kind string, rank int, now time.Duration) *window {
	for _, w := range slices.Backward(v.faults) {
		if w.holds(kind, rank, now) {
			return w
		}
	}
	return nil
}

// frozen says whether a rank stands still, and when it goes on as far as is known.
func (v *Server) frozen(rank int, now time.Duration) (until time.Duration, yes bool) {
	for until = now; ; yes = true {
		w := v.active(stall, rank, until)
		if w == nil {
			return until, yes
		}
		if until = w.to; until == never {
			return never, true
		}
	}
}

// pace is how fast a rank works at a time, 1 without faults, and until when.
func (v *Server) pace(rank int, now time.Duration) (speed float64, until time.Duration) {
	speed, until = 1, never
	for _, w := range v.faults {
		if w.kind != stall && w.kind != slow || w.rank >= 0 && w.rank != rank {
			continue
		}
		switch {
		case now < w.from:
			until = min(until, w.from)
			continue
		case now >= w.to:
			continue
		case w.kind == stall:
			speed = 0
		case w.factor > 0 && speed > 0:
			speed = 1 / w.factor // the latest decides: factors that pile up would stand for no hardware
		}
		until = min(until, w.to)
	}
	return speed, until
}

// passed returns when work that a rank begins at a time is done.
func (v *Server) passed(rank int, began, work time.Duration) time.Duration {
	at, left := began, float64(work)
	if len(v.faults) == 0 {
		return began + work
	}
	for {
		speed, until := v.pace(rank, at)
		if speed > 0 {
			need := time.Duration(left / speed)
			if until == never || at+need <= until {
				return at + need
			}
			left -= float64(until-at) * speed
		} else if until == never {
			return never
		}
		at = until
	}
}

// slowdown is the factor by which throttling lengthened a step.
func (v *Server) slowdown(rank int, began, ended time.Duration) float64 {
	if len(v.faults) == 0 {
		return 1
	}
	var worked, moved float64
	for at := began; at < ended; {
		speed, until := v.pace(rank, at)
		until = min(until, ended)
		if speed > 0 {
			moved += float64(until - at)
			worked += float64(until-at) * speed
		}
		at = until
	}
	if worked == 0 {
		return 1
	}
	return moved / worked
}

// delay is what the network adds to an answer that leaves now.
func (v *Server) delay(now time.Duration) time.Duration {
	var d time.Duration
	for _, w := range v.faults {
		if w.holds(network, -1, now) {
			d += w.delay
		}
	}
	return d
}

// cut says whether connections are refused.
func (v *Server) cut(now time.Duration) bool { return v.active(reset, -1, now) != nil }

// nextFault returns when the next fault strikes that is an event.
func (v *Server) nextFault() time.Duration {
	for _, w := range v.faults {
		if (w.kind == die || w.kind == reset) && !w.struck {
			return w.from
		}
	}
	return never
}

// strike lets the faults happen that are due.
func (v *Server) strike(now time.Duration) {
	for _, w := range v.faults {
		if w.struck || w.from > now || w.kind != die && w.kind != reset {
			continue
		}
		w.struck = true
		if w.kind == die {
			v.halt()
			v.dead = true
			v.fail(ErrDead, now)
		} else {
			v.fail(ErrClosed, now)
		}
	}
}

// Stop ends the process: every connection breaks, nothing happens any more, and
// new ones are refused. The page stays as it was.
func (v *Server) Stop(now time.Duration) {
	v.Advance(now)
	v.halt()
	v.closed = true
	v.fail(ErrClosed, v.now)
	v.events = eventQueue{}
	v.faults = nil
}

// halt ends the engines: what they had not handed over is lost.
func (v *Server) halt() {
	for _, r := range v.ranks {
		r.busy, r.ends, r.wakes = false, never, never
		r.reports = nil
	}
	for _, f := range v.fronts {
		f.deliveries = chunkQueue{}
	}
}

// fail ends every request with an error. The engines give up what they still
// have of them.
func (v *Server) fail(err *Refusal, now time.Duration) {
	ids := make([]core.ID, 0, len(v.requests))
	for id, q := range v.requests {
		if !q.gone {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		q := v.requests[id]
		if q == nil || q.gone {
			continue // a sink before cancelled it
		}
		sink, status := q.sink, err.Status
		if status == 0 || q.messages > 0 {
			status = 200 // its headers are sent, or there are none
		}
		v.abandon(q, status, now)
		if sink != nil {
			sink(Update{At: now, Err: err, Finish: core.Error})
		}
	}
}
