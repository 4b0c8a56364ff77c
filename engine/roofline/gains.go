package roofline

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Every prediction is a ratio of two modelled steps, so that whatever scales
// both, the model's own bias included, cancels (physics.md section 10).

// Throughput returns the calibrated output tokens per second of this replica
// with batch running sequences of the measured context and prefill mix.
func (p *Performance) Throughput(batch float64) float64 {
	if batch <= 0 {
		return 0
	}
	return batch * max(1, p.Measured.PerSequence) / (p.Scale * p.seconds(p.Config, p.Measured.at(batch)))
}

// seconds returns the achievable step of a configuration at a point.
func (p *Performance) seconds(c Config, at Point) float64 {
	pl := c.plan()
	l := pl.load(at)
	return pl.achievable(&l).Total()
}

// none is a change that would change nothing, with the reason.
func none(why string) Gain {
	zero := Range{stat.Some(0), stat.Some(0), stat.Some(0)}
	return Gain{Throughput: zero, TTFT: zero, ITL: zero, Note: why}
}

// noticeable is the relative change of the batch below which nothing happens
// that could be measured.
const noticeable = 0.01

// RaiseSeats predicts --max-num-seqs at to.
func (p *Performance) RaiseSeats(to int) Gain {
	m := &p.Measured
	if !m.Waiting.OK {
		return Gain{Throughput: Range{Low: stat.Some(0)}, Note: "how many requests wait is unknown"}
	}
	if m.Waiting.V == 0 {
		return none("no request waits for a seat")
	}
	if h := m.holds(m.KVCapacity); h.OK && h.V <= m.Batch*(1+noticeable) {
		return none(fmt.Sprintf("the KV pool holds %.0f sequences of this length: more seats would stay empty", math.Floor(h.V)))
	}
	b := m.reach(stat.Some(float64(to)), m.KVCapacity)
	if b <= m.Batch*(1+noticeable) {
		return none("that many requests already run")
	}
	return p.predict(p.fuller(b))
}

// fuller is the change to a larger batch on the same pool.
func (p *Performance) fuller(batch float64) change {
	ch := p.unchanged()
	ch.at = p.Measured.at(batch)
	ch.worst = p.crowded(ch.at)
	ch.cap = batch / p.Measured.Batch
	return ch
}

// MoreKV predicts a KV pool of tokens for this replica: more sequences where
// requests wait and seats are free, and no preemptions where all fit.
func (p *Performance) MoreKV(tokens float64) Gain {
	m := &p.Measured
	if !m.Waiting.OK && !m.PreemptsPerS.OK {
		return Gain{Throughput: Range{Low: stat.Some(0)}, Note: "how many requests wait is unknown"}
	}
	b := m.reach(m.MaxNumSeqs, stat.Some(tokens))
	if h := m.holds(m.KVCapacity); h.OK && p.again == 0 && h.V > roomy*(m.Batch+1) {
		return none(fmt.Sprintf("the KV pool holds %.0f sequences and %.0f run: it is not what requests wait for", math.Floor(h.V), m.Batch))
	}
	if b <= m.Batch*(1+noticeable) && p.again == 0 {
		return none("no request waits for cache and none is preempted")
	}
	ch := p.unchanged()
	ch.at = p.spared(m.at(b), fits(b*m.finalContext(), tokens))
	return p.predict(ch)
}

// roomy is how many times more sequences than run a pool holds that is not what
// holds them back.
const roomy = 2

// spared is a point at which a part of the sequences that are preempted now are not.
func (p *Performance) spared(at Point, part float64) Point {
	at.Tokens -= p.again * at.Batch / p.Measured.Batch * part
	return at
}

// fits returns the part of preemptions that a pool avoids: all of them where the
// demand fits, fewer the more it exceeds the pool.
func fits(demand, pool float64) float64 {
	if demand <= pool {
		return 1
	}
	return max(0, 2-demand/pool)
}

