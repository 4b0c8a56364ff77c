package optrace

import (
	"math"
	"math/bits"
	"strings"
)

// Cost is what an operator has to move and to compute, as its definition and the
// shapes of its operands say: each element of a source counts as read once however
// often it is used, and a multiply and an add are two operations. Every other function
// of one number (a division, a comparison, exp, tanh) is one operation. What a kernel
// moves besides, such as a factor that it converts to eight bits first, is not in it.
type Cost struct {
	ReadBytes    float64 // of all sources, weights among them
	WrittenBytes float64
	WeightBytes  float64 // of ReadBytes, those of weights
	Flops        float64
	// Weights is the ref of the largest weights among the sources, 0 none.
	Weights uint32
	// Known says that the operator's name and shapes are; all else is 0 without.
	Known bool
	// Exact says that nothing in it is reckoned: the types are known, every source was
	// read, and the operator's work follows from its shapes alone.
	Exact bool
	// Guessed says that what the operator does is not known: Flops are not what it
	// computes, and nothing is to be judged by them.
	Guessed bool
}

// Bytes is what is moved altogether.
func (c Cost) Bytes() float64 { return c.ReadBytes + c.WrittenBytes }

// CostOf is the cost of an operator by its definition in ggml.h and ggml-cpu (ops.cpp,
// ggml-cpu.c). The ids of the experts that a MUL_MAT_ID chose say which weights it
// reads; without them it is reckoned that each is as likely as the other. Operators
// that are not known read their sources, write their result and do one operation for
// each element of it: they are not Exact, and Guessed.
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
		// What is between fused nodes stays out of memory; their other operands are among
		// the sources. GGML fuses additions and products, one operation for an element.
		k.c.Flops += float64(len(op.Fused)) * k.out.Elements()
	}
	return k.c
}

// costing is a Cost that is being worked out.
type costing struct {
	t       *Tables
	op      *Operator
	out     *Tensor
	experts *ExpertChoice
	c       Cost
}

// in is a source, the zero Tensor where there is none or it was not read.
func (k *costing) in(i int) *Tensor {
	if i >= len(k.op.In) {
		return &Tensor{}
	}
	ref := k.op.In[i]
	if ref == 0 || int(ref) > len(k.t.Tensors) {
		return &Tensor{}
	}
	return &k.t.Tensors[ref-1]
}

// needs is as in, of a source without which the cost is not exact.
func (k *costing) needs(i int) *Tensor {
	s := k.in(i)
	if s.Elements() == 0 {
		k.c.Exact = false
	}
	return s
}

