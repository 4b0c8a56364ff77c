package core

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNullBlockIsNeverUsed(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		c.NumBlocks = 5
		b := newBench(t, c)
		b.add(1, words(1, 16), 1) // exactly the four usable blocks
		b.begin()
		if got := b.e.running[0].blocks; slices.Contains(got, 0) || len(got) != 4 {
			t.Errorf("blocks %v, want four without the null block", got)
		}
		if u := b.e.State().KVUsage; u != 1 {
			t.Errorf("usage %v, want 1: the null block is no part of the pool", u)
		}
		b.complete()
		if u := b.e.State().KVUsage; u != 0 {
			t.Errorf("usage %v after the end, want 0 although blocks are cached", u)
		}
	})
}

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

func TestWhollyCachedPromptComputesItsLastBlock(t *testing.T) {
	for _, tt := range []struct{ prompt, cached int }{{12, 8}, {13, 12}, {4, 0}, {3, 0}} {
		b := newBench(t, small())
		b.add(1, words(1, tt.prompt), 1)
		b.drain()
		b.add(2, words(1, tt.prompt), 1)
		r := b.wantRows([2]int{2, tt.prompt - tt.cached})
		if r.PrefixHits != tt.cached || r.PrefixQueries != tt.prompt || r.Outputs[0].History.CachedTokens != tt.cached {
			t.Errorf("prompt of %d: %d hits of %d, %d cached; want %d", tt.prompt, r.PrefixHits, r.PrefixQueries, r.Outputs[0].History.CachedTokens, tt.cached)
		}
	}
}

func TestEqualBlocksAreNotMerged(t *testing.T) {
	b := newBench(t, small())
	b.add(1, words(1, 4), 8)
	b.wantRows([2]int{1, 4})
	b.add(2, words(1, 4), 8) // recomputes its only block, which the first holds
	b.begin()
	one, two := b.e.running[0].blocks[0], b.e.running[1].blocks[0]
	if one == two || b.e.pool.hash[one] != b.e.pool.hash[two] {
		t.Errorf("blocks %d and %d, want two of equal content", one, two)
	}
	b.complete()
	b.drain()
}

// Fact 20.
func TestHitWithinTheStepThatComputes(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		b := newBench(t, c)
		b.add(1, words(1, 21), 4)
		b.add(2, words(1, 21), 4)
		b.wantRows([2]int{1, 21}, [2]int{2, 1})
	})
}

func TestGeneratedTokensAreCached(t *testing.T) {
	for _, async := range []bool{false, true} {
		c := small()
		c.AsyncScheduling = async
		b := newBench(t, c)
		b.add(1, words(1, 6), 10)
		_, out := b.drain()
		second := words(1, 6)
		for _, o := range out {
			second = append(second, o.Token)
		}
		second = append(second, 7, 7, 7)
		b.add(2, second, 1)
		// Of 16 tokens the last was sampled and never computed, so its block is not
		// full: 12 of 19 are found.
		if r := b.wantRows([2]int{2, 7}); r.PrefixHits != 12 {
			t.Errorf("async %v: %d hits, want 12", async, r.PrefixHits)
		}
	}
}

func TestAdaptersAndSaltsShareNothing(t *testing.T) {
	b := newBench(t, small())
	b.add(1, words(1, 13), 1)
	b.drain()
	for id, r := range []Request{{Adapter: "a"}, {Salt: 1}, {Adapter: "a", Salt: 1}} {
		r.ID, r.Prompt, r.MaxTokens = ID(id+2), words(1, 13), 1
		b.submit(r)
		if r := b.wantRows([2]int{id + 2, 13}); r.PrefixHits != 0 {
			t.Errorf("request %d: %d hits", id+2, r.PrefixHits)
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

// Fact 21: a cached block that nobody holds is free until it is found.
func TestFoundBlocksUseUpCapacity(t *testing.T) {
	c := small()
	c.NumBlocks = 9
	b := newBench(t, c)
	b.add(1, words(1, 16), 1)
	b.drain()                 // leaves 4 cached blocks, all free
	b.add(2, words(2, 16), 9) // takes the 4 others
	b.wantRows([2]int{2, 16})
	b.add(3, words(1, 20), 1) // finds 4, needs 1: 5 of 4
	if r := b.wantRows([2]int{2, 1}); r.WaitingCapacity != 1 {
		t.Errorf("%d waiting: the found blocks were counted as held already", r.WaitingCapacity)
	}
}

func TestWatermarkSparesTheFirst(t *testing.T) {
	c := small()
	c.NumBlocks, c.Watermark = 11, 0.5
	b := newBench(t, c)
	b.add(1, words(1, 32), 1) // 8 of 10: allowed as nothing runs
	b.wantRows([2]int{1, 32})
	b.add(2, words(2, 12), 4)
	b.add(3, words(3, 12), 4)
	// 3 + 3 of 10 leave 4 free, below the watermark of 5.
	if r := b.wantRows([2]int{2, 12}); r.WaitingCapacity != 1 {
		t.Errorf("%d waiting, want 1", r.WaitingCapacity)
	}
}

func TestHashOfABlockDoesNotDependOnWhatIsPrompt(t *testing.T) {
	all := words(3, 12)
	whole := sequence{req: Request{Prompt: all}}
	for cut := range len(all) {
		s := sequence{req: Request{Prompt: all[:cut]}, out: all[cut:]}
		for i := range 3 {
			if s.hash(i, 4) != whole.hash(i, 4) {
				t.Errorf("block %d differs where %d tokens are the prompt", i, cut)
			}
		}
	}
}
