package optrace

import (
	"reflect"
	"testing"
	"time"
)

// Each process is charged with the slices that it had, and nobody with what was not told.
func TestSlicesOfOthers(t *testing.T) {
	const own, one, two, waker = 100, 71, 72, 73
	out := func(at time.Duration, reason OffReason, next uint64) Event {
		return Event{Kind: SwitchOut, TID: 1, PID: own, CPU: 3, At: at, N: int64(reason), Addr: next}
	}
	in := func(at time.Duration, cpu uint16, before int64) Event {
		return Event{Kind: SwitchIn, TID: 1, PID: own, CPU: cpu, At: at, N: before}
	}
	taken := func(at time.Duration, leaves uint64, comes int64) Event {
		return Event{Kind: CPUTaken, PID: own, CPU: 3, At: at, Addr: leaves, N: comes}
	}
	woken := Event{Kind: WakeUp, TID: 1, PID: own, At: 60}
	for name, c := range map[string]struct {
		events []Event
		want   map[int32]time.Duration
	}{
		"one": {[]Event{out(30, OffPreempted, one), in(50, 3, one)}, map[int32]time.Duration{one: 20}},
		"two in turn, and a waker at the end": {
			[]Event{out(30, OffPreempted, one), taken(60, one, two), taken(70, two, one), taken(95, one, waker), in(100, 3, waker)},
			map[int32]time.Duration{one: 55, two: 10, waker: 5},
		},
		"it comes in on another CPU": {
			[]Event{out(30, OffPreempted, one), taken(60, one, two), in(80, 4, 0)},
			map[int32]time.Duration{one: 30, two: 20},
		},
		"a recording that tells the last one alone":    {[]Event{out(30, OffPreempted, 0), in(100, 3, waker)}, nil},
		"switches that were not told":                  {[]Event{out(30, OffPreempted, one), in(100, 3, waker)}, nil},
		"the rest is not told":                         {[]Event{out(30, OffPreempted, one), taken(60, one, 0), in(100, 3, waker)}, map[int32]time.Duration{one: 30}},
		"a wait after a wake-up":                       {[]Event{out(30, OffBlocked, one), woken, in(100, 3, one)}, map[int32]time.Duration{one: 40}},
		"a woken thread that gets an idle CPU":         {[]Event{out(30, OffBlocked, one), woken, in(100, 4, 0)}, nil},
		"that waits for a thread of its own":           {[]Event{out(30, OffBlocked, one), woken, in(100, 4, own)}, nil},
		"that waits for one that came untold":          {[]Event{out(30, OffBlocked, one), woken, in(100, 3, two)}, map[int32]time.Duration{untoldThief: 40}},
		"the last of whom is told":                     {[]Event{out(30, OffBlocked, 0), woken, taken(80, one, two), in(100, 3, two)}, map[int32]time.Duration{two: 20, untoldThief: 20}},
		"a thread that was not woken waits for none":   {[]Event{out(30, OffBlocked, one), in(100, 3, one)}, nil},
		"what was taken before the thread left is not": {[]Event{taken(25, one, two), out(30, OffPreempted, one), in(50, 3, one)}, map[int32]time.Duration{one: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			events := []Event{
				{Kind: GraphBegin, TID: 1, PID: own, Addr: 0xa, At: 10},
				{Kind: OpBegin, TID: 1, PID: own, Lanes: 1, Addr: 1, At: 20},
			}
			events = append(append(events, c.events...), Event{Kind: GraphEnd, TID: 1, PID: own, At: 200})
			got, _ := assemble(&Tables{}, events)
			if l := got.graphs[0].Lanes[0]; !reflect.DeepEqual(l.Thieves, c.want) {
				t.Errorf("%v, want %v", l.Thieves, c.want)
			}
		})
	}
}
