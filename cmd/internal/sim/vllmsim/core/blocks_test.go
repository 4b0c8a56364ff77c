package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Fact 21, and 19 for what is cached: of a finished request of 3 full blocks and a
// partial one, the partial block is reused first by New, and the last by Old.
func TestFreeOrder(t *testing.T) {
	for g, want := range map[Generation][]int32{
		New: {4, 5, 6, 7, 8, 3, 2, 1},
		Old: {5, 6, 7, 8, 4, 3, 2, 1},
	} {
		c := small()
		c.Generation = g
		c.NumBlocks = 9
		b := newBench(t, c)
		b.add(1, words(1, 14), 1)
		b.drain()
		var got []int32
		for f := b.e.pool.next[0]; f != 0; f = b.e.pool.next[f] {
			got = append(got, f)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("generation %d (-want +got)\n%s", g, d)
		}
	}
}

// Fact 29: a blocked head is looked up in each step; only Old counts that.
func TestBlockedHeadInflatesQueriesInOldOnly(t *testing.T) {
	for g, want := range map[Generation][]int{New: {0, 0, 0}, Old: {18, 18, 18}} {
		c := small()
		c.Generation, c.NumBlocks = g, 9
		b := newBench(t, c)
		b.add(1, words(1, 20), 6)
		b.wantRows([2]int{1, 20})
		b.add(2, append(words(1, 4), words(2, 14)...), 2)
		for i := range want {
			r := b.wantRows([2]int{1, 1})
			hits := 0
			if g == Old {
				hits = 4
			}
			if r.PrefixQueries != want[i] || r.PrefixHits != hits {
				t.Errorf("generation %d: %d hits of %d queries, want %d of %d", g, r.PrefixHits, r.PrefixQueries, hits, want[i])
			}
		}
	}
}

func TestResumedRequestsAreQueriesInOldOnly(t *testing.T) {
	for g, more := range map[Generation]bool{New: false, Old: true} {
		c := small()
		c.Generation, c.NumBlocks = g, 7
		b := newBench(t, c)
		b.add(1, words(1, 8), 9)
		b.add(2, words(2, 7), 9)
		queries, preempted := 0, 0
		for !b.e.Idle() {
			_, r := b.step()
			queries += r.PrefixQueries
			preempted += r.Preemptions
		}
		if preempted == 0 || (queries > 15) != more {
			t.Errorf("generation %d: %d queries of 15 prompt tokens with %d preemptions", g, queries, preempted)
		}
	}
}

// Fact 9: New admits what fits as a whole, Old what fits with its first chunk.
func TestReservationOfTheWholeSequence(t *testing.T) {
	for _, tt := range []struct {
		name    string
		g       Generation
		reserve bool
		running int
	}{{"new", New, true, 1}, {"new without", New, false, 2}, {"old", Old, true, 2}} {
		c := small()
		c.Generation, c.ReserveFullISL, c.NumBlocks, c.MaxNumBatchedTokens = tt.g, tt.reserve, 9, 12
		b := newBench(t, c)
		b.add(1, words(1, 8), 12)
		b.add(2, words(2, 28), 1)
		b.begin()
		if got := len(b.e.running); got != tt.running {
			t.Errorf("%s: %d running, want %d", tt.name, got, tt.running)
		}
		b.complete()
	}
}
