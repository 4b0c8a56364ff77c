package optrace

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Summary has every figure of a trace. It is the document rooftop.trace/v1 by its tags: a key
// ends in the unit of its value (_ns, _s, _ratio). A value that is unknown is null, and Gaps say
// why. A number tagged omitzero is unknown if it is 0.
type Summary struct {
	Target    Target        `json:"target"`
	Coverage  Coverage      `json:"coverage"`
	Observer  Observer      `json:"observer"`
	Peak      Peak          `json:"machine_peak"`
	Phases    []PhaseRow    `json:"phases"`    // the phases that occurred, prefill first
	Kinds     []OperatorRow `json:"kinds"`     // by phase, operator and type of weights
	Steps     []OperatorRow `json:"operators"` // by phase and name without its layer ("ffn_up")
	Layers    []LayerRow    `json:"layers"`    // by phase and layer
	Threads   []ThreadRow   `json:"threads"`   // by thread
	Tokens    []TokenRow    `json:"tokens"`    // the last calls, oldest first, at most maxTokens
	Experts   *Experts      `json:"experts"`   // nil if no mixture was seen
	Context   []ContextRow  `json:"context"`   // attention by KV length, ascending
	Types     []TypeRow     `json:"types"`     // by type of the weights
	Critical  []CriticalRow `json:"critical"`  // the critical path of decode graphs, largest part first
	Preempted Preempted     `json:"preempted"` // the target itself while threads had no CPU
	HostLoad  *HostLoad     `json:"host_load"` // how the CPUs were used over the whole trace, nil if unknown
	Backends  []BackendRow  `json:"backends"`
	Copies    []CopyRow     `json:"copies"`
	Graphs    []GraphShape  `json:"graphs"` // distinct DAGs
	Findings  []Finding     `json:"findings"`
	Advice    Advice        `json:"recommendation"`
	Gaps      []Gap         `json:"gaps"`
}

// Coverage is how much of the target's work is in the figures.
type Coverage struct {
	Seconds float64 `json:"seconds"` // of the recording
	Detail  string  `json:"detail"`  // what was recorded
	Events  int64   `json:"events"`
	Dropped int64   `json:"dropped"`  // events that were lost
	LeftOut int64   `json:"left_out"` // events in the figures that are not kept for exports
	// KeptFrom and KeptTo are the seconds since the start of the trace that exports include,
	// absent if they include all of it, or if that is unknown.
	KeptFrom stat.Opt `json:"kept_from_s"`
	KeptTo   stat.Opt `json:"kept_to_s"`
	// Graphs counts the complete graphs; Partial ones are excluded from every figure. Both are
	// 0 if graphs were not traced, see [Coverage.SawGraphs].
	Graphs  int      `json:"graphs"`
	Partial int      `json:"partial_graphs"`
	Calls   int      `json:"calls"`
	OpShare stat.Opt `json:"operators_of_graph_ratio"` // time of thread 0 that spans cover, and traced waits
	GraphOf stat.Opt `json:"graphs_of_call_ratio"`
	// OpsPerToken is the number of operators of one decode graph that thread 0 computes.
	OpsPerToken stat.Opt `json:"operators_per_decode_graph"`
}

// SawGraphs reports whether graphs were traced, at least for a part of the time.
func (c *Coverage) SawGraphs() bool {
	d, err := ParseDetail(c.Detail)
	return err != nil || d&^LevelToken != 0 || c.Graphs+c.Partial > 0
}

// Empty reports whether there are no figures: nothing was computed, or the recording was cut
// short and has no graphs although they were to be recorded.
func (s *Summary) Empty() bool {
	c := &s.Coverage
	return c.Graphs <= 0 && (c.Calls <= 0 || s.FindGap(GapEnd) != nil && c.SawGraphs())
}

// FindGap returns the gap with the given What, nil if there is none.
func (s *Summary) FindGap(what string) *Gap {
	i := slices.IndexFunc(s.Gaps, func(g Gap) bool { return g.What == what })
	if i < 0 {
		return nil
	}
	return &s.Gaps[i]
}

