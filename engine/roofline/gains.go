package roofline

import (
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Every prediction is a ratio of two modelled steps, so that common factors, including the bias of
// the model, cancel.

// Throughput returns the calibrated output tokens per second of this replica
// with batch running sequences of the measured context and prefill mix.
func (p *Performance) Throughput(batch float64) float64 {
	if batch <= 0 {
		return 0
	}
	pl := p.Config.plan()
	return p.rates(&pl, batch).Expected
}

// stepSeconds returns the achievable time of a step of a configuration at a point.
func (p *Performance) stepSeconds(c Config, at Point) float64 {
	pl := c.plan()
	l := pl.load(at)
	return pl.achievable(&l).Total()
}

// noGain returns the gain of a change without effect, with the reason.
func noGain(why string) Gain {
	zero := Range{stat.Some(0), stat.Some(0), stat.Some(0)}
	return Gain{Throughput: zero, TTFT: zero, ITL: zero, Note: why}
}

// noticeable is the least relative change of the batch with a measurable effect.
const noticeable = 0.01

// RaiseSlots predicts --max-num-seqs raised to a value.
func (p *Performance) RaiseSlots(to int) Gain {
	m := &p.Measured
	if !m.Waiting.OK {
		return Gain{Throughput: Range{Low: stat.Some(0)}, Note: "the number of waiting requests is unknown"}
	}
	if m.Waiting.V == 0 {
		return noGain("no request waits for a slot")
	}
	if h := m.holds(m.KVCapacity); h.OK && h.V <= m.Batch*(1+noticeable) {
		return noGain(fmt.Sprintf("the KV pool fits %s of this length: more slots would stay empty", figure.Counted(math.Floor(h.V), "sequence")))
	}
	b := m.allowedBatch(stat.Some(float64(to)), m.KVCapacity)
	if b <= m.Batch*(1+noticeable) {
		return noGain("that many requests already run")
	}
	return p.predict(p.fuller(b))
}

// fuller returns the change to a larger batch with the same pool.
func (p *Performance) fuller(batch float64) change {
	ch := p.unchanged()
	ch.at = p.Measured.at(batch)
	ch.worst = p.crowded(ch.at)
	ch.cap = batch / p.Measured.Batch
	return ch
}

// MoreKV predicts a KV pool of tokens for this replica: more running sequences if requests wait and
// slots are free, and no preemptions if all fit.
func (p *Performance) MoreKV(tokens float64) Gain {
	m := &p.Measured
	if !m.Waiting.OK && !m.PreemptsPerS.OK {
		return Gain{Throughput: Range{Low: stat.Some(0)}, Note: "the number of waiting requests is unknown"}
	}
	b := m.allowedBatch(m.MaxNumSeqs, stat.Some(tokens))
	if h := m.holds(m.KVCapacity); h.OK && p.again == 0 && h.V > roomy*(m.Batch+1) {
		return noGain(fmt.Sprintf("the KV pool fits %s and %s run: requests do not wait for it", figure.Counted(math.Floor(h.V), "sequence"), figure.Count(m.Batch)))
	}
	if b <= m.Batch*(1+noticeable) && p.again == 0 {
		return noGain("no request waits for KV blocks and none is preempted")
	}
	ch := p.unchanged()
	ch.at = p.spared(m.at(b), fits(b*m.finalContext(), tokens))
	return p.predict(ch)
}

// roomy is the ratio of sequences that fit to running ones above which the pool is not the limit.
const roomy = 2

// spared returns the point at which a part of the preemptions is avoided.
func (p *Performance) spared(at Point, part float64) Point {
	at.Tokens -= p.again * at.Batch / p.Measured.Batch * part
	return at
}

// fits returns the share of preemptions that a pool avoids: all if the demand fits, less the more
// the demand exceeds the pool.
func fits(demand, pool float64) float64 {
	if demand <= pool {
		return 1
	}
	return max(0, 2-demand/pool)
}

// LowerSlots predicts --max-num-seqs below the present number of running requests: shorter steps, a
// longer queue, and no preemptions if the remaining sequences fit into the pool.
func (p *Performance) LowerSlots(to int) Gain {
	m := &p.Measured
	b := float64(to)
	if b <= 0 || b >= m.Batch*(1-noticeable) {
		return noGain("fewer requests than that run now")
	}
	ch := p.unchanged()
	ch.at = m.at(b)
	if m.KVCapacity.OK {
		ch.at = p.spared(ch.at, fits(b*m.finalContext(), m.KVCapacity.V))
	}
	return p.predict(ch)
}

// MoreConcurrency predicts clients that keep to requests in the server.
func (p *Performance) MoreConcurrency(to float64) Gain {
	m := &p.Measured
	if m.Waiting.Or(0) >= 1 {
		return noGain("requests already wait: more requests would only wait longer")
	}
	b := to
	if positive(m.MaxNumSeqs) {
		b = min(b, m.MaxNumSeqs.V)
	}
	if h := m.holds(m.KVCapacity); h.OK {
		b = min(b, h.V)
	}
	if b <= m.Batch*(1+noticeable) {
		return noGain("slots and KV pool fit no more requests than run now")
	}
	ch := p.fuller(b)
	ch.clients = true
	return p.predict(ch)
}

// FP8KV predicts an 8-bit KV cache: half the bytes of a 16-bit one to read, and twice the tokens in
// the pool.
func (p *Performance) FP8KV() Gain {
	m := &p.Measured
	was := p.Config.KV.Bytes()
	if was <= catalog.FP8.Bytes() {
		return noGain("the KV cache is already 8-bit")
	}
	ch := p.unchanged()
	ch.config.KV = catalog.FP8
	ch.at = m.at(m.allowedBatch(m.MaxNumSeqs, m.KVCapacity.Times(was/catalog.FP8.Bytes())))
	return p.predict(ch)
}

// NoEager predicts CUDA graphs instead of --enforce-eager.
func (p *Performance) NoEager() Gain {
	if !p.Config.Eager {
		return noGain("CUDA graphs are already in use")
	}
	ch := p.unchanged()
	ch.config.Eager = false
	return p.predict(ch)
}

// TensorParallel predicts another tensor-parallel degree on as many GPUs of this kind.
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
	ch.at = m.at(m.allowedBatch(m.MaxNumSeqs, pool))
	ch.cap = float64(to) / c.tp() * ch.at.Batch / m.Batch
	g := p.predict(ch)
	if to > 1 && ch.config.linkOf(to).pcie {
		g.Throughput.Mid, g.ITL.Mid, g.TTFT.Mid = stat.None, stat.None, stat.None
		g.Throughput.Low, g.ITL.High = stat.Some(min(0, g.Throughput.Low.V)), stat.None
		g.Note = join(g.Note, "over PCIe the all-reduce depends on the board and can cost more than it saves")
	}
	return g
}

