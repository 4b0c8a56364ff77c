package roofline

import (
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// change is one thing done to the server, as the model sees it.
type change struct {
	config  Config
	at      Point   // where the engine then runs
	relief  float64 // factor of throughput beside the step's: work that is no longer repeated
	prefill float64 // factor of a prompt's own processing beside the step's
	cap     float64 // throughput cannot grow by more than this factor; 0: no cap
	worst   Point   // a slower point where the engine may run instead; Batch 0: none
	note    string
}

func (p *Performance) unchanged() change {
	return change{config: p.Config, at: p.Measured.Point, relief: 1, prefill: 1}
}

// beyond reports that the measured step is not the modelled one: something else
// sets the pace, and a ratio of modelled steps says little about it.
func (p *Performance) beyond() bool { return p.Raw > scaleMost }

// Fractions of a predicted benefit at the ends of a range. The lower half is
// physics.md section 10's; the upper is the achievable ceiling's own band.
const (
	benefitLeast = 0.5
	benefitMost  = 1.25
)

// predict turns a change into ranges. What the model does not explain of the
// measured step may be a factor of everything (slower kernels) or a fixed time
// (the host); the two are the ends and fixedShare is the middle.
func (p *Performance) predict(ch change) Gain {
	m := &p.Measured
	was, is := p.Now.Achievable.Total(), p.seconds(ch.config, ch.at)
	batch := ch.at.Batch / m.Batch
	excess := max(0, min(p.Raw, scaleMost)-1) * was
	step := func(is, fixed float64) float64 {
		factor := 1 + (1-fixed)*excess/was
		return (is*factor + fixed*excess) / (was + excess)
	}
	rate := func(fixed float64) float64 { return batch / step(is, fixed) * ch.relief }
	middle := p.fixedShare()
	mid := rate(middle)
	low, high := min(rate(0), rate(1)), max(rate(0), rate(1))
	if ch.worst.Batch > 0 {
		low = min(low, batch/step(p.seconds(ch.config, ch.worst), middle)*ch.relief)
	}
	g := Gain{Throughput: spread(low-1, mid-1, high-1), Note: ch.note}
	g.Throughput.Low.V = max(-1, g.Throughput.Low.V)
	if ch.cap > 0 {
		g.Throughput.High.V = min(g.Throughput.High.V, max(mid, ch.cap)-1)
	}
	itl := func(throughput stat.Opt) stat.Opt {
		return stat.Some(batch/max(1e-9, 1+throughput.V) - 1)
	}
	g.ITL = Range{itl(g.Throughput.High), itl(g.Throughput.Mid), itl(g.Throughput.Low)}
	g.TTFT = p.firstToken(ch, mid, step(is, middle))
	if p.beyond() {
		g.Throughput.Mid, g.ITL.Mid, g.TTFT.Mid = stat.None, stat.None, stat.None
		g.Note = join(g.Note, fmt.Sprintf("steps are %.0f times slower than modelled: whatever causes that comes first", p.Raw))
	}
	return g
}

// fixedShare is how much of the unexplained time of a step the middle of a
// prediction takes as fixed: half where the step reads memory, falling to none
// where at least half of it computes. A busy tensor core hides the host's work
// behind its own, and kernels slower than modelled stay so at any batch.
func (p *Performance) fixedShare() float64 {
	a := &p.Now.Achievable
	return max(0, 0.5-over(a.Compute+a.Attention, a.Total()))
}

// crowded returns the point with the cache hits that it keeps at worst: cached
// prefixes live in what running sequences leave free of the pool, and are lost
// in proportion as less of it is left for each request. A point without a batch
// where pool or hits are unknown, or nothing would be lost. On a B200 server
// (Llama 70B) 88 % hits with 16 running had become 1 % with 223, and throughput
// grew by 113 % where the same hits would have let it grow by 400 %.
func (p *Performance) crowded(at Point) Point {
	m := &p.Measured
	if !positive(m.KVCapacity) || !m.WorkloadKnown || m.Workload.Computed <= 0 || m.Workload.Prompt <= m.Workload.Computed {
		return Point{}
	}
	free := func(batch float64) float64 { return max(0, m.KVCapacity.V/batch-m.resident()) }
	now, then := free(m.Batch), free(at.Batch)
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

// spread makes the range of a relative change: of a benefit, half of its low end
// to at least a quarter above the middle; of a loss the mirror image.
func spread(low, mid, high float64) Range {
	if mid < 0 {
		return Range{stat.Some(min(low, mid*benefitMost)), stat.Some(mid), stat.Some(max(mid, high*benefitLeast))}
	}
	return Range{stat.Some(min(mid, low*benefitLeast)), stat.Some(mid), stat.Some(max(high, mid*benefitMost))}
}

// firstToken predicts the time to the first token: what it waits in the queue
// follows Little's law at the new rate, the rest follows the step.
func (p *Performance) firstToken(ch change, rate, step float64) Range {
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
	after := 0.0
	if q := m.Waiting.Or(0); q > 0 && rate > 0 {
		left := max(0, m.Batch+q-ch.at.Batch)
		after = queue.V * left / q / rate
	} else if q == 0 && ch.at.Batch < m.Batch && rate > 0 && m.WorkloadKnown && positive(m.OutputPerS) {
		// Sequences sent back to a queue that was empty.
		after = (m.Batch - ch.at.Batch) * m.Workload.Output / (m.OutputPerS.V * rate)
	}
	mid := (after+own*ch.prefill*step)/ttft - 1
	// The ends: the own part does not follow the step, or half of the change
	// (of a loss, a quarter more) comes true.
	other := (after+own*ch.prefill)/ttft - 1
	return latency(spread(-max(mid, other), -mid, -min(mid, other)))
}

// latency mirrors the range of a benefit into that of a time, which cannot fall
// below zero.
func latency(r Range) Range {
	r = Range{r.High.Times(-1), r.Mid.Times(-1), r.Low.Times(-1)}
	r.Low.V = max(-1, r.Low.V)
	return r
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

// reach returns the batch that waiting requests, seats and pool allow.
func (m *Measured) reach(seats, pool stat.Opt) float64 {
	b := m.Batch + m.Waiting.Or(0)
	if positive(seats) {
		b = min(b, seats.V)
	}
	if h := m.holds(pool); h.OK {
		b = min(b, h.V)
	}
	return max(b, m.Batch)
}
