package verdict

import (
	"math"
	"slices"
)

const (
	// busyMoved is the difference of the share of time that threads waited for a
	// core from which a neighbour is suspected.
	busyMoved = 0.02
	// busyQuiet is the share up to which a host is quiet.
	busyQuiet = 0.10
	// busyPower bounds how throughput follows that share: it is a mean over threads,
	// and the one that all wait for may fare worse.
	busyPower = 2
	// burstDepth is how far below a life's usual pace a slice is one of a burst, at
	// least; burstScatter in standard deviations of its usual scatter.
	burstDepth   = 0.08
	burstScatter = 3
	// burstNamed is what bursts must take from one side more than from the other, as
	// a logarithm, to be called the likely cause.
	burstNamed = 0.02
)

// host is what a neighbour explains of the effect at most, as logarithms.
type host struct {
	low, high float64
	busy      bool // the share of waiting threads moved
	bursts    bool // pieces far below the usual pace differ
	quiet     bool // threads are known to have waited little on both sides
}

// host bounds what a neighbour on the machine explains. Where the threads of the
// server are known to have waited no more for a core, bursts are its own.
func (c *comparison) host() {
	h := &c.hosts
	before, after := c.side[0].busy, c.side[1].busy
	known := before.OK && after.OK && before.V < 1 && after.V < 1
	explain := func(by float64) {
		h.low, h.high = min(h.low, by), max(h.high, by)
	}
	if known {
		h.busy = math.Abs(after.V-before.V) > busyMoved
		if h.busy {
			explain(busyPower * math.Log((1-after.V)/(1-before.V)))
		}
	}
	if known && !h.busy {
		h.quiet = max(before.V, after.V) < busyQuiet
		return
	}
	lost := c.side[0].lost() - c.side[1].lost()
	if math.Abs(lost) > leastShift {
		h.bursts = math.Abs(lost) > burstNamed
		explain(lost)
	}
	if c.p.Goal == Latency {
		// Slower by a share is longer by as much, and what waits waits longer too.
		h.low, h.high = busyPower*h.low, busyPower*h.high
	}
}

// lost is the logarithm of what bursts take from a side's throughput.
func (s *sample) lost() float64 {
	sum := 0.0
	for i := range s.lives {
		l := &s.lives[i]
		pace := l.pace()
		usual := median(pace)
		if usual <= 0 || len(pace) < leastSlices {
			continue
		}
		away := make([]float64, len(pace))
		for j, v := range pace {
			away[j] = math.Abs(v - usual)
		}
		limit := usual - max(burstDepth*usual, burstScatter*1.4826*median(away))
		total, rest, n := 0.0, 0.0, 0.0
		for j, v := range pace {
			total += v
			if v < limit && !(l.slices[j].Preempts.V > 0) {
				continue
			}
			rest += v
			n++
		}
		if total > 0 && n > 0 {
			sum += l.weight * math.Log(rest/n*float64(len(pace))/total)
		}
	}
	return sum
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
