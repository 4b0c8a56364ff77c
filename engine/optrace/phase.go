package optrace

// batchShape is what the operators of a graph reveal about its batch; 0 is unknown.
type batchShape struct {
	tokens  int // columns of the first matrix product: all tokens go through it
	outputs int // columns of the logits: the tokens whose successor is requested
}

// maxDecoded is the largest batch that counts as a decode of as many sequences: LLAMA_MAX_SEQ
// of llama.cpp was 64 and is 256 (llama-cparams.h), and a prompt with logits for all tokens is
// usually longer.
const maxDecoded = 64

// judgePhase returns the phase of a batch. One token is a decode; several are too if the logits
// of all of them are requested: one for each of several sequences, or drafts that are verified.
// Everything else is a prefill.
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

// shape determines the batch from the operators of compute thread 0, or, if none were seen,
// from the nodes of the graph's DAG: a batch of another size has another DAG.
func (b *dagBook) shape(g *building) batchShape {
	var shape batchShape
	spans := g.first.Spans
	if d := b.t.DAG(g.DAG); d != nil && len(spans) == 0 {
		b.measure(&shape, len(d.Nodes), func(i int) uint32 { return d.Nodes[i].Operator })
		return shape
	}
	b.measure(&shape, len(spans), func(i int) uint32 { return spans[i].Operator })
	return shape
}

// measure determines the batch from the first and the last product of n operators.
func (b *dagBook) measure(shape *batchShape, n int, operator func(i int) uint32) {
	for i := range n {
		if out, ok := b.product(operator(i)); ok {
			shape.tokens = int(max(out.NE[1], 0))
			break
		}
	}
	for i := n - 1; i >= 0; i-- {
		if out, ok := b.product(operator(i)); ok {
			if out.Name == LogitsName {
				shape.outputs = int(max(out.NE[1], 0))
			}
			break
		}
	}
}

// product returns the result of an operator, and whether it is a matrix product.
func (b *dagBook) product(ref uint32) (*Tensor, bool) {
	if ref == 0 || int(ref) > len(b.t.Operators) {
		return nil, false
	}
	op := &b.t.Operators[ref-1]
	if op.Op != "MUL_MAT" || op.Out == 0 || int(op.Out) > len(b.t.Tensors) {
		return nil, false
	}
	return &b.t.Tensors[op.Out-1], true
}
