package roofline

import "math"

// Prefill returns the seconds to process the prompt of one request alone:
// tokens new ones behind cached ones, in chunks of at most chunk tokens (0: all
// at once). ideal counts every weight once and every operation at its peak;
// achievable adds launches and collectives per chunk (physics.md section 2).
func (c Config) Prefill(tokens, cached, chunk float64) (ideal, achievable float64) {
	p := c.plan()
	return p.prefillSeconds(tokens, cached, chunk)
}

// PrefillRate returns the prompt tokens per second of an engine that only
// prefills requests of that shape, one after the other; 0 for no tokens.
func (c Config) PrefillRate(tokens, cached, chunk float64) (ideal, achievable float64) {
	if tokens <= 0 {
		return 0, 0
	}
	p := c.plan()
	i, a := p.prefillSeconds(tokens, cached, chunk)
	return over(tokens, i), over(tokens, a)
}

func (pl *plan) prefillSeconds(tokens, cached, chunk float64) (ideal, achievable float64) {
	if tokens <= 0 {
		return 0, 0
	}
	if chunk <= 0 || chunk > tokens {
		chunk = tokens
	}
	chunks := math.Ceil(tokens / chunk)
	pp := pl.c.pp()
	s, pr := &pl.s, &pl.prec

	whole := load{prefill: tokens, ctx: max(0, cached) + tokens/2, chunk: tokens}
	read := ((s.dense*pr.leanDense+s.head*pr.head)/pl.tp +
		s.moeLayers*s.expert*pr.expert*s.fewest(tokens*pl.c.dp())/pl.ep) / pl.bw
	work := over(2*s.dense*tokens, pl.tp*pl.dense.ideal) + over(2*s.head, pl.tp*pl.head.ideal) +
		over(2*s.moeLayers*s.perToken*s.expert*tokens, pl.tp*pl.moe.ideal)
	ideal = max(read, work) + over(pl.prefillFLOPs(&whole, true), pl.tp*pl.kvPeak(true))

	part := load{prefill: tokens / chunks, ctx: whole.ctx, chunk: tokens / chunks}
	achievable = chunks * pl.achievable(&part).Total()
	// Chunks follow each other through the stages of a pipeline.
	return ideal / min(pp, chunks), achievable * (chunks + pp - 1) / (chunks * pp)
}
