package roofline

import (
	"fmt"
	"math"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Limits of the calibration that predictions use: beyond them the step is not
// the one that was modelled, and scaling by it would invent gains.
const (
	scaleLeast = 0.8
	scaleMost  = 3.0
)

// Operate computes the ceilings at a measured operating point of one replica
// and sums them over replicas of the same (physics.md section 9). It fails
// where the model lacks an input or no sequence ran. The Performance is the
// basis of predicted gains.
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
	per := max(1, m.PerSequence)
	n := float64(max(1, replicas))
	ti, ta := ideal.Total(), achievable.Total()

	o := Operating{
		IdealTokensPerS:      stat.Some(n * m.Batch * per / ti),
		AchievableTokensPerS: stat.Some(n * m.Batch * per / ta),
		Binding:              achievable.Binding(),
		TermsS:               achievable, IdealTermsS: ideal,
		StepIdealS: ti, StepAchievableS: ta,
		Batch: m.Batch, Context: m.Context, StepTokens: m.Tokens,
		RidgeTokens: c.RidgeTokens(),
	}
	lower, upper := c.band()
	o.AchievableLower = o.AchievableTokensPerS.Times(lower)
	o.AchievableUpper = stat.Some(min(o.AchievableTokensPerS.V*upper, o.IdealTokensPerS.V))

	perf := &Performance{Config: c, Measured: m, Now: Step{ideal, achievable, notes}, Scale: 1}
	if perf.again = m.recomputed(); perf.again > 0 {
		perf.Measured.Tokens += perf.again
		perf.Now.Ideal, perf.Now.Achievable = pl.terms(perf.Measured.Point)
	}
	if positive(m.StepSeconds) {
		raw := m.StepSeconds.V / ta
		perf.Raw = m.StepSeconds.V / perf.Now.Achievable.Total()
		perf.Scale = min(scaleMost, max(scaleLeast, perf.Raw))
		o.CalibrationRaw, o.Calibration = stat.Some(raw), stat.Some(min(scaleMost, max(scaleLeast, raw)))
		if e := ti / m.StepSeconds.V; e <= 1+tolerance {
			o.Efficiency = stat.Some(min(1, e))
		}
		if perf.Raw != perf.Scale {
			notes = append(notes, fmt.Sprintf("measured step is %.2g times the achievable one; predictions use %.2g", perf.Raw, perf.Scale))
		}
	} else {
		notes = append(notes, "step time not measured: predictions are not calibrated")
	}
	if best, rate := perf.best(); best > 0 {
		o.BestBatch, o.BestTokensPerS = n*best, stat.Some(n*rate)
	}
	o.Assumptions = notes
	return o, perf, nil
}

// complete fills what a measured point leaves open and says how.
func (m *Measured) complete(c *Config) []string {
	var notes []string
	m.PerSequence = max(1, m.PerSequence)
	decode := m.Batch * m.PerSequence
	if m.PerSequence > 1 {
		notes = append(notes, "speculation: the time to draft tokens is not counted")
	}
	// A step is what advances every running sequence. The stages of a pipeline
	// each count steps of their own share.
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
		notes = append(notes, "step time taken as running requests over generated tokens per second")
	}
	switch {
	case m.Tokens > decode:
	case positive(m.PrefillPerS) && positive(m.StepSeconds):
		// Running requests whose prompts are being computed do not decode, so that the
		// ratio of both rates times the running ones would count too much.
		m.Tokens = decode + m.PrefillPerS.V*m.StepSeconds.V
	case positive(m.PrefillPerS) && positive(m.OutputPerS):
		m.Tokens = decode * (1 + m.PrefillPerS.V/m.OutputPerS.V)
	case !m.PrefillPerS.OK:
		notes = append(notes, "computed prompt tokens unknown: the step is taken as decode only")
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
		notes = append(notes, "prompt lengths unknown: prefill attention is not counted")
	}
	return notes
}

// recomputed is the tokens of preempted sequences that a step computes again, on
// average: no counter of prompts has them.
func (m *Measured) recomputed() float64 {
	if !positive(m.PreemptsPerS) || !positive(m.StepSeconds) {
		return 0
	}
	return m.PreemptsPerS.V * m.Context * m.StepSeconds.V
}

// band is the span of the achievable rate around its expected value. Dense
// decode was predicted within 19 % for nine of ten published points; MoE steps
// came out slower by up to a third, with a latent cache up to a half
// (physics.md sections 0 and 7).
func (c *Config) band() (lower, upper float64) {
	switch {
	case c.Model.Experts > 0 && c.Model.Attention == catalog.AttentionMLA:
		return 0.5, 1.1
	case c.Model.Experts > 0:
		return 0.65, 1.15
	}
	return 0.8, 1.2
}

// tolerance is how far a measured rate may lie above the ideal before the
// inputs are called wrong. Bandwidths on datasheets differ from the boards' by
// up to 4 % (B200: 7.7 and 8.0 TB/s), and a mean of 2 s windows carries a few
// percent of noise; a misread dtype, GPU or TP is off by a quarter at least.
const tolerance = 0.05

// Impossible reports whether a measured output rate, of the whole server in
// tokens per second, lies so far above the ideal ceiling that model, GPU, dtype
// or parallelism must be misread.
func (o Operating) Impossible(outputPerS float64) bool {
	return o.IdealTokensPerS.OK && outputPerS > o.IdealTokensPerS.V*(1+tolerance)
}

// at returns the measured point moved to another batch at the same ratio of
// prefill to decode tokens.
func (m *Measured) at(batch float64) Point {
	p := m.Point
	if p.Batch > 0 {
		p.Tokens *= batch / p.Batch
	}
	p.Batch = batch
	return p
}

// limit returns the batch that seats and KV pool allow at what a sequence holds;
// absent where neither is known.
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

// best returns the batch with the highest calibrated rate among those that
// seats and pool allow, and that rate; 0 where the limit is unknown or the
// measured step is beyond calibration. The measured batch is always allowed.
func (p *Performance) best() (batch, rate float64) {
	limit := p.Measured.limit()
	if !limit.OK || p.beyond() {
		return 0, 0
	}
	pl := p.Config.plan()
	most := max(limit.V, p.Measured.Batch)
	per := p.Measured.PerSequence
	try := func(b float64) {
		_, a := pl.terms(p.Measured.at(b))
		if r := b * per / (p.Scale * a.Total()); r > rate {
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
