package optrace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// What lane 0 waits for after an operator is covered by it: with barriers as without
// them, only what lies before the first operator and the few instructions between a
// barrier and the next are not.
func TestWaitsAreCovered(t *testing.T) {
	for _, name := range []string{"3 lanes", "3 lanes with barriers", "8 lanes with barriers", "scheduling and barriers"} {
		s := variants()[name]
		s.nodes, s.rounds = 60, 20
		m := s.make()
		sum := Analyze(&Recording{Tables: m.tables, Events: m.events, Detail: LevelAll})
		if got := sum.Coverage.OpShare; !got.OK || got.V < 0.98 || got.V > 1 {
			t.Errorf("%s: operators cover %v of the graphs", name, got)
		}
	}
}

// Graphs that were seen without their operators do not make lanes lose more time than
// there was.
func TestGraphsWithoutOperatorsAreNoPartOfRatios(t *testing.T) {
	tally := NewTally(&Tables{})
	tally.Graph(&Graph{Call: -1, End: 100, Lanes: []Lane{{TID: 1, Off: 90, Preempted: 80}}})
	tally.Graph(&Graph{Call: -1, Begin: 100, End: 200, Lanes: []Lane{{TID: 1, Off: 50, Preempted: 40, Busy: 50, Spans: []Span{{Begin: 100, End: 200}}}}})
	row := tally.Summary(Settings{Detail: LevelSched}).Threads[0]
	if row.Off.V != 0.5 || row.Preempted.V != 0.4 || row.Busy.V != 0.5 {
		t.Errorf("busy %v, off %v, preempted %v, want 0.5, 0.5 and 0.4", row.Busy, row.Off, row.Preempted)
	}
}

// TestSharesOfWhatWasRecorded holds that shares which need scheduling or barriers are of the
// time in which these were recorded: they stay what they are while the detail changes and
// the load does not.
func TestSharesOfWhatWasRecorded(t *testing.T) {
	const dear = LevelBarriers | LevelSched
	graph := func(n int, d Detail) *Graph {
		l := Lane{TID: 1, Busy: 100}
		s := Span{Begin: time.Duration(100 * n), End: time.Duration(100*n + 100)}
		if d&DetailSched != 0 {
			l.Off, l.Preempted, l.Busy = 60, 50, l.Busy-60
			s.Off, s.Preempted = 60, 50
			l.Thieves = map[int32]time.Duration{7: 50}
		}
		if d&DetailBarrier != 0 {
			l.Sync, s.Sync, l.Busy = 20, 20, l.Busy-20
		}
		l.Spans = []Span{s}
		return &Graph{Call: -1, Detail: d, Phase: PhaseDecode, Begin: s.Begin, End: s.End, Lanes: []Lane{l}}
	}
	for name, order := range map[string][]Detail{
		"less": {dear, LevelTensor, LevelTensor, LevelTensor},
		"more": {LevelTensor, LevelTensor, LevelTensor, dear},
	} {
		tally := NewTally(&Tables{})
		for n, d := range order {
			tally.Graph(graph(n, d))
		}
		s := tally.Summary(Settings{Detail: order[len(order)-1], Processes: map[int32]string{7: "thief"}})
		row := s.Threads[0]
		if row.Preempted.V != 0.5 || row.Off.V != 0.6 || row.Sync.V != 0.2 || row.Busy.V != 0.2 {
			t.Errorf("%s: busy %v, waits %v, off %v, preempted %v, want 0.2, 0.2, 0.6 and 0.5", name, row.Busy, row.Sync, row.Off, row.Preempted)
		}
		if len(s.Others) != 1 || s.Others[0].Share.V != 0.5 {
			t.Errorf("%s: others took %+v, want half", name, s.Others)
		}
		if k := s.Kinds[0]; k.Bound != BoundWaiting || k.Offed != 1 || k.Synced != 1 || k.Count != 4 {
			t.Errorf("%s: bound by %q, of %d and %d operators of %d", name, k.Bound, k.Offed, k.Synced, k.Count)
		}
	}
}

