package optrace

import (
	"math"
	"math/bits"
	"strings"
)

// Cost is the memory traffic and the operations of an operator by its definition and the shapes
// of its operands. Each element of a source counts as read once, however often it is used. A
// multiply and an add are two operations; every other function of one number (a division, a
// comparison, exp, tanh) is one. Other traffic of a kernel, such as a factor that it converts
// to eight bits first, is not included.
type Cost struct {
	ReadBytes    float64 // of all sources, weights included
	WrittenBytes float64
	WeightBytes  float64 // the part of ReadBytes that is weights
	Flops        float64
	// Weights is the ref of the largest weights among the sources, 0 if there are none.
	Weights uint32
	// Known reports whether the operator's name and shapes are known; all other fields are 0 if
	// not.
	Known bool
	// Exact reports whether nothing is estimated: the types are known, every source was read,
	// and the work follows from the shapes alone.
	Exact bool
	// Guessed reports whether the operator's definition is unknown: Flops are a placeholder
	// then, and must not be used to judge it.
	Guessed bool
}

// Bytes returns the bytes that are read and written.
func (c Cost) Bytes() float64 { return c.ReadBytes + c.WrittenBytes }

// CostOf returns the cost of an operator by its definition in ggml.h and ggml-cpu (ops.cpp,
// ggml-cpu.c). The experts that a MUL_MAT_ID chose decide which weights it reads; if they are
// unknown, each expert is assumed equally likely. An unknown operator is assumed to read its
// sources, write its result and do one operation per element: its cost is Guessed, and not
// Exact.
func CostOf(t *Tables, op Operator, experts ExpertChoice) Cost {
	k := costing{t: t, op: &op, experts: &experts}
	if op.Op == "" || op.Out == 0 || int(op.Out) > len(t.Tensors) {
		return Cost{}
	}
	k.out = &t.Tensors[op.Out-1]
	k.c.Known, k.c.Exact = true, true
	if f, ok := costs[op.Op]; ok {
		f(&k)
	} else {
		k.unknown()
	}
	if len(op.Fused) > 0 {
		// Values between fused nodes stay out of memory; their other operands are among the
		// sources. GGML fuses additions and products, one operation per element.
		k.c.Flops += float64(len(op.Fused)) * k.out.Elements()
	}
	return k.c
}

// costing accumulates the [Cost] of one operator.
type costing struct {
	t       *Tables
	op      *Operator
	out     *Tensor
	experts *ExpertChoice
	c       Cost
}

// source returns source i, the zero Tensor if there is none or it was not read.
func (k *costing) source(i int) *Tensor {
	if i >= len(k.op.In) {
		return &Tensor{}
	}
	ref := k.op.In[i]
	if ref == 0 || int(ref) > len(k.t.Tensors) {
		return &Tensor{}
	}
	return &k.t.Tensors[ref-1]
}

// requireSource is like source, but the cost is not exact if the source is missing.
func (k *costing) requireSource(i int) *Tensor {
	s := k.source(i)
	if s.Elements() == 0 {
		k.c.Exact = false
	}
	return s
}

// read adds the bytes of some elements of source i.
func (k *costing) read(i int, elements float64) {
	s := k.source(i)
	if elements <= 0 || s.Elements() == 0 {
		return
	}
	b, exact := s.bytesOf(elements)
	k.c.ReadBytes += b
	k.c.Exact = k.c.Exact && exact
	if isWeight(s.Name) {
		if k.c.Weights == 0 || b > k.c.WeightBytes {
			k.c.Weights = k.op.In[i]
		}
		k.c.WeightBytes += b
	}
}

// reads adds the bytes of whole sources.
func (k *costing) reads(sources ...int) {
	for _, i := range sources {
		k.read(i, k.source(i).Elements())
	}
}

// readsAll adds the bytes of every source.
func (k *costing) readsAll() {
	for i, ref := range k.op.In {
		if ref == 0 {
			k.c.Exact = false
		}
		k.read(i, k.source(i).Elements())
	}
}

// writes adds the bytes of some elements of the result.
func (k *costing) writes(elements float64) {
	b, exact := k.out.bytesOf(elements)
	k.c.WrittenBytes += b
	k.c.Exact = k.c.Exact && exact
}

// unknown estimates an operator whose definition is unknown from its operands.
func (k *costing) unknown() {
	k.each(1)
	k.c.Exact, k.c.Guessed = false, true
}

