package roofline

import "github.com/rooftop-dev/rooftop/engine/stat"

// Gains without a hardware model: what a measurement alone can bound on a
// device that nobody described. The middle is unknown.

// RaiseSeatsBlind bounds --max-num-seqs at to for running and waiting requests.
// kvLimit is the number of sequences that the KV pool holds, queueShare the
// queue's part of the time to the first token, 0..1.
func RaiseSeatsBlind(running, waiting float64, to int, kvLimit, queueShare stat.Opt) Gain {
	b := min(float64(to), running+waiting)
	if kvLimit.OK {
		b = min(b, kvLimit.V)
	}
	if running <= 0 || b <= running*(1+noticeable) {
		return none("no more requests would run")
	}
	g := fuller(b / running)
	if queueShare.OK && waiting > 0 {
		// Every request that gets a seat leaves the queue.
		g.TTFT.Low = stat.Some(-queueShare.V * min(1, (b-running)/waiting))
	}
	return g
}

// MoreConcurrencyBlind bounds clients that keep to requests in the system,
// where running run now and none waits.
func MoreConcurrencyBlind(running, to float64) Gain {
	if running <= 0 || to <= running*(1+noticeable) {
		return none("no more requests would run")
	}
	return fuller(to / running)
}

// fuller bounds a batch grown by factor: at worst the step grows as much and
// every token waits longer, at best it costs nothing.
func fuller(factor float64) Gain {
	return Gain{
		Throughput: Range{Low: stat.Some(0), High: stat.Some(factor - 1)},
		ITL:        Range{Low: stat.Some(0), High: stat.Some(factor - 1)},
		Note:       "bounds only: the device is not in the catalog",
	}
}

// PrefixCachingBlind bounds any prefix caching by the share of request time
// that goes into prefill, 0..1: at most all of it disappears.
func PrefixCachingBlind(prefillShare stat.Opt) Gain {
	g := Gain{Throughput: Range{Low: stat.Some(0)}, Note: "bounds only: unknown until tried"}
	if s := prefillShare; s.OK && s.V >= 0 && s.V < 1 {
		g.Throughput.High = stat.Some(1/(1-s.V) - 1)
	}
	return g
}
