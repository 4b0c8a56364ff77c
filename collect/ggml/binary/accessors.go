package binary

import (
	"slices"
)

// Facts of GGML's structures that hold in every version so far (ggml.h of 2023 to 2026).
const (
	dimensions   = 4       // GGML_MAX_DIMS
	defaultSlots = 10      // GGML_MAX_SRC
	pointerBytes = 8       //
	objectBytes  = 32      // sizeof(struct ggml_object), which ggml_tensor_overhead adds
	nameBytes    = 64      // GGML_MAX_NAME
	maxOffset    = 1 << 12 // larger than the offset of any field
	noOffset     = -1      // the field is unknown
	paramsBytes  = 64      // GGML_MAX_OP_PARAMS
)

// emptyLayout returns a layout without known fields.
func emptyLayout() Layout {
	return Layout{
		Type: noOffset, NE: noOffset, NB: noOffset, Op: noOffset, Params: noOffset, Flags: noOffset, Src: noOffset,
		View: noOffset, Data: noOffset, Name: noOffset, GraphNodes: noOffset, GraphCount: noOffset,
	}
}

// accessorLayout determines offsets from the code of GGML's accessors.
func (o *object) accessorLayout() Layout {
	l := emptyLayout()
	l.Name = o.returnedAddress("ggml_get_name")
	l.Data = o.returnedField("ggml_get_data", pointerBytes)
	l.NE = o.dimensionField("ggml_nelements", dimensions)
	l.NB = o.dimensionField("ggml_is_transposed", 2)
	l.Type = first(o.readOffsets("ggml_element_size", 4))
	l.Op, l.Params = o.opFields()
	l.Flags = first(o.writeOffsets("ggml_set_input"))
	l.View = o.viewField(l)
	l.Src, l.Slots = o.sourceField(l)
	l.Size = o.tensorSize()
	l.GraphCount = o.returnedField("ggml_graph_n_nodes", 4)
	l.GraphNodes = o.returnedField("ggml_graph_nodes", pointerBytes)
	if l.GraphNodes < 0 || l.GraphCount < 0 {
		o.graphFields(&l)
	}
	return l
}

// first returns the first valid offset of a field, or noOffset.
func first(offsets []int64) int {
	for _, at := range offsets {
		if at >= 0 && at < maxOffset {
			return int(at)
		}
	}
	return noOffset
}

func (o *object) readOffsets(name string, size int) []int64 { return o.follow(name).reads(size) }

func (o *object) writeOffsets(name string) []int64 { return o.follow(name).writes() }

// returnedAddress returns the offset of a field whose address a function returns, or noOffset.
func (o *object) returnedAddress(name string) int {
	for _, v := range o.follow(name).returns {
		if v.kind == number && v.a == 1 {
			return first([]int64{v.c})
		}
	}
	return noOffset
}

// returnedField returns the offset of a field whose value a function returns, or noOffset.
func (o *object) returnedField(name string, size int) int {
	for _, v := range o.follow(name).returns {
		if v.kind == loaded && v.a == 1 && v.size == size {
			return first([]int64{v.c})
		}
	}
	return noOffset
}

// dimensionField returns the offset of an array of numbers whose first ones a function reads,
// in any order, or noOffset.
func (o *object) dimensionField(name string, count int) int {
	reads := slices.Compact(slices.Sorted(slices.Values(o.readOffsets(name, 8))))
	if len(reads) < count {
		return noOffset
	}
	for i := range count {
		if reads[i] != reads[0]+int64(8*i) {
			return noOffset
		}
	}
	return first(reads)
}

// opFields returns the offsets of the operator and of its parameters. ggml_get_unary_op
// compares the former with UNARY and returns the latter.
func (o *object) opFields() (op, params int) {
	f := o.follow("ggml_get_unary_op")
	op, params = noOffset, noOffset
	for _, a := range f.accesses {
		if a.compared && !a.write && op < 0 {
			op = first([]int64{a.offset})
		}
	}
	for _, v := range f.returns {
		if v.kind == loaded && v.a == 1 && v.size == 4 && int(v.c) != op && params < 0 {
			params = first([]int64{v.c})
		}
	}
	if op < 0 {
		op = first(o.readOffsets("ggml_op_desc", 4))
	}
	if params < 0 {
		params = first(o.writeOffsets("ggml_mul_mat_set_prec"))
	}
	return op, params
}

// viewField returns the offset of the tensor that another is a view of. ggml_set_output follows
// it in newer versions; ggml_backend_view_init and ggml_backend_tensor_set read it before
// anything else after the operator.
func (o *object) viewField(l Layout) int {
	if l.Op < 0 {
		return noOffset
	}
	for _, name := range []string{"ggml_is_view", "ggml_set_output", "ggml_backend_view_init", "ggml_backend_tensor_set"} {
		for _, at := range o.readOffsets(name, pointerBytes) {
			if at > int64(l.Op) && at < maxOffset && int(at) != l.Data {
				return int(at)
			}
		}
	}
	return noOffset
}

// sourceField returns the offset and number of the sources. They end where the view begins, and
// begin after the flags, or until 2024 after the gradient.
func (o *object) sourceField(l Layout) (src, slots int) {
	if l.View < 0 || l.Flags < 0 {
		return noOffset, 0
	}
	begin := (l.Flags + 4 + pointerBytes - 1) &^ (pointerBytes - 1)
	// ggml_soft_max_add_sinks writes the third source, from 2025-08 on.
	const sinks = 2
	if third := first(o.writeOffsets("ggml_soft_max_add_sinks")); third >= 0 && third-sinks*pointerBytes >= begin {
		begin = third - sinks*pointerBytes
	}
	slots = (l.View - begin) / pointerBytes
	if slots < 1 || slots > maxSlots || (l.View-begin)%pointerBytes != 0 {
		return noOffset, 0
	}
	// Until 2024 the gradient was before them, and until June 2024 times were after them: the
	// version table covers these.
	if slots == defaultSlots+1 || slots == defaultSlots+1+perfWords {
		return noOffset, 0
	}
	return begin, slots
}

// maxSlots is the largest plausible number of sources; GGML has had 6 and 10.
const maxSlots = 32

// tensorSize returns sizeof(struct ggml_tensor), 0 if unknown.
func (o *object) tensorSize() int {
	for _, v := range o.follow("ggml_tensor_overhead").returns {
		if v.kind == number && v.a == 0 && v.c > objectBytes && v.c < maxOffset {
			return int(v.c - objectBytes)
		}
	}
	return 0
}

// graphFields determines the offsets of a graph from ggml_graph_node, if there are no accessors
// for them: it compares with the number of nodes, then reads the nodes.
func (o *object) graphFields(l *Layout) {
	f := o.follow("ggml_graph_node")
	if l.GraphCount < 0 {
		l.GraphCount = first(f.reads(4))
	}
	if l.GraphNodes < 0 {
		l.GraphNodes = first(f.reads(pointerBytes))
	}
}
