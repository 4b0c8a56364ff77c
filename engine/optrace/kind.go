package optrace

import "fmt"

// kindNames are the words for kinds in a recording.
var kindNames = [kinds]string{
	CallBegin: "call", CallEnd: "call_end", SampleBegin: "sample",
	GraphBegin: "graph", GraphEnd: "graph_end", OpBegin: "op", FusedBegin: "fused",
	BarrierBegin: "barrier", BarrierEnd: "barrier_end",
	SplitBegin: "split", CopyBegin: "copy", ExpertsChosen: "experts",
	SwitchOut: "out", SwitchIn: "in", WakeUp: "wake",
	SyscallBegin: "syscall", SyscallEnd: "syscall_end", PageFault: "fault",
	BlockIOBegin: "io", BlockIOEnd: "io_end", CountersRead: "counters",
	Lost: "lost", TargetExec: "exec", TargetExit: "exit", DetailChanged: "detail",
	CPUTaken: "taken",
}

// kindOf finds a kind by its word.
var kindOf = func() map[string]Kind {
	m := make(map[string]Kind, kinds)
	for k, name := range kindNames {
		if name != "" {
			m[name] = Kind(k)
		}
	}
	return m
}()

// String is the word for a kind.
func (k Kind) String() string {
	if k < kinds && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}
