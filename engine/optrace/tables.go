package optrace

// Tables hold what events refer to, each thing once. A source appends to them; entries never
// change. Refs count from 1.
type Tables struct {
	Tensors   []Tensor
	Operators []Operator
	Experts   []ExpertChoice
	Counters  []CounterSet
	DAGs      []DAG
	Names     []string // of backends and other things
}

// Tensor is the shape of a piece of memory, as GGML describes it (ggml.h, struct
// ggml_tensor). Two tensors of equal shape and name are one entry.
type Tensor struct {
	Name string    `json:"name"`
	Type string    `json:"type"` // "f32", "q4_0", "" unknown
	NE   [4]int64  `json:"ne"`   // elements of each dimension, the first varies fastest
	NB   [4]uint64 `json:"nb"`   // strides in bytes
}

// Operator is one kind of step of a graph with its operands.
type Operator struct {
	// Op is GGML's name: "MUL_MAT", "FLASH_ATTN_EXT"; "" if names are withheld. Sub is the
	// function of UNARY and GLU: "SILU", "SWIGLU".
	Op  string `json:"op"`
	Sub string `json:"sub,omitempty"`
	// Out is the computed tensor, In are its sources in order: refs to [Tables.Tensors], 0 if
	// one could not be read.
	Out uint32   `json:"out"`
	In  []uint32 `json:"in"`
	// Params are GGML's op_params: the first 16 words.
	Params [16]int32 `json:"params"`
	// Fused are the other operators whose nodes are computed together with this one.
	Fused []string `json:"fused,omitempty"`
}

// ExpertChoice is the ids of the experts that a mixture chose: one row per token, Used ids in a
// row.
type ExpertChoice struct {
	Layer int     `json:"layer"` // -1 unknown
	Used  int     `json:"used"`
	IDs   []int32 `json:"ids"`
	// Tokens is the number of rows that there were; IDs may have only the first of them.
	Tokens int `json:"tokens"`
}

// Counter is an index into [CounterSet.Value].
type Counter uint8

// Counters. The first four need a performance monitoring unit.
const (
	Instructions Counter = iota
	Cycles
	LLCMisses
	BranchMisses
	TaskClock // nanoseconds on a CPU
	ContextSwitches
	Migrations
	MinorFaults
	MajorFaults
	NumCounters
)

// CounterSet is one reading of a thread's counters, each a running total. Those that are not in
// Have could not be opened.
type CounterSet struct {
	Have  uint16              `json:"have"` // bit n is Counter n
	Value [NumCounters]uint64 `json:"value"`
}

// DAG is a graph as it was at the start of a computation: GGML's nodes in execution order, with
// every edge.
type DAG struct {
	Addr  uint64 `json:"addr"`
	Nodes []Node `json:"nodes"`
	// Leaves are tensors that no node of the graph computes: weights and inputs.
	Leaves []Node `json:"leaves"`
	// Truncated is the number of nodes that could not be read.
	Truncated int `json:"truncated"`
}

// Node is one tensor of a DAG.
type Node struct {
	Addr     uint64   `json:"addr"`
	Operator uint32   `json:"operator"`       // ref to [Tables.Operators]; for a leaf one with the Op "NONE"
	Sources  []uint64 `json:"sources"`        // addresses; 0 for an empty slot
	View     uint64   `json:"view,omitempty"` // the tensor whose memory it is a view of, 0 none
}

// Tensor returns the tensor with the given ref, the zero one if there is none.
func (t *Tables) Tensor(ref uint32) Tensor {
	if ref == 0 || int(ref) > len(t.Tensors) {
		return Tensor{}
	}
	return t.Tensors[ref-1]
}

// Operator returns the operator with the given ref, the zero one if there is none.
func (t *Tables) Operator(ref uint32) Operator {
	if ref == 0 || int(ref) > len(t.Operators) {
		return Operator{}
	}
	return t.Operators[ref-1]
}

// Choice returns the choice of experts with the given ref, nil if there is none.
func (t *Tables) Choice(ref uint32) *ExpertChoice {
	if ref == 0 || int(ref) > len(t.Experts) {
		return nil
	}
	return &t.Experts[ref-1]
}

// Name returns the name with the given ref, "" if there is none.
func (t *Tables) Name(ref uint32) string {
	if ref == 0 || int(ref) > len(t.Names) {
		return ""
	}
	return t.Names[ref-1]
}

// DAG returns the graph with the given ref, nil if there is none.
func (t *Tables) DAG(ref uint32) *DAG {
	if ref == 0 || int(ref) > len(t.DAGs) {
		return nil
	}
	return &t.DAGs[ref-1]
}
