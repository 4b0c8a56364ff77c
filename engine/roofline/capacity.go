package roofline

import (
	"math"

	"github.com/rooftop-dev/rooftop/catalog"
)

const gib = 1 << 30

// Memory of one GPU that is neither weights nor cache, in GiB: activations at
// the profiled token budget, communication buffers, CUDA context. Logs of B200
// servers give 1.9 (dense, one GPU) and 4.8 (MoE, four); planners allow 5.5 and
// 8; published start-up logs span 1.5 to 9.4.
const (
	overheadDense = 3.0
	overheadMoE   = 5.0
	overheadLeast = 1.0
	overheadMost  = 8.0
)

// TotalWeightBytes returns the bytes of all weights of one replica, over all its GPUs, including
// embeddings and every expert. If data-parallel ranks share experts, it is this rank's part.
func (c Config) TotalWeightBytes() float64 {
	s := shapeOf(&c.Model)
	p := c.precisionOf(&s)
	return c.weightBytes(&s, &p)
}

func (c *Config) weightBytes(s *shape, p *precision) float64 {
	towers := max(0, c.Model.TotalParams-s.stored()) // loaded, although text does not use them
	return (s.table+towers)*p.table + s.head*p.head + s.dense*p.dense + s.routed()*p.expert/c.dp()
}

// WeightBytes returns the bytes of weights that a step of n tokens is expected
// to read, over all GPUs of the replica.
func (c Config) WeightBytes(n float64) float64 {
	s := shapeOf(&c.Model)
	p := c.precisionOf(&s)
	return s.dense*p.dense + s.head*p.head + s.moeLayers*s.expert*p.expert*s.distinct(n*c.dp())/c.dp()
}

// Capacity estimates the tokens of context that fit into the KV pool if vLLM may use the fraction
// util (0..1) of each GPU. low and high bound the effect of the unknown activation memory. All
// are 0 if the weights do not fit or the GPU's memory is unknown. Windowed caches and constant
// states are left out, because they depend on the number of sequences. A pool size read from the
// server takes precedence.
func (c Config) Capacity(util float64) (tokens, low, high float64) {
	perToken := c.poolPerToken()
	if perToken <= 0 {
		return 0, 0, 0
	}
	at := func(overhead float64) float64 { return c.poolBytes(util, overhead) / perToken }
	return at(c.overhead()), at(overheadMost), at(overheadLeast)
}

func (c *Config) overhead() float64 {
	if c.Model.Experts > 0 {
		return overheadMoE
	}
	return overheadDense
}

// poolBytes returns the bytes left for caches over all GPUs of the replica, with overhead GiB of
// each reserved.
func (c *Config) poolBytes(util, overhead float64) float64 {
	n := c.tp() * c.pp()
	return max(0, n*(util*c.GPU.VRAMGiB-overhead)*gib-c.TotalWeightBytes())
}

// MaxSequences estimates how many sequences of context tokens fit into the pool of Capacity at
// once, including windows and states; 0 if none does.
func (c Config) MaxSequences(context, util float64) float64 {
	stored := c.poolPerSequence(context)
	if stored <= 0 {
		return 0
	}
	return math.Floor(c.poolBytes(util, c.overhead()) / stored)
}

// HeadsAllow reports whether vLLM can split the model's attention over t ranks:
// query heads divide, KV heads divide or are replicated evenly.
func HeadsAllow(m *catalog.Model, t int) bool {
	if t < 1 || m.Heads > 0 && m.Heads%t != 0 {
		return false
	}
	if m.Attention == catalog.AttentionMLA || m.KVHeads == 0 {
		return true
	}
	return m.KVHeads%t == 0 || t%m.KVHeads == 0
}

// mostTP bounds the search for a tensor-parallel degree: two nodes of eight.
const mostTP = 16

// MinTP returns the smallest tensor-parallel degree at which the weights fit and the heads can be
// split. ok is false if no degree up to 16 works or an input is unknown.
func (c Config) MinTP(util float64) (tp int, ok bool) {
	if c.TotalWeightBytes() <= 0 || c.GPU.VRAMGiB <= 0 {
		return 0, false
	}
	for t := 1; t <= mostTP; t++ {
		d := c
		d.TP = t
		if HeadsAllow(&c.Model, t) && d.poolBytes(util, c.overhead()) > 0 {
			return t, true
		}
	}
	return 0, false
}

// RidgeTokens returns the tokens of one step at which the linear layers change from memory-bound
// to compute-bound, with every fraction 1; 0 if the compute peak is unknown.
func (c Config) RidgeTokens() float64 {
	p := c.plan()
	if p.dense.ideal <= 0 || p.bw <= 0 || p.s.dense <= 0 {
		return 0
	}
	excess := func(n float64) float64 { // seconds of computing minus reading
		return p.idealCompute(n, n) - p.rankBytes(p.prec.dense, p.s.distinct(n*c.dp()))/p.bw
	}
	low, high := 0.0, 1.0
	for excess(high) < 0 && high < 1e9 {
		low, high = high, high*2
	}
	for range 60 {
		if mid := (low + high) / 2; excess(mid) < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
