package engine

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// trafficShift is the relative difference of a mean from which traffic is not
	// the same before and after.
	trafficShift = 0.20
	// hitShift is the difference of a hit rate from which it is not.
	hitShift = 0.10
	// queued is how many requests must wait on the mean, and queuedShare which share
	// of those that are in, for a server to be called saturated: then its throughput
	// does not follow the arrivals. A burst leaves a few waiting for a moment on a
	// server that has room.
	queued      = 1
	queuedShare = 0.10
)

// traffic lists in words what differs in the load of two measurements: the delta
// between them is then not of the change alone. Requests that are in, lengths and
// hit rate are compared; the arrival rate only where neither side had a queue: a
// closed loop of clients sends more because the server is faster.
func traffic(before, after *Diagnosis) []string {
	var out []string
	differs := func(what, name, unit string) {
		b, a := before.Quantity(name).Value, after.Quantity(name).Value
		if change := relative(b, a); change.OK && math.Abs(change.V) >= trafficShift {
			out = append(out, difference(what, b, a, unit, change.V))
		}
	}
	differs("prompts", "prompt_tokens_mean", "tok")
	differs("outputs", "output_tokens_mean", "tok")
	if b, a := before.Quantity("prefix_hit_rate").Value, after.Quantity("prefix_hit_rate").Value; b.OK && a.OK && math.Abs(a.V-b.V) >= hitShift {
		text := fmt.Sprintf("prefix hits %s → %s", figure.Show(b, "ratio"), figure.Show(a, "ratio"))
		if a.V < b.V {
			text += "; after a restart the cache is cold"
		}
		out = append(out, text)
	}
	was, is := before.saturated(), after.saturated()
	if was && is {
		return out
	}
	if b, a := before.demand(), after.demand(); b.OK && a.OK {
		change := relative(b, a)
		if change.OK && math.Abs(change.V) >= trafficShift {
			text := difference("requests in", b, a, "", change.V)
			if was {
				text += "; no queue is left, so a gain is a lower bound"
			}
			out = append(out, text)
		}
	}
	if !was && !is {
		differs("requests finished", "requests_per_s", "1/s")
	}
	return out
}

func difference(what string, before, after stat.Opt, unit string, change float64) string {
	return fmt.Sprintf("%s %s → %s (%s %%)", what, figure.Show(before, unit), figure.Show(after, unit), figure.Change(change))
}

// saturated says whether requests waited for want of room.
func (d *Diagnosis) saturated() bool {
	waiting := d.Quantity("waiting_mean").Value.Or(0)
	return waiting >= queued && waiting >= queuedShare*d.demand().Or(0)
}
