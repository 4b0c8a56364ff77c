package roofline

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// change is a change of the server in the terms of the model.
type change struct {
	config  Config
	at      Point    // operating point with enough requests
	prefill float64  // factor on a prompt's own processing time
	cap     float64  // upper bound of the factor on throughput; 0: none
	worst   Point    // a slower possible operating point; Batch 0: none
	clients bool     // the clients send as many concurrent requests as the change states
	budget  stat.Opt // token budget of a step
	servers float64  // API servers as a multiple of the present ones; 0: unchanged
	note    string
}

func (p *Performance) unchanged() change {
	return change{config: p.Config, at: p.Measured.Point, prefill: 1, budget: p.Measured.TokenBudget}
}

// beyond reports whether the model does not describe the measured step: something else limits it, and
// a ratio of modelled steps says little.
func (p *Performance) beyond() bool { return p.Raw > scaleMost }

// deviation is the error of a prediction as the half width of its 80 % interval in the logarithm of
// the ratio. floor is the difference between two measurements without a change, plus small effects
// outside the model. share is the error relative to the predicted change, up to a change of most: if
// throughput grows tenfold, the last factor of two is no less certain than the first. The two add as
// independent errors.
type deviation struct{ floor, share, most float64 }

// The errors of predictions by kind. They are set so that about 80 % of the outcomes on simulated
// servers, half of which were not used for that, lie within the intervals
// (TestPredictionsOfTheLibrary), and that the intervals are no narrower than published pairs of real servers show.
var (
	ofRate   = deviation{0.07, 0.27, 1.5}
	ofKernel = deviation{0.07, 0.5, 2} // with other kernels: another dtype or degree
	ofFirst  = deviation{0.3, 0.5, 4}  // time to first token: prompts arrive together or apart
)

// interval returns the interval around a ratio. open and lower are additional errors in the logarithm,
// of both sides and of the lower side.
func (d deviation) interval(mid, open, lower float64) Range {
	half := math.Hypot(math.Hypot(d.floor, d.share*min(d.most, math.Abs(math.Log(mid)))), open)
	return Range{stat.Some(mid*math.Exp(-half-lower) - 1), stat.Some(mid - 1), stat.Some(mid*math.Exp(half) - 1)}
}

// calibrated returns the step of a change over the present one. Of the part of the measured step that
// the model does not explain, the share fixed is taken as a fixed time (the host) and the remainder
// as a common factor (slower kernels).
func (p *Performance) calibrated(is, fixed float64) float64 {
	was := p.Now.Achievable.Total()
	excess := (min(max(p.Raw, scaleLeast), scaleMost) - 1) * was
	step := is*(1+(1-fixed)*excess/was) + fixed*excess
	return max(step, scaleLeast*is) / (was + excess)
}

// rate returns the throughput of a change at a batch, over the present one.
func (p *Performance) rate(ch *change, batch, fixed float64) float64 {
	at := ch.at.resized(batch)
	return batch / p.Measured.Batch / p.calibrated(p.stepSeconds(ch.config, at), fixed)
}

// resized returns the point with another batch and the same ratio of prompt tokens.
func (at Point) resized(batch float64) Point {
	if at.Batch > 0 {
		at.Tokens *= batch / at.Batch
	}
	at.Batch = batch
	return at
}

// demandLimit returns the largest throughput that demand allows at a batch, over the present one: arrivals that do
// not depend on the server, and the capacity of the API server.
func (p *Performance) demandLimit(ch *change, batch float64) stat.Opt {
	m := &p.Measured
	most := stat.None
	if !ch.clients && m.Offered.Demand.OK {
		most = m.Offered.Demand
	}
	if positive(m.FrontShare) {
		if front := m.frontLimit(max(1, ch.servers), batch); !most.OK || front < most.V {
			most = stat.Some(front)
		}
	}
	return most
}

