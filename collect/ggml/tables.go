package ggml

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Sizes at which a table takes no more, so that a long trace of a changing target stays
// bounded: what comes later has the ref 0. Counter sets are one for each operator that
// begins: some 2,700 tokens of a model of a billion parameters.
const (
	maxTensors   = 1 << 18
	maxOperators = 1 << 18
	maxExperts   = 1 << 20
	maxChosen    = 1 << 23 // ids of all choices together; those of a prompt have 1,024 and more
	maxDAGs      = 1 << 12
	maxNodes     = 1 << 21 // nodes and leaves of all graphs together, 64 bytes and more each
	maxNames     = 1 << 12
	maxCounters  = 1 << 20
)

// interner keeps each thing once and gives it a ref.
type interner struct {
	optrace.Tables
	tensors   map[optrace.Tensor]uint32
	operators map[string]uint32
	experts   map[string]uint32
	dags      map[[sha256.Size]byte]uint32
	names     map[string]uint32
	key       []byte
	chosen    int   // ids of all choices
	nodes     int   // of all graphs
	left      int64 // things that found no place
}

func newInterner() *interner {
	return &interner{
		tensors: map[optrace.Tensor]uint32{}, operators: map[string]uint32{}, experts: map[string]uint32{},
		dags: map[[sha256.Size]byte]uint32{}, names: map[string]uint32{},
	}
}

// more says that there is room for tensors.
func (t *interner) more() bool { return len(t.Tensors) < maxTensors }

// tensor is the ref of a tensor.
func (t *interner) tensor(v optrace.Tensor) uint32 {
	if ref, ok := t.tensors[v]; ok {
		return ref
	}
	if !t.more() {
		t.left++
		return 0
	}
	t.Tensors = append(t.Tensors, v)
	t.tensors[v] = uint32(len(t.Tensors))
	return uint32(len(t.Tensors))
}

// operator is the ref of an operator; its sources are copied.
func (t *interner) operator(o optrace.Operator) uint32 {
	k := t.key[:0]
	k = append(append(k, o.Op...), 0)
	k = append(k, o.Sub...)
	k = binary.LittleEndian.AppendUint32(append(k, 0), o.Out)
	for _, in := range o.In {
		k = binary.LittleEndian.AppendUint32(k, in)
	}
	for _, p := range o.Params {
		k = binary.LittleEndian.AppendUint32(k, uint32(p))
	}
	for _, f := range o.Fused {
		k = append(append(k, 0), f...)
	}
	t.key = k
	if ref, ok := t.operators[string(k)]; ok {
		return ref
	}
	if len(t.Operators) >= maxOperators {
		t.left++
		return 0
	}
	o.In = append([]uint32(nil), o.In...)
	t.Operators = append(t.Operators, o)
	t.operators[string(k)] = uint32(len(t.Operators))
	return uint32(len(t.Operators))
}

// choice is the ref of experts; the ids are copied.
func (t *interner) choice(c optrace.ExpertChoice) uint32 {
	k := binary.LittleEndian.AppendUint64(t.key[:0], uint64(c.Layer))
	k = binary.LittleEndian.AppendUint32(k, uint32(c.Used))
	k = binary.LittleEndian.AppendUint32(k, uint32(c.Tokens))
	for _, id := range c.IDs {
		k = binary.LittleEndian.AppendUint32(k, uint32(id))
	}
	t.key = k
	if ref, ok := t.experts[string(k)]; ok {
		return ref
	}
	if len(t.Experts) >= maxExperts || t.chosen+len(c.IDs) > maxChosen {
		t.left++
		return 0
	}
	t.chosen += len(c.IDs)
	c.IDs = append([]int32(nil), c.IDs...)
	t.Experts = append(t.Experts, c)
	t.experts[string(k)] = uint32(len(t.Experts))
	return uint32(len(t.Experts))
}

// dag is the ref of a graph; the value is kept.
func (t *interner) dag(d optrace.DAG) uint32 {
	k := binary.LittleEndian.AppendUint64(t.key[:0], d.Addr)
	k = binary.LittleEndian.AppendUint64(k, uint64(d.Truncated))
	for _, nodes := range [][]optrace.Node{d.Nodes, d.Leaves} {
		k = binary.LittleEndian.AppendUint64(k, uint64(len(nodes)))
		for i := range nodes {
			n := &nodes[i]
			k = binary.LittleEndian.AppendUint64(k, n.Addr)
			k = binary.LittleEndian.AppendUint32(k, n.Operator)
			k = binary.LittleEndian.AppendUint64(k, n.View)
			for _, s := range n.Sources {
				k = binary.LittleEndian.AppendUint64(k, s)
			}
		}
	}
	t.key = k
	sum := sha256.Sum256(k)
	if ref, ok := t.dags[sum]; ok {
		return ref
	}
	size := len(d.Nodes) + len(d.Leaves)
	if len(t.DAGs) >= maxDAGs || t.nodes+size > maxNodes {
		t.left++
		return 0
	}
	t.nodes += size
	t.DAGs = append(t.DAGs, d)
	t.dags[sum] = uint32(len(t.DAGs))
	return uint32(len(t.DAGs))
}

// name is the ref of a name, 0 of none.
func (t *interner) name(s string) uint32 {
	if s == "" {
		return 0
	}
	if ref, ok := t.names[s]; ok {
		return ref
	}
	if len(t.Names) >= maxNames {
		t.left++
		return 0
	}
	t.Names = append(t.Names, s)
	t.names[s] = uint32(len(t.Names))
	return uint32(len(t.Names))
}

// counter is the ref of a reading, 0 where there is no room.
func (t *interner) counter(c optrace.CounterSet) uint32 {
	if len(t.Counters) >= maxCounters {
		t.left++
		return 0
	}
	t.Counters = append(t.Counters, c)
	return uint32(len(t.Counters))
}