// PhaseRow is one phase of a trace.
type PhaseRow struct {
	Phase   string            `json:"phase"`
	Calls   int               `json:"calls,omitzero"`  // 0 if only graphs were seen
	Tokens  int64             `json:"tokens,omitzero"` // 0 unknown
	Call    stat.Distribution `json:"call"`            // time of a call
	Graph   stat.Distribution `json:"graph"`           // time of a graph
	Rate    stat.Opt          `json:"tokens_per_s"`    // tokens over the time of the calls, or of graphs if no call was seen
	Between stat.Distribution `json:"between"`         // from the end of a call to the start of the next: sampling, the application
	// Paced is the rate including the time between the calls of one answer: tokens over the
	// time from the start of a decode to the start of the next one. It is absent for other
	// phases, and if calls overlap or most pauses are waits for a request.
	Paced stat.Opt `json:"tokens_per_s_with_between"`
	// FirstToken is the time from the start of a prefill to the start of the decode after it;
	// calls that compute one prompt batch by batch are one prefill.
	FirstToken stat.Distribution `json:"first_token"`
	Bytes      stat.Opt          `json:"bytes"` // moved by its operators, computed from shapes
	Flops      stat.Opt          `json:"flops"`
	BytesRate  stat.Opt          `json:"bytes_per_s"` // over the time of its graphs
	FlopsRate  stat.Opt          `json:"flops_per_s"`
	// Ceiling is the rate of tokens that the machine's peak allows for these operators.
	Ceiling stat.Opt `json:"ceiling_tokens_per_s"`
}

// MinPaceDifference is the relative difference of Rate and Paced from which both are shown.
const MinPaceDifference = 0.05

// PaceDiffers reports whether the time between calls matters: Rate exceeds Paced by more than
// [MinPaceDifference].
func (p *PhaseRow) PaceDiffers() bool {
	return p.Rate.OK && p.Paced.OK && p.Paced.V > 0 && p.Rate.V > (1+MinPaceDifference)*p.Paced.V
}

// Bound is what limits an operator.
type Bound string

// Bounds.
const (
	BoundMemory  Bound = "memory"
	BoundCompute Bound = "compute"
	BoundMixed   Bound = "mixed"
	// BoundNeither means that the operator is far below the peak on both sides.
	BoundNeither Bound = "neither"
	// BoundWaiting means that threads waited for each other or were off their CPUs for more
	// than half of the time, so that what bounds the operator cannot be judged.
	BoundWaiting Bound = "waiting"
	BoundUnknown Bound = ""
)

// OperatorRow is a group of spans.
type OperatorRow struct {
	Phase string `json:"phase"`
	Op    string `json:"op"`
	Sub   string `json:"sub,omitempty"`
	Name  string `json:"name"`  // in Steps: the tensor's name without its layer
	Type  string `json:"type"`  // type of the weights, "" if there are none
	Count int64  `json:"count"` // operators; one computed by several threads counts once
	// Time is the sum over operators from the first start on any thread to the last end, but at
	// most to the first start of the next operator. Share is its share of all operators of the
	// phase.
	Time  time.Duration     `json:"time_ns"`
	Share stat.Opt          `json:"share_ratio"`
	Each  stat.Distribution `json:"each"`
	// Sync is the time in which threads waited, Off that off the CPU: means over threads;
	// absent if barriers, or scheduling, were not traced.
	Sync      OptTime  `json:"sync_ns"`
	Off       OptTime  `json:"off_cpu_ns"`
	Bytes     stat.Opt `json:"bytes"`
	Flops     stat.Opt `json:"flops"`
	Estimated bool     `json:"estimated"` // Bytes and Flops do not follow from shapes alone
	BytesRate stat.Opt `json:"bytes_per_s"`
	FlopsRate stat.Opt `json:"flops_per_s"`
	// OfPeak is the achieved share of the peak that bounds the operator, or of the nearer peak
	// if neither does.
	OfPeak stat.Opt `json:"of_peak_ratio"`
	Bound  Bound    `json:"bound"`
	// BoundFrom is [FromCounters], [FromRoofline] or [FromThreads], "" if unknown.
	BoundFrom string   `json:"bound_from"`
	IPC       stat.Opt `json:"ipc"`
	MissRate  stat.Opt `json:"llc_misses_per_instruction"`
}

