package optrace

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// at gives events one moment after the other, 10 ns apart, where they have none.
func at(events ...Event) []Event {
	for i := range events {
		if events[i].At == 0 {
			events[i].At = time.Duration(i+1) * 10
		}
	}
	return events
}

// op is an operator on lane l of two.
func op(tid int32, lane uint16, addr uint64) Event {
	return Event{Kind: OpBegin, TID: tid, Lane: lane, Lanes: 2, Addr: addr}
}

func begin(tid int32, addr uint64) Event { return Event{Kind: GraphBegin, TID: tid, Addr: addr} }
func end(tid int32) Event                { return Event{Kind: GraphEnd, TID: tid} }

// threadsOf are the threads of each graph by lane, and how many spans they have.
func threadsOf(got *kept) (tids [][]int32, spans [][]int) {
	for _, g := range got.graphs {
		var t []int32
		var n []int
		for _, l := range g.Lanes {
			t = append(t, l.TID)
			n = append(n, len(l.Spans))
		}
		tids, spans = append(tids, t), append(spans, n)
	}
	return tids, spans
}

func TestWhichGraphALaneIsOf(t *testing.T) {
	withDAGs := &Tables{DAGs: []DAG{{Nodes: []Node{{Addr: 0xa1}, {Addr: 0xa2}}}, {Nodes: []Node{{Addr: 0xb1}, {Addr: 0xb2}}}}}
	dag := func(e Event, ref uint32) Event { e.Ref = ref; return e }
	other := func(e Event, pid int32) Event { e.PID = pid; return e }
	for name, c := range map[string]struct {
		tables  *Tables
		events  []Event
		tids    [][]int32
		spans   [][]int
		partial int
	}{
		"by the nodes of its DAG, before lane 0 begins": {
			tables: withDAGs,
			events: at(dag(begin(1, 0xa), 1), dag(begin(2, 0xb), 2), op(3, 1, 0xb1), op(4, 1, 0xa1), op(1, 0, 0xa1), op(2, 0, 0xb1), end(1), end(2)),
			tids:   [][]int32{{1, 4}, {2, 3}}, spans: [][]int{{1, 1}, {1, 1}},
		},
		"by what lane 0 has begun": {
			events: at(begin(1, 0xa), begin(2, 0xb), op(1, 0, 0xa1), op(2, 0, 0xb1), op(3, 1, 0xb1), op(4, 1, 0xa1), end(1), end(2)),
			tids:   [][]int32{{1, 4}, {2, 3}}, spans: [][]int{{1, 1}, {1, 1}},
		},
		"a step later, where lane 0 is ahead": {
			events: at(begin(1, 0xa), op(1, 0, 0xa1), op(1, 0, 0xa2), op(4, 1, 0xa1), op(4, 1, 0xa2), end(1)),
			tids:   [][]int32{{1, 4}}, spans: [][]int{{2, 2}},
		},
		"a step later, where lane 0 is behind": {
			events: at(begin(1, 0xa), begin(2, 0xb), op(3, 1, 0xb1), op(4, 1, 0xa1), op(1, 0, 0xa1), op(2, 0, 0xb1), op(3, 1, 0xb2), op(4, 1, 0xa2), op(1, 0, 0xa2), op(2, 0, 0xb2), end(1), end(2)),
			tids:   [][]int32{{1, 4}, {2, 3}}, spans: [][]int{{2, 2}, {2, 2}},
		},
		"at the end, where there is one operator alone": {
			events: at(begin(1, 0xa), begin(2, 0xb), op(3, 1, 0xb1), op(4, 1, 0xa1), op(1, 0, 0xa1), op(2, 0, 0xb1), end(1), end(2)),
			tids:   [][]int32{{1, 4}, {2, 3}}, spans: [][]int{{1, 1}, {1, 1}},
		},
		"by the thread that it worked for, where two have the operator": {
			events: at(begin(1, 0xa), op(1, 0, 0xa1), op(3, 1, 0xa1), end(1), begin(1, 0xa), begin(2, 0xa), op(1, 0, 0xa1), op(2, 0, 0xa1), op(3, 1, 0xa1), op(4, 1, 0xa1), end(1), end(2)),
			tids:   [][]int32{{1, 3}, {1, 3}, {2, 4}}, spans: [][]int{{1, 1}, {1, 1}, {1, 1}},
		},
		"to the one that began last, where nothing else tells": {
			events: at(begin(1, 0xa), begin(2, 0xa), op(1, 0, 0xa1), op(2, 0, 0xa1), op(3, 1, 0xa1), op(4, 1, 0xa1), end(1), end(2)),
			tids:   [][]int32{{1, 4}, {2, 3}}, spans: [][]int{{1, 1}, {1, 1}},
		},
		"not to one of another width": {
			events: at(begin(1, 0xa), begin(2, 0xa), op(1, 0, 0xa1), Event{Kind: OpBegin, TID: 2, Lanes: 3, Addr: 0xa1}, op(3, 1, 0xa1), end(1), end(2)),
			tids:   [][]int32{{1, 3}, {2, 0, 0}}, spans: [][]int{{1, 1}, {1, 0, 0}},
		},
		"not to one of another process": {
			events: at(begin(1, 0xa), other(begin(2, 0xa), 9), op(1, 0, 0xa1), other(op(2, 0, 0xa1), 9), op(3, 1, 0xa1), end(1), other(end(2), 9)),
			tids:   [][]int32{{1, 3}, {2, 0}}, spans: [][]int{{1, 1}, {1, 0}},
		},
		"not to one that has no place for it: of a graph begun before the trace": {
			events:  at(begin(1, 0xa), op(2, 0, 0xb1), op(3, 1, 0xb1), op(1, 0, 0xa1), op(3, 1, 0xb2), end(2), op(4, 1, 0xa1), end(1)),
			tids:    [][]int32{{1, 4}},
			spans:   [][]int{{1, 1}},
			partial: 1,
		},
		"what it did before for another does not count": {
			events:  at(begin(1, 0xa), op(1, 0, 0xa1), op(3, 1, 0xb9), begin(2, 0xb), op(2, 0, 0xb1), op(3, 1, 0xb1), end(2), op(4, 1, 0xa1), end(1)),
			tids:    [][]int32{{2, 3}, {1, 4}},
			spans:   [][]int{{1, 1}, {1, 1}},
			partial: 0,
		},
		"lane 0 is the thread's that computes, whichever number it says": {
			events: at(begin(1, 0xa), op(1, 1, 0xa1), op(1, 1, 0xa2), end(1)),
			tids:   [][]int32{{0, 1}}, spans: [][]int{{0, 2}},
		},
		"a worker that goes on to another graph": {
			// The end of the first was missed: it is dropped.
			events:  at(begin(1, 0xa), op(1, 0, 0xa1), op(3, 1, 0xa1), begin(2, 0xb), Event{Kind: OpBegin, TID: 2, Lanes: 4, Addr: 0xb1}, Event{Kind: OpBegin, TID: 3, Lane: 2, Lanes: 4, Addr: 0xb1}, end(2)),
			tids:    [][]int32{{2, 0, 3, 0}},
			spans:   [][]int{{1, 0, 1, 0}},
			partial: 1,
		},
	} {
		if c.tables == nil {
			c.tables = &Tables{}
		}
		got, a := assemble(c.tables, c.events)
		checkSane(t, got)
		tids, spans := threadsOf(got)
		if !reflect.DeepEqual(tids, c.tids) || !reflect.DeepEqual(spans, c.spans) {
			t.Errorf("%s: threads %v with %v spans, want %v with %v", name, tids, spans, c.tids, c.spans)
		}
		if partial, _ := a.Dropped(); partial != c.partial {
			t.Errorf("%s: %d partial graphs, want %d", name, partial, c.partial)
		}
	}
}