// each reads all sources, writes the result, and does flops operations per element of the
// result.
func (k *costing) each(flops float64) {
	k.readsAll()
	k.writes(k.out.Elements())
	k.c.Flops += flops * k.out.Elements()
}

// costs maps GGML's operator names to the functions that work out their cost.
var costs = map[string]func(*costing){
	"NONE": nothing, "VIEW": nothing, "RESHAPE": nothing, "PERMUTE": nothing, "TRANSPOSE": nothing,

	"MUL_MAT": product(0), "MUL_MAT_ID": (*costing).mixture, "OUT_PROD": product(1),
	"FLASH_ATTN_EXT": (*costing).attention,

	"ADD": perElement(1), "SUB": perElement(1), "MUL": perElement(1), "DIV": perElement(1), "ADD1": perElement(1), "ADD_ID": (*costing).addRows,
	"SCALE": (*costing).scale, "CLAMP": perElement(2), "SQR": perElement(1), "SQRT": perElement(1), "LOG": perElement(1), "SIN": perElement(1), "COS": perElement(1),
	"DIAG_MASK_INF": perElement(0), "DIAG_MASK_ZERO": perElement(0),
	"UNARY": (*costing).unary, "GLU": (*costing).gated, "LEAKY_RELU": perElement(2),

	"SOFT_MAX": (*costing).softMax,
	// Rotating a pair of elements takes four multiplications and two additions.
	"ROPE": (*costing).rope, "ROPE_BACK": (*costing).rope,
	// Square, add, scale. NORM also sums up the mean and subtracts it.
	"RMS_NORM": perElement(3), "L2_NORM": perElement(3), "NORM": perElement(5), "GROUP_NORM": perElement(5),

	"CPY": (*costing).copies, "DUP": (*costing).copies, "CONT": (*costing).copies,
	"SET_ROWS": (*costing).setRows, "GET_ROWS": (*costing).getRows,
	"CONCAT": perElement(0), "REPEAT": perElement(0), "PAD": perElement(0), "PAD_REFLECT_1D": perElement(0), "ROLL": perElement(0),
	"WIN_PART": perElement(0), "WIN_UNPART": perElement(0), "DIAG": perElement(0),
	"SET": (*costing).sets, "ACC": (*costing).accumulates,
	"ARANGE": perElement(1), "FILL": perElement(0), "TRI": perElement(0),

	"SUM": (*costing).reduce, "SUM_ROWS": (*costing).reduce, "MEAN": (*costing).reduce, "ARGMAX": (*costing).reduce,
	"CUMSUM": (*costing).reduce, "COUNT_EQUAL": (*costing).reduce, "REPEAT_BACK": (*costing).reduce, "COL2IM_1D": (*costing).reduce,
	"ARGSORT": (*costing).sort, "TOP_K": (*costing).sort,

	"IM2COL": (*costing).columns, "IM2COL_3D": (*costing).columns,
	"CONV_2D": kernel(0, 3), "CONV_2D_DW": kernel(0, 2), "CONV_3D": (*costing).conv3D,
	"CONV_TRANSPOSE_1D": kernelBack(2), "CONV_TRANSPOSE_2D": kernelBack(3),
	"SSM_CONV": kernel(1, 1), "SSM_SCAN": (*costing).stateScan,
	"SOLVE_TRI": (*costing).solve,

	// Operations per element of a head's state and token. WKV6: v times k; that times the first
	// and the state added; the sum weighted by r and added up; the state decayed and v times k
	// added: 1 + 2 + 2 + 2. WKV7: the state weighted by a; v times k; the state decayed and
	// both added; weighted by r: 2 + 1 + 4 + 2. Gated linear attention: v times k; the state
	// decayed and that added; weighted by q: 1 + 2 + 2. Gated delta net: the state decayed;
	// weighted by k; the difference times k added; weighted by q: 1 + 2 + 2 + 2.
	"RWKV_WKV6": recurrent(0, 7), "RWKV_WKV7": recurrent(2, 9), "GATED_LINEAR_ATTN": recurrent(0, 5), "GATED_DELTA_NET": recurrent(2, 7),
}

// nothing is the cost of operators that only reinterpret memory.
func nothing(*costing) {}

// perElement returns a cost that reads all sources and does flops operations per element
// written.
func perElement(flops float64) func(*costing) {
	return func(k *costing) { k.each(flops) }
}

