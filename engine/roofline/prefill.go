package roofline

import "math"

// Prefill returns the seconds to process the prompt of a single request: tokens new ones after cached
// ones, in chunks of at most chunk tokens (0: all at once). ideal counts every weight once and every
// operation at its peak; achievable adds launches and collectives per chunk.
func (c Config) Prefill(tokens, cached, chunk float64) (ideal, achievable float64) {
	p := c.plan()
	return p.prefillSeconds(tokens, cached, chunk)
}

// PrefillRate returns the prompt tokens per second of an engine that only prefills such requests, one
// after the other; 0 for no tokens.
func (c Config) PrefillRate(tokens, cached, chunk float64) (ideal, achievable float64) {
	if tokens <= 0 {
		return 0, 0
	}
	p := c.plan()
	i, a := p.prefillSeconds(tokens, cached, chunk)
	return quotient(tokens, i), quotient(tokens, a)
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

	whole := load{prefill: tokens, ctx: max(0, cached) + tokens/2, chunk: tokens}
	read := pl.rankBytes(pl.prec.leanDense, pl.s.fewest(tokens*pl.c.dp())) / pl.bw
	ideal = max(read, pl.idealCompute(tokens, 1)) + quotient(pl.prefillFLOPs(&whole, true), pl.tp*pl.kvPeak(true))

	part := load{prefill: tokens / chunks, ctx: whole.ctx, chunk: tokens / chunks}
	achievable = chunks * pl.achievable(&part).Total()
	// Chunks follow each other through the stages of a pipeline.
	return ideal / min(pp, chunks), achievable * (chunks + pp - 1) / (chunks * pp)
}
