package optrace

import "strings"

// Parts of a layer.
const (
	partAttention = iota
	partFeedForward
	partNorm
	partOther
	numParts
)

// partNames are the words of a document for the parts.
var partNames = [numParts]string{"attention", "feed-forward", "norm", "other"}

// facts are what the name and the shapes of an operator say, worked out once.
type facts struct {
	op, sub string
	name    string // of its step: the tensor's name without the layer
	weights string // type of its weights, "" none
	weight  uint32 // ref of its weights
	layer   int    // -1 none
	part    int
	cost    Cost

	mixture   bool // MUL_MAT_ID
	experts   int64
	mixTokens int64

	attention bool  // its time grows with the KV cache
	length    int64 // of the KV cache, 0 unknown
	queries   int64

	ready [numPhases]bool
	kind  [numPhases]*group
	step  [numPhases]*group
	sums  [numPhases]*layerSum
	typed [numPhases]*typeSum
}

// factsOf are the facts of an operator by its ref.
func (t *Tally) factsOf(ref uint32) *facts {
	if int(ref) < len(t.facts) {
		if f := t.facts[ref]; f != nil {
			return f
		}
	}
	f := t.learn(t.t.Operator(ref))
	if ref >= maxFacts || int(ref) > len(t.t.Operators) {
		return f
	}
	for int(ref) >= len(t.facts) {
		t.facts = append(t.facts, nil)
	}
	t.facts[ref] = f
	return f
}

// learn works out the facts of an operator.
func (t *Tally) learn(op Operator) *facts {
	f := &facts{op: op.Op, sub: op.Sub, layer: -1, part: partOther, cost: CostOf(t.t, op, ExpertChoice{})}
	f.weight = f.cost.Weights
	weights := t.t.Tensor(f.weight)
	f.weights = weights.Type
	f.name, f.layer = t.stepOf(&op, weights.Name)
	if op.Op == "" {
		return f
	}
	if op.Op == "MUL_MAT_ID" {
		f.mixture = true
		f.experts, f.mixTokens = t.source(&op, 0).NE[2], t.source(&op, 2).NE[1]
	}
	_, of := LayerOf(weights.Name)
	f.part = partOf(op.Op, f.name, of)
	t.attends(f, &op)
	return f
}

// source is a source of an operator, the zero Tensor where there is none.
func (t *Tally) source(op *Operator, i int) Tensor {
	if i >= len(op.In) {
		return Tensor{}
	}
	return t.t.Tensor(op.In[i])
}

// stepOf is the name of an operator's step and its layer. A node that the runtime gave
// no name goes by its weights, and without any by its operator; its layer is then the
// highest of its sources'.
func (t *Tally) stepOf(op *Operator, weights string) (name string, layer int) {
	layer, name = LayerOf(t.t.Tensor(op.Out).Name)
	name = bare(name)
	if !unnamed(name) {
		return name, layer
	}
	if weights != "" {
		layer, name = LayerOf(weights)
		return strings.TrimSuffix(strings.TrimSuffix(bare(name), ".weight"), ".bias"), layer
	}
	for i := range op.In {
		l, _ := LayerOf(t.source(op, i).Name)
		layer = max(layer, l)
	}
	return strings.ToLower(op.Op), layer
}

// bare is a tensor's name without what GGML adds for a view or a copy of it, and
// without the underscores of names such as __fattn__.
func bare(name string) string {
	if i := strings.Index(name, " ("); i >= 0 {
		name = name[:i]
	}
	return strings.Trim(name, "_ ")
}

// unnamed says whether a name, as [LayerOf] leaves it, is one that ggml.c made up.
func unnamed(name string) bool { return name == "" || name == "node" || name == "leaf" }

// attentionNames begin the names of what attention computes in llama.cpp
// (llama-graph.cpp, build_attn, and the models' own).
var attentionNames = [...]string{"attn", "Qcur", "Kcur", "Vcur", "kq", "qkv", "wqkv", "cache_", "fattn", "kv_", "q_", "k_", "v_", "inp_kq", "KQ_mask"}

// partOf is the part of a layer that an operator belongs to, by its operator, its
// step's name and its weights' name without the layer.
func partOf(op, name, weights string) int {
	switch op {
	case "RMS_NORM", "NORM", "L2_NORM", "GROUP_NORM":
		return partNorm
	case "FLASH_ATTN_EXT", "ROPE":
		return partAttention
	case "MUL_MAT_ID":
		return partFeedForward
	}
	if strings.HasSuffix(name, "_norm") || strings.Contains(weights, "norm.") {
		return partNorm
	}
	switch name {
	case "ffn_inp", "l_out": // what a layer's parts are added to
		return partOther
	case "q", "k", "v":
		return partAttention
	}
	for _, s := range [...]string{name, weights} {
		if strings.HasPrefix(s, "ffn") || strings.Contains(s, "moe") {
			return partFeedForward
		}
		for _, prefix := range attentionNames {
			if strings.HasPrefix(s, prefix) {
				return partAttention
			}
		}
	}
	return partOther
}

// attends finds out whether an operator's time grows with the KV cache, and how long
// that is: FLASH_ATTN_EXT has keys [D, length, heads]; without it the scores are a
// MUL_MAT and a SOFT_MAX named kq with results [length, tokens, heads].
func (t *Tally) attends(f *facts, op *Operator) {
	out := t.t.Tensor(op.Out)
	switch {
	case op.Op == "FLASH_ATTN_EXT":
		f.attention, f.length, f.queries = true, t.source(op, 1).NE[1], t.source(op, 0).NE[1]
	case f.weight != 0 || !strings.HasPrefix(f.name, "kq"):
	case strings.HasPrefix(f.name, "kqv"):
		f.attention = op.Op == "MUL_MAT"
	default:
		f.attention, f.length, f.queries = true, out.NE[0], out.NE[1]
	}
	f.length, f.queries = max(f.length, 0), max(f.queries, 0)
}

// rows finds the rows that an operator belongs to in a phase.
func (f *facts) rows(t *Tally, p Phase) {
	if f.ready[p] {
		return
	}
	f.ready[p] = true
	var over [4]bool
	f.kind[p], over[0] = t.kinds.group(groupKey{phase: p, op: f.op, sub: f.sub, weights: f.weights})
	f.step[p], over[1] = t.steps.group(groupKey{phase: p, op: f.op, sub: f.sub, weights: f.weights, name: f.name})
	f.sums[p], over[2] = t.layers.get(layerKey{p, f.layer})
	f.sums[p].has(f.op, f.sub, f.weights)
	if f.weight != 0 {
		f.typed[p], over[3] = t.types.get(typeKey{p, f.weights})
		// Of a table of which rows are looked up the rest is not read.
		if f.typed[p] != nil && f.op != "GET_ROWS" {
			f.typed[p].weigh(t.t, f.weight)
		}
	}
	t.overflow = t.overflow || over != [4]bool{}
}