// frontLimit returns the largest throughput that the API servers allow at a batch, over the present one; servers is their
// number as a multiple of the present one. A part of their work is for each step, whatever its batch.
func (m *Measured) frontLimit(servers, batch float64) float64 {
	work := max(frontLeast, m.FrontShare.V-frontScraped)
	steps := 0.0
	if positive(m.StepSeconds) && m.Batch > 0 && batch > 0 {
		steps = min(work*frontStep/(frontStep+m.Batch), frontStepSeconds/m.StepSeconds.V)
	}
	return max(1, servers*frontFull/(work-steps+steps*m.Batch/batch))
}

// frontFull is the largest share of a core that an API server, one Python process, can use.
// frontScraped is the part used for being scraped, 4.5 times a second at 3.5 to 5 ms a page, which
// does not grow with the requests. A share below frontLeast says next to nothing about capacity.
const (
	frontFull    = 0.95
	frontScraped = 0.015
	frontLeast   = 0.002
	// frontStep is the work of an API server for a step of the engine, whatever its batch, over that for one output
	// token. Beside vLLM 0.26 on an H200 one used 410, 125, 74, 66 and 61 µs a token with 1, 8, 31, 63 and 114 running,
	// beside 0.32 on a CPU 960, 370 and 200 µs with 1, 4 and 14 (testdata/recordings/real). frontStepSeconds is the most
	// that it takes: 340 µs on the first, 830 µs on the second. What is beyond is for prompts.
	frontStep        = 6
	frontStepSeconds = 1e-3
)