func TestWhatMakesAGraphPartial(t *testing.T) {
	whole := []Event{begin(1, 0xa), op(1, 0, 0xa1), end(1)}
	for name, c := range map[string]struct {
		events         []Event
		whole, partial int
	}{
		"nothing":                            {whole, 1, 0},
		"a loss":                             {slices.Insert(slices.Clone(whole), 2, Event{Kind: Lost, N: 7}), 0, 1},
		"a loss between graphs":              {slices.Concat(whole, []Event{{Kind: Lost, N: 7}}, whole), 2, 0},
		"a loss until after it began":        {slices.Concat([]Event{{Kind: Lost, N: 7, Addr: 21}}, whole, whole), 1, 1},
		"another detail":                     {slices.Insert(slices.Clone(whole), 1, Event{Kind: DetailChanged, N: 1}), 0, 1},
		"begun before the trace":             {slices.Concat(whole[1:], whole), 1, 1},
		"ended before its operators came":    {slices.Concat(whole[2:], whole), 1, 1},
		"the end of the trace":               {slices.Concat(whole, whole[:2]), 1, 1},
		"the end of the target":              {slices.Concat(whole[:2], []Event{{Kind: TargetExit}}), 0, 1},
		"another program":                    {slices.Concat(whole[:2], []Event{{Kind: TargetExec}}, whole), 1, 1},
		"the end of another target":          {slices.Concat(whole[:2], []Event{{Kind: TargetExit, PID: 8}}, whole[2:]), 1, 0},
		"its thread's number with a new one": {slices.Concat(whole[:2], []Event{{Kind: GraphBegin, TID: 1, PID: 5}, {Kind: GraphEnd, TID: 1, PID: 5}}), 1, 1},
		"a return that was not seen":         {slices.Concat(whole[:2], whole), 2, 0},
		"a sample after that":                {slices.Concat(whole[:2], []Event{{Kind: SampleBegin, TID: 1}}), 1, 0},
	} {
		got, a := assemble(&Tables{}, at(slices.Clone(c.events)...))
		if partial, _ := a.Dropped(); partial != c.partial || len(got.graphs) != c.whole {
			t.Errorf("%s: %d whole and %d partial graphs, want %d and %d", name, len(got.graphs), partial, c.whole, c.partial)
		}
	}
}

