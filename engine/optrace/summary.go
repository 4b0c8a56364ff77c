package optrace

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Summary is every figure of a trace. Its parts go into the document
// rooftop.trace/v1 by their tags: a key says the unit of its value, _ns, _s, _ratio. A
// value that is not known is absent (null); Gaps say why. The tag absent has the number
// that stands for one that is not known.
type Summary struct {
	Target   Target        `json:"target"`
	Coverage Coverage      `json:"coverage"`
	Observer Observer      `json:"observer"`
	Roof     Roof          `json:"roof"`
	Phases   []PhaseRow    `json:"phases"`    // those that occurred, prefill first
	Kinds    []OperatorRow `json:"kinds"`     // by phase, operator and type of weights
	Steps    []OperatorRow `json:"operators"` // by phase and name without its layer ("ffn_up")
	Layers   []LayerRow    `json:"layers"`    // by phase and layer
	Threads  []ThreadRow   `json:"threads"`   // by lane
	Tokens   []TokenRow    `json:"tokens"`    // the last calls, oldest first, at most maxTokens
	Experts  *Experts      `json:"experts"`   // nil where no mixture was seen
	Context  []ContextRow  `json:"context"`   // attention against KV length, ascending
	Types    []TypeRow     `json:"types"`     // by quantisation type of the weights
	Critical []CriticalRow `json:"critical"`  // what decided the time of decode graphs, largest first
	Others   []OtherRow    `json:"others"`    // processes that took the CPU away, largest first
	PutOff   PutOff        `json:"put_off"`   // the target itself while a lane had no CPU
	HostLoad *HostLoad     `json:"host_load"` // who had the CPUs over the whole trace, nil not known
	Backends []BackendRow  `json:"backends"`
	Copies   []CopyRow     `json:"copies"`
	Graphs   []GraphShape  `json:"graphs"` // distinct DAGs
	Findings []Finding     `json:"findings"`
	Advice   Advice        `json:"recommendation"`
	Gaps     []Gap         `json:"gaps"`
}

// Coverage says how much of the target's work is in the figures.
type Coverage struct {
	Seconds float64 `json:"seconds"` // of the recording
	// Detail is the level of most decode graphs; Levels are all at which graphs were
	// recorded, that one first.
	Detail  string     `json:"detail"`
	Levels  []LevelRow `json:"levels"`
	Events  int64      `json:"events"`
	Dropped int64      `json:"dropped"`  // lost on the way
	LeftOut int64      `json:"left_out"` // not kept for exports; the figures hold them
	// KeptFrom and KeptTo are the seconds since the begin of the trace that exports hold,
	// absent where they hold all of it, or where that is not known.
	KeptFrom stat.Opt `json:"kept_from_s"`
	KeptTo   stat.Opt `json:"kept_to_s"`
	// Graphs are those that were whole; Partial ones are left out of every figure. Both
	// are 0 where graphs were not traced, as [Coverage.SawGraphs] says.
	Graphs  int      `json:"graphs"`
	Partial int      `json:"partial_graphs"`
	Calls   int      `json:"calls"`
	OpShare stat.Opt `json:"operators_of_graph_ratio"` // time of lane 0 that spans cover, and traced waits
	GraphOf stat.Opt `json:"graphs_of_call_ratio"`
	// OpsPerToken is the number of operators of one decode graph that lane 0 computes.
	OpsPerToken stat.Opt `json:"operators_per_decode_graph"`
}

// SawGraphs says that graphs were traced, if only for a part of the time.
func (c *Coverage) SawGraphs() bool {
	d, err := ParseDetail(c.Detail)
	return err != nil || d&^LevelToken != 0 || c.Graphs+c.Partial > 0
}

// Empty says that there are no figures: nothing was computed, or a recording that was cut
// short has calls at most, and graphs were to be in it.
func (s *Summary) Empty() bool {
	c := &s.Coverage
	return c.Graphs <= 0 && (c.Calls <= 0 || s.gap(GapEnd) != nil && c.SawGraphs())
}

// gap is the gap that says why something is not known, nil where none does.
func (s *Summary) gap(what string) *Gap {
	i := slices.IndexFunc(s.Gaps, func(g Gap) bool { return g.What == what })
	if i < 0 {
		return nil
	}
	return &s.Gaps[i]
}

