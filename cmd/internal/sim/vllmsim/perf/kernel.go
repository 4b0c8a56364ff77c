package perf

import (
	"cmp"

	"github.com/rooftop-dev/rooftop/catalog"
)

// kernel is one class of matrix products: rows of activations times a weight matrix, once in each of a number
// of layers. Its fraction of the peak grows with the number of output tiles: the last wave of tiles leaves a
// part of the GPU idle, for the time of some additional rows. Its fraction of the bandwidth grows with the
// bytes, because a launch reads nothing for the first ramp seconds.
type kernel struct {
	computeRow float64 // seconds for one row, all layers
	idle       float64 // cost of an incomplete wave in rows, with tiles of full height
	memoryBase float64 // seconds to read the weights, all layers
	memoryRow  float64 // seconds to move one row's activations
	flops      float64 // of one row
	bytes      float64 // of the weights
	rowBytes   float64
}

// Tiles of the output that one multiprocessor works on (CUTLASS's usual shape
// for large products).
const tileRows, tileColumns = 128, 256

// Products of few rows are split along their inner dimension instead, so that
// every multiprocessor has work: no wave is lost up to splitRows, and all of it
// from fullRows on. LMDeploy's decode times on an A100 grow from 16 to 64
// sequences by no more than the reading of their KV takes.
const splitRows, fullRows = 64, 2 * tileRows

// unfilled returns the share of the loss of an incomplete wave that applies to a product of the given rows,
// 0..1.
func unfilled(rows float64) float64 {
	return min(max(rows-splitRows, 0)/(fullRows-splitRows), 1)
}

// time returns the seconds of a step with the given rows, and whether it is compute bound.
func (k *kernel) time(rows float64) (seconds float64, compute bool) {
	if rows == 0 {
		return 0, false
	}
	c := k.computeRow * (rows + k.idle*unfilled(rows))
	b := k.memoryBase + k.memoryRow*rows
	return max(c, b), c > b
}

// gemm returns the kernel of an in x out matrix on one GPU, in the given number of layers, with weights of the
// given type.
func (m *Machine) gemm(in, out, layers float64, weights catalog.DType) kernel {
	rate, bytes := m.linearRate(weights), in*out*layers*weights.Bytes()
	act := (in + out) * layers * m.s.ComputeDType.Bytes()
	read := m.bandwidth * m.c.gemmMBU
	return kernel{
		computeRow: 2 * in * out * layers / rate,
		idle:       m.c.waveLoss * m.processors * tileRows * tileColumns / out,
		memoryBase: bytes/read + layers*m.c.kernelRamp,
		memoryRow:  act / read,
		flops:      2 * in * out * layers,
		bytes:      bytes,
		rowBytes:   act,
	}
}

// linearRate returns the FLOP/s of a large product with weights of a type.
func (m *Machine) linearRate(weights catalog.DType) float64 {
	if weights == m.s.ComputeDType || weights.Bytes() >= m.s.ComputeDType.Bytes() {
		return m.peak * m.c.gemmMFU
	}
	if m.s.LinearDType == m.s.ComputeDType {
		return m.peak * m.c.gemmMFU * m.c.unpack
	}
	return m.lowPeak * m.c.gemmMFULow
}

// experts holds the routed experts of a model's MoE layers. The rows of a step are spread over the experts that
// they reach, so that each multiplies few rows.
type experts struct {
	layers, count, perToken float64
	one                     kernel  // one expert of every MoE layer
	miss                    float64 // probability that a token does not reach a given expert
}

// touched returns the expected number of experts that n tokens reach if each chooses k of E uniformly:
// E(1-(1-k/E)^n).
func (e *experts) touched(n int) float64 {
	return e.count * (1 - raised(e.miss, n))
}

// raised returns x^n by squaring: with products only, so that results are equal on all platforms.
func raised(x float64, n int) float64 {
	r := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			r *= x
		}
		if x *= x; x < 1e-300 {
			x = 0
		}
	}
	return r
}