// A graph whose return is not probed ends with the last barrier of its threads, or with
// what the thread does next.
func TestGraphsWithoutTheirEnds(t *testing.T) {
	for _, name := range []string{"2 lanes with barriers", "2 lanes", "1 lanes with barriers"} {
		s := variants()[name]
		s.noReturn = true
		m := s.make()
		got, a := assemble(m.tables, m.events)
		checkSane(t, got)
		if partial, _ := a.Dropped(); partial != 0 || len(got.graphs) != len(m.graphs) {
			t.Fatalf("%s: %d graphs and %d partial, want %d", name, len(got.graphs), partial, len(m.graphs))
		}
		for i, g := range got.graphs {
			last := g.Lanes[0].Spans[len(g.Lanes[0].Spans)-1]
			next := slices.IndexFunc(m.events, func(e Event) bool {
				return e.TID == g.TID && e.At > last.Begin && e.Kind != BarrierBegin && e.Kind != BarrierEnd
			})
			want := m.events[next].At
			if s.barriers {
				for j := next; j >= 0 && want == m.events[next].At; j-- {
					if m.events[j].Kind == BarrierEnd && m.events[j].At < want && slices.ContainsFunc(g.Lanes, func(l Lane) bool { return l.TID == m.events[j].TID }) {
						want = m.events[j].At
					}
				}
			}
			if g.End != want {
				t.Errorf("%s: graph %d ends %v, want %v", name, i, g.End, want)
			}
		}
	}
}

func TestCalls(t *testing.T) {
	call := func(kind CallKind, tokens int64) Event {
		return Event{Kind: CallBegin, TID: 1, Ref: uint32(kind), N: tokens}
	}
	ends := Event{Kind: CallEnd, TID: 1}
	for name, c := range map[string]struct {
		events []Event
		calls  []Call
	}{
		"a prompt in two parts": {
			events: at(call(CallDecode, 700), begin(1, 0xa), end(1), begin(1, 0xa), end(1), ends),
			calls:  []Call{{Kind: CallDecode, Phase: PhasePrefill, Tokens: 700, Begin: 10, End: 60, Graphs: []int{0, 1}}},
		},
		"one within another": {
			events: at(call(CallDecode, 0), call(CallProcess, 1), begin(1, 0xa), end(1), ends, ends),
			calls:  []Call{{Kind: CallDecode, Phase: PhaseDecode, Tokens: 1, Begin: 10, End: 60, Graphs: []int{0}}},
		},
		"one that threw, and one after it": {
			events: at(call(CallDecode, 9), call(CallDecode, 1), begin(1, 0xa), end(1), ends),
			calls: []Call{
				{Kind: CallDecode, Phase: PhasePrefill, Tokens: 9, Begin: 10, Inferred: true},
				{Index: 1, Kind: CallDecode, Phase: PhaseDecode, Tokens: 1, Begin: 20, End: 50, Graphs: []int{0}},
			},
		},
		"ends that are not probed": {
			events: at(call(CallDecode, 1), begin(1, 0xa), end(1), call(CallEncode, 5), begin(1, 0xa), end(1)),
			calls: []Call{
				{Kind: CallDecode, Phase: PhaseDecode, Tokens: 1, Begin: 10, End: 30, Inferred: true, Graphs: []int{0}},
				{Index: 1, Kind: CallEncode, Phase: PhaseEncode, Tokens: 5, Begin: 40, End: 60, Inferred: true, Graphs: []int{1}},
			},
		},
		"one that goes on at the end": {
			events: at(call(CallDecode, 1), ends, call(CallDecode, 1), begin(1, 0xa), end(1)),
			calls:  []Call{{Kind: CallDecode, Phase: PhaseDecode, Tokens: 1, Begin: 10, End: 20}},
		},
		"one with a loss": {
			events: at(call(CallDecode, 1), Event{Kind: Lost, N: 1}, begin(1, 0xa), end(1), ends),
		},
		"an end without a begin": {events: at(ends, begin(1, 0xa), end(1))},
		"a graph that is left open by its call": {
			events: at(call(CallDecode, 1), begin(1, 0xa), ends),
			calls:  []Call{{Kind: CallDecode, Phase: PhaseDecode, Tokens: 1, Begin: 10, End: 30, Graphs: []int{0}}},
		},
	} {
		got, _ := assemble(&Tables{}, c.events)
		checkSane(t, got)
		var calls []Call
		for _, g := range got.calls {
			calls = append(calls, *g)
		}
		for i := range c.calls {
			c.calls[i].TID = 1
		}
		if !reflect.DeepEqual(calls, c.calls) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, calls, c.calls)
		}
	}
}