// dim returns a dimension as a float, 0 if it is negative.
func dim(n int64) float64 { return float64(max(n, 0)) }

// product returns the cost of a product that sums over dimension sums of the first source.
// MUL_MAT: [K, M] by [K, N] is [M, N], for each of the third and fourth dimensions of the
// second source; the first is reused if it has fewer of them. OUT_PROD: [M, K] by [N, K] is [M,
// N].
func product(sums int) func(*costing) {
	return func(k *costing) {
		a := k.requireSource(0)
		k.requireSource(1)
		k.reads(0, 1)
		k.writes(k.out.Elements())
		k.c.Flops = 2 * dim(a.NE[sums]) * k.out.Elements()
	}
}

// mixture is MUL_MAT_ID: weights [K, M, experts], ids [used, tokens], result [M, used, tokens].
// It reads only the weights of the chosen experts.
func (k *costing) mixture() {
	a, ids := k.requireSource(0), k.requireSource(2)
	k.requireSource(1)
	distinct, exact := k.experts.distinct(a.NE[2], ids.NE[0], ids.NE[1])
	k.c.Exact = k.c.Exact && exact
	k.read(0, dim(a.NE[0])*dim(a.NE[1])*distinct)
	k.reads(1, 2)
	k.writes(k.out.Elements())
	k.c.Flops = 2 * dim(a.NE[0]) * k.out.Elements()
}

// MaxExperts is the number of experts of a layer that are distinguished: four times that of the
// largest mixtures so far (256 of DeepSeek-V3, 384 of Kimi K2, 512 of Qwen3-Next).
const MaxExperts = 2048

// distinct returns how many of a layer's experts took part when each token used some of them,
// and whether that number is exact rather than estimated.
func (e *ExpertChoice) distinct(experts, used, tokens int64) (n float64, exact bool) {
	if experts <= 0 || used <= 0 || tokens <= 0 {
		return 0, false
	}
	if tokens == 1 { // the experts of one token always differ: they are the first of a sorted list
		return dim(min(used, experts)), true
	}
	var seen [MaxExperts / 64]uint64
	for _, id := range e.IDs {
		if id >= 0 && int64(id) < min(experts, MaxExperts) {
			seen[id/64] |= 1 << (id % 64)
		}
	}
	for _, word := range seen {
		n += float64(bits.OnesCount64(word))
	}
	rows := int64(0)
	if e.Used > 0 {
		rows = int64(len(e.IDs) / e.Used)
	}
	if rows >= tokens && experts <= MaxExperts {
		return n, true
	}
	// Each token leaves a given expert out with the probability 1-used/experts.
	left := math.Pow(1-dim(min(used, experts))/dim(experts), dim(tokens))
	return math.Max(n, dim(experts)*(1-left)), false
}

// attention is FLASH_ATTN_EXT: queries [D, N, heads], keys [D, L, KV heads], values [E, L, KV
// heads], mask, sinks. Each score takes D multiply-adds, six operations of the softmax and E
// multiply-adds. GGML skips masked scores, which shapes do not show: with a mask the cost is an
// upper bound.
func (k *costing) attention() {
	q, key, v := k.requireSource(0), k.requireSource(1), k.requireSource(2)
	k.reads(0, 1, 2, 4)
	k.mask(3, q.NE[1])
	k.writes(k.out.Elements())
	scores := dim(key.NE[1]) * dim(q.NE[1]) * dim(q.NE[2]) * dim(q.NE[3])
	k.c.Flops = scores * (2*dim(q.NE[0]) + 2*dim(v.NE[0]) + 6)
	if k.source(3).Elements() > 0 {
		k.c.Exact = false
	}
}

// mask reads the rows of mask i, of shape [length, tokens or more, ...], that belong to tokens.
// Older runtimes pad it to a multiple of 32 or 64 rows (GGML_KQ_MASK_PAD) and do not read the
// padding.
func (k *costing) mask(i int, tokens int64) {
	m := k.source(i)
	k.c.Exact = k.c.Exact && (i >= len(k.op.In) || k.op.In[i] != 0)
	if rows := dim(m.NE[1]); rows > 0 {
		k.read(i, m.Elements()*min(1, dim(tokens)/rows))
	}
}

