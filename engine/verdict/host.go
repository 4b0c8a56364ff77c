package verdict

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// busyMoved is the difference in the share of time that threads waited for a core, and in the
	// share of the cores' time that other programs used, above which a neighbour is suspected.
	busyMoved = 0.02
	// busyQuiet is the largest of either share on a quiet host.
	busyQuiet = 0.10
	// busyPower bounds the effect of that share on throughput: it is a mean over threads, and
	// the critical thread may wait longer.
	busyPower = 2
	// burstDepth is the least distance of a slice in a burst below a start's usual throughput;
	// burstScatter is the same in standard deviations of its usual scatter.
	burstDepth   = 0.08
	burstScatter = 3
	// burstNamed is the least difference in the losses of both sides by bursts, as a logarithm,
	// to name bursts as the likely cause.
	burstNamed = 0.02
)

// host is how much of the effect a neighbour explains at most, as logarithms.
type host struct {
	low, high float64
	busy      bool // the share of waiting threads differs, because of other programs as far as is known
	bursts    bool // slices far below the usual throughput differ
	quiet     bool // the threads of both sides are known to have waited little
}

// host bounds what a neighbour on the machine explains. If the server's threads are known not to
// have waited more for a core, bursts are the server's own. Its threads wait for one another too: a
// setting that lets fewer of them run at once looks like a neighbour that left, unless other programs
// are known to have used as much of the cores as before. Their difference bounds what a neighbour explains.
func (c *comparison) host() {
	h := &c.hosts
	before, after := c.side[0].host.Wait, c.side[1].host.Wait
	others := [2]stat.Opt{c.side[0].host.Others, c.side[1].host.Others}
	known := before.OK && after.OK && before.V < 1 && after.V < 1
	explain := func(by float64) {
		h.low, h.high = min(h.low, by), max(h.high, by)
	}
	if known {
		h.busy = math.Abs(after.V-before.V) > busyMoved
		if more := others[1].V - others[0].V; others[0].OK && others[1].OK && (math.Abs(more) <= busyMoved || more > 0 != (after.V > before.V)) {
			h.busy = false
		}
		if h.busy {
			by := math.Log((1 - after.V) / (1 - before.V))
			if others[0].OK && others[1].OK && max(others[0].V, others[1].V) < 1 {
				// Other programs cannot give back more time than they used.
				by = math.Copysign(min(math.Abs(by), math.Abs(math.Log((1-others[1].V)/(1-others[0].V)))), by)
			}
			explain(busyPower * by)
		}
	}
	if known && !h.busy {
		h.quiet = max(before.V, after.V) < busyQuiet || others[0].Max(others[1]).Or(1) < busyQuiet
		return
	}
	lost := c.side[0].lost() - c.side[1].lost()
	if math.Abs(lost) > leastShift {
		h.bursts = math.Abs(lost) > burstNamed
		explain(lost)
	}
	if c.p.Goal == Latency {
		// A lower throughput lengthens waiting times as well.
		h.low, h.high = busyPower*h.low, busyPower*h.high
	}
}

// lost returns the logarithm of the loss of a side's throughput by bursts.
func (s *sample) lost() float64 {
	sum := 0.0
	for i := range s.starts {
		l := &s.starts[i]
		pace := l.pace()
		usual := stat.Median(pace).Or(0)
		if usual <= 0 || len(pace) < leastSlices {
			continue
		}
		away := make([]float64, len(pace))
		for j, v := range pace {
			away[j] = math.Abs(v - usual)
		}
		limit := usual - max(burstDepth*usual, burstScatter*1.4826*stat.Median(away).Or(0))
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
