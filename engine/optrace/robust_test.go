package optrace_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// checkSane checks invariants of graphs that hold for any events.
func checkSane(t *testing.T, got *kept) {
	t.Helper()
	for i, g := range got.graphs {
		if g.Index != i || g.End < g.Begin {
			t.Fatalf("graph %d has index %d, from %v to %v", i, g.Index, g.Begin, g.End)
		}
		for l := range g.Threads {
			checkSaneLane(t, g, l)
		}
		for _, ref := range g.Critical {
			_ = g.Threads[ref.Thread].Spans[ref.Span]
		}
	}
	last := -1
	for _, c := range got.calls {
		if c.Index < 0 || c.End != 0 && c.End < c.Begin {
			t.Fatalf("call %+v", *c)
		}
		for _, i := range c.Graphs {
			if i >= len(got.graphs) || got.graphs[i].Call != c.Index {
				t.Fatalf("call %d has graph %d", c.Index, i)
			}
		}
		last = max(last, c.Index)
	}
}

func checkSaneLane(t *testing.T, g *optrace.Graph, l int) {
	t.Helper()
	lane := &g.Threads[l]
	long := g.End - g.Begin
	at := g.Begin
	for i := range lane.Spans {
		s := &lane.Spans[i]
		if s.Begin < at || s.End < s.Begin || s.End > g.End || s.Sync < 0 || s.Preempted > s.Off || s.Off < 0 {
			t.Fatalf("graph %d from %v to %v, lane %d, span %d is %+v, the previous one ends %v", g.Index, g.Begin, g.End, l, i, *s, at)
		}
		at = s.End
	}
	for what, d := range map[string]time.Duration{
		"busy": lane.Busy, "sync": lane.Sync, "off": lane.Off, "preempted": lane.Preempted, "waking": lane.Waking,
		"busy and sync": lane.Busy + lane.Sync, "in system calls": lane.SyscallTime,
	} {
		if d < 0 || d > long {
			t.Fatalf("graph %d takes %v, its lane %d is %s for %v", g.Index, long, l, what, d)
		}
	}
	if lane.Preempted > lane.Off || lane.IOTime < 0 || lane.IOBytes < 0 {
		t.Fatalf("graph %d, lane %d: %+v", g.Index, l, *lane)
	}
}

// If an event is lost at any place, no graph that is passed on is wrong, and all others are
// counted.
func TestLossAtEveryPlace(t *testing.T) {
	for _, name := range []string{"3 lanes", "3 lanes with barriers", "3 lanes without a DAG", "scheduling and barriers", "contexts side by side", "no ends of calls", "everything"} {
		s := variants()[name]
		s.rounds, s.nodes = 3, 5
		m := s.make()
		truth := map[time.Duration]*optrace.Graph{}
		for i := range m.graphs {
			truth[m.graphs[i].Begin] = &m.graphs[i]
		}
		for lost := range m.events {
			events := slices.Clone(m.events)
			events[lost] = optrace.Event{At: events[lost].At, Kind: optrace.Lost, N: 1}
			got, a := assembled(m.tables, events)
			partial, n := a.Dropped()
			// A graph that is lost whole is not counted: its begin and nothing else is there.
			if len(got.graphs)+partial < len(m.graphs) || partial > s.contexts || n != 1 {
				t.Fatalf("%s without event %d (%v): %d graphs, %d partial, of %d; %d events lost", name, lost, m.events[lost].Kind, len(got.graphs), partial, len(m.graphs), n)
			}
			for _, g := range got.graphs {
				want := *truth[g.Begin]
				want.Index, want.Call, want.Phase, want.Tokens = g.Index, g.Call, g.Phase, g.Tokens
				if g.DAG == 0 { // the begin that had it was lost
					want.DAG = 0
				}
				sameGraph(t, g, &want)
			}
		}
	}
}

// hostileKinds are all kinds, with those that begin something more often.
var hostileKinds = func() []optrace.Kind {
	often := map[optrace.Kind]int{
		optrace.OpBegin: 60, optrace.FusedBegin: 10, optrace.BarrierBegin: 12, optrace.BarrierEnd: 12, optrace.SwitchOut: 8, optrace.SwitchIn: 8, optrace.WakeUp: 4,
		optrace.SyscallBegin: 3, optrace.SyscallEnd: 3, optrace.CountersRead: 30, optrace.GraphBegin: 3, optrace.GraphEnd: 2, optrace.BlockIOBegin: 2, optrace.BlockIOEnd: 2,
	}
	var list []optrace.Kind
	for k := range optrace.DetailChanged + 2 {
		for range max(often[k], 1) {
			list = append(list, k)
		}
	}
	return list
}()

