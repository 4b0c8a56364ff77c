package tally

import (
	"strings"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Parts of a layer.
const (
	partAttention = iota
	partFeedForward
	partNorm
	partOther
	numParts
)

// partNames are the names of the parts in a document.
var partNames = [numParts]string{"attention", "feed-forward", "norm", "other"}

// facts are what the name and the shapes of an operator reveal, cached per operator.
type facts struct {
	op, sub string
	name    string // of the step: the tensor's name without the layer
	weights string // type of its weights, "" if it has none
	weight  uint32 // ref of its weights
	layer   int    // -1 for none
	part    int
	cost    optrace.Cost

	mixture   bool // MUL_MAT_ID
	experts   int64
	mixTokens int64

	attention bool  // its time grows with the KV cache
	length    int64 // of the KV cache, 0 if unknown
	queries   int64

	ready    [numPhases]bool
	kindRow  [numPhases]*group
	stepRow  [numPhases]*group
	layerRow [numPhases]*layerSum
	typeRow  [numPhases]*typeSum
}

// factsOf returns the facts of the operator with the given ref.
func (t *Tally) factsOf(ref uint32) *facts {
	if int(ref) < len(t.facts) {
		if f := t.facts[ref]; f != nil {
			return f
		}
	}
	f := t.deriveFacts(t.t.Operator(ref))
	if ref >= maxFacts || int(ref) > len(t.t.Operators) {
		return f
	}
	for int(ref) >= len(t.facts) {
		t.facts = append(t.facts, nil)
	}
	t.facts[ref] = f
	return f
}

// deriveFacts derives the facts of an operator.
func (t *Tally) deriveFacts(op optrace.Operator) *facts {
	f := &facts{op: op.Op, sub: op.Sub, layer: -1, part: partOther, cost: optrace.CostOf(t.t, op, optrace.ExpertChoice{})}
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
	_, of := optrace.LayerOf(weights.Name)
	f.part = partOf(op.Op, f.name, of)
	t.findAttention(f, &op)
	return f
}

// source returns a source of an operator, the zero Tensor if there is none.
func (t *Tally) source(op *optrace.Operator, i int) optrace.Tensor {
	if i >= len(op.In) {
		return optrace.Tensor{}
	}
	return t.t.Tensor(op.In[i])
}

// stepOf returns the name of an operator's step and its layer. A node without a name from the
// runtime is named by its weights or, without any, by its operator; its layer is then the
// highest of its sources'.
func (t *Tally) stepOf(op *optrace.Operator, weights string) (name string, layer int) {
	layer, name = optrace.LayerOf(t.t.Tensor(op.Out).Name)
	name = baseName(name)
	if !isGeneratedName(name) {
		return name, layer
	}
	if weights != "" {
		layer, name = optrace.LayerOf(weights)
		return strings.TrimSuffix(strings.TrimSuffix(baseName(name), ".weight"), ".bias"), layer
	}
	for i := range op.In {
		l, _ := optrace.LayerOf(t.source(op, i).Name)
		layer = max(layer, l)
	}
	return strings.ToLower(op.Op), layer
}

// baseName returns a tensor's name without what GGML adds for a view or a copy of it, and without
// the underscores of names such as __fattn__.
func baseName(name string) string {
	if i := strings.Index(name, " ("); i >= 0 {
		name = name[:i]
	}
	return strings.Trim(name, "_ ")
}

// isGeneratedName reports whether a name, as returned by [optrace.LayerOf], was made up by ggml.c.
func isGeneratedName(name string) bool { return name == "" || name == "node" || name == "leaf" }

// attentionNames are prefixes of the names that llama.cpp gives to tensors of attention
// (llama-graph.cpp, build_attn, and the models' own).
var attentionNames = [...]string{"attn", "Qcur", "Kcur", "Vcur", "kq", "qkv", "wqkv", "cache_", "fattn", "kv_", "q_", "k_", "v_", "inp_kq", "KQ_mask"}

// partOf returns the part of a layer that an operator belongs to, by its operator, its step's
// name and its weights' name without the layer.
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
	case "ffn_inp", "l_out": // sums of a layer's parts
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

// findAttention determines whether an operator's time grows with the KV cache, and the length of the
// cache: FLASH_ATTN_EXT has keys [D, length, heads]; without it the scores are a MUL_MAT and a
// SOFT_MAX named kq with results [length, tokens, heads].
func (t *Tally) findAttention(f *facts, op *optrace.Operator) {
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

// rows looks up the rows that an operator belongs to in a phase.
func (f *facts) rows(t *Tally, p optrace.Phase) {
	if f.ready[p] {
		return
	}
	f.ready[p] = true
	var over [4]bool
	f.kindRow[p], over[0] = t.kinds.group(groupKey{phase: p, op: f.op, sub: f.sub, weights: f.weights})
	f.stepRow[p], over[1] = t.steps.group(groupKey{phase: p, op: f.op, sub: f.sub, weights: f.weights, name: f.name})
	f.layerRow[p], over[2] = t.layers.getOr(layerKey{p, f.layer}, layerKey{p, -1})
	f.layerRow[p].addOperator(f.op, f.sub, f.weights)
	if f.weight != 0 {
		f.typeRow[p] = t.types.get(typeKey{p, f.weights})
		over[3] = f.typeRow[p] == nil
		// GET_ROWS does not read its table as a whole.
		if f.typeRow[p] != nil && f.op != "GET_ROWS" {
			f.typeRow[p].addWeights(t.t, f.weight)
		}
	}
	t.overflow = t.overflow || over != [4]bool{}
}