// What the operators say of a batch that could not be read, or that may be of several
// sequences.
func TestPhases(t *testing.T) {
	for name, c := range map[string]struct {
		kind            CallKind
		said            int64 // tokens of the batch
		tokens, outputs int64 // by shapes
		phase           Phase
		want            int
	}{
		"one token":              {said: 1, tokens: 1, outputs: 1, phase: PhaseDecode, want: 1},
		"a prompt":               {said: 30, tokens: 30, outputs: 1, phase: PhasePrefill, want: 30},
		"a part without logits":  {said: 30, tokens: 30, outputs: 0, phase: PhasePrefill, want: 30},
		"four sequences":         {said: 4, tokens: 4, outputs: 4, phase: PhaseDecode, want: 4},
		"all logits of a prompt": {said: 512, tokens: 512, outputs: 512, phase: PhasePrefill, want: 512},
		"one that is not said":   {tokens: 1, outputs: 1, phase: PhaseDecode, want: 1},
		"a prompt that is not":   {tokens: 24, outputs: 1, phase: PhasePrefill, want: 24},
		"an encoder":             {kind: CallEncode, said: 8, tokens: 8, outputs: 8, phase: PhaseEncode, want: 8},
		"nothing is known":       {phase: PhaseUnknown},
	} {
		tables := &Tables{
			Tensors:   []Tensor{{Name: "Qcur-0", NE: [4]int64{64, c.tokens}}, {Name: logits, NE: [4]int64{64, c.outputs}}, {Name: "kq-0", NE: [4]int64{5, 77}}},
			Operators: []Operator{{Op: "MUL_MAT", Out: 1}, {Op: "MUL_MAT", Out: 2}, {Op: "ADD", Out: 3}},
		}
		run := func(r1, r2, r3, r4 uint32) []Event {
			ops := []Event{op(1, 0, 1), op(1, 0, 2), op(1, 0, 3), op(1, 0, 4)}
			for i, ref := range []uint32{r1, r2, r3, r4} {
				ops[i].Ref = ref
			}
			return at(slices.Concat([]Event{{Kind: CallBegin, TID: 1, Ref: uint32(c.kind), N: c.said}, begin(1, 0xa)}, ops, []Event{end(1), {Kind: CallEnd, TID: 1}})...)
		}
		got, _ := assemble(tables, run(3, 1, 3, 2))
		g, call := got.graphs[0], got.calls[0]
		if g.Phase != c.phase || call.Phase != c.phase || g.Tokens != c.want || call.Tokens != c.want {
			t.Errorf("%s: graph %v of %d, call %v of %d tokens, want %v of %d", name, g.Phase, g.Tokens, call.Phase, call.Tokens, c.phase, c.want)
		}
		// A graph without a call is judged by its shapes alone.
		if c.said == 0 {
			alone, _ := assemble(tables, run(3, 1, 3, 2)[1:7])
			if g := alone.graphs[0]; g.Call != -1 || g.Phase != c.phase || g.Tokens != c.want {
				t.Errorf("%s, without a call: %v of %d tokens in call %d", name, g.Phase, g.Tokens, g.Call)
			}
		}
		// Where no operators are watched the graph's nodes say the same.
		tables.DAGs = []DAG{{Nodes: []Node{{Addr: 1, Operator: 3}, {Addr: 2, Operator: 1}, {Addr: 3, Operator: 3}, {Addr: 4, Operator: 2}}}}
		whole := begin(1, 0xa)
		whole.Ref = 1
		nodes, _ := assemble(tables, at(Event{Kind: CallBegin, TID: 1, Ref: uint32(c.kind), N: c.said}, whole, end(1), Event{Kind: CallEnd, TID: 1}))
		if g := nodes.graphs[0]; g.Phase != c.phase || g.Tokens != c.want {
			t.Errorf("%s, by nodes: %v of %d tokens, want %v of %d", name, g.Phase, g.Tokens, c.phase, c.want)
		}
	}
}

