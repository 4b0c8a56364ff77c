package optrace

import (
	"time"
)

// Schema is the name of the format of a recording: lines of JSON. The first is the head. Each
// following line is either an entry of a table ({"tensor":…}, {"operator":…}, {"experts":…},
// {"counters":…}, {"dag":…}, {"name":…}), which precedes whatever refers to it, or an event:
//
//	[kind, at, pid, tid, cpu, addr, n, ref, thread, threads]
//
// in the order of at, nanoseconds of CLOCK_MONOTONIC. Zeros at the end of an event are omitted.
// The last line, {"end":…}, has what is known only at the end; {"so_far":…} is the same at its
// position. A file without the last line was cut short.
const Schema = "rooftop.trace-recording/v1"

// recordingFamily is the common prefix of the names of all versions of the format.
const recordingFamily = "rooftop.trace-recording/"

// Limits of a recording, both when writing and when reading.
const (
	// maxRecordedEvents take 1.6 GB of memory.
	maxRecordedEvents = 1 << 25
	// maxTableEntries is the number of entries of all tables, each node and leaf of a DAG
	// included: below 600 MB.
	maxTableEntries = 1 << 22
	// maxTableBytes is the size of the lines of all tables.
	maxTableBytes = 1 << 30
	// maxRecordingLine is the size of the longest line: a DAG of 65,536 nodes with ten sources
	// each.
	maxRecordingLine = 32 << 20
)

// recordingHead is the first line.
type recordingHead struct {
	Schema string        `json:"schema"`
	Target Target        `json:"target"`
	Begin  time.Duration `json:"begin_ns"`
	Origin time.Time     `json:"origin"`
	Detail Detail        `json:"detail"`
	Words  string        `json:"detail_words"` // Detail in words, for people
	// Reader is the PID of the recording process, 0 in recordings without it.
	Reader int `json:"reader_pid,omitempty"`
}

// recordingEnd is the last line.
type recordingEnd struct {
	// Target replaces that of the head, as far as more is known by then; nil keeps it.
	Target   *Target       `json:"target,omitempty"`
	End      time.Duration `json:"end_ns"`
	Detail   Detail        `json:"detail"`
	Events   int           `json:"events"`
	Dropped  int64         `json:"dropped"`
	LeftOut  int64         `json:"left_out"`
	Roof     Peak          `json:"roof"`
	Gaps     []Gap         `json:"gaps"`
	Observer Observer      `json:"observer"`
	HostLoad *HostLoad     `json:"host_load,omitempty"`
}

// recordingLine is a line that is not an event. Exactly one field is set.
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

// entries counts the fields that are set: one in a valid line.
func (l *recordingLine) entries() int {
	n := 0
	for _, set := range []bool{l.Tensor != nil, l.Operator != nil, l.Experts != nil, l.Counters != nil, l.DAG != nil, l.Name != nil, l.SoFar != nil, l.End != nil} {
		if set {
			n++
		}
	}
	return n
}

// weight returns the number of entries that a line counts for in maxTableEntries.
func (l *recordingLine) weight() int {
	if l.DAG != nil {
		return 1 + len(l.DAG.Nodes) + len(l.DAG.Leaves)
	}
	return 1
}
