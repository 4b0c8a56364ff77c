package tally

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestTurnsOnOneCPU derives from events that two threads share one CPU of two, because another
// process has the other one.
func TestTurnsOnOneCPU(t *testing.T) {
	const own = 100
	events := []optrace.Event{
		{Kind: optrace.GraphBegin, TID: 1, PID: own, Addr: 0xa, At: 10},
		{Kind: optrace.OpBegin, TID: 1, PID: own, Threads: 2, Addr: 1, At: 20},
		{Kind: optrace.SwitchOut, TID: 1, PID: own, At: 30, N: int64(optrace.OffPreempted), Addr: own},
		{Kind: optrace.SwitchIn, TID: 2, PID: own, At: 30, N: own},
		{Kind: optrace.OpBegin, TID: 2, PID: own, Thread: 1, Threads: 2, Addr: 1, At: 30},
		{Kind: optrace.SwitchOut, TID: 2, PID: own, At: 80, N: int64(optrace.OffPreempted), Addr: own},
		{Kind: optrace.SwitchIn, TID: 1, PID: own, At: 80, N: own},
		{Kind: optrace.SwitchOut, TID: 1, PID: own, At: 100, N: int64(optrace.OffPreempted), Addr: own},
		{Kind: optrace.SwitchIn, TID: 2, PID: own, At: 100, N: own},
		{Kind: optrace.SwitchOut, TID: 2, PID: own, At: 110, N: int64(optrace.OffBlocked), Addr: own},
		{Kind: optrace.SwitchIn, TID: 1, PID: own, At: 110, N: own},
		{Kind: optrace.GraphEnd, TID: 1, PID: own, At: 200},
	}
	s := Analyze(&optrace.Recording{Events: append([]optrace.Event{{Kind: optrace.DetailChanged, PID: own, N: int64(optrace.LevelSched)}}, events...), End: 200, Detail: optrace.LevelSched})
	if p := s.Preempted; p.Time != optrace.SomeTime(80) || p.OwnCPUs != stat.Some(1) || p.Threads != stat.Some(1) {
		t.Errorf("while a lane was put off: %+v, want 80ns, 1 CPU and 1 thread", p)
	}
	if len(s.Others) != 1 || s.Others[0].Name != optrace.SiblingName || s.Others[0].Time != 80 || s.Others[0].PID != 0 {
		t.Errorf("who had the CPU instead: %+v, want the other lane for 80ns", s.Others)
	}
}