// A worker that is woken for a graph: what lies within the graph counts for its lane.
func TestWorkerThatIsWoken(t *testing.T) {
	got, _ := assemble(&Tables{}, at(
		Event{Kind: SwitchOut, TID: 2, At: 5},
		Event{Kind: SyscallBegin, TID: 2, At: 4},
		begin(1, 0xa),                          // 30
		Event{Kind: WakeUp, TID: 2},            // 40
		Event{Kind: SwitchIn, TID: 2, At: 100}, // 60 late
		Event{Kind: SyscallEnd, TID: 2, At: 110},
		Event{Kind: OpBegin, TID: 1, Lanes: 2, Addr: 1, At: 120},
		Event{Kind: OpBegin, TID: 2, Lane: 1, Lanes: 2, Addr: 1, At: 130},
		Event{Kind: SwitchOut, TID: 2, At: 150, N: int64(OffPreempted)},
		Event{Kind: GraphEnd, TID: 1, At: 200},
		Event{Kind: SwitchIn, TID: 2, At: 300, N: 77},
	))
	l := got.graphs[0].Lanes[1]
	want := Lane{TID: 2, Spans: l.Spans, Busy: 20, Off: 120, Preempted: 50, Waking: 60, WakeUps: []time.Duration{60}, Switches: 1, Ran: 50, Queued: 50}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("lane\n got %+v\nwant %+v", l, want)
	}
	if s := l.Spans[0]; s.Off != 50 || s.Preempted != 50 || s.End != 200 {
		t.Errorf("its span %+v", s)
	}
}

// A thread that lost its CPU to another of its process comes back after that one lost it
// to somebody else: what somebody else took is theirs, whoever comes back first, and what
// the own thread had is told apart.
func TestThiefBetweenOwnThreads(t *testing.T) {
	const own, thief = 100, 77
	got, _ := assemble(&Tables{}, at(
		Event{Kind: GraphBegin, TID: 1, PID: own, Addr: 0xa, At: 10},
		Event{Kind: OpBegin, TID: 1, PID: own, Lanes: 1, Addr: 1, At: 20},
		Event{Kind: SwitchOut, TID: 1, PID: own, CPU: 3, At: 30, N: int64(OffPreempted), Addr: own},
		Event{Kind: SwitchIn, TID: 2, PID: own, CPU: 3, At: 30, N: own},
		Event{Kind: SwitchOut, TID: 2, PID: own, CPU: 3, At: 40, N: int64(OffPreempted), Addr: thief},
		Event{Kind: SwitchIn, TID: 2, PID: own, CPU: 3, At: 90, N: thief},
		Event{Kind: SwitchOut, TID: 2, PID: own, CPU: 3, At: 100, N: int64(OffBlocked)},
		Event{Kind: SwitchIn, TID: 1, PID: own, CPU: 3, At: 100, N: own},
		Event{Kind: GraphEnd, TID: 1, PID: own, At: 200},
	))
	l := got.graphs[0].Lanes[0]
	if want := map[int32]time.Duration{thief: 50, siblingThief: 20}; !reflect.DeepEqual(l.Thieves, want) || l.Preempted != 70 {
		t.Errorf("%v of %v off the CPU was taken, want %v of 70ns", l.Thieves, l.Preempted, want)
	}
	// The other thread had the CPU for 20 of the 70, and waited with this one for 50.
	if l.Ran != 20 || l.Queued != 120 {
		t.Errorf("meanwhile the target ran for %v and waited for %v, want 20ns and 120ns", l.Ran, l.Queued)
	}
}

