package vllmsim

import (
	"cmp"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// Kinds of fault, as [settings.Fault] spells them.
const (
	// stall stops the engine's process. Its step takes that much longer, the gauges keep their
	// values, and the API servers continue to answer.
	stall = "stall"
	// slow throttles the GPUs: steps take Factor times as long.
	slow = "slow"
	// die ends the engine's process. Waiting requests get an error, and /health answers 503.
	die = "die"
	// reset cuts all connections, and new ones while it lasts. Without a duration it ends at once.
	reset = "reset"
	// network delays every answer by Delay outside the server.
	network = "network"
	// skew sends every request to one rank.
	skew = "skew"
	// failing answers a share Factor of the requests with 500, as the API server does when the handler
	// of a request raises an exception.
	failing = "errors"
)

// window is a fault with the interval in which it is active, without its end.
type window struct {
	settings.Fault
	from, to time.Duration
	struck   bool // for die and reset: whether it has happened
}

// faults is the list of a server's faults, in order of their starts.
type faults []*window

// add adds a fault that begins at a time. Settings.CheckFault must have accepted it.
func (list *faults) add(at time.Duration, f settings.Fault) {
	w := &window{Fault: f, from: at, to: Never}
	if f.For > 0 && at < Never-f.For {
		w.to = at + f.For
	} else if f.Kind == reset {
		w.to = at
	}
	*list = append(*list, w)
	slices.SortStableFunc(*list, func(a, b *window) int { return cmp.Compare(a.from, b.from) })
}

// Inject adds a fault that begins at now + f.At. It returns an error, without a change, if the server
// does not have the fault's rank.
func (v *Server) Inject(now time.Duration, f settings.Fault) error {
	if err := v.settings.CheckFault(f); err != nil {
		return err
	}
	v.Advance(now)
	v.faults.add(v.now+max(0, f.At), f)
	for _, r := range v.ranks {
		if r.busy {
			r.schedule()
		}
	}
	return nil
}

// activeFor reports whether a fault is of a kind and active for a rank; rank -1 means any.
func (w *window) activeFor(kind string, rank int, now time.Duration) bool {
	return w.Kind == kind && w.from <= now && now < w.to && (rank < 0 || w.Rank < 0 || w.Rank == rank)
}

// active returns the latest active fault of a kind, nil if there is none.
func (list faults) active(kind string, rank int, now time.Duration) *window {
	for _, w := range slices.Backward(list) {
		if w.activeFor(kind, rank, now) {
			return w
		}
	}
	return nil
}

// frozen reports whether a rank is stalled, and until when by the faults known now.
func (list faults) frozen(rank int, now time.Duration) (until time.Duration, yes bool) {
	for until = now; ; yes = true {
		w := list.active(stall, rank, until)
		if w == nil {
			return until, yes
		}
		if until = w.to; until == Never {
			return Never, true
		}
	}
}

// pace returns the relative speed of a rank at a time, 1 without faults, and until when it applies.
func (list faults) pace(rank int, now time.Duration) (speed float64, until time.Duration) {
	speed, until = 1, Never
	for _, w := range list {
		if w.Kind != stall && w.Kind != slow || w.Rank >= 0 && w.Rank != rank {
			continue
		}
		switch {
		case now < w.from:
			until = min(until, w.from)
			continue
		case now >= w.to:
			continue
		case w.Kind == stall:
			speed = 0
		case w.Factor > 0 && speed > 0:
			speed = 1 / w.Factor // only the latest counts: multiplied factors would not correspond to any hardware
		}
		until = min(until, w.to)
	}
	return speed, until
}

// passed returns the time at which work that a rank begins at a time is done.
func (list faults) passed(rank int, began, work time.Duration) time.Duration {
	at, left := began, float64(work)
	if len(list) == 0 {
		return began + work
	}
	for {
		speed, until := list.pace(rank, at)
		if speed > 0 {
			need := time.Duration(left / speed)
			if until == Never || at+need <= until {
				return at + need
			}
			left -= float64(until-at) * speed
		} else if until == Never {
			return Never
		}
		at = until
	}
}

// slowdown returns the factor by which throttling lengthens a step.
func (list faults) slowdown(rank int, began, ended time.Duration) float64 {
	if len(list) == 0 {
		return 1
	}
	var worked, moved float64
	for at := began; at < ended; {
		speed, until := list.pace(rank, at)
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

// delay returns the time that the network adds to an answer that leaves now.
func (list faults) delay(now time.Duration) time.Duration {
	var d time.Duration
	for _, w := range list {
		if w.activeFor(network, -1, now) {
			d += w.Delay
		}
	}
	return d
}

// cut reports whether connections are refused.
func (list faults) cut(now time.Duration) bool { return list.active(reset, -1, now) != nil }

// refused reports whether the next request is one of those that a fault lets fail.
func (v *Server) refused(now time.Duration) bool {
	w := v.faults.active(failing, -1, now)
	if w == nil {
		return false
	}
	if v.failures += w.Factor; v.failures < 1 {
		return false
	}
	v.failures--
	return true
}

// next returns the time of the next die or reset fault.
func (list faults) next() time.Duration {
	for _, w := range list {
		if (w.Kind == die || w.Kind == reset) && !w.struck {
			return w.from
		}
	}
	return Never
}

// strike applies the die and reset faults that are due.
func (v *Server) strike(now time.Duration) {
	for _, w := range v.faults {
		if w.struck || w.from > now || w.Kind != die && w.Kind != reset {
			continue
		}
		w.struck = true
		if w.Kind == die {
			v.halt()
			v.dead = true
			v.fail(ErrDead, now)
		} else {
			v.fail(ErrClosed, now)
		}
	}
}

// halt ends the engines; outputs that they have not delivered are lost.
func (v *Server) halt() {
	for _, r := range v.ranks {
		r.busy, r.ends, r.wakes = false, Never, Never
		r.reports = nil
	}
	for _, f := range v.fronts {
		f.deliveries = Queue[chunk]{}
	}
}

// fail ends every request with an error and aborts it in its engine.
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
			continue // an earlier sink has cancelled it
		}
		sink, status := q.sink, err.Status
		if status == 0 || q.sent > 0 {
			status = 200 // its headers are sent, or there are none
		}
		v.abandon(q, status, now)
		if sink != nil {
			sink(Update{At: now, Err: err, Finish: core.Error})
		}
	}
}