// linearLayers sets the kernels of the linear layers of one step on one GPU.
func (m *Machine) linearLayers() {
	model, s := m.s.Model, m.s
	hidden, layers := float64(model.Hidden), float64(model.Layers)
	dense := cmp.Or(model.NonExpertDType, s.WeightDType)
	m.attentionLayers(dense)
	m.feedForwardLayers(dense)
	m.head = m.gemm(hidden, float64(model.Vocab)/m.tp, 1, s.ComputeDType)

	read := m.bandwidth * m.c.gemmMBU
	// Every rank does the work between the products on the whole hidden state.
	m.layers = append(m.layers, kernel{
		memoryRow: m.c.elementPasses * hidden * layers * s.ComputeDType.Bytes() / read,
		rowBytes:  m.c.elementPasses * hidden * layers * s.ComputeDType.Bytes(),
	})
	m.sampler = m.c.samplerPasses * 4 * float64(model.Vocab) / m.tp / read
}

// addLinear adds one product for each of layers, unless the model has none.
func (m *Machine) addLinear(in, out, layers float64, d catalog.DType) {
	if in > 0 && out > 0 && layers > 0 {
		m.layers = append(m.layers, m.gemm(in, out, layers, d))
	}
}

// attentionLayers adds the projections around attention.
func (m *Machine) attentionLayers(dense catalog.DType) {
	model := m.s.Model
	hidden, layers := float64(model.Hidden), float64(model.Layers)
	if model.Attention == catalog.AttentionMLA {
		heads := float64(model.Heads) / m.tp
		nope, rope, v := float64(model.QKNopeHeadDim), float64(model.QKRopeHeadDim), float64(model.VHeadDim)
		rank, q := float64(model.KVLoraRank), float64(model.QLoraRank)
		if q > 0 {
			m.addLinear(hidden, q+rank+rope, layers, dense) // both compressions in one, on every rank
			m.addLinear(q, heads*(nope+rope), layers, dense)
		} else {
			m.addLinear(hidden, heads*(nope+rope), layers, dense)
			m.addLinear(hidden, rank+rope, layers, dense)
		}
		m.addLinear(rank, heads*(nope+v), layers, dense)
		m.addLinear(heads*v, hidden, layers, dense)
	} else {
		q := float64(model.Heads*model.HeadDim) / m.tp
		kv := 2 * m.kvHeads() * float64(model.HeadDim)
		m.addLinear(hidden, q+kv, layers, dense)
		m.addLinear(q, hidden, layers, dense)
	}
}

// feedForwardLayers adds the feed-forward products, dense and of experts.
func (m *Machine) feedForwardLayers(dense catalog.DType) {
	model, s := m.s.Model, m.s
	hidden, layers := float64(model.Hidden), float64(model.Layers)
	moe := float64(model.MoELayers())
	if ffn := m.denseFFN(); layers > moe && ffn > 0 {
		// Up and gate in one, then down: two thirds and one third of a gated FFN.
		width := ffn / hidden / 3 / m.tp
		m.addLinear(hidden, 2*width, layers-moe, dense)
		m.addLinear(width, hidden, layers-moe, dense)
	}
	if moe > 0 {
		m.addLinear(hidden, float64(model.Experts), moe, s.ComputeDType)
		if shared := float64(model.SharedWidth) / m.tp; shared > 0 {
			m.addLinear(hidden, 2*shared, moe, dense)
			m.addLinear(shared, hidden, moe, dense)
		}
		width := float64(cmp.Or(model.ExpertWidth, model.Intermediate))
		m.moe = experts{
			layers: moe, count: float64(model.Experts), perToken: float64(model.ExpertsPerToken),
			one:  m.gemm(hidden, 3*width/m.tp, moe, s.WeightDType),
			miss: 1 - float64(model.ExpertsPerToken)/float64(model.Experts),
		}
		// All experts of a layer are one launch, so waves are full; but each pads
		// its rows to whole tiles, and starts reading with the others.
		m.moe.one.idle = 0
		m.moe.one.memoryBase -= moe * m.c.kernelRamp
	}
}