// A request to a disk that outlasts its graph counts up to its end.
func TestRequestThatOutlastsItsGraph(t *testing.T) {
	got, _ := assemble(&Tables{}, at(
		begin(1, 0xa), op(1, 0, 1), Event{Kind: BlockIOBegin, TID: 1, Addr: 5, N: 512, At: 50}, Event{Kind: GraphEnd, TID: 1, At: 90},
		Event{Kind: BlockIOEnd, Addr: 5, At: 500}, begin(1, 0xa), end(1),
	))
	if l := got.graphs[0].Lanes[0]; l.IOBytes != 512 || l.IOTime != 40 {
		t.Errorf("%d bytes in %v, want 512 in 40ns", l.IOBytes, l.IOTime)
	}
	if l := got.graphs[1].Lanes[0]; l.IOBytes != 0 || l.IOTime != 0 {
		t.Errorf("the next graph has %d bytes in %v", l.IOBytes, l.IOTime)
	}
}

// Without the ends of barriers a wait goes on until the next operator; that of a
// barrier within an operator is not known.
func TestBarriersWithoutEnds(t *testing.T) {
	barrier := Event{Kind: BarrierBegin, TID: 1}
	got, _ := assemble(&Tables{}, at(begin(1, 0xa), op(1, 0, 1), barrier, barrier, op(1, 0, 2), barrier, end(1)))
	l := got.graphs[0].Lanes[0]
	if l.Sync != 20 || l.Busy != 30 || l.Spans[0].End != 40 || l.Spans[0].Sync != 10 || l.Spans[1].End != 60 {
		t.Errorf("%+v", l)
	}
}

// The order of a reading and its operator does not matter.
func TestCountersBesideTheirOperator(t *testing.T) {
	tables := &Tables{Counters: []CounterSet{
		{Have: 3, Value: [NumCounters]uint64{10, 100}}, {Have: 3, Value: [NumCounters]uint64{15, 90}}, {Have: 1, Value: [NumCounters]uint64{40}},
	}}
	read := func(ref uint32, at time.Duration) Event { return Event{Kind: CountersRead, TID: 1, Ref: ref, At: at} }
	when := func(e Event, at time.Duration) Event { e.At = at; return e }
	for name, events := range map[string][]Event{
		"after":  {begin(1, 0xa), when(op(1, 0, 1), 20), read(1, 20), when(op(1, 0, 2), 30), read(2, 30), read(3, 40), when(end(1), 50)},
		"before": {begin(1, 0xa), read(1, 20), when(op(1, 0, 1), 20), read(2, 30), when(op(1, 0, 2), 30), read(3, 40), when(end(1), 50)},
	} {
		got, _ := assemble(tables, at(events...))
		spans := got.graphs[0].Lanes[0].Spans
		// The second counter went backwards, then it was not there.
		want := []*Counted{{Have: 1, Value: [NumCounters]uint64{5}}, {Have: 1, Value: [NumCounters]uint64{25}}}
		for i := range want {
			if !reflect.DeepEqual(spans[i].Counters, want[i]) {
				t.Errorf("%s: span %d grew by %+v, want %+v", name, i, spans[i].Counters, want[i])
			}
		}
	}
}

// A loss that is told too late shows in lanes that differ, unless they always do.
func TestLanesThatDiffer(t *testing.T) {
	even := []Event{begin(1, 0xa), op(1, 0, 1), op(2, 1, 1), op(1, 0, 2), op(2, 1, 2), end(1)}
	torn := slices.Delete(slices.Clone(even), 4, 5)
	for name, c := range map[string]struct {
		events         []Event
		whole, partial int
	}{
		"never":            {slices.Concat(even, even, even), 3, 0},
		"once":             {slices.Concat(even, torn, even), 2, 1},
		"at first":         {slices.Concat(torn, even, torn, even), 2, 2},
		"often":            {slices.Concat(even, torn, torn, torn, torn, torn), 1, 5},
		"from the begin":   {slices.Concat(torn, torn, torn, torn, torn), 2, 3},
		"until they agree": {slices.Concat(torn, torn, torn, torn, torn, even, torn), 3, 4},
	} {
		got, a := assemble(&Tables{}, at(slices.Clone(c.events)...))
		if partial, _ := a.Dropped(); len(got.graphs) != c.whole || partial != c.partial {
			t.Errorf("%s: %d whole and %d partial graphs, want %d and %d", name, len(got.graphs), partial, c.whole, c.partial)
		}
	}
}

// Lanes that no graph has a place for do not fill the room of others.
func TestLooseLanesExpire(t *testing.T) {
	var got kept
	a := NewAssembler(&Tables{}, &got)
	for i := range int32(3 * maxLoose) {
		for _, e := range at(begin(1, 0xa), op(10+i, 1, 0xb1), op(1, 0, 0xa1), end(1)) {
			a.Push(e)
		}
	}
	if len(a.loose) != 0 {
		t.Errorf("%d lanes wait for a graph, and none is open", len(a.loose))
	}
}