// TestDetailOfAGraph holds that a graph knows what was recorded of its process meanwhile.
func TestDetailOfAGraph(t *testing.T) {
	var got []Detail
	a := NewAssembler(&Tables{}, graphsOnly(func(g *Graph) { got = append(got, g.Detail) }))
	at := time.Duration(0)
	graph := func() {
		for _, k := range []Kind{GraphBegin, GraphEnd} {
			at++
			a.Push(Event{At: at, Kind: k, PID: 1, TID: 1, Addr: 9})
		}
	}
	graph()
	a.Push(Event{At: at, Kind: DetailChanged, PID: 1, N: int64(LevelSched)})
	graph()
	a.Push(Event{At: at, Kind: DetailChanged, PID: 2, N: int64(LevelToken)}) // of another
	graph()
	a.Push(Event{At: at, Kind: DetailChanged, PID: 1, N: int64(LevelTensor)})
	graph()
	if want := []Detail{0, LevelSched, LevelSched, LevelTensor}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// graphsOnly takes graphs.
type graphsOnly func(*Graph)

func (f graphsOnly) Graph(g *Graph) { f(g) }
func (graphsOnly) Call(*Call)       {}

// TestPartsOfALaneAreOneWhole holds that no moment of a lane is counted twice, whatever
// was recorded of it: computing, waiting, being off the CPU and having no operator are the
// time of its graphs. What a lane was off its CPU in barriers is no wait as well.
func TestPartsOfALaneAreOneWhole(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	upTo := func(n time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(n) + 1)) }
	for range 500 {
		tally := NewTally(&Tables{})
		var took, computed, waited, away time.Duration
		for at := time.Duration(0); at < 40*1000; at += 1000 {
			l := Lane{TID: 1, Spans: []Span{{Begin: at, End: at + 1000}}}
			l.Busy = upTo(1000)
			l.Sync = upTo(1000 - l.Busy)
			l.OffWaiting = upTo(l.Sync)
			l.Off = l.OffWaiting + upTo(1000-l.Busy-l.Sync)
			took, computed, waited, away = took+1000, computed+l.Busy, waited+l.Sync-l.OffWaiting, away+l.Off
			tally.Graph(&Graph{Call: -1, Detail: LevelBarriers | LevelSched, Begin: at, End: at + 1000, Lanes: []Lane{l}})
		}
		row := tally.Summary(Settings{Detail: LevelBarriers | LevelSched}).Threads[0]
		for name, x := range map[string]struct {
			got  float64
			want time.Duration
		}{"busy": {row.Busy.V, computed}, "waits": {row.Sync.V, waited}, "off": {row.Off.V, away}} {
			if want := float64(x.want) / float64(took); math.Abs(x.got-want) > 1e-9 {
				t.Fatalf("%s for %v, want %v: %+v", name, x.got, want, row)
			}
		}
		if sum := row.Busy.V + row.Sync.V + row.Off.V; sum > 1+1e-9 {
			t.Fatalf("parts are %v of the whole: %+v", sum, row)
		}
	}
	// Figures that contradict each other, as of a recording that was altered.
	for range 500 {
		l := Lane{Spans: []Span{{End: 100}}, Busy: upTo(300) - 100, Sync: upTo(300) - 100, Off: upTo(300) - 100, OffWaiting: upTo(300) - 100}
		if p := partsOf(&l, 100); p.busy < 0 || p.waits < 0 || p.off < 0 || p.busy+p.waits+p.off > 100 {
			t.Fatalf("%+v of %+v", p, l)
		}
	}
}

