package optrace_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/tally"
)

// at sets the times of events to successive moments, 10 ns apart, unless they have one.
func at(events ...optrace.Event) []optrace.Event {
	for i := range events {
		if events[i].At == 0 {
			events[i].At = time.Duration(i+1) * 10
		}
	}
	return events
}

// op returns an operator on the given thread of two.
func op(tid int32, lane uint16, addr uint64) optrace.Event {
	return optrace.Event{Kind: optrace.OpBegin, TID: tid, Thread: lane, Threads: 2, Addr: addr}
}

func begin(tid int32, addr uint64) optrace.Event {
	return optrace.Event{Kind: optrace.GraphBegin, TID: tid, Addr: addr}
}
func end(tid int32) optrace.Event { return optrace.Event{Kind: optrace.GraphEnd, TID: tid} }

// threadsOf returns the thread ids of each graph by compute thread, and their numbers of spans.
func threadsOf(got *kept) (tids [][]int32, spans [][]int) {
	for _, g := range got.graphs {
		var t []int32
		var n []int
		for _, l := range g.Threads {
			t = append(t, l.TID)
			n = append(n, len(l.Spans))
		}
		tids, spans = append(tids, t), append(spans, n)
	}
	return tids, spans
}

func TestWhichGraphALaneIsOf(t *testing.T) {
	withDAGs := &optrace.Tables{DAGs: []optrace.DAG{{Nodes: []optrace.Node{{Addr: 0xa1}, {Addr: 0xa2}}}, {Nodes: []optrace.Node{{Addr: 0xb1}, {Addr: 0xb2}}}}}
	dag := func(e optrace.Event, ref uint32) optrace.Event { e.Ref = ref; return e }
	other := func(e optrace.Event, pid int32) optrace.Event { e.PID = pid; return e }
	for name, c := range map[string]struct {
		tables  *optrace.Tables
		events  []optrace.Event
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
		"to the one that began last, if nothing else decides": {
			events: at(begin(1, 0xa), begin(2, 0xa), op(1, 0, 0xa1), op(2, 0, 0xa1), op(3, 1, 0xa1), op(4, 1, 0xa1), end(1), end(2)),
			tids:   [][]int32{{1, 4}, {2, 3}}, spans: [][]int{{1, 1}, {1, 1}},
		},
		"not to one of another width": {
			events: at(begin(1, 0xa), begin(2, 0xa), op(1, 0, 0xa1), optrace.Event{Kind: optrace.OpBegin, TID: 2, Threads: 3, Addr: 0xa1}, op(3, 1, 0xa1), end(1), end(2)),
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
		"a worker that continues with another graph": {
			// The end of the first was missed: it is dropped.
			events:  at(begin(1, 0xa), op(1, 0, 0xa1), op(3, 1, 0xa1), begin(2, 0xb), optrace.Event{Kind: optrace.OpBegin, TID: 2, Threads: 4, Addr: 0xb1}, optrace.Event{Kind: optrace.OpBegin, TID: 3, Thread: 2, Threads: 4, Addr: 0xb1}, end(2)),
			tids:    [][]int32{{2, 0, 3, 0}},
			spans:   [][]int{{1, 0, 1, 0}},
			partial: 1,
		},
	} {
		if c.tables == nil {
			c.tables = &optrace.Tables{}
		}
		got, a := assembled(c.tables, c.events)
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
	whole := []optrace.Event{begin(1, 0xa), op(1, 0, 0xa1), end(1)}
	for name, c := range map[string]struct {
		events         []optrace.Event
		whole, partial int
	}{
		"nothing":                            {whole, 1, 0},
		"a loss":                             {slices.Insert(slices.Clone(whole), 2, optrace.Event{Kind: optrace.Lost, N: 7}), 0, 1},
		"a loss between graphs":              {slices.Concat(whole, []optrace.Event{{Kind: optrace.Lost, N: 7}}, whole), 2, 0},
		"a loss until after it began":        {slices.Concat([]optrace.Event{{Kind: optrace.Lost, N: 7, Addr: 21}}, whole, whole), 1, 1},
		"another detail":                     {slices.Insert(slices.Clone(whole), 1, optrace.Event{Kind: optrace.DetailChanged, N: 1}), 0, 1},
		"begun before the trace":             {slices.Concat(whole[1:], whole), 1, 1},
		"ended before its operators came":    {slices.Concat(whole[2:], whole), 1, 1},
		"the end of the trace":               {slices.Concat(whole, whole[:2]), 1, 1},
		"the end of the target":              {slices.Concat(whole[:2], []optrace.Event{{Kind: optrace.TargetExit}}), 0, 1},
		"another program":                    {slices.Concat(whole[:2], []optrace.Event{{Kind: optrace.TargetExec}}, whole), 1, 1},
		"the end of another target":          {slices.Concat(whole[:2], []optrace.Event{{Kind: optrace.TargetExit, PID: 8}}, whole[2:]), 1, 0},
		"its thread's number with a new one": {slices.Concat(whole[:2], []optrace.Event{{Kind: optrace.GraphBegin, TID: 1, PID: 5}, {Kind: optrace.GraphEnd, TID: 1, PID: 5}}), 1, 1},
		"a return that was not seen":         {slices.Concat(whole[:2], whole), 2, 0},
		"a sample after that":                {slices.Concat(whole[:2], []optrace.Event{{Kind: optrace.SampleBegin, TID: 1}}), 1, 0},
	} {
		got, a := assembled(&optrace.Tables{}, at(slices.Clone(c.events)...))
		if partial, _ := a.Dropped(); partial != c.partial || len(got.graphs) != c.whole {
			t.Errorf("%s: %d whole and %d partial graphs, want %d and %d", name, len(got.graphs), partial, c.whole, c.partial)
		}
	}
}

// A graph whose return is not probed ends with the last barrier of its threads, or with the
// thread's next event.
func TestGraphsWithoutTheirEnds(t *testing.T) {
	for _, name := range []string{"2 lanes with barriers", "2 lanes", "1 lanes with barriers"} {
		s := variants()[name]
		s.noReturn = true
		m := s.make()
		got, a := assembled(m.tables, m.events)
		checkSane(t, got)
		if partial, _ := a.Dropped(); partial != 0 || len(got.graphs) != len(m.graphs) {
			t.Fatalf("%s: %d graphs and %d partial, want %d", name, len(got.graphs), partial, len(m.graphs))
		}
		for i, g := range got.graphs {
			last := g.Threads[0].Spans[len(g.Threads[0].Spans)-1]
			next := slices.IndexFunc(m.events, func(e optrace.Event) bool {
				return e.TID == g.TID && e.At > last.Begin && e.Kind != optrace.BarrierBegin && e.Kind != optrace.BarrierEnd
			})
			want := m.events[next].At
			if s.barriers {
				for j := next; j >= 0 && want == m.events[next].At; j-- {
					if m.events[j].Kind == optrace.BarrierEnd && m.events[j].At < want && slices.ContainsFunc(g.Threads, func(l optrace.Thread) bool { return l.TID == m.events[j].TID }) {
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
	call := func(kind optrace.CallKind, tokens int64) optrace.Event {
		return optrace.Event{Kind: optrace.CallBegin, TID: 1, Ref: uint32(kind), N: tokens}
	}
	ends := optrace.Event{Kind: optrace.CallEnd, TID: 1}
	for name, c := range map[string]struct {
		events []optrace.Event
		calls  []optrace.Call
	}{
		"a prompt in two parts": {
			events: at(call(optrace.CallDecode, 700), begin(1, 0xa), end(1), begin(1, 0xa), end(1), ends),
			calls:  []optrace.Call{{Kind: optrace.CallDecode, Phase: optrace.PhasePrefill, Tokens: 700, Begin: 10, End: 60, Graphs: []int{0, 1}}},
		},
		"one within another": {
			events: at(call(optrace.CallDecode, 0), call(optrace.CallProcess, 1), begin(1, 0xa), end(1), ends, ends),
			calls:  []optrace.Call{{Kind: optrace.CallDecode, Phase: optrace.PhaseDecode, Tokens: 1, Begin: 10, End: 60, Graphs: []int{0}}},
		},
		"one that threw, and one after it": {
			events: at(call(optrace.CallDecode, 9), call(optrace.CallDecode, 1), begin(1, 0xa), end(1), ends),
			calls: []optrace.Call{
				{Kind: optrace.CallDecode, Phase: optrace.PhasePrefill, Tokens: 9, Begin: 10},
				{Index: 1, Kind: optrace.CallDecode, Phase: optrace.PhaseDecode, Tokens: 1, Begin: 20, End: 50, Graphs: []int{0}},
			},
		},
		"ends that are not probed": {
			events: at(call(optrace.CallDecode, 1), begin(1, 0xa), end(1), call(optrace.CallEncode, 5), begin(1, 0xa), end(1)),
			calls: []optrace.Call{
				{Kind: optrace.CallDecode, Phase: optrace.PhaseDecode, Tokens: 1, Begin: 10, End: 30, Graphs: []int{0}},
				{Index: 1, Kind: optrace.CallEncode, Phase: optrace.PhaseEncode, Tokens: 5, Begin: 40, End: 60, Graphs: []int{1}},
			},
		},
		"one that continues at the end": {
			events: at(call(optrace.CallDecode, 1), ends, call(optrace.CallDecode, 1), begin(1, 0xa), end(1)),
			calls:  []optrace.Call{{Kind: optrace.CallDecode, Phase: optrace.PhaseDecode, Tokens: 1, Begin: 10, End: 20}},
		},
		"one with a loss": {
			events: at(call(optrace.CallDecode, 1), optrace.Event{Kind: optrace.Lost, N: 1}, begin(1, 0xa), end(1), ends),
		},
		"an end without a begin": {events: at(ends, begin(1, 0xa), end(1))},
		"a graph that is left open by its call": {
			events: at(call(optrace.CallDecode, 1), begin(1, 0xa), ends),
			calls:  []optrace.Call{{Kind: optrace.CallDecode, Phase: optrace.PhaseDecode, Tokens: 1, Begin: 10, End: 30, Graphs: []int{0}}},
		},
	} {
		got, _ := assembled(&optrace.Tables{}, c.events)
		checkSane(t, got)
		var calls []optrace.Call
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

// The operators determine a batch that could not be read, or that may be of several sequences.
func TestPhases(t *testing.T) {
	for name, c := range map[string]struct {
		kind            optrace.CallKind
		said            int64 // tokens of the batch
		tokens, outputs int64 // by shapes
		phase           optrace.Phase
		want            int
	}{
		"one token":              {said: 1, tokens: 1, outputs: 1, phase: optrace.PhaseDecode, want: 1},
		"a prompt":               {said: 30, tokens: 30, outputs: 1, phase: optrace.PhasePrefill, want: 30},
		"a part without logits":  {said: 30, tokens: 30, outputs: 0, phase: optrace.PhasePrefill, want: 30},
		"four sequences":         {said: 4, tokens: 4, outputs: 4, phase: optrace.PhaseDecode, want: 4},
		"all logits of a prompt": {said: 512, tokens: 512, outputs: 512, phase: optrace.PhasePrefill, want: 512},
		"one that is not said":   {tokens: 1, outputs: 1, phase: optrace.PhaseDecode, want: 1},
		"a prompt that is not":   {tokens: 24, outputs: 1, phase: optrace.PhasePrefill, want: 24},
		"an encoder":             {kind: optrace.CallEncode, said: 8, tokens: 8, outputs: 8, phase: optrace.PhaseEncode, want: 8},
		"nothing is known":       {phase: optrace.PhaseUnknown},
	} {
		tables := &optrace.Tables{
			Tensors:   []optrace.Tensor{{Name: "Qcur-0", NE: [4]int64{64, c.tokens}}, {Name: optrace.LogitsName, NE: [4]int64{64, c.outputs}}, {Name: "kq-0", NE: [4]int64{5, 77}}},
			Operators: []optrace.Operator{{Op: "MUL_MAT", Out: 1}, {Op: "MUL_MAT", Out: 2}, {Op: "ADD", Out: 3}},
		}
		run := func(r1, r2, r3, r4 uint32) []optrace.Event {
			ops := []optrace.Event{op(1, 0, 1), op(1, 0, 2), op(1, 0, 3), op(1, 0, 4)}
			for i, ref := range []uint32{r1, r2, r3, r4} {
				ops[i].Ref = ref
			}
			return at(slices.Concat([]optrace.Event{{Kind: optrace.CallBegin, TID: 1, Ref: uint32(c.kind), N: c.said}, begin(1, 0xa)}, ops, []optrace.Event{end(1), {Kind: optrace.CallEnd, TID: 1}})...)
		}
		got, _ := assembled(tables, run(3, 1, 3, 2))
		g, call := got.graphs[0], got.calls[0]
		if g.Phase != c.phase || call.Phase != c.phase || g.Tokens != c.want || call.Tokens != c.want {
			t.Errorf("%s: graph %v of %d, call %v of %d tokens, want %v of %d", name, g.Phase, g.Tokens, call.Phase, call.Tokens, c.phase, c.want)
		}
		// A graph without a call is judged by its shapes alone.
		if c.said == 0 {
			alone, _ := assembled(tables, run(3, 1, 3, 2)[1:7])
			if g := alone.graphs[0]; g.Call != -1 || g.Phase != c.phase || g.Tokens != c.want {
				t.Errorf("%s, without a call: %v of %d tokens in call %d", name, g.Phase, g.Tokens, g.Call)
			}
		}
		// If no operators are watched, the graph's nodes show the same.
		tables.DAGs = []optrace.DAG{{Nodes: []optrace.Node{{Addr: 1, Operator: 3}, {Addr: 2, Operator: 1}, {Addr: 3, Operator: 3}, {Addr: 4, Operator: 2}}}}
		whole := begin(1, 0xa)
		whole.Ref = 1
		nodes, _ := assembled(tables, at(optrace.Event{Kind: optrace.CallBegin, TID: 1, Ref: uint32(c.kind), N: c.said}, whole, end(1), optrace.Event{Kind: optrace.CallEnd, TID: 1}))
		if g := nodes.graphs[0]; g.Phase != c.phase || g.Tokens != c.want {
			t.Errorf("%s, by nodes: %v of %d tokens, want %v of %d", name, g.Phase, g.Tokens, c.phase, c.want)
		}
	}
}

// For a worker that is woken for a graph, only the time within the graph counts.
func TestWorkerThatIsWoken(t *testing.T) {
	got, _ := assembled(&optrace.Tables{}, at(
		optrace.Event{Kind: optrace.SwitchOut, TID: 2, At: 5},
		optrace.Event{Kind: optrace.SyscallBegin, TID: 2, At: 4},
		begin(1, 0xa), // 30
		optrace.Event{Kind: optrace.WakeUp, TID: 2},            // 40
		optrace.Event{Kind: optrace.SwitchIn, TID: 2, At: 100}, // 60 late
		optrace.Event{Kind: optrace.SyscallEnd, TID: 2, At: 110},
		optrace.Event{Kind: optrace.OpBegin, TID: 1, Threads: 2, Addr: 1, At: 120},
		optrace.Event{Kind: optrace.OpBegin, TID: 2, Thread: 1, Threads: 2, Addr: 1, At: 130},
		optrace.Event{Kind: optrace.SwitchOut, TID: 2, At: 150, N: int64(optrace.OffPreempted)},
		optrace.Event{Kind: optrace.GraphEnd, TID: 1, At: 200},
		optrace.Event{Kind: optrace.SwitchIn, TID: 2, At: 300, N: 77},
	))
	l := got.graphs[0].Threads[1]
	want := optrace.Thread{TID: 2, Spans: l.Spans, Busy: 20, Off: 120, Preempted: 50, Waking: 60, WakeUps: []time.Duration{60}, Switches: 1}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("lane\n got %+v\nwant %+v", l, want)
	}
	if s := l.Spans[0]; s.Off != 50 || s.Preempted != 50 || s.End != 200 {
		t.Errorf("its span %+v", s)
	}
}

// A disk request that outlasts its graph counts up to the graph's end.
func TestRequestThatOutlastsItsGraph(t *testing.T) {
	got, _ := assembled(&optrace.Tables{}, at(
		begin(1, 0xa), op(1, 0, 1), optrace.Event{Kind: optrace.BlockIOBegin, TID: 1, Addr: 5, N: 512, At: 50}, optrace.Event{Kind: optrace.GraphEnd, TID: 1, At: 90},
		optrace.Event{Kind: optrace.BlockIOEnd, Addr: 5, At: 500}, begin(1, 0xa), end(1),
	))
	if l := got.graphs[0].Threads[0]; l.IOBytes != 512 || l.IOTime != 40 {
		t.Errorf("%d bytes in %v, want 512 in 40ns", l.IOBytes, l.IOTime)
	}
	if l := got.graphs[1].Threads[0]; l.IOBytes != 0 || l.IOTime != 0 {
		t.Errorf("the next graph has %d bytes in %v", l.IOBytes, l.IOTime)
	}
}

// Without the ends of barriers a wait lasts until the next operator; a wait in a barrier within
// an operator is unknown.
func TestBarriersWithoutEnds(t *testing.T) {
	barrier := optrace.Event{Kind: optrace.BarrierBegin, TID: 1}
	got, _ := assembled(&optrace.Tables{}, at(begin(1, 0xa), op(1, 0, 1), barrier, barrier, op(1, 0, 2), barrier, end(1)))
	l := got.graphs[0].Threads[0]
	if l.Sync != 20 || l.Busy != 30 || l.Spans[0].End != 40 || l.Spans[0].Sync != 10 || l.Spans[1].End != 60 {
		t.Errorf("%+v", l)
	}
}

// The order of a reading and its operator does not matter.
func TestCountersBesideTheirOperator(t *testing.T) {
	tables := &optrace.Tables{Counters: []optrace.CounterSet{
		{Have: 3, Value: [optrace.NumCounters]uint64{10, 100}}, {Have: 3, Value: [optrace.NumCounters]uint64{15, 90}}, {Have: 1, Value: [optrace.NumCounters]uint64{40}},
	}}
	read := func(ref uint32, at time.Duration) optrace.Event {
		return optrace.Event{Kind: optrace.CountersRead, TID: 1, Ref: ref, At: at}
	}
	when := func(e optrace.Event, at time.Duration) optrace.Event { e.At = at; return e }
	for name, events := range map[string][]optrace.Event{
		"after":  {begin(1, 0xa), when(op(1, 0, 1), 20), read(1, 20), when(op(1, 0, 2), 30), read(2, 30), read(3, 40), when(end(1), 50)},
		"before": {begin(1, 0xa), read(1, 20), when(op(1, 0, 1), 20), read(2, 30), when(op(1, 0, 2), 30), read(3, 40), when(end(1), 50)},
	} {
		got, _ := assembled(tables, at(events...))
		spans := got.graphs[0].Threads[0].Spans
		// The second counter went backwards, then it was not there.
		want := []*optrace.Counted{{Have: 1, Value: [optrace.NumCounters]uint64{5}}, {Have: 1, Value: [optrace.NumCounters]uint64{25}}}
		for i := range want {
			if !reflect.DeepEqual(spans[i].Counters, want[i]) {
				t.Errorf("%s: span %d grew by %+v, want %+v", name, i, spans[i].Counters, want[i])
			}
		}
	}
}

// A loss that is reported too late shows in compute threads that differ, unless they always do.
func TestLanesThatDiffer(t *testing.T) {
	even := []optrace.Event{begin(1, 0xa), op(1, 0, 1), op(2, 1, 1), op(1, 0, 2), op(2, 1, 2), end(1)}
	torn := slices.Delete(slices.Clone(even), 4, 5)
	for name, c := range map[string]struct {
		events         []optrace.Event
		whole, partial int
	}{
		"never":            {slices.Concat(even, even, even), 3, 0},
		"once":             {slices.Concat(even, torn, even), 2, 1},
		"at first":         {slices.Concat(torn, even, torn, even), 2, 2},
		"often":            {slices.Concat(even, torn, torn, torn, torn, torn), 1, 5},
		"from the begin":   {slices.Concat(torn, torn, torn, torn, torn), 2, 3},
		"until they agree": {slices.Concat(torn, torn, torn, torn, torn, even, torn), 3, 4},
	} {
		got, a := assembled(&optrace.Tables{}, at(slices.Clone(c.events)...))
		if partial, _ := a.Dropped(); len(got.graphs) != c.whole || partial != c.partial {
			t.Errorf("%s: %d whole and %d partial graphs, want %d and %d", name, len(got.graphs), partial, c.whole, c.partial)
		}
	}
}

// Loose compute threads that fit no graph do not take the room of others.
func TestLooseLanesExpire(t *testing.T) {
	var got kept
	a := optrace.New(&optrace.Tables{}, &got)
	for i := range int32(3 * 1024) {
		for _, e := range at(begin(1, 0xa), op(10+i, 1, 0xb1), op(1, 0, 0xa1), end(1)) {
			a.Push(e)
		}
	}
	if _, loose, _ := optrace.Open(a); loose != 0 {
		t.Errorf("%d lanes wait for a graph, and none is open", loose)
	}
}

// withBackends is a receiver of splits and copies too.
type withBackends struct {
	kept
	splits []optrace.Split
	copies []optrace.Copy
}

func (w *withBackends) Split(s *optrace.Split) { w.splits = append(w.splits, *s) }
func (w *withBackends) Copy(c *optrace.Copy)   { w.copies = append(w.copies, *c) }

func TestBackends(t *testing.T) {
	var got withBackends
	a := optrace.New(&optrace.Tables{Names: []string{"CPU", "CUDA0"}}, &got)
	for _, e := range at(
		optrace.Event{Kind: optrace.CopyBegin, TID: 1, Ref: uint32(optrace.CopySet), N: 100},
		optrace.Event{Kind: optrace.CallBegin, TID: 1, N: 1},
		optrace.Event{Kind: optrace.SplitBegin, TID: 1, Addr: 0xb, Ref: 2, N: 30},
		optrace.Event{Kind: optrace.SplitBegin, TID: 1, Addr: 0xa, Ref: 1, N: 3},
		begin(1, 0xa), end(1),
		begin(1, 0xa), end(1), // without a split
		optrace.Event{Kind: optrace.SplitBegin, TID: 1, Addr: 0xc, Ref: 2, N: 30}, // computed by the backend itself
		begin(1, 0xa), end(1),
		optrace.Event{Kind: optrace.CallEnd, TID: 1},
	) {
		a.Push(e)
	}
	if want := []optrace.Copy{{Kind: optrace.CopySet, Bytes: 100}}; !reflect.DeepEqual(got.copies, want) {
		t.Errorf("copies %+v, want %+v", got.copies, want)
	}
	if want := []optrace.Split{{Backend: 2, Nodes: 30}, {Backend: 1, Nodes: 3}, {Backend: 2, Nodes: 30}}; !reflect.DeepEqual(got.splits, want) {
		t.Errorf("splits %+v, want %+v", got.splits, want)
	}
	for i, want := range []uint32{1, 0, 0} {
		if got.graphs[i].Backend != want {
			t.Errorf("graph %d has backend %d, want %d", i, got.graphs[i].Backend, want)
		}
	}
}

// The DAG of an address is used until there is a newer one, and only for graphs of its size.
func TestNewestDAG(t *testing.T) {
	tables := &optrace.Tables{DAGs: []optrace.DAG{{Nodes: make([]optrace.Node, 2)}, {Nodes: make([]optrace.Node, 3), Truncated: 1}}}
	var events []optrace.Event
	for _, c := range []struct {
		ref   uint32
		nodes int64
	}{{0, 2}, {1, 2}, {0, 2}, {0, 7}, {2, 4}, {0, 4}, {0, 0}, {9, 4}} {
		events = append(events, optrace.Event{Kind: optrace.GraphBegin, TID: 1, Addr: 0xa, Ref: c.ref, N: c.nodes}, end(1))
	}
	events = append(events, begin(1, 0xb), end(1), optrace.Event{Kind: optrace.TargetExec}, begin(1, 0xa), end(1))
	got, _ := assembled(tables, at(events...))
	var refs []uint32
	for _, g := range got.graphs {
		refs = append(refs, g.DAG)
	}
	if want := []uint32{0, 1, 1, 0, 2, 2, 2, 2, 0, 0}; !slices.Equal(refs, want) {
		t.Errorf("DAGs %v, want %v", refs, want)
	}
}

// Compute threads lack operators, or have them in another order.
func TestCriticalPathOfUnevenLanes(t *testing.T) {
	span := func(addr uint64, begin, end time.Duration) optrace.Span {
		return optrace.Span{Addr: addr, Begin: begin, End: end}
	}
	g := &optrace.Graph{Threads: []optrace.Thread{
		{Spans: []optrace.Span{span(1, 0, 10), span(2, 20, 30), span(4, 50, 60)}},
		{},
		{Spans: []optrace.Span{span(1, 1, 12), span(3, 40, 45), span(4, 50, 60)}},
		{Spans: []optrace.Span{span(2, 22, 29), span(2, 31, 33), span(3, 39, 41)}},
	}}
	want := []optrace.SpanRef{{Thread: 2}, {Span: 1}, {Thread: 3, Span: 1}, {Thread: 2, Span: 1}, {Span: 2}}
	if got := optrace.CriticalPath(g); !slices.Equal(got, want) {
		t.Errorf("path %v, want %v", got, want)
	}
	if got := optrace.CriticalPath(&optrace.Graph{Threads: make([]optrace.Thread, 2)}); len(got) != 0 {
		t.Errorf("nothing has the path %v", got)
	}
}

// TestCutCalls checks that a call without tokens is left out if its graph was cut by detached
// probes, and is kept if the target's graphs are not recorded.
func TestCutCalls(t *testing.T) {
	begins, ends := optrace.Event{Kind: optrace.CallBegin, TID: 1, Ref: uint32(optrace.CallProcess)}, optrace.Event{Kind: optrace.CallEnd, TID: 1}
	told := begins
	told.N = 1
	detail := func(d optrace.Detail) optrace.Event { return optrace.Event{Kind: optrace.DetailChanged, N: int64(d)} }
	whole := []optrace.Event{begins, begin(1, 0xa), op(1, 0, 1), end(1), ends}
	for name, c := range map[string]struct {
		events     []optrace.Event
		calls, cut int
	}{
		"no graph of it came":            {slices.Concat([]optrace.Event{detail(optrace.LevelSched)}, whole, []optrace.Event{begins, ends}), 1, 1},
		"begun before a pause":           {slices.Concat([]optrace.Event{detail(optrace.LevelSched)}, whole, []optrace.Event{begins, detail(optrace.LevelSched), ends}), 1, 0},
		"it reports its tokens":          {slices.Concat([]optrace.Event{detail(optrace.LevelSched)}, whole, []optrace.Event{told, ends}), 2, 0},
		"none computes a graph":          {[]optrace.Event{detail(optrace.LevelSched), begins, ends, begins, ends}, 2, 0},
		"the trace ends before it does":  {slices.Concat(whole, []optrace.Event{begins}), 1, 0},
		"the return of its graph is cut": {slices.Concat(whole, []optrace.Event{begins, begin(1, 0xa), detail(optrace.LevelSched), end(1), ends}), 1, 0},
	} {
		tables := &optrace.Tables{
			Tensors:   []optrace.Tensor{{Name: optrace.LogitsName, NE: [4]int64{32, 1, 1, 1}}},
			Operators: []optrace.Operator{{Op: "MUL_MAT", Out: 1}},
		}
		events := at(c.events...)
		for i := range events {
			if events[i].Kind == optrace.OpBegin {
				events[i].Ref = 1
			}
		}
		got, a := assembled(tables, events)
		if len(got.calls) != c.calls || a.Cut() != c.cut {
			t.Errorf("%s: %d calls and %d cut, want %d and %d", name, len(got.calls), a.Cut(), c.calls, c.cut)
		}
		s := tally.Analyze(&optrace.Recording{Tables: tables, Events: events})
		if told := slices.ContainsFunc(s.Gaps, func(g optrace.Gap) bool { return strings.Contains(g.Why, "left out") }); told != (c.cut > 0) {
			t.Errorf("%s: gaps %+v", name, s.Gaps)
		}
	}
}

// TestStrippedGraphs checks that a graph whose probes were detached before its first product is
// partial, unless products are never seen in the runtime.
func TestStrippedGraphs(t *testing.T) {
	tables := &optrace.Tables{
		Tensors:   []optrace.Tensor{{Name: optrace.LogitsName, NE: [4]int64{32, 1, 1, 1}}, {Name: "norm"}},
		Operators: []optrace.Operator{{Op: "MUL_MAT", Out: 1}, {Op: "RMS_NORM", Out: 2}},
		DAGs:      []optrace.DAG{{Nodes: []optrace.Node{{Addr: 1, Operator: 2}, {Addr: 2, Operator: 1}}}},
	}
	graph := func(operators ...uint32) []optrace.Event {
		list := []optrace.Event{begin(1, 0xa)}
		list[0].Ref = 1
		for _, ref := range operators {
			e := op(1, 0, 3-uint64(ref))
			e.Ref = ref
			list = append(list, e)
		}
		return append(list, end(1))
	}
	for name, c := range map[string]struct {
		events         []optrace.Event
		whole, partial int
	}{
		"probes taken off":    {slices.Concat(graph(2, 1), graph(2)), 1, 1},
		"products never seen": {slices.Concat(graph(2), graph(2)), 2, 0},
		"no operators at all": {slices.Concat(graph(2, 1), graph()), 2, 0},
	} {
		got, a := assembled(tables, at(c.events...))
		if partial, _ := a.Dropped(); len(got.graphs) != c.whole || partial != c.partial {
			t.Errorf("%s: %d whole and %d partial, want %d and %d", name, len(got.graphs), partial, c.whole, c.partial)
		}
	}
}