// LowerSeats predicts --max-num-seqs at to, below what runs now: shorter steps,
// a longer queue, and no preemptions where the rest fits the pool.
func (p *Performance) LowerSeats(to int) Gain {
	m := &p.Measured
	b := float64(to)
	if b <= 0 || b >= m.Batch*(1-noticeable) {
		return none("no more than that run now")
	}
	ch := p.unchanged()
	ch.at = m.at(b)
	if m.KVCapacity.OK {
		ch.at = p.spared(ch.at, fits(b*m.finalContext(), m.KVCapacity.V))
	}
	return p.predict(ch)
}

// MoreConcurrency predicts clients that keep to requests in the system.
func (p *Performance) MoreConcurrency(to float64) Gain {
	m := &p.Measured
	if m.Waiting.Or(0) >= 1 {
		return none("requests already wait: more of them would only wait longer")
	}
	b := to
	if positive(m.MaxNumSeqs) {
		b = min(b, m.MaxNumSeqs.V)
	}
	if h := m.holds(m.KVCapacity); h.OK {
		b = min(b, h.V)
	}
	if b <= m.Batch*(1+noticeable) {
		return none("seats and KV pool hold no more than run now")
	}
	ch := p.fuller(b)
	ch.clients = true
	return p.predict(ch)
}

// FP8KV predicts an 8-bit KV cache: half the bytes of a 16-bit one to read, and
// twice the tokens in the pool.
func (p *Performance) FP8KV() Gain {
	m := &p.Measured
	was := p.Config.KV.Bytes()
	if was <= catalog.FP8.Bytes() {
		return none("the KV cache is 8 bit already")
	}
	ch := p.unchanged()
	ch.config.KV = catalog.FP8
	ch.at = m.at(m.reach(m.MaxNumSeqs, m.KVCapacity.Times(was/catalog.FP8.Bytes())))
	return p.predict(ch)
}

// NoEager predicts CUDA graphs instead of --enforce-eager.
func (p *Performance) NoEager() Gain {
	if !p.Config.Eager {
		return none("CUDA graphs are in use")
	}
	ch := p.unchanged()
	ch.config.Eager = false
	return p.predict(ch)
}

// TensorParallel predicts the degree to on as many GPUs of this kind.
func (p *Performance) TensorParallel(to int) Gain {
	m := &p.Measured
	c := p.Config
	if !HeadsAllow(&c.Model, to) {
		return Gain{Note: fmt.Sprintf("%d ranks cannot share the model's heads evenly", to)}
	}
	ch := p.unchanged()
	ch.config.TP = to
	pool := m.KVCapacity
	now, _, _ := c.Capacity(capacityUtil)
	then, _, _ := ch.config.Capacity(capacityUtil)
	if pool.OK && now > 0 {
		pool.V *= then / now
	}
	ch.at = m.at(m.reach(m.MaxNumSeqs, pool))
	ch.cap = float64(to) / c.tp() * ch.at.Batch / m.Batch
	g := p.predict(ch)
	if to > 1 && ch.config.linkOf(to).pcie {
		g.Throughput.Mid, g.ITL.Mid, g.TTFT.Mid = stat.None, stat.None, stat.None
		g.Throughput.Low, g.ITL.High = stat.Some(min(0, g.Throughput.Low.V)), stat.None
		g.Note = join(g.Note, "over PCIe the all-reduce depends on the board, and can cost more than it saves")
	}
	return g
}

// capacityUtil is the memory fraction at which pools of two degrees are
// compared; their ratio hardly depends on it.
const capacityUtil = 0.9

// PrefillShare is the part of the modelled step's time, 0..1, that goes into
// prefill: what would be saved if no prompt were computed. Absent where it is
// not known how much prefill is computed.
func (p *Performance) PrefillShare() stat.Opt {
	m := &p.Measured
	decode := m.Batch * m.PerSequence
	if !m.PrefillPerS.OK && m.Tokens <= decode {
		return stat.None
	}
	bare := m.Point
	bare.Tokens = decode
	return stat.Some(max(0, 1-p.seconds(p.Config, bare)/p.Now.Achievable.Total()))
}