// read counts some elements of a source.
func (k *costing) read(i int, elements float64) {
	s := k.in(i)
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

// reads counts whole sources.
func (k *costing) reads(sources ...int) {
	for _, i := range sources {
		k.read(i, k.in(i).Elements())
	}
}

// readsAll counts every source.
func (k *costing) readsAll() {
	for i, ref := range k.op.In {
		if ref == 0 {
			k.c.Exact = false
		}
		k.read(i, k.in(i).Elements())
	}
}

// writes counts some elements of the result.
func (k *costing) writes(elements float64) {
	b, exact := k.out.bytesOf(elements)
	k.c.WrittenBytes += b
	k.c.Exact = k.c.Exact && exact
}

// unknown is an operator of which only the operands are known.
func (k *costing) unknown() {
	k.each(1)
	k.c.Exact, k.c.Guessed = false, true
}

// each reads all, writes all and does some operations for each element of the result.
func (k *costing) each(flops float64) {
	k.readsAll()
	k.writes(k.out.Elements())
	k.c.Flops += flops * k.out.Elements()
}

// costs are the operators whose work is known, by GGML's name.
var costs = map[string]func(*costing){
	"NONE": nothing, "VIEW": nothing, "RESHAPE": nothing, "PERMUTE": nothing, "TRANSPOSE": nothing,

	"MUL_MAT": (*costing).matrix, "MUL_MAT_ID": (*costing).mixture, "OUT_PROD": (*costing).outer,
	"FLASH_ATTN_EXT": (*costing).attention,

	"ADD": perElement(1), "SUB": perElement(1), "MUL": perElement(1), "DIV": perElement(1), "ADD1": perElement(1), "ADD_ID": (*costing).addRows,
	"SCALE": (*costing).scale, "CLAMP": perElement(2), "SQR": perElement(1), "SQRT": perElement(1), "LOG": perElement(1), "SIN": perElement(1), "COS": perElement(1),
	"DIAG_MASK_INF": perElement(0), "DIAG_MASK_ZERO": perElement(0),
	"UNARY": (*costing).unary, "GLU": (*costing).gated, "LEAKY_RELU": perElement(2),

	"SOFT_MAX": (*costing).softMax,
	// A pair of elements is turned by four multiplications and two additions.
	"ROPE": (*costing).rope, "ROPE_BACK": (*costing).rope,
	// Square and add; scale. NORM subtracts the mean besides, for which it adds up.
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
	"CONV_2D": (*costing).conv2D, "CONV_2D_DW": (*costing).conv2DDepth, "CONV_3D": (*costing).conv3D,
	"CONV_TRANSPOSE_1D": (*costing).convBack1D, "CONV_TRANSPOSE_2D": (*costing).convBack2D,
	"SSM_CONV": (*costing).stateConv, "SSM_SCAN": (*costing).stateScan,
	"SOLVE_TRI": (*costing).solve,

	// Operations for each element of the state of a head and each token. WKV6: v times k,
	// that times the first and the state added, that weighed by r and added up, the state
	// decayed and v times k added: 1 + 2 + 2 + 2. WKV7: the state weighed by a, v times k,
	// the state decayed and both added, weighed by r: 2 + 1 + 4 + 2. Gated linear attention:
	// v times k, the state decayed and it added, weighed by q: 1 + 2 + 2. Gated delta net:
	// the state decayed, weighed by k, the difference times k added, weighed by q: 1 + 2 + 2 + 2.
	"RWKV_WKV6": recurrent(0, 7), "RWKV_WKV7": recurrent(2, 9), "GATED_LINEAR_ATTN": recurrent(0, 5), "GATED_DELTA_NET": recurrent(2, 7),
}

// nothing is the cost of operators that only look at memory in another way.
func nothing(*costing) {}

// perElement reads all sources, and does some operations for each element it writes.
func perElement(flops float64) func(*costing) {
	return func(k *costing) { k.each(flops) }
}

// dim is a dimension as a number, 0 where it is not positive.
func dim(n int64) float64 { return float64(max(n, 0)) }

// matrix is MUL_MAT: [K, M] by [K, N] is [M, N], for each of the third and fourth
// dimensions of the second; the first is used again where it has fewer of them.
func (k *costing) matrix() {
	a := k.needs(0)
	k.needs(1)
	k.reads(0, 1)
	k.writes(k.out.Elements())
	k.c.Flops = 2 * dim(a.NE[0]) * k.out.Elements()
}

// mixture is MUL_MAT_ID: weights [K, M, experts], ids [used, tokens], result [M, used,
// tokens]. It reads the weights of the experts that were chosen.
func (k *costing) mixture() {
	a, ids := k.needs(0), k.needs(2)
	k.needs(1)
	distinct, exact := k.experts.distinct(a.NE[2], ids.NE[0], ids.NE[1])
	k.c.Exact = k.c.Exact && exact
	k.read(0, dim(a.NE[0])*dim(a.NE[1])*distinct)
	k.reads(1, 2)
	k.writes(k.out.Elements())
	k.c.Flops = 2 * dim(a.NE[0]) * k.out.Elements()
}

// maxExperts is the number of experts of a layer that are told apart: four times that
// of the largest mixtures so far (256 of DeepSeek-V3, 384 of Kimi K2, 512 of Qwen3-Next).
const maxExperts = 2048

// distinct is how many experts took part, of so many, where each of some tokens used
// some; and whether that is known and not reckoned.
func (e *ExpertChoice) distinct(experts, used, tokens int64) (n float64, exact bool) {
	if experts <= 0 || used <= 0 || tokens <= 0 {
		return 0, false
	}
	if tokens == 1 { // the experts of one token differ: they are the first of a sorted list
		return dim(min(used, experts)), true
	}
	var seen [maxExperts / 64]uint64
	for _, id := range e.IDs {
		if id >= 0 && int64(id) < min(experts, maxExperts) {
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
	if rows >= tokens && experts <= maxExperts {
		return n, true
	}
	// Each token leaves an expert out with the probability 1-used/experts.
	left := math.Pow(1-dim(min(used, experts))/dim(experts), dim(tokens))
	return math.Max(n, dim(experts)*(1-left)), false
}

// outer is OUT_PROD: [M, K] by [N, K] is [M, N].
func (k *costing) outer() {
	a := k.needs(0)
	k.needs(1)
	k.reads(0, 1)
	k.writes(k.out.Elements())
	k.c.Flops = 2 * dim(a.NE[1]) * k.out.Elements()
}

// attention is FLASH_ATTN_EXT: queries [D, N, heads], keys [D, L, heads of keys], values
// [E, L, heads of keys], mask, sinks. Each score takes D multiply-adds, six operations
// of the softmax and E multiply-adds. GGML skips what the mask shuts out, which the
// shapes do not tell: with a mask this is the most that it can be.
func (k *costing) attention() {
	q, key, v := k.needs(0), k.needs(1), k.needs(2)
	k.reads(0, 1, 2, 4)
	k.mask(3, q.NE[1])
	k.writes(k.out.Elements())
	scores := dim(key.NE[1]) * dim(q.NE[1]) * dim(q.NE[2]) * dim(q.NE[3])
	k.c.Flops = scores * (2*dim(q.NE[0]) + 2*dim(v.NE[0]) + 6)
	if k.in(3).Elements() > 0 {
		k.c.Exact = false
	}
}

// mask reads the rows of a mask [length, tokens or more, ...] that belong to tokens: older
// runtimes make it a multiple of 32 or 64 rows long (GGML_KQ_MASK_PAD), and the rest is
// not looked at.
func (k *costing) mask(i int, tokens int64) {
	m := k.in(i)
	k.c.Exact = k.c.Exact && (i >= len(k.op.In) || k.op.In[i] != 0)
	if rows := dim(m.NE[1]); rows > 0 {
		k.read(i, m.Elements()*min(1, dim(tokens)/rows))
	}
}

// softMax is SOFT_MAX, with a mask and sinks or without. For an element: scale it, subtract
// the largest, exp, add up, divide; and find the largest.
func (k *costing) softMax() {
	k.needs(0)
	k.reads(0, 2)
	k.mask(1, k.out.NE[1])
	k.writes(k.out.Elements())
	k.c.Flops = 6 * k.out.Elements()
}

// scale is SCALE: a multiplication, and an addition where the second parameter, a float,
// is not 0.
func (k *costing) scale() {
	if k.op.Params[1] == 0 {
		k.each(1)
		return
	}
	k.each(2)
}

// some is as many elements of a source as there are of it at most: rows that are looked
// up twice count once, as far as they are more than all.
func (k *costing) some(i int, elements float64) {
	k.read(i, min(elements, k.in(i).Elements()))
}

// sets is SET: the second source is put into the first, or (fifth parameter) into a copy
// of it.
func (k *costing) sets() {
	k.needs(1)
	k.reads(1)
	k.writes(k.in(1).Elements())
	if k.op.Params[4] == 0 {
		k.reads(0)
		k.writes(k.out.Elements())
	}
}

// accumulates is ACC: as SET, but the second source is added to what is there.
func (k *costing) accumulates() {
	b := k.needs(1).Elements()
	k.reads(1)
	k.read(0, b)
	k.writes(b)
	k.c.Flops = b
	if k.op.Params[4] == 0 {
		k.reads(0)
		k.writes(k.out.Elements())
	}
}

// columns is IM2COL: of the kernel, the first source, only the shape matters.
func (k *costing) columns() {
	k.needs(1)
	k.reads(1)
	k.writes(k.out.Elements())
}

// addRows is ADD_ID: to each row the row of the second that its id names.
func (k *costing) addRows() {
	k.needs(1)
	k.reads(0, 2)
	k.some(1, k.out.Elements())
	k.writes(k.out.Elements())
	k.c.Flops = k.out.Elements()
}

// unaryFlops are the operations for an element of the functions that take more than
// one: x/(1+exp(-x)) is four, the approximation of GELU by tanh nine.
var unaryFlops = map[string]float64{
	"SILU": 4, "SIGMOID": 4, "GELU": 9, "GELU_QUICK": 5, "GELU_ERF": 5, "ELU": 3, "HARDSWISH": 5, "HARDSIGMOID": 4,
	"SOFTPLUS": 3, "XIELU": 6,
}

// unary is a function of each element.
func (k *costing) unary() {
	flops, ok := unaryFlops[k.op.Sub]
	if !ok {
		flops = 1
	}
	k.each(flops)
}

// gatedFlops are the operations for an element of a result: the function of the gate
// and a multiplication.
var gatedFlops = map[string]float64{"REGLU": 2, "GEGLU": 10, "SWIGLU": 5, "SWIGLU_OAI": 9, "GEGLU_ERF": 6, "GEGLU_QUICK": 6}

// gated is GLU: one source whose halves are gate and value, or a source for each.
func (k *costing) gated() {
	flops, ok := gatedFlops[k.op.Sub]
	if !ok {
		flops = 2
	}
	k.each(flops)
	k.c.Exact = k.c.Exact && ok
}

// rope turns pairs of the first n_dims (op_params[1]) elements of each row.
func (k *costing) rope() {
	k.each(0)
	turned := 1.0
	if n := float64(k.op.Params[1]); n > 0 && n < dim(k.out.NE[0]) {
		turned = n / dim(k.out.NE[0])
	}
	k.c.Flops = 3 * turned * k.out.Elements()
}

// copies is CPY, DUP and CONT. A second source is where the result goes.
func (k *costing) copies() {
	k.needs(0)
	k.reads(0)
	k.writes(k.in(0).Elements())
}

// setRows is SET_ROWS: the result is all that rows are put into, what is written has
// the elements of the first source.
func (k *costing) setRows() {
	k.needs(0)
	k.reads(0, 1)
	k.writes(k.in(0).Elements())
}

// getRows is GET_ROWS: of the first source it reads the rows of the result.
func (k *costing) getRows() {
	k.needs(0)
	k.some(0, k.out.Elements())
	k.reads(1)
	k.writes(k.out.Elements())
}

// reduce does one operation for each element of its source.
func (k *costing) reduce() {
	k.each(0)
	k.c.Flops = k.needs(0).Elements()
}

// sort compares each element of a row with the others of it about log2 of their number
// times.
func (k *costing) sort() {
	k.each(0)
	s := k.needs(0)
	k.c.Flops = s.Elements() * math.Ceil(math.Log2(math.Max(dim(s.NE[0]), 1)))
	k.c.Exact = false
}

// conv2D is CONV_2D: a kernel [W, H, in, out], the result [x, y, out, images].
func (k *costing) conv2D() {
	a := k.needs(0)
	k.each(2 * dim(a.NE[0]) * dim(a.NE[1]) * dim(a.NE[2]))
}

// conv2DDepth is CONV_2D_DW: a kernel [W, H, 1, channels] for each channel alone.
func (k *costing) conv2DDepth() {
	a := k.needs(0)
	k.each(2 * dim(a.NE[0]) * dim(a.NE[1]))
}

// convBack1D is CONV_TRANSPOSE_1D: a kernel [W, out, in], the second source [x, in].
func (k *costing) convBack1D() {
	k.each(0)
	a := k.needs(0)
	k.c.Flops = 2 * dim(a.NE[0]) * dim(a.NE[1]) * k.needs(1).Elements()
}

// convBack2D is CONV_TRANSPOSE_2D: a kernel [W, H, out, in], the second source [x, y, in].
func (k *costing) convBack2D() {
	k.each(0)
	a := k.needs(0)
	k.c.Flops = 2 * dim(a.NE[0]) * dim(a.NE[1]) * dim(a.NE[2]) * k.needs(1).Elements()
}

// stateConv is SSM_CONV: a kernel [width, channels], the result [channels, tokens].
func (k *costing) stateConv() {
	k.each(2 * dim(k.needs(1).NE[0]))
}

// stateScan is SSM_SCAN: states [states, head, heads, sequences], x [head, heads, tokens,
// sequences], dt, A, B, C, and in later versions the ids of the sequences, which say of
// how many the states are read. For each element of x and each of the states the state
// is scaled, the input added and the state weighed: five operations. Where A has a
// factor for each of the states (Mamba; one for each head in Mamba-2), that times dt
// and its exponential are two more.
func (k *costing) stateScan() {
	s, x := k.needs(0), k.needs(1)
	k.reads(1, 2, 3, 4, 5, 6)
	if ids := k.in(6); ids.Elements() > 0 {
		k.some(0, dim(s.NE[0])*dim(s.NE[1])*dim(s.NE[2])*dim(ids.NE[0]))
	} else {
		k.reads(0)
	}
	k.writes(k.out.Elements())
	each := 5.0
	if k.in(3).NE[0] > 1 {
		each = 7
	}
	k.c.Flops = each * dim(s.NE[0]) * x.Elements()
	k.c.Exact = false
}

// recurrent is attention without a cache: each head has a state of so many columns as
// the rows of a source (the index) have elements, and each token passes all of it.
func recurrent(rows int, flops float64) func(*costing) {
	return func(k *costing) {
		s := k.needs(rows)
		k.readsAll()
		k.writes(k.out.Elements())
		k.c.Flops = flops * dim(s.NE[0]) * s.Elements()
	}
}

// solve is SOLVE_TRI: a lower triangle [n, n] and right sides [columns, n]. Row i takes i
// multiply-adds, a subtraction and a division: n(n+1) for each column.
func (k *costing) solve() {
	a := k.needs(0)
	n := dim(a.NE[0])
	if n > 0 {
		k.read(0, a.Elements()*(n+1)/(2*n))
	}
	k.reads(1)
	k.writes(k.out.Elements())
	k.c.Flops = (n + 1) * k.out.Elements()
}

// conv3D is CONV_3D: a kernel [W, H, D, in x out], the second source [x, y, z, in x images],
// the result [x, y, z, out x images]: what is in follows from the three products.
func (k *costing) conv3D() {
	a, b := k.needs(0), k.needs(1)
	k.each(0)
	in := 0.0
	if o := dim(k.out.NE[3]); o > 0 {
		in = math.Round(math.Sqrt(dim(a.NE[3]) * dim(b.NE[3]) / o))
	}
	k.c.Flops = 2 * dim(a.NE[0]) * dim(a.NE[1]) * dim(a.NE[2]) * in * k.out.Elements()
}

// isWeight says whether a tensor's name is that of weights in a GGUF file. Weights are
// leaves of a graph, but so are its inputs and the KV cache.
func isWeight(name string) bool {
	return strings.HasPrefix(name, "blk.") || strings.Contains(name, ".weight") || strings.HasSuffix(name, ".bias")
}