// TestOffTheCPUInABarrier holds that a lane which loses its CPU in a barrier, and one that
// sleeps in it, are off the CPU meanwhile, and that the rest of the barrier is its wait.
func TestOffTheCPUInABarrier(t *testing.T) {
	tables := &Tables{Operators: []Operator{{Op: "ADD"}}}
	e := func(at time.Duration, k Kind, n int64) Event {
		return Event{At: at, Kind: k, N: n, PID: 1, TID: 1, Addr: 9, Lanes: 1, Ref: 1}
	}
	var events []Event
	for at := time.Duration(0); at < 30*1000; at += 1000 {
		begin := e(at, GraphBegin, 1)
		begin.Ref = 0
		events = append(events,
			begin, e(at+100, OpBegin, 0),
			e(at+200, SwitchOut, int64(OffPreempted)), e(at+250, SwitchIn, 0), // 50 in the operator
			e(at+400, BarrierBegin, 0), e(at+500, SwitchOut, int64(OffPreempted)), e(at+800, SwitchIn, 0), e(at+900, BarrierEnd, 0),
			e(at+1000, GraphEnd, 0))
	}
	s := Analyze(&Recording{Tables: tables, Events: events, Detail: LevelBarriers | LevelSched})
	row := s.Threads[0]
	if row.Busy.V != 0.25 || row.Sync.V != 0.2 || row.Off.V != 0.35 || row.Barriers.V != 0.5 || row.Preempted.V != 0.35 {
		t.Errorf("busy %v, waits %v, off %v, in barriers %v, preempted %v, want 0.25, 0.2, 0.35, 0.5 and 0.35", row.Busy, row.Sync, row.Off, row.Barriers, row.Preempted)
	}
	k, _ := assemble(tables, events)
	tally := NewTally(tables)
	tally.Graph(func() *Graph { g := k.graphs[0]; g.Phase = PhaseDecode; return g }())
	if got := tally.Live().Lanes[0].Spans[0]; got.Begin != 100 || got.End != 900 || got.Sync != 200 || got.Off != 350 {
		t.Errorf("drawn as %+v, want 100 to 900, 200 of it waiting and 350 off the CPU", got)
	}
}

// TestPartsAreNotOfTwoDetails holds that the parts of a lane are of graphs of one detail
// where it was changed meanwhile: a lane that looks busy without barriers waits with them.
// So few graphs that they say nothing do not replace many, and what only others tell
// stays where it is asked for alone.
func TestPartsAreNotOfTwoDetails(t *testing.T) {
	graphs := func(tally *Tally, n int, d Detail, l Lane) {
		for range n {
			l.TID, l.Spans = 1, []Span{{End: 100}}
			tally.Graph(&Graph{Call: -1, Detail: d, Phase: PhaseDecode, End: 100, Lanes: []Lane{l}})
		}
	}
	sched, both := Lane{Busy: 60, Off: 40, Preempted: 40}, Lane{Busy: 10, Sync: 80, Off: 50, OffWaiting: 45, Preempted: 50}
	tally := NewTally(&Tables{})
	graphs(tally, 80, LevelSched, sched)
	graphs(tally, 3, LevelBarriers|LevelSched, both)
	if row := tally.Summary(Settings{Detail: LevelSched}).Threads[0]; row.Busy.V != 0.6 || row.Off.V != 0.4 || row.Sync.OK || row.Barriers.V != 0.8 {
		t.Errorf("after 3 graphs: %+v", row)
	}
	graphs(tally, fewestGraphs-3, LevelBarriers|LevelSched, both)
	graphs(tally, 300, LevelBarriers, Lane{Busy: 5, Sync: 95})
	row := tally.Summary(Settings{Detail: LevelBarriers}).Threads[0]
	if row.Busy.V != 0.1 || row.Sync.V != 0.35 || row.Off.V != 0.5 {
		t.Errorf("busy %v, waits %v, off %v, want 0.1, 0.35 and 0.5", row.Busy, row.Sync, row.Off)
	}
	if row.Preempted.V != 0.5 || row.Graphs != fewestGraphs {
		t.Errorf("preempted for %v of %d graphs, want 0.5 of the %d that the others are of", row.Preempted, row.Graphs, fewestGraphs)
	}
	if want := (80*.4 + 20*.5) / 100; math.Abs(row.LostCPU.V-want) > 1e-9 {
		t.Errorf("preempted for %v, want %v of all that tell it", row.LostCPU, want)
	}
	// A lane that lost its CPU before, and not in the graphs that tell most.
	tally = NewTally(&Tables{})
	graphs(tally, 80, LevelSched, sched)
	graphs(tally, fewestGraphs, LevelBarriers|LevelSched, Lane{Busy: 90, Sync: 9, Off: 1, Preempted: 1})
	if row := tally.Summary(Settings{Detail: LevelSched}).Threads[0]; row.Preempted.V > row.Off.V || row.Off.V != 0.01 {
		t.Errorf("preempted for %v, and off the CPU for %v", row.Preempted, row.Off)
	}
}