// settledBatch returns the batch at which a change runs: the one that slots and pool allow, or the smaller
// one at which the engine keeps up with arrivals. The number of clients of a closed loop is constant,
// so the number that thinks between two requests grows with the throughput (interactive response
// time law).
func (p *Performance) settledBatch(ch *change, fixed float64) float64 {
	m := &p.Measured
	population := m.Batch + m.Waiting.Or(0) + m.Offered.Thinking.Or(0)
	fits := func(batch float64) bool {
		if tokens := ch.at.resized(batch).Tokens; positive(ch.budget) && tokens > max(ch.budget.V, m.Tokens) {
			return false
		}
		rate := p.rate(ch, batch, fixed)
		if most := p.demandLimit(ch, batch); most.OK && rate > most.V {
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

// idealRate returns the throughput of the hardware's bound for a change at a batch, over the present
// one; absent if the present step is not measured.
func (p *Performance) idealRate(ch *change, batch float64) stat.Opt {
	m := &p.Measured
	if !positive(m.StepSeconds) {
		return stat.None
	}
	pl := ch.config.plan()
	l := pl.load(ch.at.resized(batch))
	ideal := pl.ideal(&l).Total()
	return stat.Some(batch / m.Batch * m.StepSeconds.V / ideal)
}

// openPart divides the difference between a fixed time and a factor; the quotient is the half width
// added because it is unknown which applies.
const openPart = 2

// predict returns the ranges for a change.
func (p *Performance) predict(ch change) Gain {
	m := &p.Measured
	fixed := p.fixedShare()
	b := p.settledBatch(&ch, fixed)
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
	g := Gain{Throughput: err.interval(mid, open, low), Note: ch.note}
	if most := p.demandLimit(&ch, b); most.OK && mid < most.V {
		g.Throughput.High.V = min(g.Throughput.High.V, most.V*math.Exp(err.floor)-1)
	}
	if ch.cap > 0 {
		g.Throughput.High.V = min(g.Throughput.High.V, max(mid, ch.cap)-1)
	}
	if ideal := p.idealRate(&ch, b); ideal.OK {
		for _, end := range []*stat.Opt{&g.Throughput.Low, &g.Throughput.Mid, &g.Throughput.High} {
			end.V = min(end.V, ideal.V-1)
		}
		mid = min(mid, ideal.V)
	}
	batch := b / m.Batch
	g.ITL = err.interval(batch/mid, open, 0)
	g.TTFT = p.firstToken(&ch, b, mid)
	if p.beyond() {
		g.Throughput.Mid, g.ITL.Mid, g.TTFT.Mid = stat.None, stat.None, stat.None
		g.Note = join(g.Note, fmt.Sprintf("steps are %s times slower than modelled: find the cause of that first", figure.Significant(p.Raw)))
	}
	return g
}

// fixedShare returns the share of a step's unexplained time that the middle of a prediction takes as
// fixed: half if the step reads memory, decreasing to none if at least half of it computes. A busy
// tensor core hides the host's work, and kernels slower than modelled remain so at any batch. A step
// faster than modelled was charged for launches that a graph or a fused kernel avoids, at any batch.
func (p *Performance) fixedShare() float64 {
	if p.Raw < 1 {
		return fixedSaving
	}
	a := &p.Now.Achievable
	return max(0, 0.5-quotient(a.Compute+a.Attention, a.Total()))
}

const fixedSaving = 0.75

// crowdedFrom is the share of the pool held by running sequences above which cached prefixes are
// assumed to lose blocks.
const crowdedFrom = 0.5

// crowded returns the point with the worst-case cache hits. Cached prefixes use the part of the pool
// that running sequences leave free, and are assumed to be lost as these fill its second half. The
// point has no batch if pool or hits are unknown, or if nothing would be lost. On a B200 server
// (Llama 70B) 88 % hits with 16 running had become 1 % with 223, which filled the pool, and
// throughput grew by 113 % instead of the 400 % that the same hits would have allowed.
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

// firstToken predicts the time to first token: the wait in the queue follows Little's law at the new
// rate, and the remainder follows the step.
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
	// Queue times are observed when requests end, first tokens earlier, so the difference of
	// their means may vanish. The least is a prompt's own processing, or a step.
	own := min(ttft, max(ttft-queue.V, m.PrefillSeconds.Or(m.StepSeconds.Or(0))))
	if m.PrefillSeconds.OK && queue.V > ttft/2 {
		// With a long, varying queue the difference is meaningless: what remains is a prompt's
		// processing and the steps before and after it.
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
		// The queue grows by arrivals minus completions.
		after = queue.V * max(0, m.Offered.Demand.V/rate-1) / (m.Offered.Demand.V - 1)
	case q > 0:
		left := max(0, m.Batch+q+m.Offered.Thinking.Or(0)*(1-rate)-batch)
		after = queue.V * left / q / rate
	case ch.at.Batch < m.Batch && batch == ch.at.Batch && m.WorkloadKnown && positive(m.OutputPerS):
		// Sequences return to a queue that was empty.
		after = (m.Batch - batch) * m.Workload.Output / (m.OutputPerS.V * rate)
	}
	step := batch / m.Batch / rate
	mid := (after + own*ch.prefill*step) / ttft
	// The larger the change of the prompt's own part, the less certain what it follows. What remains
	// of a queue is a small difference of large numbers.
	open := math.Abs(math.Log(ch.prefill*step)) / 2
	return ofFirst.interval(max(mid, 1e-4), open, 0)
}

// queue returns the mean wait before scheduling, at most the whole time to first token. If it was not
// measured, it follows from Little's law.
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

// resident returns the tokens of the pool held by a sequence.
func (m *Measured) resident() float64 { return m.Resident.Or(m.Context) }

// finalContext returns the tokens of the pool held by a sequence at its end: a pool too small for that
// preempts.
func (m *Measured) finalContext() float64 {
	if m.WorkloadKnown {
		return m.resident() + m.Workload.Output/2
	}
	return m.resident()
}

// holds returns how many complete sequences fit into a pool of tokens; absent if the pool is.
func (m *Measured) holds(pool stat.Opt) stat.Opt {
	return pool.Div(stat.Some(m.finalContext()))
}

// endless is the number of requests assumed for a growing queue.
const endless = 1e5

// allowedBatch returns the batch that waiting requests, slots and pool allow.
func (m *Measured) allowedBatch(slots, pool stat.Opt) float64 {
	b := m.Batch + m.Waiting.Or(0)
	if m.Offered.Growing {
		b = max(b, endless)
	}
	if positive(slots) {
		b = min(b, slots.V)
	}
	if h := m.holds(pool); h.OK {
		b = min(b, h.V)
	}
	return max(b, m.Batch)
}