// LayerRow is one layer of the model.
type LayerRow struct {
	Phase string        `json:"phase"`
	Layer int           `json:"layer"` // -1 for what belongs to no layer: embedding, output
	Time  time.Duration `json:"time_ns"`
	Share stat.Opt      `json:"share_ratio"` // of all operators of the phase
	// Parts divide Time into "attention", "feed-forward", "norm" and "other".
	Parts map[string]time.Duration `json:"parts_ns"`
	// Slow is the mean time over the median of the layers of its phase, both without the time
	// for which a thread was preempted.
	Slow stat.Opt `json:"over_median_ratio"`
	// Make is equal for layers that can be compared: the same operators on the same types, in
	// the same number of graphs.
	Make string `json:"-"`
	// Graphs counts the graphs with the layer; 0 in what was read from a document.
	Graphs int `json:"-"`
}

// ThreadRow is one compute thread over all graphs. Ratios are of the time of graphs.
type ThreadRow struct {
	Thread    int `json:"thread"`
	ThreadIDs int `json:"thread_ids,omitzero"` // number of distinct thread ids, 0 if unknown
	// Busy, Sync and Off divide the time of the thread: it computes, it waits for others on its
	// CPU, it is off its CPU, in a barrier or not. The remainder is time without an operator. A
	// part that was not recorded is absent and included in Busy; time off the CPU in a barrier is
	// included in Sync then.
	Busy stat.Opt `json:"busy_ratio"`
	Sync stat.Opt `json:"sync_ratio"`
	Off  stat.Opt `json:"off_cpu_ratio"`
	// Barriers is the time in barriers, on the CPU or off it. Preempted is the time ready without a
	// CPU, a part of Off.
	Barriers    stat.Opt          `json:"barriers_ratio"`
	Preempted   stat.Opt          `json:"preempted_ratio"`
	WakeUp      stat.Distribution `json:"wake_up"` // from ready to running
	Switches    stat.Opt          `json:"switches"`
	Syscalls    stat.Opt          `json:"syscalls"`
	SyscallTime stat.Opt          `json:"syscall_s"`
	MinorFaults stat.Opt          `json:"minor_faults"`
	MajorFaults stat.Opt          `json:"major_faults"`
	IOBytes     stat.Opt          `json:"io_bytes"`
}

// TokenRow is one call, for the timeline.
type TokenRow struct {
	Begin   time.Duration `json:"begin_ns"` // since the start of the trace
	Time    time.Duration `json:"time_ns"`
	Phase   string        `json:"phase"`
	Tokens  int           `json:"tokens,omitzero"`   // 0 unknown
	Graph   time.Duration `json:"graph_ns,omitzero"` // time of its graphs, 0 if none is complete
	Off     OptTime       `json:"off_cpu_ns"`        // absent if scheduling was not traced
	Context int64         `json:"context,omitzero"`  // KV length, 0 unknown
}

// Experts is the use of experts by mixtures.
type Experts struct {
	Count  int           `json:"experts,omitzero"` // per layer, 0 if unknown
	Used   int           `json:"used,omitzero"`    // per token, 0 if no choice was read
	Tokens int64         `json:"tokens"`           // tokens whose choices were read, summed over layers
	Layers []ExpertLayer `json:"layers"`
	// CV is the coefficient of variation of how often experts were chosen, all layers
	// together; 0 is perfectly even.
	CV stat.Opt `json:"cv"`
	// TimeCV is the coefficient of variation of the mean time of a mixture's matmuls by expert. A
	// matmul computes Used experts and counts for each of them, so TimeCV is below that of an
	// expert's own time: by (n-Used)/((n-1)*Used) for n experts chosen independently. It is taken
	// from batches of one token, at least five per expert. If scheduling is traced, batches
	// that lost a CPU are excluded. If it is not and tokens take very different times, TimeCV
	// and all times by expert are absent; see [GapExpertTimes].
	TimeCV stat.Opt `json:"time_cv"`
}

