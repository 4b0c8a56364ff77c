package optrace

import (
	"cmp"
	"slices"
)

// batchShape is what the operators of a graph say of its batch; 0 is unknown.
type batchShape struct {
	tokens  int // columns of the first matrix product: all tokens go through it
	outputs int // columns of the logits: the tokens whose successor is asked for
}

// logits is llama.cpp's name for the tensor of logits (llama-graph.cpp, t_logits).
const logits = "result_output"

// maxDecoded is the largest batch that counts as a decode of as many sequences:
// LLAMA_MAX_SEQ of llama.cpp was 64 and is 256 (llama-cparams.h), and a prompt whose
// logits are all asked for is commonly longer.
const maxDecoded = 64

// judgePhase is the phase of a batch. One token is a decode; more are one too where the
// logits of all of them are asked for: one for each of several sequences, or drafts
// that are verified. Everything else is a prefill.
func judgePhase(kind CallKind, tokens int, shape batchShape) Phase {
	switch {
	case kind == CallEncode:
		return PhaseEncode
	case tokens == 0:
		return PhaseUnknown
	case tokens == 1:
		return PhaseDecode
	case tokens <= maxDecoded && shape.outputs == tokens:
		return PhaseDecode
	}
	return PhasePrefill
}

// shape reads the batch off the operators of lane 0, and where none were seen off the
// nodes of the graph's [DAG]: a batch of another size is another one.
func (a *Assembler) shape(g *building) batchShape {
	var b batchShape
	spans := g.first.Spans
	if len(spans) == 0 && g.DAG > 0 && int(g.DAG) <= len(a.t.DAGs) {
		nodes := a.t.DAGs[g.DAG-1].Nodes
		a.measure(&b, len(nodes), func(i int) uint32 { return nodes[i].Operator })
		return b
	}
	a.measure(&b, len(spans), func(i int) uint32 { return spans[i].Operator })
	return b
}

// measure reads a batch off the first and the last product of n operators.
func (a *Assembler) measure(b *batchShape, n int, operator func(i int) uint32) {
	for i := range n {
		if out, ok := a.product(operator(i)); ok {
			b.tokens = int(max(out.NE[1], 0))
			break
		}
	}
	for i := n - 1; i >= 0; i-- {
		if out, ok := a.product(operator(i)); ok {
			if out.Name == logits {
				b.outputs = int(max(out.NE[1], 0))
			}
			break
		}
	}
}

// product is the result of a matrix product.
func (a *Assembler) product(ref uint32) (*Tensor, bool) {
	if ref == 0 || int(ref) > len(a.t.Operators) {
		return nil, false
	}
	op := &a.t.Operators[ref-1]
	if op.Op != "MUL_MAT" || op.Out == 0 || int(op.Out) > len(a.t.Tensors) {
		return nil, false
	}
	return &a.t.Tensors[op.Out-1], true
}

func sortByCall(threads []*thread) {
	slices.SortFunc(threads, func(x, y *thread) int { return cmp.Compare(x.call.Index, y.call.Index) })
}
