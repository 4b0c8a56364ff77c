package roofline

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Gains without a hardware model: from the measurement of one replica, and from how the steps of
// servers generally grow with the batch.

// halves is the batch at which a decode step takes twice as long as with a batch near 0, so that a
// step of b takes 1 + b/half of that: the middle, with the ends of its 80 % interval.
type halves struct{ least, usual, most float64 }

// Halves of servers whose steps do not show their own. On GPUs from published pairs of equal servers:
// Llama-2-7B on an A100 16 to 64 (+83 %), Llama-3.1-8B on an A100 1 to 8 (6.6 times), GLM-5.2 64 to
// 256 (+45 %), Qwen3.5-9B 256 to 512 (+7 %). On a CPU, where a step computes for each sequence from
// the first on, from vLLM's CPU backend with a tiny model: 37 on an idle machine, 5 to 20 on busy ones.
var (
	halvesGPU = halves{8, 30, 100}
	halvesCPU = halves{4, 15, 60}
)

const (
	// halfOff is the factor by which a half fitted on the server's own steps may be wrong.
	halfOff = 1.8
	// prefillOff is that of a measured share of prefill.
	prefillOff = 1.5
	// prefillUsual and prefillUnknown are the middle and the upper end of an unknown share of prefill.
	prefillUsual, prefillUnknown = 0.1, 0.4
	// blindNoise is the error, as a logarithm, of what else differs between two starts; on a CPU
	// the engine shares its cores with the API server, the load and others.
	blindNoise, blindNoiseCPU = 0.07, 0.15
)

// Blind is the measurement of one replica on unknown hardware.
type Blind struct {
	Running, Waiting float64  // requests, mean
	Holds            stat.Opt // sequences that fit into the KV pool
	Slots            stat.Opt
	CPU              bool // the engine computes on a CPU
	// Half is the batch at which a step takes twice as long as with a batch near 0, fitted on
	// steps of this server at several batches; absent if they do not show it.
	Half stat.Opt
	// Prefill is the share of the engine's time that it computes prompts, 0..1. A larger batch does
	// not shorten it. Absent if the page does not show it.
	Prefill stat.Opt
	// PrefillMost is an upper bound of Prefill, absent if unknown.
	PrefillMost stat.Opt
	QueueShare  stat.Opt // share of the queue in the time to first token, 0..1
	// FrontShare is the share of one core that the API server uses, 0..1; absent if unknown.
	FrontShare stat.Opt
	Offered    Offered
	// Why is a short note on why the physical model is unavailable.
	Why string
}

// RaiseSlots predicts --max-num-seqs raised to a value.
func (b Blind) RaiseSlots(to int) Gain {
	return b.fuller(b.fit(stat.Some(float64(to)), b.Holds))
}

// MoreKV predicts a pool that fits a multiple of the sequences.
func (b Blind) MoreKV(times float64) Gain {
	return b.fuller(b.fit(b.Slots, stat.Some(b.Holds.Or(b.Running)*times)))
}

// MoreConcurrency predicts clients that keep to requests in the server, if none waits now.
func (b Blind) MoreConcurrency(to float64) Gain {
	b.Offered = Offered{}
	return b.fuller(to)
}

// fit returns how many of the requests in the server would run.
func (b *Blind) fit(slots, holds stat.Opt) float64 {
	n := b.Running + b.Waiting
	if b.Offered.Growing {
		n = endless
	}
	for _, limit := range [...]stat.Opt{slots, holds} {
		if positive(limit) {
			n = min(n, limit.V)
		}
	}
	return n
}

// blindStep is a guess of how the engine's time depends on the batch.
type blindStep struct{ half, prefill float64 }

// rate returns the throughput with a batch of to over that with a batch of from: of a request's engine
// time, the prefill remains and the decode steps are shared by more.
func (s blindStep) rate(from, to float64) float64 {
	return 1 / (s.prefill + (1-s.prefill)*from/to*(s.half+to)/(s.half+from))
}

