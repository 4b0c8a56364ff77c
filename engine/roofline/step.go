package roofline

import (
	"cmp"
	"fmt"
	"math"

	"github.com/rooftop-dev/rooftop/catalog"
)

// Check returns the missing inputs of the physical model, in words. If there are none, the results of
// Step, Capacity and the other methods are valid.
func (c Config) Check() []string {
	m := &c.Model
	var missing []string
	need := func(ok bool, what string) {
		if !ok {
			missing = append(missing, what)
		}
	}
	need(c.GPU.MemBandwidthGBs > 0, "memory bandwidth of the GPU")
	need(m.TotalParams > 0, "parameter count of the model")
	need(m.Layers > 0, "layer count of the model")
	need(m.Hidden > 0, "hidden size of the model")
	if m.Attention == catalog.AttentionMLA {
		need(m.KVLoraRank > 0, "latent width of the model's attention")
	} else {
		need(m.KVHeads > 0 && m.HeadDim > 0, "KV heads and head size of the model")
	}
	if m.Attention == catalog.AttentionHybrid {
		need(m.FullLayers+m.WindowLayers+m.LinearLayers > 0, "which layers of the hybrid model keep the whole context")
	}
	if m.WindowLayers > 0 {
		need(m.SlidingWindow > 0, "sliding window of the model")
	}
	if m.Experts > 0 {
		need(m.ExpertsPerToken > 0 || m.ActiveParams > 0, "experts per token of the model")
		need(m.ExpertWidth > 0 || m.Intermediate > 0 || m.ActiveParams > 0, "expert width of the model")
	}
	need(c.Weight.Bytes() > 0, "dtype of the weights")
	need(c.KV.Bytes() > 0, "dtype of the KV cache")
	return missing
}

// plan is a configuration with its constants resolved, so that scans over operating points need only
// arithmetic.
type plan struct {
	c    Config
	lean Config // c with the narrowest cache that it may have, for the bound
	s    shape
	prec precision
	f    fractions
	row  string
	own  bool

	tp, ep       float64 // ranks that share dense weights, and routed experts
	bw           float64 // bytes per second of one device
	dense, moe   peaks   // FLOP/s of one device
	head         peaks
	sixteen      float64 // FLOP/s of one device in 16 bit
	narrowKV     bool    // 8- or 4-bit cache
	layerSeconds float64 // fixed, all layers
	step, req    float64 // fixed
	link         link
	dpLink       link
	captured     float64
}

func (c *Config) plan() plan {
	p := plan{c: *c, s: shapeOf(&c.Model), tp: c.tp(), ep: c.tp() * c.dp()}
	p.prec = c.precisionOf(&p.s)
	p.f, p.row, p.own = fractionsOf(&c.GPU)
	p.bw = c.GPU.MemBandwidthGBs * 1e9
	p.sixteen, _ = sixteenBit(&c.GPU)

	body := c.bodyDType()
	out := catalog.BF16
	if c.Weight == catalog.FP32 {
		out = catalog.FP32
	}
	p.dense, p.moe, p.head = c.peaksOf(body), c.peaksOf(c.Weight), c.peaksOf(out)
	p.narrowKV = c.KV.Bytes() > 0 && c.KV.Bytes() < 2
	if p.lean = *c; c.KVAssumed && c.Weight.Bytes() < 2 && !p.narrowKV {
		p.lean.KV = catalog.FP8
	}

	layer, moe := p.f.layer, moeSeconds
	if c.Weight.Bytes() < 2 {
		layer += p.f.layerq
	}
	p.step, p.req = stepSeconds, requestSeconds
	if a := c.GPU.Achieved; a != nil {
		override(&p.f.gemmBW, a.GEMMBandwidth)
		override(&p.f.gemmBWq, a.GEMMBandwidth)
		override(&p.f.attnBW, a.AttnBandwidth)
		override(&p.f.attnBWq, a.AttnBandwidth)
		override(&p.f.gemm, a.GEMMCompute)
		override(&p.f.gemmq, a.GEMMCompute)
		for i := range p.f.prefill {
			override(&p.f.prefill[i], a.PrefillAttn)
		}
		if a.LayerSeconds > 0 {
			layer, moe = a.LayerSeconds, 0
		}
		override(&p.step, a.StepSeconds)
		override(&p.req, a.RequestSeconds)
	}
	p.layerSeconds = p.s.layers*layer + p.s.moeLayers*moe
	p.link, p.dpLink = c.linkOf(max(1, c.TP)), c.linkOf(max(1, c.DP))
	p.captured = captured
	if c.Captured > 0 {
		p.captured = float64(c.Captured)
	}
	return p
}