// PrefixCaching predicts the share hit, 0..1, of prompt tokens served from the
// cache instead of computed.
func (p *Performance) PrefixCaching(hit float64) Gain {
	m := &p.Measured
	decode := m.Batch * m.PerSequence
	bare := m.Point
	bare.Tokens = decode
	most := p.Now.Achievable.Total()/p.seconds(p.Config, bare) - 1
	if !m.WorkloadKnown || m.Workload.Computed <= 0 || m.Tokens <= decode {
		g := Gain{Throughput: Range{Low: stat.Some(0)}, Note: "how much prefill is computed is unknown"}
		if m.Tokens > decode {
			g.Throughput.High = stat.Some(most)
		}
		return g
	}
	computed := m.Workload.Prompt * (1 - min(1, max(0, hit)))
	share := computed / m.Workload.Computed
	if share >= 1-noticeable {
		return none("that much of the prompts is cached already")
	}
	ch := p.unchanged()
	ch.at.Tokens = decode + (m.Tokens-decode)*share
	ch.at.PrefillContext = m.Workload.Prompt - computed/2
	ch.at.Chunk = max(1, min(m.Chunk, computed))
	ch.cap = 1 + most
	_, before := p.Config.Prefill(m.Workload.Computed, m.Workload.Prompt-m.Workload.Computed, m.Chunk)
	_, after := p.Config.Prefill(computed, m.Workload.Prompt-computed, m.Chunk)
	ch.prefill = over(after, before)
	return p.predict(ch)
}

// TokenBudget predicts --max-num-batched-tokens at to. Where the budget holds
// requests back, the same mix of prompt and output tokens comes in larger steps:
// running grows with the budget until the waiting requests, the seats or the pool
// are used up, and each reading of the weights serves more tokens, for nothing
// while the step is memory bound and in proportion once it computes. Where no
// request is held back by it, the same tokens come in other portions. The note
// names the longest step.
func (p *Performance) TokenBudget(to int) Gain {
	m := &p.Measured
	if !m.WorkloadKnown || m.Workload.Computed <= 0 {
		return Gain{Note: "prompt lengths are unknown"}
	}
	old := m.TokenBudget.Or(max(defaultChunk, m.Chunk))
	cached := max(0, m.Workload.Prompt-m.Workload.Computed)
	batch := m.Batch
	if positive(m.Waiting) && float64(to) > old {
		batch = min(m.reach(m.MaxNumSeqs, m.KVCapacity), m.Batch*float64(to)/old)
	}
	ch := p.unchanged()
	if batch > m.Batch*(1+noticeable) {
		ch = p.fuller(batch)
	}
	chunk := min(float64(to), m.Workload.Computed)
	ch.at.Chunk = chunk
	if ch.worst.Batch > 0 {
		ch.worst.Chunk = max(ch.worst.Chunk, chunk)
	}
	_, before := p.Config.Prefill(m.Workload.Computed, cached, old)
	_, after := p.Config.Prefill(m.Workload.Computed, cached, float64(to))
	ch.prefill = over(after, before)
	ch.budget = stat.Some(float64(to))
	ch.note = fmt.Sprintf("a full step takes about %.0f ms", 1000*p.FullStep(float64(to), m.PrefillContext))
	return p.predict(ch)
}

// FullStep returns the calibrated seconds of a step of the measured batch that
// is filled up to tokens with one prompt's, each of which looks back on context
// tokens: what every running sequence waits for its next token while a long
// prompt is computed.
func (p *Performance) FullStep(tokens, context float64) float64 {
	m := &p.Measured
	full := m.Point
	full.Tokens = max(tokens, m.Batch*m.PerSequence)
	full.Chunk = full.Tokens
	full.PrefillContext = context
	return p.Scale * p.seconds(p.Config, full)
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
