package roofline

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// change is one thing done to the server, as the model sees it.
type change struct {
	config  Config
	at      Point    // where the engine then runs if enough requests come
	prefill float64  // factor of a prompt's own processing beside the step's
	cap     float64  // throughput cannot grow by more than this factor; 0: no cap
	worst   Point    // a slower point where the engine may run instead; Batch 0: none
	clients bool     // the clients send as many requests at once as the change says
	budget  stat.Opt // tokens of a step at most
	servers float64  // API servers over the present ones; 0: as many
	note    string
}

func (p *Performance) unchanged() change {
	return change{config: p.Config, at: p.Measured.Point, prefill: 1, budget: p.Measured.TokenBudget}
}

// beyond reports that the measured step is not the modelled one: something else
// sets the pace, and a ratio of modelled steps says little about it.
func (p *Performance) beyond() bool { return p.Raw > scaleMost }

// deviation is the error of a prediction as the half width of its 80 % interval in the
// logarithm of the ratio: floor is what two measurements differ in without a change
// and what small effects outside the model bring, share is of the predicted change,
// up to most of it: where a server grows tenfold, the last factor of two is no less
// certain than the first. They add as independent errors.
type deviation struct{ floor, share, most float64 }

// The errors of predictions, by what they are of. Set so that the intervals of
// predictions on simulated servers, half of which were not looked at, hold about 80 %
// of what was measured (rooftop sim bench --predictions), and no narrower than the
// published pairs of real servers.
var (
	ofRate   = deviation{0.07, 0.27, 1.5}
	ofKernel = deviation{0.07, 0.5, 2} // other kernels run: another dtype or degree
	ofFirst  = deviation{0.3, 0.5, 4}  // time to first token: prompts come together or apart
)

// around makes the interval of a ratio; open and lower are further errors, in the
// logarithm, of both sides and of the lower one.
func (d deviation) around(mid, open, lower float64) Range {
	half := math.Hypot(math.Hypot(d.floor, d.share*min(d.most, math.Abs(math.Log(mid)))), open)
	return Range{stat.Some(mid*math.Exp(-half-lower) - 1), stat.Some(mid - 1), stat.Some(mid*math.Exp(half) - 1)}
}

// calibrated is the step of a change over the present one, with the share fixed of
// what the model does not explain of the measured step taken as a fixed time (the
// host) and the rest as a factor of everything (slower kernels).
func (p *Performance) calibrated(is, fixed float64) float64 {
	was := p.Now.Achievable.Total()
	excess := (min(max(p.Raw, rawLeast), scaleMost) - 1) * was
	step := is*(1+(1-fixed)*excess/was) + fixed*excess
	return max(step, rawLeast*is) / (was + excess)
}

// rawLeast is how much faster than modelled a step may be and still calibrate.
const rawLeast = 0.4

// rate is the throughput of a change at a batch, over the present one.
func (p *Performance) rate(ch *change, batch, fixed float64) float64 {
	at := ch.at.resized(batch)
	return batch / p.Measured.Batch / p.calibrated(p.seconds(ch.config, at), fixed)
}

// resized is a point with another batch and the same ratio of prompt tokens.
func (at Point) resized(batch float64) Point {
	if at.Batch > 0 {
		at.Tokens *= batch / at.Batch
	}
	at.Batch = batch
	return at
}

// most is the throughput that can be asked for over the present one: what comes,
// where that does not follow the server, and what the API server can pass on.
func (p *Performance) most(ch *change) stat.Opt {
	m := &p.Measured
	most := stat.None
	if !ch.clients && m.Offered.Demand.OK {
		most = m.Offered.Demand
	}
	if busy := m.FrontShare; positive(busy) {
		if front := max(1, max(1, ch.servers)*frontFull/max(frontLeast, busy.V-frontScraped)); !most.OK || front < most.V {
			most = stat.Some(front)
		}
	}
	return most
}

// frontFull is the share of a core that an API server, one Python process, gets to
// use at most.
// frontScraped is what being scraped costs it, 4.5 times a second at 3.5 to 5 ms a
// page (vllm.md section 7.4), and does not grow with the requests. A rate below
// frontLeast tells next to nothing.
const (
	frontFull    = 0.95
	frontScraped = 0.015
	frontLeast   = 0.002
)

