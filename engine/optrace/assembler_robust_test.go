package optrace

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// checkSane says what no graph may be, whatever the events were.
func checkSane(t *testing.T, got *kept) {
	t.Helper()
	for i, g := range got.graphs {
		if g.Index != i || g.End < g.Begin {
			t.Fatalf("graph %d has index %d, from %v to %v", i, g.Index, g.Begin, g.End)
		}
		for l := range g.Lanes {
			checkSaneLane(t, g, l)
		}
		for _, ref := range g.Critical {
			_ = g.Lanes[ref.Lane].Spans[ref.Span]
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

func checkSaneLane(t *testing.T, g *Graph, l int) {
	t.Helper()
	lane := &g.Lanes[l]
	long := g.End - g.Begin
	at := g.Begin
	for i := range lane.Spans {
		s := &lane.Spans[i]
		if s.Begin < at || s.End < s.Begin || s.End > g.End || s.Sync < 0 || s.Preempted > s.Off || s.Off < 0 {
			t.Fatalf("graph %d from %v to %v, lane %d, span %d is %+v, the one before it ends %v", g.Index, g.Begin, g.End, l, i, *s, at)
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

// Lane 0 is covered by its spans but for what comes before the first; with barriers by
// what it does, waits and the steps between them.
func TestSpansAddUpToTheGraph(t *testing.T) {
	for name, s := range variants() {
		if s.barriers {
			continue
		}
		m := s.make()
		got, _ := assemble(m.tables, m.events)
		checkSane(t, got)
		for _, g := range got.graphs {
			sum := g.Lanes[0].Spans[0].Begin - g.Begin
			for _, span := range g.Lanes[0].Spans {
				sum += span.End - span.Begin
			}
			if sum != g.End-g.Begin {
				t.Errorf("%s: graph %d takes %v, its parts %v", name, g.Index, g.End-g.Begin, sum)
			}
		}
	}
}

// An event is lost at every place: no graph that is handed over is wrong, and all
// others are counted.
func TestLossAtEveryPlace(t *testing.T) {
	for _, name := range []string{"3 lanes", "3 lanes with barriers", "3 lanes without a DAG", "scheduling and barriers", "contexts side by side", "no ends of calls", "everything"} {
		s := variants()[name]
		s.rounds, s.nodes = 3, 5
		m := s.make()
		truth := map[time.Duration]*Graph{}
		for i := range m.graphs {
			truth[m.graphs[i].Begin] = &m.graphs[i]
		}
		for lost := range m.events {
			events := slices.Clone(m.events)
			events[lost] = Event{At: events[lost].At, Kind: Lost, N: 1}
			got, a := assemble(m.tables, events)
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

// A stream that breaks off anywhere.
func TestTruncation(t *testing.T) {
	s := variants()["everything"]
	s.rounds, s.nodes = 2, 4
	m := s.make()
	for n := range m.events {
		got, a := assemble(m.tables, m.events[:n])
		checkSane(t, got)
		got2, a2 := assemble(m.tables, m.events[n:])
		checkSane(t, got2)
		p, _ := a.Dropped()
		p2, _ := a2.Dropped()
		if whole := len(got.graphs) + len(got2.graphs); whole > len(m.graphs) || whole+p+p2 < len(m.graphs) {
			t.Fatalf("cut at event %d: %d and %d graphs, %d and %d partial, of %d", n, len(got.graphs), len(got2.graphs), p, p2, len(m.graphs))
		}
	}
}

func TestShuffledEvents(t *testing.T) {
	for name, s := range variants() {
		m := s.make()
		for seed := range uint64(10) {
			events := slices.Clone(m.events)
			rnd := rand.New(rand.NewPCG(seed, 2))
			switch seed % 3 {
			case 0: // times go with their events
				rnd.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
			case 1: // times keep their order
				rnd.Shuffle(len(events), func(i, j int) {
					events[i], events[j] = events[j], events[i]
					events[i].At, events[j].At = events[j].At, events[i].At
				})
			default: // neighbours change places
				for i := 0; i+1 < len(events); i += 2 {
					events[i], events[i+1] = events[i+1], events[i]
				}
			}
			got, _ := assemble(m.tables, events)
			if t.Failed() {
				t.Fatal(name, seed)
			}
			checkSane(t, got)
		}
	}
}

// hostileKinds are all kinds, those often that make something and do not end it.
var hostileKinds = func() []Kind {
	often := map[Kind]int{
		OpBegin: 60, FusedBegin: 10, BarrierBegin: 12, BarrierEnd: 12, SwitchOut: 8, SwitchIn: 8, WakeUp: 4,
		SyscallBegin: 3, SyscallEnd: 3, CountersRead: 30, GraphBegin: 3, GraphEnd: 2, BlockIOBegin: 2, BlockIOEnd: 2,
	}
	var list []Kind
	for k := range kinds + 1 {
		for range max(often[k], 1) {
			list = append(list, k)
		}
	}
	return list
}()

// hostile makes events of any bytes, in a small world so that they meet.
func hostile(data []byte) []Event {
	var events []Event
	at := time.Duration(0)
	for len(data) >= 8 {
		x := binary.LittleEndian.Uint64(data)
		data = data[8:]
		at += time.Duration(x >> 58)
		e := Event{
			At: at, Kind: hostileKinds[int(x&255)%len(hostileKinds)], TID: int32(x>>8) & 3, Addr: x >> 16 & 3,
			N: int64(x >> 20 & 7), Ref: uint32(x >> 24 & 7), Lanes: 2 + uint16(x>>32&15)/15, CPU: 1,
		}
		e.Lane = uint16(e.TID) >> 1 // some that do not fit
		switch x >> 36 & 255 {
		case 0:
			e.N, e.Ref, e.Lane, e.Lanes = int64(x), uint32(x>>3), uint16(x>>5), uint16(x>>7)
		case 1:
			e.PID = 1
		case 2:
			e.Lane++
		case 3:
			e.At = time.Duration(x)
		}
		events = append(events, e)
	}
	return events
}

// hostileTables have entries for some of the refs.
func hostileTables() *Tables {
	t := &Tables{
		Tensors:  []Tensor{{NE: [4]int64{1, 1}}, {Name: logits, NE: [4]int64{1, -5}}},
		Counters: []CounterSet{{Have: 3}, {Have: 1, Value: [NumCounters]uint64{5}}},
		DAGs:     []DAG{{Addr: 1, Nodes: []Node{{Addr: 2}, {Addr: 3}}}, {}},
	}
	for i := range uint32(5) {
		t.Operators = append(t.Operators, Operator{Op: "MUL_MAT", Out: i})
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
		got, a := assemble(hostileTables(), hostile(data))
		checkSane(t, got)
		checkRoom(t, a)
		if len(a.open) > 0 || len(a.loose) > 0 || a.spans != 0 {
			t.Fatalf("after the end %d graphs and %d lanes are there, with room for %d spans", len(a.open), len(a.loose), a.spans)
		}
	})
}

// checkRoom holds what an assembler keeps against its limits.
func checkRoom(t *testing.T, a *Assembler) {
	t.Helper()
	room := 0
	for _, g := range a.open {
		for _, w := range g.lanes {
			if w != nil {
				room += cap(w.Spans)
			}
		}
	}
	for _, w := range a.loose {
		room += cap(w.Spans)
		if len(w.Spans) > maxLooseSpans {
			t.Fatalf("a loose lane has %d spans", len(w.Spans))
		}
	}
	if room != a.spans {
		t.Fatalf("there is room for %d spans, counted are %d", room, a.spans)
	}
	for what, n := range map[string][2]int{
		"threads": {len(a.threads), maxThreads}, "open graphs": {len(a.open), maxOpenGraphs}, "loose lanes": {len(a.loose), maxLoose},
		"spans": {a.spans, maxOpenSpans + maxOpenSpans/4}, "requests": {len(a.pending), maxRequests},
		"newest DAGs": {len(a.newest), maxNewestDAGs}, "DAGs that are told apart": {len(a.uneven), maxNewestDAGs}, "DAGs": {len(a.places), maxPlaces},
	} {
		if n[0] > n[1] {
			t.Fatalf("%d %s are kept, more than %d", n[0], what, n[1])
		}
	}
}

// Streams without end, each of which grows one thing.
func TestMemoryIsBounded(t *testing.T) {
	const endless = 100_000
	for name, event := range map[string]func(i int) Event{
		"threads that call":          func(i int) Event { return Event{Kind: CallBegin, TID: int32(i)} },
		"threads that are scheduled": func(i int) Event { return Event{Kind: SwitchOut, TID: int32(i)} },
		"graphs that never end":      func(i int) Event { return Event{Kind: GraphBegin, TID: int32(i), Addr: uint64(i)} },
		"operators without end":      func(i int) Event { return Event{Kind: OpBegin, TID: int32(i % 50), Lanes: 1, Addr: uint64(i)} },
		"lanes without a graph": func(i int) Event {
			return Event{Kind: OpBegin, TID: int32(100 + i), Lane: uint16(1 + i%511), Lanes: maxLanes, Addr: uint64(i)}
		},
		"requests that never end": func(i int) Event { return Event{Kind: BlockIOBegin, TID: 1, Addr: uint64(i), N: 4096} },
		"thieves": func(i int) Event {
			return Event{Kind: []Kind{SwitchOut, SwitchIn}[i%2], TID: 1, N: int64(1 + i%2*i)}
		},
		"calls with graphs without end": func(i int) Event { return Event{Kind: []Kind{GraphBegin, GraphEnd}[i%2], TID: 1, Addr: uint64(i)} },
		"processes":                     func(i int) Event { return Event{Kind: OpBegin, TID: int32(i % 100), PID: int32(i), Lane: 1, Lanes: 2} },
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAssembler(&Tables{}, thrown{})
			for i := range int32(50) { // something to belong to
				a.Push(Event{Kind: CallBegin, TID: i})
				a.Push(Event{Kind: GraphBegin, TID: i, Addr: uint64(i)})
			}
			for i := range endless {
				e := event(i)
				e.At = time.Duration(i)
				a.Push(e)
				if i%10_000 == 0 {
					checkRoom(t, a)
				}
			}
			checkRoom(t, a)
			for _, g := range a.open {
				for _, w := range g.lanes {
					if w != nil && (len(w.Thieves) > maxThieves || len(w.WakeUps) > maxWakeUps) {
						t.Errorf("%d thieves and %d wake-ups of a lane", len(w.Thieves), len(w.WakeUps))
					}
				}
			}
		})
	}
}

// The largest graphs that there may be at once.
func TestManySpans(t *testing.T) {
	a := NewAssembler(&Tables{}, thrown{})
	for step := range uint64(6000) {
		for g := range int32(4) {
			tid := g * 1000
			if step == 0 {
				a.Push(Event{Kind: GraphBegin, TID: tid, Addr: uint64(g)})
			}
			for l := range uint16(128) {
				a.Push(Event{Kind: OpBegin, TID: tid + int32(l), Lane: l, Lanes: 128, Addr: step<<8 | uint64(g), At: time.Duration(step)})
			}
		}
	}
	checkRoom(t, a)
	if partial, _ := a.Dropped(); partial == 0 || len(a.open) == 0 {
		t.Errorf("%d graphs were dropped and %d are open: there was room for some", partial, len(a.open))
	}
}
