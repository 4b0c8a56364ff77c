package optrace

// Tables hold what events refer to, each thing once. A source adds to them as it goes
// on; what is there never changes. Refs count from 1.
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
	// Op is GGML's name: "MUL_MAT", "FLASH_ATTN_EXT"; "" where names are withheld. Sub
	// is the function of UNARY and GLU: "SILU", "SWIGLU".
	Op  string `json:"op"`
	Sub string `json:"sub,omitempty"`
	// Out is the tensor that is computed, In are its sources in order, refs to
	// [Tables.Tensors]; 0 where one could not be read.
	Out uint32   `json:"out"`
	In  []uint32 `json:"in"`
	// Params are GGML's op_params: the first 16 words.
	Params [16]int32 `json:"params"`
	// Fused are operators whose nodes are computed together with this one, itself
	// excepted.
	Fused []string `json:"fused,omitempty"`
}

// ExpertChoice are the ids of experts that a mixture chose: one row for each token,
// Used ids in a row.
type ExpertChoice struct {
	Layer int     `json:"layer"` // -1 unknown
	Used  int     `json:"used"`
	IDs   []int32 `json:"ids"`
	// Tokens is the number of rows that there were; IDs may hold fewer of them, the
	// first ones.
	Tokens int `json:"tokens"`
}

// Counter names what a CounterSet counts.
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

// CounterSet is one reading of a thread's counters, each a running total. Those that
// are not in Have could not be opened.
type CounterSet struct {
	Have  uint16              `json:"have"` // bit n is Counter n
	Value [NumCounters]uint64 `json:"value"`
}

// DAG is a graph as it was at the begin of a computation: GGML's nodes in their order
// of execution, with every edge.
type DAG struct {
	Addr  uint64 `json:"addr"`
	Nodes []Node `json:"nodes"`
	// Leaves are tensors that no node of the graph computes: weights and inputs.
	Leaves []Node `json:"leaves"`
	// Truncated are nodes that could not be read.
	Truncated int `json:"truncated"`
}

// Node is one tensor of a DAG.
type Node struct {
	Addr     uint64   `json:"addr"`
	Operator uint32   `json:"operator"`       // ref to [Tables.Operators]; of a leaf one with the Op "NONE"
	Sources  []uint64 `json:"sources"`        // addresses; 0 where there is none in a slot
	View     uint64   `json:"view,omitempty"` // the tensor whose memory it is a view of, 0 none
}

// Tensor is the tensor of a ref, the zero one for a ref that leads nowhere.
func (t *Tables) Tensor(ref uint32) Tensor {
	if ref == 0 || int(ref) > len(t.Tensors) {
		return Tensor{}
	}
	return t.Tensors[ref-1]
}

// Operator is the operator of a ref, the zero one for a ref that leads nowhere.
func (t *Tables) Operator(ref uint32) Operator {
	if ref == 0 || int(ref) > len(t.Operators) {
		return Operator{}
	}
	return t.Operators[ref-1]
}
