package perf

import (
	"github.com/rooftop-dev/rooftop/catalog"
)

// kernel is one class of matrix products: `rows` activations times a weight
// matrix, once in each of a number of layers. Its share of the peak grows with
// the tiles of its output: the last wave of them leaves part of the GPU idle, as
// long as some rows more would take. Its share of the bandwidth grows with the
// bytes, since a launch reads nothing for the first ramp seconds.
type kernel struct {
	computeRow float64 // seconds for one row, all layers
	idle       float64 // rows that an incomplete wave costs, with tiles of full height
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

// unfilled is the share of a wave's loss that a product of so many rows has.
func unfilled(rows float64) float64 {
	return min(max(rows-splitRows, 0)/(fullRows-splitRows), 1)
}

// time returns the seconds of a step with so many rows, and whether computing
// binds it.
func (k *kernel) time(rows float64) (seconds float64, compute bool) {
	if rows == 0 {
		return 0, false
	}
	c := k.computeRow * (rows + k.idle*unfilled(rows))
	b := k.memoryBase + k.memoryRow*rows
	return max(c, b), c > b
}

// gemm describes a matrix of in x out on one GPU, in so many layers, whose
// weights have the given type.
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

// linearRate is the FLOP/s of a large product with weights of a type.
func (m *Machine) linearRate(weights catalog.DType) float64 {
	if weights == m.s.ComputeDType || weights.Bytes() >= m.s.ComputeDType.Bytes() {
		return m.peak * m.c.gemmMFU
	}
	if m.s.LinearDType == m.s.ComputeDType {
		return m.peak * m.c.gemmMFU * m.c.unpack
	}
	return m.lowPeak * m.c.gemmMFULow
}

// experts are the routed experts of a model's MoE layers. A step's rows are
// spread over those that they touch, so each multiplies few rows.
type experts struct {
	layers, count, perToken float64
	one                     kernel  // one expert of every MoE layer
	miss                    float64 // chance that a token misses a given expert
}

// touched is the expected number of experts that n tokens reach when each picks
// its own uniformly: E(1-(1-k/E)^n).
func (e *experts) touched(n int) float64 {
	return e.count * (1 - raised(e.miss, n))
}

// raised is x^n by squaring: products only, so that every platform agrees.
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

// linearLayers describes the products of one step on one GPU.
func (m *Machine) linearLayers() {
	model, s := m.s.Model, m.s
	hidden, layers := float64(model.Hidden), float64(model.Layers)
	dense := s.WeightDType
	if model.NonExpertDType != "" {
		dense = model.NonExpertDType
	}
	add := func(in, out, layers float64, d catalog.DType) {
		if in > 0 && out > 0 && layers > 0 {
			m.layers = append(m.layers, m.gemm(in, out, layers, d))
		}
	}
	if model.Attention == catalog.AttentionMLA {
		heads := float64(model.Heads) / m.tp
		nope, rope, v := float64(model.QKNopeHeadDim), float64(model.QKRopeHeadDim), float64(model.VHeadDim)
		rank, q := float64(model.KVLoraRank), float64(model.QLoraRank)
		if q > 0 {
			add(hidden, q+rank+rope, layers, dense) // both compressions in one, on every rank
			add(q, heads*(nope+rope), layers, dense)
		} else {
			add(hidden, heads*(nope+rope), layers, dense)
			add(hidden, rank+rope, layers, dense)
		}
		add(rank, heads*(nope+v), layers, dense)
		add(heads*v, hidden, layers, dense)
	} else {
		q := float64(model.Heads*model.HeadDim) / m.tp
		kv := 2 * m.kvHeads() * float64(model.HeadDim)
		add(hidden, q+kv, layers, dense)
		add(q, hidden, layers, dense)
	}

	moe := float64(model.MoELayers())
	if ffn := m.denseFFN(); layers > moe && ffn > 0 {
		// Up and gate in one, then down: two thirds and one third of a gated FFN.
		width := ffn / hidden / 3 / m.tp
		add(hidden, 2*width, layers-moe, dense)
		add(width, hidden, layers-moe, dense)
	}
	if moe > 0 {
		add(hidden, float64(model.Experts), moe, s.ComputeDType)
		if shared := float64(model.SharedWidth) / m.tp; shared > 0 {
			add(hidden, 2*shared, moe, dense)
			add(shared, hidden, moe, dense)
		}
		width := float64(model.ExpertWidth)
		if width == 0 {
			width = float64(model.Intermediate)
		}
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
	m.head = m.gemm(hidden, float64(model.Vocab)/m.tp, 1, s.ComputeDType)

	read := m.bandwidth * m.c.gemmMBU
	// Work between the products is done by every rank on the whole hidden state.
	m.layers = append(m.layers, kernel{
		memoryRow: m.c.elementPasses * hidden * layers * s.ComputeDType.Bytes() / read,
		rowBytes:  m.c.elementPasses * hidden * layers * s.ComputeDType.Bytes(),
	})
	m.sampler = m.c.samplerPasses * 4 * float64(model.Vocab) / m.tp / read
}

// kvHeads is the KV heads of one GPU: beyond one for each rank they are copied.
func (m *Machine) kvHeads() float64 {
	return max(float64(m.s.Model.KVHeads)/m.tp, 1)
}

// denseFFN is the parameters of the FFN of one layer without routed experts, all
// ranks together. Where the whole model is dense it is what attention and tables
// leave of the published count, so that ungated FFNs come out right.
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

// tables is the parameters of the input table and the output layer.
func (m *Machine) tables() float64 {
	one := float64(m.s.Model.Vocab) * float64(m.s.Model.Hidden)
	if m.s.Model.TiedEmbeddings {
		return one
	}
	return 2 * one
}

// attention describes the reading of KV and the attention of new tokens.
func (m *Machine) attention() {
	model := m.s.Model
	layers, heads := float64(model.Layers), float64(model.Heads)/m.tp
	element := m.s.KVDType.Bytes()
	var scores, values float64 // dimensions that one query head multiplies, decode
	var chunk float64          // of a new token, both
	if model.Attention == catalog.AttentionMLA {
		// The latent is read as it is, by every rank, with the up-projections
		// absorbed into queries and output (arXiv 2405.04434, section 2.1).
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

// link describes the all-reduces of tensor parallelism: two for each layer, one
// ring each, 2(TP-1)/TP of the rows in each direction.
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

// pcieBytes is the bandwidth of 16 lanes in one direction, bytes per second
// (PCI Express base specification); an unknown generation counts as the fourth.
func pcieBytes(gen int) float64 {
	if gen == 0 {
		gen = 4
	}
	return 31.5e9 * raised(2, gen) / 16
}