// settle returns the batch at which a change runs: the one that seats and pool
// allow, or the smaller one at which the engine keeps up with what comes. Clients
// of a closed loop are as many as before, so that those who think between two
// requests grow with the throughput (the interactive response time law).
func (p *Performance) settle(ch *change, fixed float64) float64 {
	m := &p.Measured
	most := p.most(ch)
	population := m.Batch + m.Waiting.Or(0) + m.Offered.Thinking.Or(0)
	fits := func(batch float64) bool {
		if tokens := ch.at.resized(batch).Tokens; positive(ch.budget) && tokens > max(ch.budget.V, m.Tokens) {
			return false
		}
		rate := p.rate(ch, batch, fixed)
		if most.OK && rate > most.V {
			return false
		}
		return ch.clients || m.Offered.Demand.OK || batch+m.Offered.Thinking.Or(0)*rate <= population*(1+1e-9)
	}
	high := ch.at.Batch
	if fits(high) {
		return high
	}
	low := 0.0
	for range 50 {
		mid := (low + high) / 2
		if fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// openPart makes half of the span between a fixed time and a factor the half width
// that not knowing which adds.
const openPart = 2

// predict turns a change into ranges around the middle.
func (p *Performance) predict(ch change) Gain {
	m := &p.Measured
	fixed := p.fixedShare()
	b := p.settle(&ch, fixed)
	mid := p.rate(&ch, b, fixed)
	open := math.Abs(math.Log(p.rate(&ch, b, 1)/p.rate(&ch, b, 0))) / openPart
	low := 0.0
	if ch.worst.Batch > 0 {
		worst := ch
		worst.at = ch.worst
		low = math.Log(mid / min(mid, p.rate(&worst, b, fixed)))
	}
	err := ofRate
	if ch.config.TP != p.Config.TP || ch.config.KV != p.Config.KV || ch.config.Eager != p.Config.Eager {
		err = ofKernel
	}
	g := Gain{Throughput: err.around(mid, open, low), Note: ch.note}
	if most := p.most(&ch); most.OK && mid < most.V {
		g.Throughput.High.V = min(g.Throughput.High.V, most.V*math.Exp(err.floor)-1)
	}
	if ch.cap > 0 {
		g.Throughput.High.V = min(g.Throughput.High.V, max(mid, ch.cap)-1)
	}
	batch := b / m.Batch
	g.ITL = err.around(batch/mid, open, 0)
	g.TTFT = p.firstToken(&ch, b, mid)
	if p.beyond() {
		g.Throughput.Mid, g.ITL.Mid, g.TTFT.Mid = stat.None, stat.None, stat.None
		g.Note = join(g.Note, fmt.Sprintf("steps are %.0f times slower than modelled: whatever causes that comes first", p.Raw))
	}
	return g
}

// fixedShare is how much of the unexplained time of a step the middle of a
// prediction takes as fixed: half where the step reads memory, falling to none
// where at least half of it computes. A busy tensor core hides the host's work
// behind its own, and kernels slower than modelled stay so at any batch. A step
// that is faster than modelled was charged for launches that a graph or a fused
// kernel saves: these are saved at any batch.
func (p *Performance) fixedShare() float64 {
	if p.Raw < 1 {
		return fixedSaving
	}
	a := &p.Now.Achievable
	return max(0, 0.5-over(a.Compute+a.Attention, a.Total()))
}

const fixedSaving = 0.75

// crowdedFrom is the share of the pool that running sequences hold from which cached
// prefixes are taken to lose their blocks.
const crowdedFrom = 0.5

// crowded returns the point with the cache hits that it keeps at worst: cached
// prefixes live in what running sequences leave free of the pool, and are lost as
// these fill its second half. A point without a batch where pool or hits are unknown,
// or nothing would be lost. On a B200 server (Llama 70B) 88 % hits with 16 running
// had become 1 % with 223, which filled the pool, and throughput grew by 113 % where
// the same hits would have let it grow by 400 %.
func (p *Performance) crowded(at Point) Point {
	m := &p.Measured
	if !positive(m.KVCapacity) || !m.WorkloadKnown || m.Workload.Computed <= 0 || m.Workload.Prompt <= m.Workload.Computed {
		return Point{}
	}
	room := func(batch float64) float64 {
		return min(1, max(0, 1-batch*m.resident()/m.KVCapacity.V)/(1-crowdedFrom))
	}
	now, then := room(m.Batch), room(at.Batch)
	if then >= now {
		return Point{}
	}
	computed := m.Workload.Prompt - (m.Workload.Prompt-m.Workload.Computed)*then/now
	decode := at.Batch * m.PerSequence
	at.Tokens = decode + (at.Tokens-decode)*computed/m.Workload.Computed
	at.PrefillContext = m.Workload.Prompt - computed/2
	at.Chunk = min(m.TokenBudget.Or(defaultChunk), computed)
	return at
}

// firstToken predicts the time to the first token: what it waits in the queue
// follows Little's law at the new rate, the rest follows the step.
func (p *Performance) firstToken(ch *change, batch, rate float64) Range {
	m := &p.Measured
	if !positive(m.TTFTSeconds) {
		return Range{}
	}
	ttft := m.TTFTSeconds.V
	queue := m.queue()
	if !queue.OK {
		return Range{}
	}
	// Queue times are observed when requests end, first tokens before: the
	// difference of their means may come to nothing. A prompt's own processing, or
	// a step, is the least.
	own := min(ttft, max(ttft-queue.V, m.PrefillSeconds.Or(m.StepSeconds.Or(0))))
	if m.PrefillSeconds.OK && queue.V > ttft/2 {
		// Of a long queue that moves the difference is none: a prompt's processing
		// and the steps before and after it are what is left.
		own = min(own, m.PrefillSeconds.V+2*m.StepSeconds.Or(0))
	}
	after := 0.0
	q := m.Waiting.Or(0)
	switch {
	case rate <= 0:
	case ch.clients && batch < ch.at.Batch && m.WorkloadKnown && positive(m.OutputPerS):
		// They wait in the API server instead (Little's law).
		after = (ch.at.Batch - batch) * m.Workload.Output / (m.OutputPerS.V * rate)
	case m.Offered.Growing && m.Offered.Demand.V > 1:
		// The queue grows by what comes less what is served.
		after = queue.V * max(0, m.Offered.Demand.V/rate-1) / (m.Offered.Demand.V - 1)
	case q > 0:
		left := max(0, m.Batch+q+m.Offered.Thinking.Or(0)*(1-rate)-batch)
		after = queue.V * left / q / rate
	case ch.at.Batch < m.Batch && batch == ch.at.Batch && m.WorkloadKnown && positive(m.OutputPerS):
		// Sequences sent back to a queue that was empty.
		after = (m.Batch - batch) * m.Workload.Output / (m.OutputPerS.V * rate)
	}
	step := batch / m.Batch / rate
	mid := (after + own*ch.prefill*step) / ttft
	// What the own part follows is the less certain, the more it changes; what is
	// left of a queue is a small difference of large numbers.
	open := math.Abs(math.Log(ch.prefill*step)) / 2
	return ofFirst.around(max(mid, 1e-4), open, 0)
}

// queue returns the mean wait before scheduling, at most the whole time to the
// first token; from Little's law where it was not measured.
func (m *Measured) queue() stat.Opt {
	q := m.QueueSeconds
	if !q.OK && m.Waiting.OK && m.WorkloadKnown && positive(m.OutputPerS) {
		q = stat.Some(m.Waiting.V * m.Workload.Output / m.OutputPerS.V)
	}
	if !q.OK && m.Waiting.OK && m.Waiting.V == 0 {
		q = stat.Some(0)
	}
	if q.OK {
		q.V = min(q.V, m.TTFTSeconds.Or(q.V))
	}
	return q
}

// resident is what a sequence holds of the pool, in tokens.
func (m *Measured) resident() float64 { return m.Resident.Or(m.Context) }

// finalContext is what a sequence holds of the pool at its end: a pool that
// holds fewer of these preempts.
func (m *Measured) finalContext() float64 {
	if m.WorkloadKnown {
		return m.resident() + m.Workload.Output/2
	}
	return m.resident()
}

// holds returns how many sequences a pool of tokens holds to their end; absent
// where the pool is.
func (m *Measured) holds(pool stat.Opt) stat.Opt {
	return pool.Div(stat.Some(m.finalContext()))
}

// endless stands for the requests of a queue that grows.
const endless = 1e5

// reach returns the batch that waiting requests, seats and pool allow.
func (m *Measured) reach(seats, pool stat.Opt) float64 {
	b := m.Batch + m.Waiting.Or(0)
	if m.Offered.Growing {
		b = max(b, endless)
	}
	if positive(seats) {
		b = min(b, seats.V)
	}
	if h := m.holds(pool); h.OK {
		b = min(b, h.V)
	}
	return max(b, m.Batch)
}