// ExpertLayer is the mixture of one layer.
type ExpertLayer struct {
	Layer  int      `json:"layer"`
	Chosen []int64  `json:"chosen"` // number of choices, by expert
	CV     stat.Opt `json:"cv"`
	// Top is the share of the tokens that used the most chosen expert.
	Top stat.Opt `json:"top_ratio"`
	// Time is the mean time of the mixture's matmuls in calls in which an expert took part, by
	// expert; absent if it never did without losing a CPU.
	Time []stat.Opt `json:"time_s"`
}

// ContextRow is attention in decode graphs at one length of the KV cache: the part that grows
// with it, without the products with weights before and after.
type ContextRow struct {
	Length    int64         `json:"length"` // tokens, as padded by the runtime
	Graphs    int           `json:"graphs"`
	Attention time.Duration `json:"attention_ns"` // mean per graph
	Graph     time.Duration `json:"graph_ns"`
	Share     stat.Opt      `json:"share_ratio"`
}

// TypeRow is the operators on weights of one type.
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

// CriticalRow is one part of the critical path.
type CriticalRow struct {
	Name   string        `json:"name"`   // operator, or "start", "synchronisation"
	Thread int           `json:"thread"` // the thread that was most often on the path, or [NoThread]
	Time   time.Duration `json:"time_ns"`
	Share  stat.Opt      `json:"share_ratio"`
}

// BackendRow is one backend.
type BackendRow struct {
	Name   string        `json:"name"`
	Splits int64         `json:"splits"`
	Nodes  int64         `json:"nodes"`
	Time   time.Duration `json:"time_ns,omitzero"` // of graphs on the CPU, 0 if unknown
	// Seen reports whether its operators are in the figures. Those of a GPU are not, and Pair
	// names the tool that shows them.
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
	ID       string   `json:"id"`       // "threads-above-memory-peak"
	Severity string   `json:"severity"` // "bad", "warn", "good", "info"
	Title    string   `json:"title"`
	Evidence []string `json:"evidence"`
	// Cost is the share of the time of graphs that it takes, absent if unknown.
	Cost stat.Opt `json:"cost_ratio"`
}

// Advice is the one recommended change, or that there is none.
type Advice struct {
	Finding string `json:"finding"` // id of the finding it follows from, "" none
	// Do is the change in one sentence; Flag and Value are the option of the runtime, if it is
	// one.
	Do    string `json:"do"`
	Flag  string `json:"flag,omitempty"`
	Value string `json:"value,omitempty"`
	Why   string `json:"why"`
	Price string `json:"price"`
	// Gain is the expected relative change of tokens per second, with its range.
	Gain     stat.Opt `json:"gain_ratio"`
	GainLow  stat.Opt `json:"gain_low"`
	GainHigh stat.Opt `json:"gain_high"`
	Rejected []string `json:"rejected"`
	// Check is how to see whether the change helped.
	Check string `json:"check,omitempty"`
}

// UnmarshalJSON reads a row of a document, in which null is [NoThread].
func (r *CriticalRow) UnmarshalJSON(b []byte) error {
	type plain CriticalRow
	row := plain{Thread: NoThread}
	if err := json.Unmarshal(b, &row); err != nil {
		return err
	}
	*r = CriticalRow(row)
	return nil
}

// NoThread is the [CriticalRow.Thread] of time in which no thread computes: before the first
// operator and between two.
const NoThread = -1

// CallTimes returns the times of the calls of a phase, or of its graphs if no call was seen.
func (p *PhaseRow) CallTimes() *stat.Distribution {
	if p.Call.Count == 0 {
		return &p.Graph
	}
	return &p.Call
}

// InBarriers returns the share of the time in barriers, on the CPU or off it, or Sync for a
// document without it.
func (t *ThreadRow) InBarriers() stat.Opt {
	if t.Barriers.OK {
		return t.Barriers
	}
	return t.Sync
}

// SeenPeak describes the origin of a [PeakSeen].
func (s *Summary) SeenPeak() string {
	words := "the best that products with weights reached in this trace"
	for i := range s.Threads {
		if s.Threads[i].Preempted.OK {
			return words + " while their threads kept their CPUs"
		}
	}
	return words
}

// FewestGraphs is the number of graphs of a phase below which nothing is concluded about it: a
// median and a p95 of fewer do not hold.
const FewestGraphs = 20

// GapEnd is the What of the gap of a recording that was cut short.
const GapEnd = "the end of the recording"