// kvHeads returns the number of KV heads of one GPU: heads are replicated if there are more ranks than heads.
func (m *Machine) kvHeads() float64 {
	return max(float64(m.s.Model.KVHeads)/m.tp, 1)
}

// denseFFN returns the parameters of the FFN of one layer without routed experts, over all ranks. For a dense
// model it is the published count without attention and embedding tables, which is correct for ungated FFNs
// too.
func (m *Machine) denseFFN() float64 {
	model := m.s.Model
	gated := 3 * float64(model.Hidden) * float64(model.Intermediate)
	if model.MoELayers() > 0 || model.Attention == catalog.AttentionMLA {
		return gated
	}
	h := float64(model.Hidden)
	attention := 2*h*float64(model.Heads*model.HeadDim) + 2*h*float64(model.KVHeads*model.HeadDim)
	rest := (model.TotalParams-model.VisionParams-m.tables())/float64(model.Layers) - attention
	if rest < gated/2 || rest > gated*2 {
		return gated
	}
	return rest
}

// tables returns the parameters of the input embedding and the output layer.
func (m *Machine) tables() float64 {
	one := float64(m.s.Model.Vocab) * float64(m.s.Model.Hidden)
	if m.s.Model.TiedEmbeddings {
		return one
	}
	return 2 * one
}

// attention sets the costs of reading the KV cache and of attention for new tokens.
func (m *Machine) attention() {
	model := m.s.Model
	layers, heads := float64(model.Layers), float64(model.Heads)/m.tp
	element := m.s.KVDType.Bytes()
	var scores, values float64 // dimensions that one query head multiplies, decode
	var chunk float64          // of a new token, both
	if model.Attention == catalog.AttentionMLA {
		// Every rank reads the compressed latent; the up-projections are absorbed into queries and
		// output (arXiv 2405.04434, section 2.1).
		rank, rope := float64(model.KVLoraRank), float64(model.QKRopeHeadDim)
		m.kvBytes = layers * (rank + rope) * element
		scores, values = rank+rope, rank
		chunk = float64(model.QKNopeHeadDim) + rope + float64(model.VHeadDim)
	} else {
		dim := float64(model.HeadDim)
		m.kvBytes = layers * 2 * m.kvHeads() * dim * element
		scores, values, chunk = dim, dim, 2*dim
	}
	m.decodeMemory = m.kvBytes / (m.bandwidth * m.c.attnMBU)
	m.decodeFLOPs = 2 * layers * heads * (scores + values)
	m.decodeCompute = m.decodeFLOPs / (m.peak * m.c.attnDecodeMFU)
	m.decodeRamp = layers * m.c.attnRamp
	m.prefillFLOPs = 2 * layers * heads * chunk
	m.prefill = m.prefillFLOPs / (m.peak * m.c.attnMFU)
}

// link sets the costs of the all-reduces of tensor parallelism: two per layer, each a ring that sends
// 2(TP-1)/TP of the rows in each direction.
func (m *Machine) link() {
	if m.tp == 1 {
		return
	}
	g := m.s.GPU
	perSecond, latency := pcieBytes(g.PCIeGen), m.c.pcieLatency
	if g.NVLinkGBs != nil && *g.NVLinkGBs > 0 {
		perSecond, latency = *g.NVLinkGBs/2*1e9, m.c.nvlinkLatency // one direction
	}
	times := 2 * float64(m.s.Model.Layers)
	m.reduceRow = times * float64(m.s.Model.Hidden) * m.s.ComputeDType.Bytes() * 2 * (m.tp - 1) / m.tp
	m.reduce = m.reduceRow / (perSecond * m.c.linkUse)
	m.reduceBase = times * latency
}

// pcieBytes returns the bandwidth of 16 lanes in one direction, in bytes per second (PCI Express base
// specification); an unknown generation counts as the fourth.
func pcieBytes(gen int) float64 {
	return 31.5e9 * raised(2, cmp.Or(gen, 4)) / 16
}
