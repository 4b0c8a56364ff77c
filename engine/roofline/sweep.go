package roofline

// Rates are the output tokens per second of one replica at a number of running sequences.
type Rates struct {
	Expected   float64 // achievable, calibrated by the measured step; at most Ideal
	Achievable float64
	Upper      float64 // of the range of Achievable; at most Ideal
	Ideal      float64
}

// Sweep returns the rates at each batch, for the measured context and prefill mix. At the measured batch
// they are the measured rate and the ceilings of Operate. A batch of zero has zero rates.
func (p *Performance) Sweep(batches []float64) []Rates {
	out := make([]Rates, len(batches))
	pl := p.Config.plan()
	for i, b := range batches {
		if b > 0 {
			out[i] = p.rates(&pl, b)
		}
	}
	return out
}

// rates returns the rates at a batch above zero. The ceilings count no work that is repeated after a
// preemption; the expected rate does, and takes the same step as the prediction of a change to that batch.
func (p *Performance) rates(pl *plan, batch float64) Rates {
	m := &p.Measured
	n := m.decoding() * batch / m.Batch
	at := m.at(batch)
	_, working := pl.terms(at)
	at.Tokens -= p.again * batch / m.Batch
	ideal, achievable := pl.terms(at)
	r := Rates{Achievable: n / achievable.Total(), Ideal: n / ideal.Total()}
	_, upper := pl.band(at, achievable)
	r.Upper = min(upper*r.Achievable, r.Ideal)
	step := working.Total()
	if positive(m.StepSeconds) {
		step = m.StepSeconds.V * p.calibrated(step, p.fixedShare())
	}
	r.Expected = min(n/step, r.Ideal)
	return r
}