// capacityUtil is the memory fraction for comparing the pools of two degrees. Their ratio hardly
// depends on it.
const capacityUtil = 0.9

// PrefillShare returns the share of prefill in the modelled step's time, 0..1: what would be saved
// without any prefill. It is absent if the amount of prefill is unknown.
func (p *Performance) PrefillShare() stat.Opt {
	m := &p.Measured
	decode := m.Batch * m.PerSequence
	if !m.PrefillPerS.OK && m.Tokens <= decode {
		return stat.None
	}
	bare := m.Point
	bare.Tokens = decode
	return stat.Some(max(0, 1-p.stepSeconds(p.Config, bare)/p.Now.Achievable.Total()))
}

// PrefillMost returns an upper bound of PrefillShare: prompts take as much longer than estimated as the
// lower end of the achievable range allows.
func (p *Performance) PrefillMost() stat.Opt {
	longer := 1 + spreadOfCompute.longer
	if p.Config.Model.Experts > 0 {
		longer = 1 + spreadOfExpertCompute.longer
	}
	return p.PrefillShare().Map(func(share float64) float64 { return share * longer / (share*longer + 1 - share) })
}

// TokenBudget predicts --max-num-batched-tokens at a value. If the budget limits admission, the same
// mix of prompt and output tokens comes in larger steps: the running requests grow with the budget
// until the waiting requests, the slots or the pool are exhausted. Each reading of the weights then
// serves more tokens, at no cost while the step is memory-bound and proportionally once it is
// compute-bound. If the budget does not limit admission, the same tokens come in other portions.
// The note names the longest step.
func (p *Performance) TokenBudget(to int) Gain {
	m := &p.Measured
	if !m.WorkloadKnown || m.Workload.Computed <= 0 {
		return Gain{Note: "prompt lengths are unknown"}
	}
	old := m.TokenBudget.Or(max(defaultChunk, m.Chunk))
	cached := max(0, m.Workload.Prompt-m.Workload.Computed)
	batch := m.Batch
	if positive(m.Waiting) && float64(to) > old {
		batch = min(m.allowedBatch(m.MaxNumSeqs, m.KVCapacity), m.Batch*float64(to)/old)
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
	ch.prefill = quotient(after, before)
	ch.budget = stat.Some(float64(to))
	ch.note = "a full step takes about " + figure.Value(p.FullStep(float64(to), m.PrefillContext), "s")
	return p.predict(ch)
}

// FullStep returns the calibrated seconds of a step of the measured batch that is filled up to
// tokens with one prompt's, each attending to context tokens: the time that every running sequence
// waits for its next token while a long prompt is processed.
func (p *Performance) FullStep(tokens, context float64) float64 {
	m := &p.Measured
	full := m.Point
	full.Tokens = max(tokens, m.Batch*m.PerSequence)
	full.Chunk = full.Tokens
	full.PrefillContext = context
	return p.Scale * p.stepSeconds(p.Config, full)
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// Headroom returns how much more requests of the measured kind a replica serves before they wait, as a ratio of
// what it serves, and the running requests then. The high end fills slots and pool, or the batch beyond which the
// output falls; the middle and the low end leave room for one and two standard deviations of arrivals that come by
// chance. The range is an 80 % interval. why is set if it is unknown, or none.
func (p *Performance) Headroom() (r Range, batch float64, why string) {
	m := &p.Measured
	batch, _ = p.best()
	switch {
	case p.beyond():
		return Range{}, 0, fmt.Sprintf("steps are %s times slower than modelled: find the cause of that first", figure.Significant(p.Raw))
	case batch == 0:
		return Range{}, 0, "neither slots nor KV pool are known"
	case m.Waiting.Or(0) >= 1 && !m.scheduledAtOnce():
		zero := stat.Some(0)
		return Range{zero, zero, zero}, batch, "requests wait already with these settings"
	}
	at := func(deviations float64) Range {
		root := (math.Sqrt(deviations*deviations+4*batch) - deviations) / 2 // n + deviations·√n fill the batch
		return p.At(root * root).Throughput
	}
	r = Range{at(2).Low, at(1).Mid, at(0).High}
	for _, end := range []*stat.Opt{&r.Low, &r.Mid, &r.High} {
		end.V = max(0, end.V)
	}
	return r, batch, ""
}

// scheduledAtOnce reports whether requests waited for less than a step on average: those that were seen waiting arrived
// together.
func (m *Measured) scheduledAtOnce() bool {
	return m.QueueSeconds.OK && m.StepSeconds.OK && m.QueueSeconds.V < m.StepSeconds.V
}

// At predicts a load of the measured kind with batch requests running at once.
func (p *Performance) At(batch float64) Gain {
	ch := p.fuller(batch)
	ch.clients = true
	return p.predict(ch)
}
