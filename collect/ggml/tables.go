package ggml

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Limits of tables, so that a long trace of a changing target stays bounded: what exceeds them
// has the ref 0. There is one counter set per operator that begins: some 2,700 tokens of a
// model of a billion parameters.
const (
	maxTensors   = 1 << 18
	maxOperators = 1 << 18
	maxExperts   = 1 << 20
	maxChosen    = 1 << 23 // ids of all choices; a choice of a prompt has 1,024 and more
	maxDAGs      = 1 << 12
	maxNodes     = 1 << 21 // nodes and leaves of all graphs, 64 bytes and more each
	maxNames     = 1 << 12
	maxCounters  = 1 << 20
)

// interner stores each thing once and gives it a ref.
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
	left      int64 // things beyond the limits
}

func newInterner() *interner {
	return &interner{
		tensors: map[optrace.Tensor]uint32{}, operators: map[string]uint32{}, experts: map[string]uint32{},
		dags: map[[sha256.Size]byte]uint32{}, names: map[string]uint32{},
	}
}

// add appends a thing to a table and stores its ref under a key. It returns the ref, 0 without
// room.
func add[K comparable, T any](t *interner, table *[]T, refs map[K]uint32, key K, thing T, room bool) uint32 {
	if !room {
		t.left++
		return 0
	}
	*table = append(*table, thing)
	refs[key] = uint32(len(*table))
	return refs[key]
}

// hasRoom reports whether there is room for tensors.
func (t *interner) hasRoom() bool { return len(t.Tensors) < maxTensors }

// tensor returns the ref of a tensor, 0 without room.
func (t *interner) tensor(v optrace.Tensor) uint32 {
	if ref, ok := t.tensors[v]; ok {
		return ref
	}
	return add(t, &t.Tensors, t.tensors, v, v, t.hasRoom())
}

// operator returns the ref of an operator, 0 without room. Its sources are copied.
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
	o.In = append([]uint32(nil), o.In...)
	return add(t, &t.Operators, t.operators, string(k), o, len(t.Operators) < maxOperators)
}

// choice returns the ref of a choice of experts, 0 without room. The ids are copied.
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
	room := len(t.Experts) < maxExperts && t.chosen+len(c.IDs) <= maxChosen
	if room {
		t.chosen += len(c.IDs)
		c.IDs = append([]int32(nil), c.IDs...)
	}
	return add(t, &t.Experts, t.experts, string(k), c, room)
}

// dag returns the ref of a graph, 0 without room. The value is kept.
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
	room := len(t.DAGs) < maxDAGs && t.nodes+size <= maxNodes
	if room {
		t.nodes += size
	}
	return add(t, &t.DAGs, t.dags, sum, d, room)
}

// name returns the ref of a name, 0 for "" or without room.
func (t *interner) name(s string) uint32 {
	if s == "" {
		return 0
	}
	if ref, ok := t.names[s]; ok {
		return ref
	}
	return add(t, &t.Names, t.names, s, s, len(t.Names) < maxNames)
}

// counter returns the ref of a reading, 0 without room.
func (t *interner) counter(c optrace.CounterSet) uint32 {
	if len(t.Counters) >= maxCounters {
		t.left++
		return 0
	}
	t.Counters = append(t.Counters, c)
	return uint32(len(t.Counters))
}
