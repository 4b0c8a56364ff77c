package tally

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Graphs without their operators do not make threads lose more time than there was.
func TestGraphsWithoutOperatorsAreNoPartOfRatios(t *testing.T) {
	tally := New(&optrace.Tables{})
	tally.Graph(&optrace.Graph{Call: -1, End: 100, Threads: []optrace.Thread{{TID: 1, Off: 90, Preempted: 80}}})
	tally.Graph(&optrace.Graph{Call: -1, Begin: 100, End: 200, Threads: []optrace.Thread{{TID: 1, Off: 50, Preempted: 40, Busy: 50, Spans: []optrace.Span{{Begin: 100, End: 200}}}}})
	row := tally.Summary(Settings{Detail: optrace.LevelSched}).Threads[0]
	if row.Off.V != 0.5 || row.Preempted.V != 0.4 || row.Busy.V != 0.5 {
		t.Errorf("busy %v, off %v, preempted %v, want 0.5, 0.5 and 0.4", row.Busy, row.Off, row.Preempted)
	}
}

// TestSharesOfWhatWasRecorded checks that shares which need scheduling or barriers are of the
// time in which these were recorded, so that they do not change with the detail.
func TestSharesOfWhatWasRecorded(t *testing.T) {
	const dear = optrace.LevelBarriers | optrace.LevelSched
	graph := func(n int, d optrace.Detail) *optrace.Graph {
		l := optrace.Thread{TID: 1, Busy: 100}
		s := optrace.Span{Begin: time.Duration(100 * n), End: time.Duration(100*n + 100)}
		if d&optrace.DetailSched != 0 {
			l.Off, l.Preempted, l.Busy = 60, 50, l.Busy-60
			s.Off, s.Preempted = 60, 50
			l.TakenBy = map[int32]time.Duration{7: 50}
		}
		if d&optrace.DetailBarrier != 0 {
			l.Sync, s.Sync, l.Busy = 20, 20, l.Busy-20
		}
		l.Spans = []optrace.Span{s}
		return &optrace.Graph{Call: -1, Detail: d, Phase: optrace.PhaseDecode, Begin: s.Begin, End: s.End, Threads: []optrace.Thread{l}}
	}
	for name, order := range map[string][]optrace.Detail{
		"less": {dear, optrace.LevelTensor, optrace.LevelTensor, optrace.LevelTensor},
		"more": {optrace.LevelTensor, optrace.LevelTensor, optrace.LevelTensor, dear},
	} {
		tally := New(&optrace.Tables{})
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
		if k := s.Kinds[0]; k.Bound != optrace.BoundWaiting || k.Offed != 1 || k.Synced != 1 || k.Count != 4 {
			t.Errorf("%s: bound by %q, of %d and %d operators of %d", name, k.Bound, k.Offed, k.Synced, k.Count)
		}
	}
}

// TestDetailOfAGraph checks that a graph has the detail that was recorded of its process.
func TestDetailOfAGraph(t *testing.T) {
	var got []optrace.Detail
	a := optrace.New(&optrace.Tables{}, optrace.Graphs(func(g *optrace.Graph) { got = append(got, g.Detail) }))
	at := time.Duration(0)
	graph := func() {
		for _, k := range []optrace.Kind{optrace.GraphBegin, optrace.GraphEnd} {
			at++
			a.Push(optrace.Event{At: at, Kind: k, PID: 1, TID: 1, Addr: 9})
		}
	}
	graph()
	a.Push(optrace.Event{At: at, Kind: optrace.DetailChanged, PID: 1, N: int64(optrace.LevelSched)})
	graph()
	a.Push(optrace.Event{At: at, Kind: optrace.DetailChanged, PID: 2, N: int64(optrace.LevelToken)}) // of another
	graph()
	a.Push(optrace.Event{At: at, Kind: optrace.DetailChanged, PID: 1, N: int64(optrace.LevelTensor)})
	graph()
	if want := []optrace.Detail{0, optrace.LevelSched, optrace.LevelSched, optrace.LevelTensor}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestPartsOfALaneAreOneWhole checks that no moment of a thread counts twice, whatever was
// recorded: computing, waiting, off the CPU and no operator add up to the time of its graphs.
// Time off the CPU in barriers is not a wait.
func TestPartsOfALaneAreOneWhole(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	upTo := func(n time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(n) + 1)) }
	for range 500 {
		tally := New(&optrace.Tables{})
		var took, computed, waited, away time.Duration
		for at := time.Duration(0); at < 40*1000; at += 1000 {
			l := optrace.Thread{TID: 1, Spans: []optrace.Span{{Begin: at, End: at + 1000}}}
			l.Busy = upTo(1000)
			l.Sync = upTo(1000 - l.Busy)
			l.OffWaiting = upTo(l.Sync)
			l.Off = l.OffWaiting + upTo(1000-l.Busy-l.Sync)
			took, computed, waited, away = took+1000, computed+l.Busy, waited+l.Sync-l.OffWaiting, away+l.Off
			tally.Graph(&optrace.Graph{Call: -1, Detail: optrace.LevelBarriers | optrace.LevelSched, Begin: at, End: at + 1000, Threads: []optrace.Thread{l}})
		}
		row := tally.Summary(Settings{Detail: optrace.LevelBarriers | optrace.LevelSched}).Threads[0]
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
		l := optrace.Thread{Spans: []optrace.Span{{End: 100}}, Busy: upTo(300) - 100, Sync: upTo(300) - 100, Off: upTo(300) - 100, OffWaiting: upTo(300) - 100}
		if p := partsOf(&l, 100); p.busy < 0 || p.waits < 0 || p.off < 0 || p.busy+p.waits+p.off > 100 {
			t.Fatalf("%+v of %+v", p, l)
		}
	}
}