// softMax is SOFT_MAX, with or without a mask and sinks. Per element: find the largest, scale,
// subtract it, exp, add up, divide.
func (k *costing) softMax() {
	k.requireSource(0)
	k.reads(0, 2)
	k.mask(1, k.out.NE[1])
	k.writes(k.out.Elements())
	k.c.Flops = 6 * k.out.Elements()
}

// scale is SCALE: a multiplication, and an addition if the second parameter, a float, is not 0.
func (k *costing) scale() {
	if k.op.Params[1] == 0 {
		k.each(1)
		return
	}
	k.each(2)
}

// readAtMost reads some elements of source i, at most all of them: rows that are looked up
// twice count once as far as they exceed the source.
func (k *costing) readAtMost(i int, elements float64) {
	k.read(i, min(elements, k.source(i).Elements()))
}

// sets is SET: it writes the second source into the first, or into a copy of it (fifth
// parameter 0).
func (k *costing) sets() {
	k.requireSource(1)
	k.reads(1)
	k.writes(k.source(1).Elements())
	if k.op.Params[4] == 0 {
		k.reads(0)
		k.writes(k.out.Elements())
	}
}

// accumulates is ACC: like SET, but it adds the second source to the present values.
func (k *costing) accumulates() {
	b := k.requireSource(1).Elements()
	k.reads(1)
	k.read(0, b)
	k.writes(b)
	k.c.Flops = b
	if k.op.Params[4] == 0 {
		k.reads(0)
		k.writes(k.out.Elements())
	}
}

// columns is IM2COL: only the shape of the first source, the kernel, matters.
func (k *costing) columns() {
	k.requireSource(1)
	k.reads(1)
	k.writes(k.out.Elements())
}

// addRows is ADD_ID: it adds to each row the row of the second source that its id names.
func (k *costing) addRows() {
	k.requireSource(1)
	k.reads(0, 2)
	k.readAtMost(1, k.out.Elements())
	k.writes(k.out.Elements())
	k.c.Flops = k.out.Elements()
}

// unaryFlops are the operations per element of functions that take more than one: x/(1+exp(-x))
// is four, the tanh approximation of GELU nine.
var unaryFlops = map[string]float64{
	"SILU": 4, "SIGMOID": 4, "GELU": 9, "GELU_QUICK": 5, "GELU_ERF": 5, "ELU": 3, "HARDSWISH": 5, "HARDSIGMOID": 4,
	"SOFTPLUS": 3, "XIELU": 6,
}

// unary is UNARY: a function of each element.
func (k *costing) unary() {
	flops, ok := unaryFlops[k.op.Sub]
	if !ok {
		flops = 1
	}
	k.each(flops)
}

// gatedFlops are the operations per element of the result: the function of the gate and a
// multiplication.
var gatedFlops = map[string]float64{"REGLU": 2, "GEGLU": 10, "SWIGLU": 5, "SWIGLU_OAI": 9, "GEGLU_ERF": 6, "GEGLU_QUICK": 6}

// gated is GLU: one source with gate and value as its halves, or a source for each.
func (k *costing) gated() {
	flops, ok := gatedFlops[k.op.Sub]
	if !ok {
		flops = 2
	}
	k.each(flops)
	k.c.Exact = k.c.Exact && ok
}

// rope is ROPE: it rotates pairs of the first n_dims (op_params[1]) elements of each row.
func (k *costing) rope() {
	k.each(0)
	turned := 1.0
	if n := float64(k.op.Params[1]); n > 0 && n < dim(k.out.NE[0]) {
		turned = n / dim(k.out.NE[0])
	}
	k.c.Flops = 3 * turned * k.out.Elements()
}

// copies is CPY, DUP and CONT. A second source is only the destination.
func (k *costing) copies() {
	k.requireSource(0)
	k.reads(0)
	k.writes(k.source(0).Elements())
}

// setRows is SET_ROWS: the result is the whole destination, but only the elements of the first
// source are written.
func (k *costing) setRows() {
	k.requireSource(0)
	k.reads(0, 1)
	k.writes(k.source(0).Elements())
}

// getRows is GET_ROWS: it reads from the first source only the rows of the result.
func (k *costing) getRows() {
	k.requireSource(0)
	k.readAtMost(0, k.out.Elements())
	k.reads(1)
	k.writes(k.out.Elements())
}

// reduce does one operation per element of its source.
func (k *costing) reduce() {
	k.each(0)
	k.c.Flops = k.requireSource(0).Elements()
}

