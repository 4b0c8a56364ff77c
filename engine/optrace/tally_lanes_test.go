package optrace

import (
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
