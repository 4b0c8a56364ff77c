package roofline

// Rates are the output tokens per second of one replica at a number of running
// sequences.
type Rates struct {
	Expected   float64 // the achievable, calibrated by the measured step
	Achievable float64
	Ideal      float64
}

// Sweep returns the rates at each batch, of sequences of the measured context and
// prefill mix. A batch of nothing gives nothing.
func (p *Performance) Sweep(batches []float64) []Rates {
	out := make([]Rates, len(batches))
	pl := p.Config.plan()
	for i, b := range batches {
		if b <= 0 {
			continue
		}
		ideal, achievable := pl.terms(p.Measured.at(b))
		n := b * max(1, p.Measured.PerSequence)
		out[i] = Rates{Expected: n / (p.Scale * achievable.Total()), Achievable: n / achievable.Total(), Ideal: n / ideal.Total()}
	}
	return out
}
