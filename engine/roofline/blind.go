package roofline

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Gains without a hardware model, from what a measurement alone tells of one
// replica and from how steps grow with the batch on servers in general.

// The batch at which a step takes twice what it takes for next to none, so that a
// step of b takes 1 + b/half of that: with the ends of the 80 % interval. From
// published pairs of equal servers, as the half that explains each: Llama-2-7B on an
// A100 16 to 64 (+83 %) 24, Llama-3.1-8B on an A100 1 to 8 (6.6 times) 32, GLM-5.2
// 64 to 256 (+45 %) 44, Qwen3.5-9B 256 to 512 (+7 %) about 40 (physics.md sections 8
// and 10), and vLLM's CPU backend with a tiny model 4 to 32 (4.1 times) 26 and 5
// (twice) in two workloads (vllm.md section 7.2).
const (
	halfLeast = 6.0
	halfBatch = 25.0
	halfMost  = 70.0
)

// Blind is what a run says of one replica whose hardware is not known.
type Blind struct {
	Running, Waiting float64  // requests, mean
	Holds            stat.Opt // sequences that the KV pool holds
	Seats            stat.Opt
	// Half is the batch at which a step takes twice as long as for next to none, as
	// steps of this server at several batches show it; absent where they do not.
	Half       stat.Opt
	QueueShare stat.Opt // the queue's part of the time to the first token, 0..1
	Offered    Offered
	// Why says in a few words for the note what keeps the physical model away.
	Why string
}

// RaiseSeats predicts --max-num-seqs at to.
func (b Blind) RaiseSeats(to int) Gain {
	return b.fuller(b.fit(stat.Some(float64(to)), b.Holds))
}

// MoreKV predicts a pool that holds times as many sequences.
func (b Blind) MoreKV(times float64) Gain {
	return b.fuller(b.fit(b.Seats, stat.Some(b.Holds.Or(b.Running)*times)))
}

// MoreConcurrency predicts clients that keep to requests in the system, where none
// waits.
func (b Blind) MoreConcurrency(to float64) Gain {
	b.Offered = Offered{}
	return b.fuller(to)
}

// fit returns the requests that would run of those that are in.
func (b *Blind) fit(seats, holds stat.Opt) float64 {
	n := b.Running + b.Waiting
	if b.Offered.Growing {
		n = endless
	}
	for _, limit := range [...]stat.Opt{seats, holds} {
		if positive(limit) {
			n = min(n, limit.V)
		}
	}
	return n
}

// fuller predicts a batch of to.
func (b *Blind) fuller(to float64) Gain {
	if b.Running <= 0 || to <= b.Running*(1+noticeable) {
		return none("no more requests would run")
	}
	middle, spread := halfBatch, [2]float64{halfLeast, halfMost}
	if positive(b.Half) {
		middle = min(max(b.Half.V, halfLeast/2), halfMost*2)
		spread = [2]float64{middle / halfOff, middle * halfOff}
	}
	rate := func(half float64) float64 {
		r := to / b.Running * (half + b.Running) / (half + to)
		if d := b.Offered.Demand; d.OK && r > d.V {
			return d.V
		}
		return r
	}
	low, mid, high := rate(spread[0]), rate(middle), rate(spread[1])
	g := Gain{Note: "from how servers in general grow with the batch: " + b.Why}
	g.Throughput = Range{stat.Some(low*math.Exp(-ofRate.floor) - 1), stat.Some(mid - 1), stat.Some(high*math.Exp(ofRate.floor) - 1)}
	batch := func(half, rate float64) float64 {
		// The smaller batch at which the engine keeps up with what comes.
		if full := to / b.Running * (half + b.Running) / (half + to); full <= rate {
			return to
		}
		return b.Running * half * rate / max(1e-9, half+b.Running-rate*b.Running)
	}
	step := func(half, rate float64) float64 { return batch(half, rate) / b.Running / rate }
	slow, usual, fast := step(spread[0], low), step(middle, mid), step(spread[1], high)
	g.ITL = Range{stat.Some(fast*math.Exp(-ofRate.floor) - 1), stat.Some(usual - 1), stat.Some(slow*math.Exp(ofRate.floor) - 1)}
	if b.QueueShare.OK && b.Waiting > 0 {
		first := func(half, rate, step float64) stat.Opt {
			left := max(0, b.Running+b.Waiting-batch(half, rate))
			if b.Offered.Growing {
				left = b.Waiting * max(0, b.Offered.Demand.V/rate-1) / max(1e-9, b.Offered.Demand.V-1)
			}
			return stat.Some(b.QueueShare.V*left/b.Waiting/rate + (1-b.QueueShare.V)*step - 1)
		}
		g.TTFT = Range{first(spread[1], high, fast), first(middle, mid, usual), first(spread[0], low, slow)}
		g.TTFT.Low.V = (1+g.TTFT.Low.V)*math.Exp(-ofFirst.floor) - 1
		g.TTFT.High.V = (1+g.TTFT.High.V)*math.Exp(ofFirst.floor) - 1
	}
	return g
}

// halfOff is the factor by which a half that was fitted on the server's own steps may
// be off.
const halfOff = 1.8
