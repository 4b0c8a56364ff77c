package tally

import (
	"math"
	"math/rand/v2"
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
			tally.Graph(&optrace.Graph{Call: -1, Begin: at, End: at + 1000, Threads: []optrace.Thread{l}})
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