// TestOffTheCPUInABarrier checks that a thread which loses its CPU in a barrier, or sleeps in
// it, is off the CPU meanwhile, and that the remainder of the barrier is its wait.
func TestOffTheCPUInABarrier(t *testing.T) {
	tables := &optrace.Tables{Operators: []optrace.Operator{{Op: "ADD"}}}
	e := func(at time.Duration, k optrace.Kind, n int64) optrace.Event {
		return optrace.Event{At: at, Kind: k, N: n, PID: 1, TID: 1, Addr: 9, Threads: 1, Ref: 1}
	}
	var events []optrace.Event
	for at := time.Duration(0); at < 30*1000; at += 1000 {
		begin := e(at, optrace.GraphBegin, 1)
		begin.Ref = 0
		events = append(events,
			begin, e(at+100, optrace.OpBegin, 0),
			e(at+200, optrace.SwitchOut, int64(optrace.OffPreempted)), e(at+250, optrace.SwitchIn, 0), // 50 in the operator
			e(at+400, optrace.BarrierBegin, 0), e(at+500, optrace.SwitchOut, int64(optrace.OffPreempted)), e(at+800, optrace.SwitchIn, 0), e(at+900, optrace.BarrierEnd, 0),
			e(at+1000, optrace.GraphEnd, 0))
	}
	s := Analyze(&optrace.Recording{Tables: tables, Events: events, Detail: optrace.LevelBarriers | optrace.LevelSched})
	row := s.Threads[0]
	if row.Busy.V != 0.25 || row.Sync.V != 0.2 || row.Off.V != 0.35 || row.Barriers.V != 0.5 || row.Preempted.V != 0.35 {
		t.Errorf("busy %v, waits %v, off %v, in barriers %v, preempted %v, want 0.25, 0.2, 0.35, 0.5 and 0.35", row.Busy, row.Sync, row.Off, row.Barriers, row.Preempted)
	}
	tally := New(tables)
	optrace.Replay(&optrace.Recording{Events: events}, tables, optrace.Graphs(func(g *optrace.Graph) {
		if got := tally.liveGraph(g).Threads[0].Spans[0]; got.Begin != 100 || got.End != 900 || got.Sync != 200 || got.Off != 350 {
			t.Errorf("drawn as %+v, want 100 to 900, 200 of it waiting and 350 off the CPU", got)
		}
	}))
}

// TestPartsAreNotOfTwoDetails checks that the parts of a thread are of graphs with one detail:
// a thread that looks busy without barriers waits with them. Too few graphs do not replace
// many, and figures of other graphs are used only for themselves.
func TestPartsAreNotOfTwoDetails(t *testing.T) {
	graphs := func(tally *Tally, n int, d optrace.Detail, l optrace.Thread) {
		for range n {
			l.TID, l.Spans = 1, []optrace.Span{{End: 100}}
			tally.Graph(&optrace.Graph{Call: -1, Detail: d, Phase: optrace.PhaseDecode, End: 100, Threads: []optrace.Thread{l}})
		}
	}
	sched, both := optrace.Thread{Busy: 60, Off: 40, Preempted: 40}, optrace.Thread{Busy: 10, Sync: 80, Off: 50, OffWaiting: 45, Preempted: 50}
	tally := New(&optrace.Tables{})
	graphs(tally, 80, optrace.LevelSched, sched)
	graphs(tally, 3, optrace.LevelBarriers|optrace.LevelSched, both)
	if row := tally.Summary(Settings{Detail: optrace.LevelSched}).Threads[0]; row.Busy.V != 0.6 || row.Off.V != 0.4 || row.Sync.OK || row.Barriers.V != 0.8 {
		t.Errorf("after 3 graphs: %+v", row)
	}
	graphs(tally, optrace.FewestGraphs-3, optrace.LevelBarriers|optrace.LevelSched, both)
	graphs(tally, 300, optrace.LevelBarriers, optrace.Thread{Busy: 5, Sync: 95})
	row := tally.Summary(Settings{Detail: optrace.LevelBarriers}).Threads[0]
	if row.Busy.V != 0.1 || row.Sync.V != 0.35 || row.Off.V != 0.5 {
		t.Errorf("busy %v, waits %v, off %v, want 0.1, 0.35 and 0.5", row.Busy, row.Sync, row.Off)
	}
	if row.Preempted.V != 0.5 || row.Graphs != optrace.FewestGraphs {
		t.Errorf("preempted for %v of %d graphs, want 0.5 of the %d that the others are of", row.Preempted, row.Graphs, optrace.FewestGraphs)
	}
	if want := (80*.4 + 20*.5) / 100; math.Abs(row.LostCPU.V-want) > 1e-9 {
		t.Errorf("preempted for %v, want %v of all graphs that recorded it", row.LostCPU, want)
	}
	// A thread that lost its CPU earlier, but not in the graphs with most detail.
	tally = New(&optrace.Tables{})
	graphs(tally, 80, optrace.LevelSched, sched)
	graphs(tally, optrace.FewestGraphs, optrace.LevelBarriers|optrace.LevelSched, optrace.Thread{Busy: 90, Sync: 9, Off: 1, Preempted: 1})
	if row := tally.Summary(Settings{Detail: optrace.LevelSched}).Threads[0]; row.Preempted.V > row.Off.V || row.Off.V != 0.01 {
		t.Errorf("preempted for %v, and off the CPU for %v", row.Preempted, row.Off)
	}
}