// withBackends takes splits and copies too.
type withBackends struct {
	kept
	splits []Split
	copies []Copy
}

func (w *withBackends) Split(s *Split) { w.splits = append(w.splits, *s) }
func (w *withBackends) Copy(c *Copy)   { w.copies = append(w.copies, *c) }

func TestBackends(t *testing.T) {
	var got withBackends
	a := NewAssembler(&Tables{Names: []string{"CPU", "CUDA0"}}, &got)
	for _, e := range at(
		Event{Kind: CopyBegin, TID: 1, Ref: uint32(CopySet), N: 100},
		Event{Kind: CallBegin, TID: 1, N: 1},
		Event{Kind: SplitBegin, TID: 1, Addr: 0xb, Ref: 2, N: 30},
		Event{Kind: SplitBegin, TID: 1, Addr: 0xa, Ref: 1, N: 3},
		begin(1, 0xa), end(1),
		begin(1, 0xa), end(1), // not handed over by a scheduler
		Event{Kind: SplitBegin, TID: 1, Addr: 0xc, Ref: 2, N: 30}, // computed by the backend itself
		begin(1, 0xa), end(1),
		Event{Kind: CallEnd, TID: 1},
	) {
		a.Push(e)
	}
	if want := []Copy{{Call: -1, Kind: CopySet, Bytes: 100, At: 10, TID: 1}}; !reflect.DeepEqual(got.copies, want) {
		t.Errorf("copies %+v, want %+v", got.copies, want)
	}
	if want := []Split{{Backend: 2, Nodes: 30, At: 30, TID: 1}, {Backend: 1, Nodes: 3, At: 40, TID: 1}, {Backend: 2, Nodes: 30, At: 90, TID: 1}}; !reflect.DeepEqual(got.splits, want) {
		t.Errorf("splits %+v, want %+v", got.splits, want)
	}
	for i, want := range []uint32{1, 0, 0} {
		if got.graphs[i].Backend != want {
			t.Errorf("graph %d has backend %d, want %d", i, got.graphs[i].Backend, want)
		}
	}
}

// The DAG of an address is used until there is a newer one, and only for graphs of its
// size.
func TestNewestDAG(t *testing.T) {
	tables := &Tables{DAGs: []DAG{{Nodes: make([]Node, 2)}, {Nodes: make([]Node, 3), Truncated: 1}}}
	var events []Event
	for _, c := range []struct {
		ref   uint32
		nodes int64
	}{{0, 2}, {1, 2}, {0, 2}, {0, 7}, {2, 4}, {0, 4}, {0, 0}, {9, 4}} {
		events = append(events, Event{Kind: GraphBegin, TID: 1, Addr: 0xa, Ref: c.ref, N: c.nodes}, end(1))
	}
	events = append(events, begin(1, 0xb), end(1), Event{Kind: TargetExec}, begin(1, 0xa), end(1))
	got, _ := assemble(tables, at(events...))
	var refs []uint32
	for _, g := range got.graphs {
		refs = append(refs, g.DAG)
	}
	if want := []uint32{0, 1, 1, 0, 2, 2, 2, 2, 0, 0}; !slices.Equal(refs, want) {
		t.Errorf("DAGs %v, want %v", refs, want)
	}
}

// Lanes that lack operators, or have them in another order.
func TestCriticalPathOfUnevenLanes(t *testing.T) {
	span := func(addr uint64, begin, end time.Duration) Span { return Span{Addr: addr, Begin: begin, End: end} }
	g := &Graph{Lanes: []Lane{
		{Spans: []Span{span(1, 0, 10), span(2, 20, 30), span(4, 50, 60)}},
		{},
		{Spans: []Span{span(1, 1, 12), span(3, 40, 45), span(4, 50, 60)}},
		{Spans: []Span{span(2, 22, 29), span(2, 31, 33), span(3, 39, 41)}},
	}}
	want := []SpanRef{{2, 0}, {0, 1}, {3, 1}, {2, 1}, {0, 2}}
	if got := CriticalPath(g); !slices.Equal(got, want) {
		t.Errorf("path %v, want %v", got, want)
	}
	if got := CriticalPath(&Graph{Lanes: make([]Lane, 2)}); len(got) != 0 {
		t.Errorf("nothing has the path %v", got)
	}
}

// A target with 500 threads, new ones for each graph.
func TestFiveHundredThreads(t *testing.T) {
	s := scene{seed: 1, contexts: 1, rounds: 30, ubatches: 1, lanes: 500, nodes: 3, prompt: 8, dag: true, fresh: true}
	m := s.make()
	got, a := assemble(m.tables, m.events)
	checkRoom(t, a)
	if partial, lost := a.Dropped(); partial != 0 || lost != 0 {
		t.Errorf("%d partial graphs, %d events lost", partial, lost)
	}
	compareGraphs(t, got, m)
}