// batch returns the batch up to to at which the throughput is rate times that with a batch of from.
func (s blindStep) batch(from, to, rate float64) float64 {
	if s.rate(from, to) <= rate {
		return to
	}
	shared := (1 - s.prefill) * from / (s.half + from)
	return shared * s.half / max(1e-9, 1/rate-s.prefill-shared)
}

// steps returns the middle guess, and the guesses at the ends of what is not known: short and long
// steps, little and much prefill.
func (b *Blind) steps() (usual blindStep, better, worse [2]blindStep) {
	h := halvesGPU
	if b.CPU {
		h = halvesCPU
	}
	if positive(b.Half) {
		own := min(max(b.Half.V, h.least/2), 2*h.most)
		h = halves{own / halfOff, own, own * halfOff}
	}
	high := min(b.PrefillMost.Or(prefillUnknown), PrefillLargest)
	low, mid := 0.0, min(prefillUsual, high)
	if b.Prefill.OK {
		mid = min(max(b.Prefill.V, 0), PrefillLargest)
		low, high = mid/prefillOff, min(mid*prefillOff, (1+mid)/2, b.PrefillMost.Or(1))
	}
	return blindStep{h.usual, mid}, [2]blindStep{{h.most, mid}, {h.usual, low}}, [2]blindStep{{h.least, mid}, {h.usual, high}}
}

// PrefillLargest is the largest share of prefill that is assumed: some decoding remains.
const PrefillLargest = 0.95

// most returns the largest throughput over the present one that arrivals and the API server allow.
func (b *Blind) most() stat.Opt {
	d := b.Offered.Demand
	if positive(b.FrontShare) {
		if front := max(1, frontFull/max(frontLeast, b.FrontShare.V-frontScraped)); !d.OK || front < d.V {
			d = stat.Some(front)
		}
	}
	return d
}

// fuller predicts a batch of to sequences.
func (b *Blind) fuller(to float64) Gain {
	if b.Running <= 0 || to <= b.Running*(1+noticeable) {
		return noGain("no more requests would run")
	}
	usual, better, worse := b.steps()
	noise := blindNoise
	if b.CPU {
		noise = blindNoiseCPU
	}
	mid := usual.rate(b.Running, to)
	ends := func(list [2]blindStep) float64 {
		off := noise
		for _, s := range list {
			off = math.Hypot(off, math.Log(s.rate(b.Running, to)/mid))
		}
		return off
	}
	low, high := mid*math.Exp(-ends(worse)), min(mid*math.Exp(ends(better)), to/b.Running*math.Exp(noise))
	if most := b.most(); most.OK {
		low, mid, high = min(low, most.V*math.Exp(-noise)), min(mid, most.V), min(high, most.V*math.Exp(noise))
	}
	g := Gain{Note: "estimated from how servers generally scale with the batch: " + b.Why}
	g.Throughput = Range{stat.Some(low - 1), stat.Some(mid - 1), stat.Some(high - 1)}
	batch := usual.batch(b.Running, to, mid)
	step := func(rate float64) float64 { return batch / b.Running / rate }
	g.ITL = Range{stat.Some(step(high) - 1), stat.Some(step(mid) - 1), stat.Some(step(low) - 1)}
	if b.QueueShare.OK && b.Waiting > 0 {
		first := func(rate float64) float64 {
			left := max(0, b.Running+b.Waiting-batch)
			if b.Offered.Growing {
				left = b.Waiting * max(0, b.Offered.Demand.V/rate-1) / max(1e-9, b.Offered.Demand.V-1)
			}
			return b.QueueShare.V*left/b.Waiting/rate + (1-b.QueueShare.V)*step(rate)
		}
		noise := math.Exp(ofFirst.floor)
		g.TTFT = Range{stat.Some(first(high)/noise - 1), stat.Some(first(mid) - 1), stat.Some(first(low)*noise - 1)}
	}
	return g
}
