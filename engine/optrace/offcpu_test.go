package optrace_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Each process is charged with its own time slices, and with nothing that was not reported.
func TestSlicesOfOthers(t *testing.T) {
	const own, one, two, waker = 100, 71, 72, 73
	out := func(at time.Duration, reason optrace.OffReason, next uint64) optrace.Event {
		return optrace.Event{Kind: optrace.SwitchOut, TID: 1, PID: own, CPU: 3, At: at, N: int64(reason), Addr: next}
	}
	in := func(at time.Duration, cpu uint16, before int64) optrace.Event {
		return optrace.Event{Kind: optrace.SwitchIn, TID: 1, PID: own, CPU: cpu, At: at, N: before}
	}
	taken := func(at time.Duration, leaves uint64, comes int64) optrace.Event {
		return optrace.Event{Kind: optrace.CPUTaken, PID: own, CPU: 3, At: at, Addr: leaves, N: comes}
	}
	woken := optrace.Event{Kind: optrace.WakeUp, TID: 1, PID: own, At: 60}
	for name, c := range map[string]struct {
		events []optrace.Event
		want   map[int32]time.Duration
	}{
		"one": {[]optrace.Event{out(30, optrace.OffPreempted, one), in(50, 3, one)}, map[int32]time.Duration{one: 20}},
		"two in turn, and a waker at the end": {
			[]optrace.Event{out(30, optrace.OffPreempted, one), taken(60, one, two), taken(70, two, one), taken(95, one, waker), in(100, 3, waker)},
			map[int32]time.Duration{one: 55, two: 10, waker: 5},
		},
		"it comes in on another CPU": {
			[]optrace.Event{out(30, optrace.OffPreempted, one), taken(60, one, two), in(80, 4, 0)},
			map[int32]time.Duration{one: 30, two: 20},
		},
		"a recording that has the last one alone":      {[]optrace.Event{out(30, optrace.OffPreempted, 0), in(100, 3, waker)}, nil},
		"switches that were not reported":              {[]optrace.Event{out(30, optrace.OffPreempted, one), in(100, 3, waker)}, nil},
		"the rest is not reported":                     {[]optrace.Event{out(30, optrace.OffPreempted, one), taken(60, one, 0), in(100, 3, waker)}, map[int32]time.Duration{one: 30}},
		"a wait after a wake-up":                       {[]optrace.Event{out(30, optrace.OffBlocked, one), woken, in(100, 3, one)}, map[int32]time.Duration{one: 40}},
		"a woken thread that gets an idle CPU":         {[]optrace.Event{out(30, optrace.OffBlocked, one), woken, in(100, 4, 0)}, nil},
		"that waits for a thread of its own":           {[]optrace.Event{out(30, optrace.OffBlocked, one), woken, in(100, 4, own)}, nil},
		"that waits for one that came unreported":      {[]optrace.Event{out(30, optrace.OffBlocked, one), woken, in(100, 3, two)}, map[int32]time.Duration{optrace.UnknownPID: 40}},
		"only the last one is reported":                {[]optrace.Event{out(30, optrace.OffBlocked, 0), woken, taken(80, one, two), in(100, 3, two)}, map[int32]time.Duration{two: 20, optrace.UnknownPID: 20}},
		"a thread that was not woken waits for none":   {[]optrace.Event{out(30, optrace.OffBlocked, one), in(100, 3, one)}, nil},
		"what was taken before the thread left is not": {[]optrace.Event{taken(25, one, two), out(30, optrace.OffPreempted, one), in(50, 3, one)}, map[int32]time.Duration{one: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			events := []optrace.Event{
				{Kind: optrace.GraphBegin, TID: 1, PID: own, Addr: 0xa, At: 10},
				{Kind: optrace.OpBegin, TID: 1, PID: own, Threads: 1, Addr: 1, At: 20},
			}
			events = append(append(events, c.events...), optrace.Event{Kind: optrace.GraphEnd, TID: 1, PID: own, At: 200})
			got, _ := assembled(&optrace.Tables{}, events)
			if l := got.graphs[0].Threads[0]; !reflect.DeepEqual(l.TakenBy, c.want) {
				t.Errorf("%v, want %v", l.TakenBy, c.want)
			}
		})
	}
}