// Distribution describes times; quantiles are nearest rank.
type Distribution struct {
	Count int           `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	Max   time.Duration `json:"max_ns"`
}

// PhaseRow is one phase of the trace.
type PhaseRow struct {
	Phase   string       `json:"phase"`
	Calls   int          `json:"calls" absent:"0"`  // 0: graphs alone were seen
	Tokens  int64        `json:"tokens" absent:"0"` // 0 unknown
	Call    Distribution `json:"call"`              // time of a call
	Graph   Distribution `json:"graph"`             // time of a graph
	Rate    stat.Opt     `json:"tokens_per_s"`      // tokens over the time of the calls, of graphs where no call was seen
	Between Distribution `json:"between"`           // from the end of a call to the begin of the next: sampling, the application
	// Paced is the rate with what lies between the calls of one answer: tokens over the time
	// from the begin of a decode to the begin of the next one. Absent for other phases, and
	// where calls overlap or most pauses are waits for a request.
	Paced stat.Opt `json:"tokens_per_s_with_between"`
	// FirstToken is from the begin of a prefill to the begin of the decode after it; calls
	// that compute one prompt batch by batch are one prefill.
	FirstToken Distribution `json:"first_token"`
	Bytes      stat.Opt     `json:"bytes"` // moved by its operators, from shapes
	Flops      stat.Opt     `json:"flops"`
	BytesRate  stat.Opt     `json:"bytes_per_s"` // over the time of its graphs
	FlopsRate  stat.Opt     `json:"flops_per_s"`
	// Ceiling is the rate of tokens that the roof allows for these operators.
	Ceiling stat.Opt `json:"ceiling_tokens_per_s"`
}

// paceApart is by how much the rate in calls is above that of answers where both are told.
const paceApart = 0.05

// Apart says that the time between calls makes a difference: that the rate in calls, Rate,
// is well above that of answers, Paced.
func (p *PhaseRow) Apart() bool {
	return p.Rate.OK && p.Paced.OK && p.Paced.V > 0 && p.Rate.V > (1+paceApart)*p.Paced.V
}

// Bound is what limits an operator.
type Bound string

// Bounds.
const (
	BoundMemory  Bound = "memory"
	BoundCompute Bound = "compute"
	BoundMixed   Bound = "mixed"
	// BoundNeither is far below the roof on both sides: what holds it up is neither.
	BoundNeither Bound = "neither"
	// BoundWaiting is lanes that waited for each other or were off their CPUs for more than
	// half of the time: what would bound the operator then is not to be seen.
	BoundWaiting Bound = "waiting"
	BoundUnknown Bound = ""
)

// OperatorRow is a group of spans.
type OperatorRow struct {
	Phase string `json:"phase"`
	Op    string `json:"op"`
	Sub   string `json:"sub,omitempty"`
	Name  string `json:"name"`  // of Steps: the tensor's name without its layer
	Type  string `json:"type"`  // of the weights, "" none
	Count int64  `json:"count"` // operators, each once however many threads computed it
	// Time is from an operator's first begin on any lane to its last end, but not beyond
	// the first begin of the next, added up; Share that of all operators of the phase.
	Time  time.Duration `json:"time_ns"`
	Share stat.Opt      `json:"share_ratio"`
	Each  Distribution  `json:"each"`
	// Sync is lanes that waited, Off lanes off their CPU, means over lanes; absent where
	// barriers, or scheduling, were not traced.
	Sync OptTime `json:"sync_ns"`
	Off  OptTime `json:"off_cpu_ns"`
	// Synced and Offed are of Count the operators that Sync and Off are of, fewer where the
	// detail was changed meanwhile; 0 in what was read from a document.
	Synced    int64    `json:"-"`
	Offed     int64    `json:"-"`
	Bytes     stat.Opt `json:"bytes"`
	Flops     stat.Opt `json:"flops"`
	Estimated bool     `json:"estimated"` // Bytes and Flops do not follow from shapes alone
	BytesRate stat.Opt `json:"bytes_per_s"`
	FlopsRate stat.Opt `json:"flops_per_s"`
	// OfRoof is the achieved share of the roof that bounds it, of the nearer side where
	// neither does.
	OfRoof stat.Opt `json:"of_roof_ratio"`
	Bound  Bound    `json:"bound"`
	// BoundFrom is [FromCounters], [FromRoofline] or [FromLanes], "" where it is unknown.
	BoundFrom string   `json:"bound_from"`
	IPC       stat.Opt `json:"ipc"`
	MissRate  stat.Opt `json:"llc_misses_per_instruction"`
}

// LayerRow is one layer of the model.
type LayerRow struct {
	Phase string        `json:"phase"`
	Layer int           `json:"layer"` // -1 is what belongs to no layer: embedding, output
	Time  time.Duration `json:"time_ns"`
	Share stat.Opt      `json:"share_ratio"` // of all operators of the phase
	// Parts divide it: "attention", "feed-forward", "norm", "other".
	Parts map[string]time.Duration `json:"parts_ns"`
	// Slow is its mean time over the median of the layers of its phase, both without the
	// time for which other processes or threads had the CPU of a lane.
	Slow stat.Opt `json:"over_median_ratio"`
	// Make is the same for layers that are made alike and can be held against each other:
	// of the same operators on the same types, in as many graphs.
	Make string `json:"-"`
	// Graphs are those in which its operators were recorded, fewer than the phase has where
	// the detail was changed meanwhile; 0 in what was read from a document.
	Graphs int `json:"-"`
}

// ThreadRow is one lane over all graphs. Ratios are of the time of graphs.
type ThreadRow struct {
	Lane    int `json:"lane"`
	Threads int `json:"threads" absent:"0"` // distinct thread ids that it had, 0 unknown
	// Busy, Sync and Off divide the time of the lane: it computes, it waits for others on
	// its CPU, it is off its CPU, in a barrier or not. What they leave of the whole is time
	// without an operator. All three are of the same graphs, those that tell most: where
	// the detail was changed, what others tell is not mixed in. A part that these graphs do
	// not tell is absent, and lies within Busy; off the CPU in a barrier lies within Sync.
	Busy stat.Opt `json:"busy_ratio"`
	Sync stat.Opt `json:"sync_ratio"`
	Off  stat.Opt `json:"off_cpu_ratio"`
	// Barriers is the time in barriers, on its CPU or off it, of all graphs whose barriers
	// were traced. Preempted is that ready and without a CPU, a part of Off; where Off is
	// absent, of all graphs whose scheduling was traced.
	Barriers  stat.Opt `json:"barriers_ratio"`
	Preempted stat.Opt `json:"preempted_ratio"`
	// LostCPU is Preempted of all graphs whose scheduling was traced, and Graphs how many
	// Busy, Sync and Off are of; absent and 0 in what was read from a document.
	LostCPU     stat.Opt     `json:"-"`
	Graphs      int          `json:"-"`
	WakeUp      Distribution `json:"wake_up"` // from ready to running
	Switches    stat.Opt     `json:"switches"`
	Syscalls    stat.Opt     `json:"syscalls"`
	SyscallTime stat.Opt     `json:"syscall_s"`
	MinorFaults stat.Opt     `json:"minor_faults"`
	MajorFaults stat.Opt     `json:"major_faults"`
	IOBytes     stat.Opt     `json:"io_bytes"`
}

// TokenRow is one call, for a line of time.
type TokenRow struct {
	Begin   time.Duration `json:"begin_ns"` // since the begin of the trace
	Time    time.Duration `json:"time_ns"`
	Phase   string        `json:"phase"`
	Tokens  int           `json:"tokens" absent:"0"`   // 0 unknown
	Graph   time.Duration `json:"graph_ns" absent:"0"` // of its graphs, 0 none was seen whole
	Off     OptTime       `json:"off_cpu_ns"`          // absent where scheduling was not traced
	Context int64         `json:"context" absent:"0"`  // KV length, 0 unknown
}

// Experts is what mixtures of experts did.
type Experts struct {
	Count  int           `json:"experts" absent:"0"` // of a layer, 0 unknown
	Used   int           `json:"used" absent:"0"`    // for each token, 0 no choice was read
	Tokens int64         `json:"tokens"`             // whose choices were read, over layers
	Layers []ExpertLayer `json:"layers"`
	// CV is the coefficient of variation of how often experts were chosen, all layers
	// together; 0 is perfectly even.
	CV stat.Opt `json:"cv"`
	// TimeCV is that of the mean time of a mixture's matmuls by the expert, where
	// batches of one token let it be told, five of each. Batches that lost a CPU meanwhile
	// are left out, where scheduling is traced; it is absent, and so are all times by
	// expert, where it is not and tokens take very different times, as [GapExpertTimes].
	TimeCV stat.Opt `json:"time_cv"`
}

// ExpertLayer is one mixture.
type ExpertLayer struct {
	Layer  int      `json:"layer"`
	Chosen []int64  `json:"chosen"` // how often, by expert
	CV     stat.Opt `json:"cv"`
	// Share of the tokens that the most chosen expert got.
	Top stat.Opt `json:"top_ratio"`
	// Time is the mean time of the mixture's matmuls in calls in which an expert took
	// part, by expert; absent where it never did without losing a CPU.
	Time []stat.Opt `json:"time_s"`
}

// ContextRow is attention of decode graphs at one length of the KV cache: what grows with
// it, not the products with weights before and after.
type ContextRow struct {
	Length    int64         `json:"length"` // tokens, as padded by the runtime
	Graphs    int           `json:"graphs"`
	Attention time.Duration `json:"attention_ns"` // mean of a graph
	Graph     time.Duration `json:"graph_ns"`
	Share     stat.Opt      `json:"share_ratio"`
}

// TypeRow is the weights of one type.
type TypeRow struct {
	Type      string        `json:"type"`
	Phase     string        `json:"phase"`
	Time      time.Duration `json:"time_ns"`
	Share     stat.Opt      `json:"share_ratio"`
	Bytes     stat.Opt      `json:"bytes"`
	BytesRate stat.Opt      `json:"bytes_per_s"`
	FlopsRate stat.Opt      `json:"flops_per_s"`
	Weights   stat.Opt      `json:"weights_bytes"` // distinct weights of the type that were read
}

// CriticalRow is a part of the critical path.
type CriticalRow struct {
	Name  string        `json:"name"`             // operator, or "start", "synchronisation"
	Lane  int           `json:"lane" absent:"-1"` // the lane most often on the path, -1 where it is of none
	Time  time.Duration `json:"time_ns"`
	Share stat.Opt      `json:"share_ratio"`
}

// OtherRow is another process that ran while the target could have.
type OtherRow struct {
	PID   int           `json:"pid" absent:"0"` // 0: several
	Name  string        `json:"name"`           // "" unknown
	Time  time.Duration `json:"time_ns"`
	Share stat.Opt      `json:"share_ratio"` // of the time of graphs, by the lane of each that lost most
	// OfLanes is Time as a share of the time of all lanes.
	OfLanes stat.Opt `json:"of_lanes_ratio"`
}

// BackendRow is one backend.
type BackendRow struct {
	Name   string        `json:"name"`
	Splits int64         `json:"splits"`
	Nodes  int64         `json:"nodes"`
	Time   time.Duration `json:"time_ns" absent:"0"` // of graphs on the CPU, 0 unknown
	// Seen says that its operators are in the figures; those of a GPU are not, and
	// Pair names the tool that sees them.
	Seen bool   `json:"operators_seen"`
	Pair string `json:"pair_with,omitempty"`
}

// CopyRow is copies in one direction.
type CopyRow struct {
	Direction string `json:"direction"`
	Count     int64  `json:"count"`
	Bytes     int64  `json:"bytes"`
}

// GraphShape is one distinct graph.
type GraphShape struct {
	DAG    uint32 `json:"dag"`
	Nodes  int    `json:"nodes"`
	Edges  int    `json:"edges"`
	Leaves int    `json:"leaves"`
	Views  int    `json:"views"`
	Graphs int    `json:"computed"`
}

// Finding is something that costs time, with its evidence.
type Finding struct {
	ID       string   `json:"id"`       // "threads-above-memory-roof"
	Severity string   `json:"severity"` // "bad", "warn", "good", "info"
	Title    string   `json:"title"`
	Evidence []string `json:"evidence"`
	// Cost is the share of the time of graphs that it takes, absent where unknown.
	Cost stat.Opt `json:"cost_ratio"`
}

// Advice is the one thing to change, or that there is none.
type Advice struct {
	Finding string `json:"finding"` // id of the finding it follows from, "" none
	// Do is the change in one sentence; Flag and Value are the runtime's option where
	// it is one.
	Do    string `json:"do"`
	Flag  string `json:"flag,omitempty"`
	Value string `json:"value,omitempty"`
	Why   string `json:"why"`
	Price string `json:"price"`
	// Gain is the expected change of tokens a second with its range.
	Gain     stat.Opt `json:"gain_ratio"`
	GainLow  stat.Opt `json:"gain_low"`
	GainHigh stat.Opt `json:"gain_high"`
	Rejected []string `json:"rejected"`
	// Check is the command that shows whether it helped.
	Check string `json:"check,omitempty"`
}