// hostile converts bytes to events with few different ids, so that they interact.
func hostile(data []byte) []optrace.Event {
	var events []optrace.Event
	at := time.Duration(0)
	for len(data) >= 8 {
		x := binary.LittleEndian.Uint64(data)
		data = data[8:]
		at += time.Duration(x >> 58)
		e := optrace.Event{
			At: at, Kind: hostileKinds[int(x&255)%len(hostileKinds)], TID: int32(x>>8) & 3, Addr: x >> 16 & 3,
			N: int64(x >> 20 & 7), Ref: uint32(x >> 24 & 7), Threads: 2 + uint16(x>>32&15)/15, CPU: 1,
		}
		e.Thread = uint16(e.TID) >> 1 // some that do not fit
		switch x >> 36 & 255 {
		case 0:
			e.N, e.Ref, e.Thread, e.Threads = int64(x), uint32(x>>3), uint16(x>>5), uint16(x>>7)
		case 1:
			e.PID = 1
		case 2:
			e.Thread++
		case 3:
			e.At = time.Duration(x)
		}
		events = append(events, e)
	}
	return events
}

// hostileTables returns tables with entries for some of the refs.
func hostileTables() *optrace.Tables {
	t := &optrace.Tables{
		Tensors:  []optrace.Tensor{{NE: [4]int64{1, 1}}, {Name: optrace.LogitsName, NE: [4]int64{1, -5}}},
		Counters: []optrace.CounterSet{{Have: 3}, {Have: 1, Value: [optrace.NumCounters]uint64{5}}},
		DAGs:     []optrace.DAG{{Addr: 1, Nodes: []optrace.Node{{Addr: 2}, {Addr: 3}}}, {}},
	}
	for i := range uint32(5) {
		t.Operators = append(t.Operators, optrace.Operator{Op: "MUL_MAT", Out: i})
	}
	return t
}

func FuzzAssembler(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		seed := make([]byte, 8*300)
		for i := range seed {
			seed[i] = byte(rnd.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, a := assembled(hostileTables(), hostile(data))
		checkSane(t, got)
		optrace.CheckRoom(t, a)
		if graphs, loose, spans := optrace.Open(a); graphs > 0 || loose > 0 || spans != 0 {
			t.Fatalf("after the end %d graphs and %d lanes are there, with room for %d spans", graphs, loose, spans)
		}
	})
}

// Endless streams, each of which grows one thing.
func TestMemoryIsBounded(t *testing.T) {
	const endless = 100_000
	for name, event := range map[string]func(i int) optrace.Event{
		"threads that call":          func(i int) optrace.Event { return optrace.Event{Kind: optrace.CallBegin, TID: int32(i)} },
		"threads that are scheduled": func(i int) optrace.Event { return optrace.Event{Kind: optrace.SwitchOut, TID: int32(i)} },
		"graphs that never end": func(i int) optrace.Event {
			return optrace.Event{Kind: optrace.GraphBegin, TID: int32(i), Addr: uint64(i)}
		},
		"operators without end": func(i int) optrace.Event {
			return optrace.Event{Kind: optrace.OpBegin, TID: int32(i % 50), Threads: 1, Addr: uint64(i)}
		},
		"lanes without a graph": func(i int) optrace.Event {
			return optrace.Event{Kind: optrace.OpBegin, TID: int32(100 + i), Thread: uint16(1 + i%511), Threads: 512, Addr: uint64(i)}
		},
		"requests that never end": func(i int) optrace.Event {
			return optrace.Event{Kind: optrace.BlockIOBegin, TID: 1, Addr: uint64(i), N: 4096}
		},
		"thieves": func(i int) optrace.Event {
			return optrace.Event{Kind: []optrace.Kind{optrace.SwitchOut, optrace.SwitchIn}[i%2], TID: 1, N: int64(1 + i%2*i)}
		},
		"calls with graphs without end": func(i int) optrace.Event {
			return optrace.Event{Kind: []optrace.Kind{optrace.GraphBegin, optrace.GraphEnd}[i%2], TID: 1, Addr: uint64(i)}
		},
		"processes": func(i int) optrace.Event {
			return optrace.Event{Kind: optrace.OpBegin, TID: int32(i % 100), PID: int32(i), Thread: 1, Threads: 2}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := optrace.New(&optrace.Tables{}, thrown{})
			for i := range int32(50) { // something to belong to
				a.Push(optrace.Event{Kind: optrace.CallBegin, TID: i})
				a.Push(optrace.Event{Kind: optrace.GraphBegin, TID: i, Addr: uint64(i)})
			}
			for i := range endless {
				e := event(i)
				e.At = time.Duration(i)
				a.Push(e)
				if i%10_000 == 0 {
					optrace.CheckRoom(t, a)
				}
			}
			optrace.CheckRoom(t, a)
			optrace.CheckOpenLanes(t, a)
		})
	}
}

// thrown is a receiver that keeps nothing.
type thrown struct{}

func (thrown) Graph(*optrace.Graph) {}
func (thrown) Call(*optrace.Call)   {}