// override replaces *v by a measured value unless that is zero.
func override(v *float64, measured float64) {
	if measured > 0 {
		*v = measured
	}
}

// quotient returns a/b, or 0 if b is unknown: an unpublished peak sets no bound.
func quotient(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// Step returns the time of one engine step at p, in which every running sequence advances once. With
// pipeline parallelism it is the time of one micro-batch through all stages. Call Check first:
// missing inputs count as zero here.
func (c Config) Step(p Point) Step {
	pl := c.plan()
	ideal, achievable := pl.terms(p)
	return Step{Ideal: ideal, Achievable: achievable, Assumptions: pl.assumptions()}
}

// load is the load of one micro-batch at a point, made consistent.
type load struct {
	batch   float64 // sequences
	context float64
	decode  float64 // tokens of decoding sequences
	prefill float64 // tokens of prompts
	ctx     float64 // context of a prefill token
	chunk   float64
}

func (pl *plan) load(p Point) load {
	per := max(1, p.PerSequence)
	b := max(0, p.Batch)
	// Stages of a pipeline work on different sequences.
	micro := min(pl.c.pp(), max(1, b))
	if b == 0 {
		micro = pl.c.pp()
	}
	l := load{
		batch: b / micro, context: max(0, p.Context), decode: b * per / micro,
		prefill: max(0, p.Tokens-b*per) / micro, ctx: max(0, p.PrefillContext), chunk: p.Chunk,
	}
	if l.chunk <= 0 {
		l.chunk = defaultChunk
	}
	l.chunk = max(l.chunk, l.prefill, 1)
	return l
}

// defaultChunk is vLLM's token budget on devices below 70 GiB, and a conservative one above.
const defaultChunk = 2048

func (pl *plan) terms(p Point) (ideal, achievable Terms) {
	l := pl.load(p)
	return pl.ideal(&l), pl.achievable(&l)
}

// ideal returns the hardware's bound: every fraction 1, nothing fixed. It applies to any arrangement of
// the same tokens. The linear layers are one roofline. The weights are those that the decode tokens
// alone need, because prefill tokens can share few steps; correlated routing reads fewer experts.
func (pl *plan) ideal(l *load) Terms {
	var t Terms
	experts := pl.s.perToken
	if l.decode > 0 {
		experts = pl.s.fewest(l.decode * pl.c.dp())
	}
	compute := pl.idealCompute(l.decode+l.prefill, l.decode)
	if t.Weights = pl.rankBytes(pl.prec.leanDense, experts) / pl.bw; t.Weights < compute {
		t.Weights, t.Compute = 0, compute
	}
	t.KV = pl.kv(l, pl.bw, pl.bw, pl.kvPeak(true), true)
	t.Attention = quotient(pl.prefillFLOPs(l, true), pl.tp*pl.kvPeak(true))
	return t
}

// rankBytes returns the bytes of weights that one rank reads. dense is the bytes per parameter of the
// dense layers, experts the number of experts in a layer.
func (pl *plan) rankBytes(dense, experts float64) float64 {
	s, pr := &pl.s, &pl.prec
	return (s.dense*dense+s.head*pr.head)/pl.tp + s.moeLayers*s.expert*pr.expert*experts/pl.ep
}

// idealCompute returns the seconds to compute n tokens in the linear layers, of which out reach the
// output layer, with every operation at its peak.
func (pl *plan) idealCompute(n, out float64) float64 {
	s := &pl.s
	return quotient(2*s.dense*n, pl.tp*pl.dense.ideal) + quotient(2*s.head*out, pl.tp*pl.head.ideal) +
		quotient(2*s.moeLayers*s.perToken*s.expert*n, pl.tp*pl.moe.ideal)
}

// achievable returns the time of efficient software: each group of layers is a roofline of its own
// with the measured fractions. Prefill comes in chunks, so that some steps compute while the others
// read.
func (pl *plan) achievable(l *load) Terms {
	s := &pl.s
	var t Terms
	share := 0.0 // share of the steps with a chunk
	if l.prefill > 0 {
		share = min(1, l.prefill/l.chunk)
	}
	if share < 1 {
		pl.linear(&t, l.decode, l.decode, 1-share)
	}
	if share > 0 {
		pl.linear(&t, l.decode+l.chunk, l.decode, share)
	}
	attn := pl.f.attnBW
	if pl.narrowKV {
		attn = pl.f.attnBWq
	}
	t.KV = pl.kv(l, pl.bw*attn, pl.bw*pl.f.gemmBW, pl.kvPeak(false)*pl.f.gemm, false)
	t.Attention = quotient(pl.prefillFLOPs(l, false), pl.tp*pl.sixteen*pl.f.attentionFraction(l.ctx))

	n := l.decode + l.prefill
	message := n * float64(pl.c.Model.Hidden) * 2
	if pl.tp > 1 {
		t.Collectives += 2 * s.layers * pl.link.allReduce(message, pl.c.Eager)
	}
	if dp := pl.c.dp(); dp > 1 {
		// Dispatch and combine transfer every rank's tokens once each: one all-reduce of all of
		// them.
		t.Collectives += s.moeLayers * pl.dpLink.allReduce(message*dp, pl.c.Eager)
	}
	if pp := pl.c.pp(); pp > 1 {
		t.Collectives += (pp - 1) * pl.link.allReduce(message, true)
	}

	t.Fixed = pl.layerSeconds + pl.step + l.batch*pl.req
	if pl.c.Eager || l.batch > pl.captured {
		// The host launches ahead of the device. If the host is slower, it limits the step.
		if idle := s.layers*eagerLayer + pl.step + l.batch*pl.req - t.Total(); idle > 0 {
			t.Fixed += idle
		}
	}
	return t
}

// Rows of a GEMM's largest tile, and the rows at which the fractions of compute
// peaks were measured (1,024 rows and more).
const (
	tileRows     = 128
	measuredRows = 1024
)

// fewRows returns how much longer a product of n rows computes per row than one of measuredRows. On
// average half of the last tile of rows and half of the last wave of tiles are idle, about one tile
// together (tile and wave quantisation, NVIDIA, Matrix Multiplication Background User's Guide). Tiles
// are no larger than the rows require. It is 1 at measuredRows and above.
func fewRows(n float64) float64 {
	if n <= 0 {
		return 1
	}
	return max(1, (1+min(1, tileRows/n))/(1+tileRows/float64(measuredRows)))
}

// linear adds the linear layers of a step with n tokens, of which out reach the output layer, weighted
// by share. Reading and computing overlap, but not perfectly if both take about as long: tiles wait
// for their operands at the start of each wave. The root of the sum of squares is the larger of both
// far from the ridge and 1.4 times as much at it.
func (pl *plan) linear(t *Terms, n, out, share float64) {
	s, pr := &pl.s, &pl.prec
	add := func(bytes, flops float64, pk peaks, quantized bool) {
		bw, mfu := pl.f.gemmBW, pl.f.gemm
		if quantized {
			bw = pl.f.gemmBWq
		}
		if pk.narrow {
			mfu = pl.f.gemmq
		}
		read, work := bytes/(pl.bw*bw), quotient(flops, pk.usual*mfu)
		both := math.Hypot(read, work)
		if read >= work {
			t.Weights += share * both
			return
		}
		t.Compute += share * both
	}
	add(s.dense*pr.dense/pl.tp, 2*s.dense*n*fewRows(n)/pl.tp, pl.dense, pr.dense < 2)
	add(s.head*pr.head/pl.tp, 2*s.head*out*fewRows(out)/pl.tp, pl.head, false)
	if s.experts > 0 {
		add(s.moeLayers*s.expert*pr.expert*pl.busiestExperts(n),
			2*s.moeLayers*s.expert*pl.busiestTokens(n)*fewRows(n*s.perToken/s.experts), pl.moe, pr.expert < 2)
	}
}

// busiestExperts returns the distinct experts that the busiest rank reads in a layer, in weights of
// whole experts. If experts are sliced, every rank reads a slice of all that are used. If whole
// experts are spread, the used ones fall on ranks at random: the largest of r such counts is about
// sqrt(2 ln r) deviations above the mean, and at most all experts of a rank.
func (pl *plan) busiestExperts(n float64) float64 {
	touched := pl.s.distinct(n * pl.c.dp())
	mean := touched / pl.ep
	if !pl.c.ExpertParallel || pl.ep <= 1 {
		return mean
	}
	deviation := math.Sqrt(mean * max(0, 1-touched/pl.s.experts))
	return min(pl.s.experts/pl.ep, mean+deviation*math.Sqrt(2*math.Log(pl.ep)))
}

// busiestTokens returns the pairs of tokens and experts that the busiest rank computes in a layer, by
// the same argument.
func (pl *plan) busiestTokens(n float64) float64 {
	all := n * pl.c.dp() * pl.s.perToken
	mean := all / pl.ep
	if !pl.c.ExpertParallel || pl.ep <= 1 {
		return mean
	}
	return min(all, mean+math.Sqrt(mean*2*math.Log(pl.ep)))
}

// kv returns the seconds for reading the batch's caches in decode attention, and for accessing the
// constant states: a bound counts these once, efficient software reads and writes them. A latent cache
// is shared by all heads, so that the computation per byte may make the tensor cores the limit.
func (pl *plan) kv(l *load, bw, stateBW, flops float64, bound bool) float64 {
	c, s := &pl.c, &pl.s
	if bound {
		c = &pl.lean
	}
	t := l.batch * c.rankRead(s, l.context, bound) / bw
	if m := &c.Model; m.Attention == catalog.AttentionMLA {
		width := float64(2*m.KVLoraRank + m.QKRopeHeadDim)
		t = max(t, quotient(l.batch*s.full*2*float64(m.Heads)*width*c.top(l.context, bound), pl.tp*flops))
	}
	if s.linear > 0 {
		passes := 2.0
		if bound {
			passes = 1
		}
		t += passes * l.batch * s.linear * c.stateBytes() / (pl.tp * stateBW)
	}
	return t
}

// kvPeak returns the FLOP/s of attention. best allows 8 bit on an 8-bit cache if the device has the
// units; 16 bit is usual.
func (pl *plan) kvPeak(best bool) float64 {
	if best && pl.lean.KV.Bytes() < 2 {
		return max(pl.sixteen, eightBit(&pl.c.GPU))
	}
	return pl.sixteen
}

// prefillFLOPs returns the attention work of the point's prefill tokens: 4 H d per layer and pair of
// tokens for QK and AV.
func (pl *plan) prefillFLOPs(l *load, bound bool) float64 {
	if l.prefill == 0 {
		return 0
	}
	c, s := &pl.c, &pl.s
	m := &c.Model
	window := 2 * float64(m.HeadDim) // keys and values
	full := window
	switch {
	case m.Attention == catalog.AttentionMLA:
		// Decompressed heads; 128 each if the model does not state it.
		full = float64(cmp.Or(m.QKNopeHeadDim, 128) + m.QKRopeHeadDim + cmp.Or(m.VHeadDim, 128))
	case m.FullHeadDim > 0:
		full = 2 * float64(m.FullHeadDim)
	}
	return 2 * float64(m.Heads) * l.prefill * (s.full*full*c.top(l.ctx, bound) + s.window*window*c.visible(l.ctx, bound))
}

// assumptions returns the parameters that do not come from this device and this model, in a fixed
// order.
func (pl *plan) assumptions() []string {
	var a []string
	g := &pl.c.GPU
	if !pl.own && g.Achieved == nil {
		a = append(a, fmt.Sprintf("achievable fractions of %s stand in for %s", pl.row, g.Name))
	}
	switch flops, derived := sixteenBit(g); {
	case flops == 0:
		a = append(a, "compute peak of "+g.Name+" unknown: only memory bounds the ceiling")
	case derived:
		a = append(a, "16-bit peak of "+g.Name+" derived from another type's")
	}
	if pl.tp > 1 && pl.link.pcie {
		a = append(a, "all-reduce over PCIe depends on the board: the time of an RTX PRO 6000 host is assumed")
	}
	if pl.tp > 1 && pl.link.assumed {
		a = append(a, "how the GPUs are connected is not in the catalog")
	}
	if pl.tp > 8 || pl.c.dp() > 8 {
		a = append(a, "more than 8 ranks are taken to share one node's links")
	}
	if pl.lean.KV != pl.c.KV {
		a = append(a, "the KV cache is taken as "+string(pl.c.KV)+"; the ideal allows for "+string(pl.lean.KV)+", which checkpoints with such weights may bring")
	}
	if pl.s.linear > 0 && pl.c.Model.StateElements == 0 {
		a = append(a, "state of a linear-attention layer taken as 256 values per hidden channel in 16 bit")
	}
	if pl.s.experts > 0 {
		a = append(a, "experts touched follow uniform routing; the ideal reads three quarters of them")
	}
	return a
}