// sort compares each element of a row with others of the row, about log2 of the row's length
// times.
func (k *costing) sort() {
	k.each(0)
	s := k.requireSource(0)
	k.c.Flops = s.Elements() * math.Ceil(math.Log2(math.Max(dim(s.NE[0]), 1)))
	k.c.Exact = false
}

// kernelSize returns the number of elements in the first dimensions of a source, the kernel.
func (k *costing) kernelSize(source, dimensions int) float64 {
	n := 1.0
	for _, d := range k.requireSource(source).NE[:dimensions] {
		n *= dim(d)
	}
	return n
}

// kernel returns the cost of a multiply-add per element of a kernel and element of the result.
// CONV_2D: a kernel [W, H, in, out], the result [x, y, out, images]. CONV_2D_DW: a kernel [W,
// H, 1, channels] for each channel alone. SSM_CONV: a kernel [width, channels], the result
// [channels, tokens].
func kernel(source, dimensions int) func(*costing) {
	return func(k *costing) { k.each(2 * k.kernelSize(source, dimensions)) }
}

// kernelBack is like kernel, per element of the second source. CONV_TRANSPOSE_1D: a kernel [W,
// out, in], the second source [x, in]. CONV_TRANSPOSE_2D: a kernel [W, H, out, in], the second
// source [x, y, in].
func kernelBack(dimensions int) func(*costing) {
	return func(k *costing) {
		k.each(0)
		k.c.Flops = 2 * k.kernelSize(0, dimensions) * k.requireSource(1).Elements()
	}
}

// stateScan is SSM_SCAN: states [states, head, heads, sequences], x [head, heads, tokens,
// sequences], dt, A, B, C, and in later versions the ids of the sequences whose states are
// read. For each element of x and each state, the state is scaled, the input added and the
// state weighted: five operations. If A has a factor per state (Mamba; Mamba-2 has one per
// head), its product with dt and the exponential are two more.
func (k *costing) stateScan() {
	s, x := k.requireSource(0), k.requireSource(1)
	k.reads(1, 2, 3, 4, 5, 6)
	if ids := k.source(6); ids.Elements() > 0 {
		k.readAtMost(0, dim(s.NE[0])*dim(s.NE[1])*dim(s.NE[2])*dim(ids.NE[0]))
	} else {
		k.reads(0)
	}
	k.writes(k.out.Elements())
	each := 5.0
	if k.source(3).NE[0] > 1 {
		each = 7
	}
	k.c.Flops = each * dim(s.NE[0]) * x.Elements()
	k.c.Exact = false
}

// recurrent returns the cost of attention without a cache: the state of each head has as many
// columns as the rows of source rows have elements, and each token passes all of it.
func recurrent(rows int, flops float64) func(*costing) {
	return func(k *costing) {
		s := k.requireSource(rows)
		k.readsAll()
		k.writes(k.out.Elements())
		k.c.Flops = flops * dim(s.NE[0]) * s.Elements()
	}
}

// solve is SOLVE_TRI: a lower triangle [n, n] and right-hand sides [columns, n]. Row i takes i
// multiply-adds, a subtraction and a division: n(n+1) operations per column.
func (k *costing) solve() {
	a := k.requireSource(0)
	n := dim(a.NE[0])
	if n > 0 {
		k.read(0, a.Elements()*(n+1)/(2*n))
	}
	k.reads(1)
	k.writes(k.out.Elements())
	k.c.Flops = (n + 1) * k.out.Elements()
}

// conv3D is CONV_3D: a kernel [W, H, D, in x out], the second source [x, y, z, in x images],
// the result [x, y, z, out x images]. The number of input channels follows from the three
// products.
func (k *costing) conv3D() {
	a, b := k.requireSource(0), k.requireSource(1)
	k.each(0)
	in := 0.0
	if o := dim(k.out.NE[3]); o > 0 {
		in = math.Round(math.Sqrt(dim(a.NE[3]) * dim(b.NE[3]) / o))
	}
	k.c.Flops = 2 * dim(a.NE[0]) * dim(a.NE[1]) * dim(a.NE[2]) * in * k.out.Elements()
}

// isWeight reports whether a tensor is named like weights in a GGUF file. Weights are leaves of
// a graph, but so are its inputs and the KV cache.
func isWeight(name string) bool {
	return strings.HasPrefix(name, "blk.") || strings.Contains(name, ".weight") || strings.HasSuffix(name, ".bias")
}
