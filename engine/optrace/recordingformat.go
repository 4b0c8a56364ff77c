package optrace

import (
	"fmt"
	"time"
)

// RecordingSchema names the format of a recording: lines of JSON. The first is its
// head. Each line after it is an entry of a table ({"tensor":…}, {"operator":…},
// {"experts":…}, {"counters":…}, {"dag":…}, {"name":…}), which stands before what refers
// to it, or an event:
//
//	[kind, at, pid, tid, cpu, addr, n, ref, lane, lanes]
//
// in the order of at, nanoseconds of CLOCK_MONOTONIC. Zeros at the end of an event are
// left out. The last line, {"end":…}, is what is known at the end alone; {"so_far":…} is
// the same as of its place. A file without the last line was cut short.
const RecordingSchema = "rooftop.trace-recording/v1"

// recordingFamily begins the names of all formats of recordings of traces.
const recordingFamily = "rooftop.trace-recording/"

// Limits of a recording: what does not fit is neither written nor read.
const (
	// maxRecordedEvents take 1.6 GB of memory.
	maxRecordedEvents = 1 << 25
	// maxTableEntries are entries of all tables, nodes and leaves of DAGs one by one:
	// below 600 MB.
	maxTableEntries = 1 << 22
	// maxTableBytes are the lines of all tables.
	maxTableBytes = 1 << 30
	// maxRecordingLine is the longest line: a DAG of 65,536 nodes with ten sources each.
	maxRecordingLine = 32 << 20
)

// recordingHead is the first line.
type recordingHead struct {
	Schema string        `json:"schema"`
	Target Target        `json:"target"`
	Begin  time.Duration `json:"begin_ns"`
	Origin time.Time     `json:"origin"`
	Detail Detail        `json:"detail"`
	Words  string        `json:"detail_words"` // the same to read; Detail counts
	// Reader is the PID of the process that recorded, 0 in recordings that lack it.
	Reader int `json:"reader_pid,omitempty"`
}

// recordingEnd is the last line.
type recordingEnd struct {
	// Target is what the head has, as it is known by then; nil as in the head.
	Target   *Target       `json:"target,omitempty"`
	End      time.Duration `json:"end_ns"`
	Detail   Detail        `json:"detail"`
	Events   int           `json:"events"`
	Dropped  int64         `json:"dropped"`
	LeftOut  int64         `json:"left_out"`
	Roof     Roof          `json:"roof"`
	Gaps     []Gap         `json:"gaps"`
	Observer Observer      `json:"observer"`
	// Processes are names by PID.
	Processes map[int32]string `json:"processes,omitempty"`
	HostLoad  *HostLoad        `json:"host_load,omitempty"`
}

// recordingLine is a line between them that is no event: one of these.
type recordingLine struct {
	Tensor   *Tensor       `json:"tensor,omitempty"`
	Operator *Operator     `json:"operator,omitempty"`
	Experts  *ExpertChoice `json:"experts,omitempty"`
	Counters *CounterSet   `json:"counters,omitempty"`
	DAG      *DAG          `json:"dag,omitempty"`
	Name     *string       `json:"name,omitempty"`
	SoFar    *recordingEnd `json:"so_far,omitempty"`
	End      *recordingEnd `json:"end,omitempty"`
}

// is counts what a line is.
func (l *recordingLine) is() int {
	n := 0
	for _, set := range []bool{l.Tensor != nil, l.Operator != nil, l.Experts != nil, l.Counters != nil, l.DAG != nil, l.Name != nil, l.SoFar != nil, l.End != nil} {
		if set {
			n++
		}
	}
	return n
}

// weight is how many entries a line counts for.
func (l *recordingLine) weight() int {
	if l.DAG != nil {
		return 1 + len(l.DAG.Nodes) + len(l.DAG.Leaves)
	}
	return 1
}

// check says what an entry refers to that the tables lack.
func (l *recordingLine) check(t *Tables) error {
	switch {
	case l.Operator != nil:
		for _, ref := range append([]uint32{l.Operator.Out}, l.Operator.In...) {
			if int64(ref) > int64(len(t.Tensors)) {
				return dangling("tensor", ref, len(t.Tensors))
			}
		}
	case l.DAG != nil:
		for _, nodes := range [][]Node{l.DAG.Nodes, l.DAG.Leaves} {
			for i := range nodes {
				if ref := nodes[i].Operator; int64(ref) > int64(len(t.Operators)) {
					return dangling("operator", ref, len(t.Operators))
				}
			}
		}
	}
	return nil
}

// checkEvent says what an event refers to that the tables lack.
func checkEvent(e *Event, t *Tables) error {
	what, have := "", 0
	switch e.Kind {
	case OpBegin, FusedBegin:
		what, have = "operator", len(t.Operators)
	case GraphBegin:
		what, have = "dag", len(t.DAGs)
	case SplitBegin:
		what, have = "name", len(t.Names)
	case ExpertsChosen:
		what, have = "experts", len(t.Experts)
	case CountersRead:
		what, have = "counters", len(t.Counters)
	default:
		return nil
	}
	if int64(e.Ref) > int64(have) {
		return dangling(what, e.Ref, have)
	}
	return nil
}

func dangling(what string, ref uint32, have int) error {
	return fmt.Errorf("it refers to %s %d, and %d stand before it", what, ref, have)
}
