package optrace

import (
	"cmp"
	"fmt"
)

// kindNames are the names of kinds in a recording.
var kindNames = [kinds]string{
	CallBegin: "call", CallEnd: "call_end", SampleBegin: "sample",
	GraphBegin: "graph", GraphEnd: "graph_end", OpBegin: "op", FusedBegin: "fused",
	BarrierBegin: "barrier", BarrierEnd: "barrier_end",
	SplitBegin: "split", CopyBegin: "copy", ExpertsChosen: "experts",
	SwitchOut: "out", SwitchIn: "in", WakeUp: "wake",
	SyscallBegin: "syscall", SyscallEnd: "syscall_end", PageFault: "fault",
	BlockIOBegin: "io", BlockIOEnd: "io_end", CountersRead: "counters",
	Lost: "lost", TargetExec: "exec", TargetExit: "exit", DetailChanged: "detail",
}

var kindsByWord = func() map[string]Kind {
	m := make(map[string]Kind, kinds)
	for k, name := range kindNames {
		if name != "" {
			m[name] = Kind(k)
		}
	}
	return m
}()

// ParseKind returns the kind with the given name in a recording, and whether there is one.
func ParseKind(word string) (Kind, bool) {
	k, ok := kindsByWord[word]
	return k, ok
}

// Word returns the name of a kind in a recording, "" for an unknown kind.
func (k Kind) Word() string {
	if k < kinds {
		return kindNames[k]
	}
	return ""
}

// String returns the name of a kind, or its number.
func (k Kind) String() string { return cmp.Or(k.Word(), fmt.Sprintf("kind %d", uint8(k))) }