// TestCutCalls holds that a call which does not tell its tokens is left out where its graph
// was cut by probes that are taken off, and that one of a target whose graphs are not
// recorded is not.
func TestCutCalls(t *testing.T) {
	begins, ends := Event{Kind: CallBegin, TID: 1, Ref: uint32(CallProcess)}, Event{Kind: CallEnd, TID: 1}
	told := begins
	told.N = 1
	detail := func(d Detail) Event { return Event{Kind: DetailChanged, N: int64(d)} }
	whole := []Event{begins, begin(1, 0xa), op(1, 0, 1), end(1), ends}
	for name, c := range map[string]struct {
		events     []Event
		calls, cut int
	}{
		"no graph of it came":            {slices.Concat([]Event{detail(LevelSched)}, whole, []Event{begins, ends}), 1, 1},
		"begun before a pause":           {slices.Concat([]Event{detail(LevelSched)}, whole, []Event{begins, detail(LevelSched), ends}), 1, 0},
		"it tells its tokens":            {slices.Concat([]Event{detail(LevelSched)}, whole, []Event{told, ends}), 2, 0},
		"graphs are not recorded":        {slices.Concat([]Event{detail(LevelGraph)}, whole, []Event{detail(LevelToken), begins, ends}), 2, 0},
		"none computes a graph":          {[]Event{detail(LevelSched), begins, ends, begins, ends}, 2, 0},
		"nobody said what is recorded":   {slices.Concat(whole, []Event{begins, ends}), 1, 1},
		"the trace ends before it does":  {slices.Concat(whole, []Event{begins}), 1, 0},
		"the return of its graph is cut": {slices.Concat(whole, []Event{begins, begin(1, 0xa), detail(LevelSched), end(1), ends}), 1, 0},
	} {
		tables := &Tables{
			Tensors:   []Tensor{{Name: logits, NE: [4]int64{32, 1, 1, 1}}},
			Operators: []Operator{{Op: "MUL_MAT", Out: 1}},
		}
		events := at(c.events...)
		for i := range events {
			if events[i].Kind == OpBegin {
				events[i].Ref = 1
			}
		}
		got, a := assemble(tables, events)
		if len(got.calls) != c.calls || a.Cut() != c.cut {
			t.Errorf("%s: %d calls and %d cut, want %d and %d", name, len(got.calls), a.Cut(), c.calls, c.cut)
		}
		s := Analyze(&Recording{Tables: tables, Events: events})
		if told := slices.ContainsFunc(s.Gaps, func(g Gap) bool { return strings.Contains(g.Why, "left out") }); told != (c.cut > 0) {
			t.Errorf("%s: gaps %+v", name, s.Gaps)
		}
	}
}

// TestStrippedGraphs holds that a graph whose probes were taken off before its first product
// is a partial one, and that one of a runtime whose products are never seen is not.
func TestStrippedGraphs(t *testing.T) {
	tables := &Tables{
		Tensors:   []Tensor{{Name: logits, NE: [4]int64{32, 1, 1, 1}}, {Name: "norm"}},
		Operators: []Operator{{Op: "MUL_MAT", Out: 1}, {Op: "RMS_NORM", Out: 2}},
		DAGs:      []DAG{{Nodes: []Node{{Addr: 1, Operator: 2}, {Addr: 2, Operator: 1}}}},
	}
	graph := func(operators ...uint32) []Event {
		list := []Event{begin(1, 0xa)}
		list[0].Ref = 1
		for _, ref := range operators {
			e := op(1, 0, 3-uint64(ref))
			e.Ref = ref
			list = append(list, e)
		}
		return append(list, end(1))
	}
	for name, c := range map[string]struct {
		events         []Event
		whole, partial int
	}{
		"probes taken off":    {slices.Concat(graph(2, 1), graph(2)), 1, 1},
		"products never seen": {slices.Concat(graph(2), graph(2)), 2, 0},
		"no operators at all": {slices.Concat(graph(2, 1), graph()), 2, 0},
	} {
		got, a := assemble(tables, at(c.events...))
		if partial, _ := a.Dropped(); len(got.graphs) != c.whole || partial != c.partial {
			t.Errorf("%s: %d whole and %d partial, want %d and %d", name, len(got.graphs), partial, c.whole, c.partial)
		}
	}
}
