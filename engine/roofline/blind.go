package roofline

import "github.com/rooftop-dev/rooftop/engine/stat"

// Gains without a hardware model: what a measurement alone can bound. The middle
// is unknown; why says, in a few words for the note, what keeps the model away.

// RaiseSeatsBlind bounds --max-num-seqs at to for running and waiting requests.
// kvLimit is the number of sequences that the KV pool holds, queueShare the
// queue's part of the time to the first token, 0..1.
func RaiseSeatsBlind(running, waiting float64, to int, kvLimit, queueShare stat.Opt, why string) Gain {
	b := min(float64(to), running+waiting)
	if kvLimit.OK {
		b = min(b, kvLimit.V)
	}
	if running <= 0 || b <= running*(1+noticeable) {
		return none("no more requests would run")
	}
	g := fuller(b/running, why)
	if queueShare.OK && waiting > 0 {
		// Every request that gets a seat leaves the queue.
		g.TTFT.Low = stat.Some(-queueShare.V * min(1, (b-running)/waiting))
	}
	return g
}

// MoreConcurrencyBlind bounds clients that keep to requests in the system,
// where running run now and none waits.
func MoreConcurrencyBlind(running, to float64, why string) Gain {
	if running <= 0 || to <= running*(1+noticeable) {
		return none("no more requests would run")
	}
	return fuller(to/running, why)
}

// fuller bounds a batch grown by factor: at worst the step grows as much and
// every token waits longer, at best it costs nothing.
func fuller(factor float64, why string) Gain {
	return Gain{
		Throughput: Range{Low: stat.Some(0), High: stat.Some(factor - 1)},
		ITL:        Range{Low: stat.Some(0), High: stat.Some(factor - 1)},
		Note:       "bounds only: " + why,
	}
}
