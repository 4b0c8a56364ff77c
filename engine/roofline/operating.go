package roofline

import (
	"fmt"
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of the calibration for predictions. Beyond them the model does not describe the step, and
// scaling by it would make up gains.
const (
	scaleLeast = 0.4
	scaleMost  = 3.0
)

// Operate computes the ceilings at a measured operating point of one replica and sums them
// over equal replicas. It fails if the model lacks an input or no sequence ran. The
// Performance is the basis of predicted gains.
func (c Config) Operate(m Measured, replicas int) (Operating, *Performance, error) {
	if missing := c.Check(); len(missing) > 0 {
		return Operating{}, nil, fmt.Errorf("ceiling not computable: unknown %s", strings.Join(missing, ", "))
	}
	if !(m.Batch > 0) || math.IsInf(m.Batch, 0) {
		return Operating{}, nil, fmt.Errorf("ceiling not computable: no running requests")
	}
	pl := c.plan()
	notes := pl.assumptions()
	notes = append(notes, m.complete(&c)...)
	ideal, achievable := pl.terms(m.Point)
	n := float64(max(1, replicas))
	decoding := m.decoding()
	ti, ta := ideal.Total(), achievable.Total()

	o := Operating{
		IdealTokensPerS:      stat.Some(n * decoding / ti),
		AchievableTokensPerS: stat.Some(n * decoding / ta),
		Binding:              achievable.Binding(),
		TermsS:               achievable, IdealTermsS: ideal,
		StepIdealS: ti, StepAchievableS: ta,
		Batch: m.Batch, Context: m.Context, StepTokens: m.Tokens,
		RidgeTokens: c.RidgeTokens(),
	}
	lower, upper := pl.band(m.Point, achievable)
	o.AchievableLower = o.AchievableTokensPerS.Times(lower)
	o.AchievableUpper = stat.Some(min(o.AchievableTokensPerS.V*upper, o.IdealTokensPerS.V))

	perf := &Performance{Config: c, Measured: m, Now: Step{ideal, achievable, notes}, Scale: 1}
	if perf.again = m.recomputed(); perf.again > 0 {
		perf.Measured.Tokens += perf.again
		perf.Now.Ideal, perf.Now.Achievable = pl.terms(perf.Measured.Point)
	}
	// Absurd gauges make a step without end, which calibrates nothing.
	if raw, again := m.StepSeconds.V/ta, m.StepSeconds.V/perf.Now.Achievable.Total(); positive(m.StepSeconds) && raw > 0 && again > 0 {
		perf.Raw = again
		perf.Scale = min(scaleMost, max(scaleLeast, perf.Raw))
		o.CalibrationRaw, o.Calibration = stat.Some(raw), stat.Some(min(scaleMost, max(scaleLeast, raw)))
		if e := ti / m.StepSeconds.V; e <= 1+tolerance {
			o.Efficiency = stat.Some(min(1, e))
		}
		if perf.Raw != perf.Scale {
			notes = append(notes, fmt.Sprintf("the measured step takes %.2g times the achievable (est) one; predictions use %.2g", perf.Raw, perf.Scale))
		}
	} else {
		notes = append(notes, "the step time is not measured: predictions are not calibrated")
	}
	if best, rate := perf.best(); best > 0 && m.MaxNumSeqs.OK { // the pool alone does not say what the server allows
		o.BestBatch, o.BestTokensPerS = stat.Some(n*best), stat.Some(n*rate)
	}
	o.Assumptions = notes
	return o, perf, nil
}

// decoding returns the tokens that a step adds to the output. By Little's law it is the output rate
// times the measured step, so that rates and steps give one efficiency: requests that compute their
// prompt run but do not decode, and a gauge read between steps misses short requests. Without both it
// is that of all running requests.
func (m *Measured) decoding() float64 {
	all := m.Batch * max(1, m.PerSequence)
	if positive(m.OutputPerS) && positive(m.StepSeconds) {
		return m.OutputPerS.V * m.StepSeconds.V
	}
	return all
}

// complete fills in the missing parts of a measured point and returns the assumptions made.
func (m *Measured) complete(c *Config) []string {
	var notes []string
	m.PerSequence = max(1, m.PerSequence)
	decode := m.Batch * m.PerSequence
	if m.PerSequence > 1 {
		notes = append(notes, "speculation: the time to draft tokens is not included")
	}
	// A step advances every running sequence. The stages of a pipeline each count steps for their
	// own share.
	if pp := c.pp(); pp > 1 {
		switch {
		case positive(m.OutputPerS):
			m.StepSeconds = stat.Some(decode / m.OutputPerS.V)
		case positive(m.StepSeconds):
			m.StepSeconds.V *= min(pp, max(1, m.Batch))
		}
	}
	if !positive(m.StepSeconds) && positive(m.OutputPerS) {
		m.StepSeconds = stat.Some(decode / m.OutputPerS.V)
		notes = append(notes, "the step time is estimated as running requests over generated tokens per second")
	}
	switch {
	case m.Tokens > decode:
	case positive(m.PrefillPerS) && positive(m.StepSeconds):
		// Running requests in prefill do not decode, so the ratio of both rates times the running
		// requests would count too much.
		m.Tokens = decode + m.PrefillPerS.V*m.StepSeconds.V
	case positive(m.PrefillPerS) && positive(m.OutputPerS):
		m.Tokens = decode * (1 + m.PrefillPerS.V/m.OutputPerS.V)
	case !m.PrefillPerS.OK:
		notes = append(notes, "computed prompt tokens are unknown: the step is modelled as decode only")
	}
	m.Tokens = max(m.Tokens, decode)
	if m.WorkloadKnown && m.Workload.Computed > 0 {
		if m.PrefillContext == 0 {
			m.PrefillContext = max(0, m.Workload.Prompt-m.Workload.Computed) + m.Workload.Computed/2
		}
		if m.Chunk == 0 {
			m.Chunk = min(m.TokenBudget.Or(defaultChunk), m.Workload.Computed)
		}
	}
	if m.Tokens > decode && m.PrefillContext == 0 {
		notes = append(notes, "prompt lengths are unknown: prefill attention is not included")
	}
	return notes
}

// recomputed returns the mean number of tokens of preempted sequences that a step recomputes. No
// counter of prompts includes them.
func (m *Measured) recomputed() float64 {
	if !positive(m.PreemptsPerS) || !positive(m.StepSeconds) {
		return 0
	}
	return m.PreemptsPerS.V * m.Context * m.StepSeconds.V
}

// spread is how far the time of a part of a step may differ from the estimate, as shares of it: how
// much shorter, and how much longer. The ends hold 90 % of the published results.
type spread struct{ shorter, longer float64 }

// Spreads of the parts of a step. End to end, prefill reaches 40 to 60 % of the peak where single
// kernels reach 80 (BLIS: 45 % on an H100, 38 on an A100, 32 on an L40S), and a saturated mixture of
// experts took two to four times as long as its kernels alone (gpt-oss-20b, vLLM 0.11). Launches that
// a graph or a fused kernel avoids take half as long or less (gpt-fast).
var (
	spreadOfReads         = spread{0.20, 0.25}
	spreadOfCompute       = spread{0.15, 0.90}
	spreadOfTransfers     = spread{0.45, 0.80}
	spreadOfFixed         = spread{0.45, 0.90}
	spreadOfExperts       = spread{0.35, 0.70} // reads of routed experts
	spreadOfExpertCompute = spread{0.35, 2.50}
	spreadOfLatent        = spread{0.35, 2.60} // reads of a latent cache
	spreadOfEverything    = spread{0.06, 0.12} // clocks, host and measurement
)

// standInSpread widens every spread on a device whose fractions are those of another one.
const standInSpread = 1.3

// otherEngineSpread is how much longer than on vLLM, as a multiple of the spreads, a step of another engine may take.
// Nine of ten published results of SGLang lie within it; fitted without those of one source, 98 % (SGLang's cookbook),
// 87 % (Qwen), 100 % (DataCrunch) and 40 % (GPUStack) of that source's do (testdata/published/sglang.csv).
const otherEngineSpread = 3.0

// band returns the lower and the upper end of the achievable rate around its expected value, as
// factors, for the achievable parts of a step at a point: they differ independently of each other, and
// together as spreadOfEverything says. If a narrower cache is possible, the upper end is that with it.
func (pl *plan) band(at Point, t Terms) (lower, upper float64) {
	weights, kv, compute := spreadOfReads, spreadOfReads, spreadOfCompute
	if pl.s.experts > 0 {
		weights, compute = spreadOfExperts, spreadOfExpertCompute
	}
	if pl.c.Model.Attention == catalog.AttentionMLA {
		kv, weights = spreadOfLatent, spreadOfLatent
	}
	var shorter, longer float64
	add := func(seconds float64, s spread) {
		share := quotient(seconds, t.Total())
		shorter, longer = math.Hypot(shorter, share*s.shorter), math.Hypot(longer, share*s.longer)
	}
	add(t.Weights, weights)
	add(t.KV, kv)
	add(t.Compute+t.Attention, compute)
	add(t.Collectives, spreadOfTransfers)
	add(t.Fixed, spreadOfFixed)
	add(t.Total(), spreadOfEverything)
	if !pl.own && pl.c.GPU.Achieved == nil {
		shorter, longer = standInSpread*shorter, standInSpread*longer
	}
	if pl.c.OtherEngine {
		longer *= otherEngineSpread
	}
	lower, upper = 1/(1+longer), 1/(1-min(shorter, leastStep))
	if pl.lean.KV != pl.c.KV {
		lean := pl.lean
		lean.KVAssumed = false
		other := lean.plan()
		l := other.load(at)
		parts := other.achievable(&l)
		_, most := other.band(at, parts)
		upper = max(upper, most*quotient(t.Total(), parts.Total()))
	}
	return lower, upper
}

// leastStep bounds how much shorter than estimated a step can be, as a share of it.
const leastStep = 0.5

// tolerance is how far a measured rate may exceed the ideal before the inputs count as wrong.
// Bandwidths on datasheets differ from the boards' by up to 4 % (B200: 7.7 and 8.0 TB/s), and a mean
// of 2 s windows has a few percent of noise. A misread dtype, GPU or TP makes at least a quarter.
const tolerance = 0.05

// Impossible reports whether a measured output rate of the whole server, in tokens per second,
// exceeds the ideal ceiling so far that model, GPU, dtype or parallelism must be misread.
func (o Operating) Impossible(outputPerS float64) bool {
	return o.IdealTokensPerS.OK && outputPerS > o.IdealTokensPerS.V*(1+tolerance)
}

// at returns the measured point with another batch and the same ratio of prefill to decode tokens.
func (m *Measured) at(batch float64) Point {
	p := m.Point
	if p.Batch > 0 {
		p.Tokens *= batch / p.Batch
	}
	p.Batch = batch
	return p
}

// limit returns the batch that slots and KV pool allow, absent if neither is known.
func (m *Measured) limit() stat.Opt {
	l := stat.None
	if positive(m.MaxNumSeqs) {
		l = m.MaxNumSeqs
	}
	if kv := m.KVCapacity.Div(stat.Some(m.resident())); positive(kv) && (!l.OK || kv.V < l.V) {
		l = kv
	}
	return l
}

// best returns the batch with the highest calibrated rate that slots and pool allow, and that rate. It
// returns 0 if the limit is unknown or the measured step is beyond calibration. The measured batch
// is always allowed.
func (p *Performance) best() (batch, rate float64) {
	limit := p.Measured.limit()
	if !limit.OK || p.beyond() {
		return 0, 0
	}
	pl := p.Config.plan()
	most := max(limit.V, p.Measured.Batch)
	try := func(b float64) {
		if r := p.rates(&pl, b).Expected; r > rate {
			batch, rate = b, r
		}
	}
	try(p.Measured.Batch)
	for b := 1.0; b < most; b = math.Ceil(b * 1.1) {
		try(b)
	}
	try(most)
	return batch, rate
}
