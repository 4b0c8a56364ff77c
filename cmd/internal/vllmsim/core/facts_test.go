package core

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// bench drives an engine by hand, with a millisecond for each step.
type bench struct {
	t   *testing.T
	e   *Engine
	now time.Duration
}

func newBench(t *testing.T, c Config) *bench { return &bench{t: t, e: NewEngine(c)} }

// words returns n tokens that are the same for the same kind.
func words(kind, n int) []Token {
	p := make([]Token, n)
	for i := range p {
		p[i] = Token(1000*kind + i)
	}
	return p
}

// add submits a request that arrives now and ends after a number of tokens.
func (b *bench) add(id ID, prompt []Token, output int) {
	b.submit(Request{ID: id, Prompt: prompt, MaxTokens: output})
}

func (b *bench) submit(r Request) {
	r.Arrival = b.now
	b.e.Submit(r, b.now)
}

func (b *bench) begin() Batch {
	b.t.Helper()
	batch, ok := b.e.Begin(b.now)
	if !ok {
		b.t.Fatal("nothing is to be done")
	}
	return batch
}

func (b *bench) complete() Report {
	b.t.Helper()
	b.now += time.Millisecond
	r := b.e.Complete(b.now)
	if err := b.e.Check(); err != nil {
		b.t.Fatal(err)
	}
	return r
}

// step runs one step and returns which requests computed how many tokens.
func (b *bench) step() (rows [][2]int, r Report) {
	b.t.Helper()
	for _, w := range b.begin().Work {
		rows = append(rows, [2]int{int(w.ID), w.New})
	}
	return rows, b.complete()
}

// drain runs steps until nothing is left and returns them and all outputs.
func (b *bench) drain() (steps int, outputs []Output) {
	b.t.Helper()
	for !b.e.Idle() {
		if steps++; steps > 10_000 {
			b.t.Fatal("the engine never becomes idle")
		}
		_, r := b.step()
		for _, o := range r.Outputs {
			life := *o.Life
			o.Life = &life
			outputs = append(outputs, o)
		}
	}
	return steps, outputs
}

func (b *bench) wantRows(want ...[2]int) Report {
	b.t.Helper()
	got, r := b.step()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		b.t.Errorf("step %d (-want +got)\n%s", r.Step, d)
	}
	return r
}

func eachGeneration(t *testing.T, test func(t *testing.T, c Config)) {
	for name, g := range map[string]Generation{"new": New, "old": Old} {
		t.Run(name, func(t *testing.T) {
			c := small()
			c.Generation = g
			test(t, c)
		})
	}
}

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
		if r.PrefixHits != tt.cached || r.PrefixQueries != tt.prompt || r.Outputs[0].Life.CachedTokens != tt.cached {
			t.Errorf("prompt of %d: %d hits of %d, %d cached; want %d", tt.prompt, r.PrefixHits, r.PrefixQueries, r.Outputs[0].Life.CachedTokens, tt.cached)
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

// Facts 6, 7, 11 and 12: running requests come first, in their order; what does
// not fit is cut and goes on ahead of new ones; a cut prompt yields nothing.
func TestChunkedPrefill(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		c.MaxNumBatchedTokens = 10
		b := newBench(t, c)
		b.add(1, words(1, 4), 5)
		b.wantRows([2]int{1, 4})
		b.add(2, words(2, 16), 3)
		b.add(3, words(3, 5), 3)
		if r := b.wantRows([2]int{1, 1}, [2]int{2, 9}); len(r.Outputs) != 1 {
			t.Errorf("%d outputs, want that of request 1 only", len(r.Outputs))
		}
		r := b.wantRows([2]int{1, 1}, [2]int{2, 7}, [2]int{3, 2})
		if len(r.Outputs) != 2 || !r.Outputs[1].First || r.ComputedPrompt != 16 {
			t.Errorf("%d outputs and %d computed prompt tokens, want the first token of request 2 with all its 16", len(r.Outputs), r.ComputedPrompt)
		}
		b.wantRows([2]int{1, 1}, [2]int{2, 1}, [2]int{3, 3})
	})
}

func TestWithoutChunkingAPromptBeyondTheBudgetWaits(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		c.MaxNumBatchedTokens, c.ChunkedPrefill = 10, false
		b := newBench(t, c)
		b.add(1, words(1, 7), 3)
		b.add(2, words(2, 8), 3)
		b.add(3, words(3, 1), 3)
		b.wantRows([2]int{1, 7}) // request 3 would fit, but is behind
		b.wantRows([2]int{1, 1}, [2]int{2, 8}, [2]int{3, 1})
	})
}

func TestLongPrefillThreshold(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		c.MaxNumBatchedTokens, c.LongPrefillTokenThreshold = 20, 6
		b := newBench(t, c)
		b.add(1, words(1, 15), 3)
		b.add(2, words(2, 8), 3)
		b.wantRows([2]int{1, 6}, [2]int{2, 6})
		b.wantRows([2]int{1, 6}, [2]int{2, 2})
		b.wantRows([2]int{1, 3}, [2]int{2, 1})
	})
}

// Fact 8: the last is preempted, goes to the front of the queue, and nobody is
// admitted in that step (fact 9). Fact 10: it computes its output again, too.
func TestPreemptionOfTheLast(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		c.NumBlocks, c.PrefixCaching, c.MaxNumSeqs = 7, false, 2
		b := newBench(t, c)
		b.add(1, words(1, 8), 9)
		b.add(2, words(2, 7), 9)
		b.add(3, words(3, 1), 2) // has neither a seat nor a place in front
		b.wantRows([2]int{1, 8}, [2]int{2, 7})
		for range 4 {
			b.wantRows([2]int{1, 1}, [2]int{2, 1})
		}
		// Request 1 needs a fourth block and all six are held.
		batch := b.begin()
		if d := cmp.Diff([]ID{2}, batch.Preempted); d != "" || len(batch.Admitted) > 0 || len(batch.Work) != 1 {
			t.Fatalf("preempted %v, admitted %v, work %v", batch.Preempted, batch.Admitted, batch.Work)
		}
		r := b.complete()
		if r.Preemptions != 1 || r.WaitingCapacity != 2 || r.Running != 1 {
			t.Errorf("%d preemptions, %d waiting, %d running", r.Preemptions, r.WaitingCapacity, r.Running)
		}
		if b.e.waiting.first.req.ID != 2 {
			t.Errorf("request %d is at the front, want the preempted one", b.e.waiting.first.req.ID)
		}
		first := b.e.byID[2].life.FirstToken
		steps, out := b.drain()
		var again Output
		for _, o := range out {
			if o.ID == 2 && o.Life.OutputTokens == 6 {
				again = o
			}
		}
		// Its sixth token came after request 1 had ended and freed its blocks.
		if again.Gap < 4*time.Millisecond || again.Life.Preemptions != 1 || again.Life.FirstToken != first {
			t.Errorf("after %d steps: gap %v, life %+v", steps, again.Gap, again.Life)
		}
	})
}

func TestRecomputationIncludesOutput(t *testing.T) {
	c := small()
	c.NumBlocks, c.MaxNumBatchedTokens = 7, 32
	for _, caching := range []bool{false, true} {
		c.PrefixCaching = caching
		b := newBench(t, c)
		b.add(1, words(1, 8), 6)
		b.add(2, words(2, 7), 9)
		var again *Work
		for range 40 {
			batch, ok := b.e.Begin(b.now)
			if !ok {
				break
			}
			if again == nil && slices.Contains(batch.Admitted, 2) && b.e.byID[2].life.Preemptions > 0 {
				i := slices.IndexFunc(batch.Work, func(w Work) bool { return w.ID == 2 })
				w := batch.Work[i]
				again = &w
			}
			b.complete()
		}
		if again == nil {
			t.Fatal("request 2 never came back")
		}
		// It had 7 tokens of prompt and 5 of output. With caching it finds those of its
		// own blocks that request 1 did not need meanwhile.
		switch {
		case !again.Prefill || again.Context+again.New != 12:
			t.Errorf("caching %v: it computed %+v, want all 12 tokens", caching, *again)
		case !caching && again.Context != 0, caching && again.Context != 8:
			t.Errorf("caching %v: it found %d tokens", caching, again.Context)
		}
	}
}

// Fact 9, head of the line: what does not fit keeps smaller ones waiting.
func TestHeadOfLineBlocking(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		c.NumBlocks = 9
		b := newBench(t, c)
		b.add(1, words(1, 20), 4)
		b.wantRows([2]int{1, 20})
		b.add(2, words(2, 16), 2)
		b.add(3, words(3, 2), 2)
		if r := b.wantRows([2]int{1, 1}); r.WaitingCapacity != 2 {
			t.Errorf("%d waiting, want 2", r.WaitingCapacity)
		}
	})
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

func TestPriorityPolicy(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		c.Policy, c.MaxNumSeqs = Priority, 2
		b := newBench(t, c)
		b.submit(Request{ID: 1, Prompt: words(1, 4), MaxTokens: 2, Priority: 5})
		b.submit(Request{ID: 2, Prompt: words(2, 4), MaxTokens: 2, Priority: 1})
		b.now++
		b.submit(Request{ID: 3, Prompt: words(3, 4), MaxTokens: 2, Priority: 1})
		b.wantRows([2]int{2, 4}, [2]int{3, 4})
	})
}

// Fact 8 by priority: the victim need not be the last, and may have been scheduled
// in the same step already.
func TestPriorityVictimLeavesItsStep(t *testing.T) {
	c := small()
	c.Policy, c.NumBlocks, c.MaxNumBatchedTokens, c.PrefixCaching = Priority, 7, 12, false
	b := newBench(t, c)
	b.submit(Request{ID: 1, Prompt: words(1, 7), MaxTokens: 20, Priority: 9})
	b.wantRows([2]int{1, 7})
	b.submit(Request{ID: 2, Prompt: words(2, 4), MaxTokens: 20, Priority: 1})
	b.wantRows([2]int{1, 1}, [2]int{2, 4})
	var seen bool
	for range 9 {
		batch := b.begin()
		if len(batch.Preempted) > 0 {
			seen = true
			if d := cmp.Diff([]ID{1}, batch.Preempted); d != "" || len(batch.Work) != 1 || batch.Work[0].ID != 2 || batch.Tokens != 1 {
				t.Errorf("preempted %v, work %+v of %d tokens", batch.Preempted, batch.Work, batch.Tokens)
			}
		}
		b.complete()
	}
	if !seen {
		t.Error("nobody was preempted")
	}
}

// Fact 16.
func TestLoRASlots(t *testing.T) {
	for g, deferred := range map[Generation]int{New: 1, Old: 0} {
		c := small()
		c.Generation, c.MaxLoras = g, 1
		b := newBench(t, c)
		for id, adapter := range []string{"a", "b", "", "a"} {
			b.submit(Request{ID: ID(id + 1), Prompt: words(id, 3), MaxTokens: 3, Adapter: adapter})
		}
		// Request 2 is set aside, those behind it are not.
		r := b.wantRows([2]int{1, 3}, [2]int{3, 3}, [2]int{4, 3})
		if r.WaitingDeferred != deferred || r.WaitingCapacity+r.WaitingDeferred != 1 || r.Running != 3 {
			t.Errorf("generation %d: %+v", g, r.State)
		}
		b.add(5, words(5, 3), 9)
		b.wantRows([2]int{1, 1}, [2]int{3, 1}, [2]int{4, 1}, [2]int{5, 3})
		b.wantRows([2]int{1, 1}, [2]int{3, 1}, [2]int{4, 1}, [2]int{5, 1})
		b.wantRows([2]int{5, 1}, [2]int{2, 3})
	}
}

// Fact 13.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		r      Request
		tokens int
		why    Reason
	}{
		{"max_tokens", Request{Prompt: words(1, 5), MaxTokens: 7}, 7, Length},
		{"one token", Request{Prompt: words(1, 5), MaxTokens: 1}, 1, Length},
		{"stop", Request{Prompt: words(1, 5), MaxTokens: 7, StopAfter: 3}, 3, Stop},
		{"stop and length at once", Request{Prompt: words(1, 5), MaxTokens: 7, StopAfter: 7}, 7, Stop},
		{"stop after length", Request{Prompt: words(1, 5), MaxTokens: 7, StopAfter: 9}, 7, Length},
		{"stop before min_tokens", Request{Prompt: words(1, 5), MaxTokens: 7, StopAfter: 2, MinTokens: 4}, 4, Stop},
		{"model length", Request{Prompt: words(1, 250), MaxTokens: 100}, 6, Length},
	} {
		for _, async := range []bool{false, true} {
			c := small()
			c.AsyncScheduling = async
			c.MaxNumBatchedTokens = 300
			b := newBench(t, c)
			tt.r.ID = 1
			b.submit(tt.r)
			_, out := b.drain()
			last := out[len(out)-1]
			if len(out) != tt.tokens || last.Finish != tt.why || last.Life.OutputTokens != tt.tokens {
				t.Errorf("%s, async %v: %d tokens, end %v; want %d, %v", tt.name, async, len(out), last.Finish, tt.tokens, tt.why)
			}
		}
	}
}

// Fact 14: what ends by its content takes one step more, what ends by its length
// does not.
func TestAsyncSchedulingTakesAStepMoreForAStop(t *testing.T) {
	for _, tt := range []struct {
		name        string
		async       bool
		stop, steps int
	}{
		{"length", false, 0, 5}, {"length, async", true, 0, 5},
		{"stop", false, 5, 5}, {"stop, async", true, 5, 6},
	} {
		c := small()
		c.AsyncScheduling = tt.async
		b := newBench(t, c)
		max := 5
		if tt.stop > 0 {
			max = 50
		}
		b.submit(Request{ID: 1, Prompt: words(1, 5), MaxTokens: max, StopAfter: tt.stop})
		if steps, out := b.drain(); steps != tt.steps || len(out) != 5 {
			t.Errorf("%s: %d steps and %d tokens, want %d and 5", tt.name, steps, len(out), tt.steps)
		}
	}
}

// Fact 14: a step is scheduled while the one before it runs, so an arrival waits
// for the step after that.
func TestAsyncSchedulingIsAStepAhead(t *testing.T) {
	c := small()
	c.AsyncScheduling = true
	b := newBench(t, c)
	b.add(1, words(1, 5), 9)
	b.begin()
	b.add(2, words(2, 5), 9)
	b.complete()
	b.wantRows([2]int{1, 1})
	b.wantRows([2]int{1, 1}, [2]int{2, 5})
}

// Fact 15, and the contract of Abort.
func TestAborts(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		c.MaxNumSeqs = 2
		b := newBench(t, c)
		for id := range ID(4) {
			b.add(id+1, words(int(id), 5), 9)
		}
		b.begin()
		b.e.Abort(1, b.now) // running: this step's token is thrown away
		b.e.Abort(3, b.now) // waiting
		b.e.Abort(77, b.now)
		r := b.complete()
		var got []ID
		for _, o := range r.Outputs {
			if o.Finish == Aborted && !o.HasToken {
				got = append(got, o.ID)
			} else if o.ID == 1 {
				t.Errorf("an aborted request got %+v", o)
			}
		}
		if d := cmp.Diff([]ID{1, 3}, got); d != "" || r.Running != 1 || r.WaitingCapacity != 1 {
			t.Errorf("%s%+v", d, r.State)
		}
		b.e.Abort(2, b.now)
		b.e.Abort(4, b.now)
		b.add(5, words(5, 5), 9)
		b.e.Abort(5, b.now)
		batch := b.begin() // only to report
		if len(batch.Work) != 0 || batch.Tokens != 0 {
			t.Errorf("work %+v of aborted requests", batch.Work)
		}
		if r := b.complete(); len(r.Outputs) != 3 || r.KVUsage != 0 || !b.e.Idle() {
			t.Errorf("%d ends, %+v", len(r.Outputs), r.State)
		}
		b.e.Abort(2, b.now) // long gone
		if _, ok := b.e.Begin(b.now); ok {
			t.Error("an idle engine has something to do")
		}
	})
}

func TestImpossibleRequestsFail(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		r      Request
		tokens int
	}{
		{"no prompt", nil, Request{MaxTokens: 1}, 0},
		{"no output", nil, Request{Prompt: words(1, 3)}, 0},
		{"beyond the model", func(c *Config) { c.NumBlocks = 1000 }, Request{Prompt: words(1, 256), MaxTokens: 1}, 0},
		{"beyond the pool", func(c *Config) { c.NumBlocks = 5 }, Request{Prompt: words(1, 17), MaxTokens: 1}, 0},
		{"grows beyond the pool", func(c *Config) { c.NumBlocks = 5 }, Request{Prompt: words(1, 10), MaxTokens: 50}, 7},
		{"beyond the budget unchunked", func(c *Config) { c.ChunkedPrefill, c.MaxNumBatchedTokens = false, 8 }, Request{Prompt: words(1, 9), MaxTokens: 1}, 0},
	} {
		for _, async := range []bool{false, true} {
			eachGeneration(t, func(t *testing.T, c Config) {
				c.AsyncScheduling = async
				if tt.change != nil {
					tt.change(&c)
				}
				b := newBench(t, c)
				tt.r.ID = 1
				b.submit(tt.r)
				b.add(2, words(2, 3), 2)
				_, out := b.drain()
				var ends []Reason
				tokens := 0
				for _, o := range out {
					if o.ID == 1 && o.HasToken {
						tokens++
					}
					if o.Finish != NotFinished {
						ends = append(ends, o.Finish)
					}
				}
				slices.Sort(ends)
				want := tt.tokens
				if async && want > 0 {
					want-- // the step that would give it is still out when the next fails
				}
				if d := cmp.Diff([]Reason{Length, Error}, ends); d != "" || tokens != want {
					t.Errorf("%s, async %v: %d tokens, want %d\n%s", tt.name, async, tokens, want, d)
				}
			})
		}
	}
}

// Fact 25.
func TestComputedPrompt(t *testing.T) {
	for g, want := range map[Generation]int{New: 1, Old: 13} {
		c := small()
		c.Generation = g
		b := newBench(t, c)
		b.add(1, words(1, 13), 1)
		b.drain()
		b.add(2, words(1, 13), 2)
		if r := b.wantRows([2]int{2, 1}); r.ComputedPrompt != want {
			t.Errorf("generation %d: %d computed, want %d", g, r.ComputedPrompt, want)
		}
		if r := b.wantRows([2]int{2, 1}); r.ComputedPrompt != 0 {
			t.Errorf("generation %d: %d computed in a step of decoding", g, r.ComputedPrompt)
		}
	}
}

// Fact 27: preemption restarts no clock.
func TestLifeAcrossPreemption(t *testing.T) {
	c := small()
	c.NumBlocks = 7
	b := newBench(t, c)
	b.add(1, words(1, 8), 9)
	b.add(2, words(2, 7), 9)
	_, out := b.drain()
	i := slices.IndexFunc(out, func(o Output) bool { return o.ID == 2 && o.Finish != NotFinished })
	l := *out[i].Life
	if l.Preemptions == 0 || l.Queued != 0 || l.Scheduled != 0 || l.FirstToken != time.Millisecond || l.OutputTokens != 9 {
		t.Errorf("%+v", l)
	}
}

func TestGeneratedTokens(t *testing.T) {
	run := func(seed uint64, slow bool) []Token {
		c := small()
		c.Seed = seed
		if slow {
			c.MaxNumBatchedTokens, c.AsyncScheduling = 3, true
		}
		b := newBench(t, c)
		b.add(7, words(1, 9), 200)
		_, out := b.drain()
		var tokens []Token
		for _, o := range out {
			if o.Token < 0 || o.Token >= VocabWords {
				t.Fatalf("token %d", o.Token)
			}
			tokens = append(tokens, o.Token)
		}
		return tokens
	}
	a := run(1, false)
	if d := cmp.Diff(a, run(1, true)); d != "" {
		t.Errorf("tokens depend on scheduling\n%s", d)
	}
	if slices.Equal(a, run(2, false)) {
		t.Error("tokens do not depend on the seed")
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(a)))
	if len(distinct) < 190 {
		t.Errorf("%d distinct of 200 tokens", len(distinct))
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

func TestNewEngineRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"seats":     func(c *Config) { c.MaxNumSeqs = 0 },
		"budget":    func(c *Config) { c.MaxNumBatchedTokens = 0 },
		"length":    func(c *Config) { c.MaxModelLen = 0 },
		"block":     func(c *Config) { c.BlockSize = 0 },
		"pool":      func(c *Config) { c.NumBlocks = 1 },
		"threshold": func(c *Config) { c.LongPrefillTokenThreshold = -1 },
		"watermark": func(c *Config) { c.Watermark = math.NaN() },
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			change(&c)
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			NewEngine(c)
		})
	}
}

func TestMisuseIsRefused(t *testing.T) {
	for name, use := range map[string]func(*Engine){
		"Complete without a step": func(e *Engine) { e.Complete(0) },
		"Begin twice": func(e *Engine) {
			e.Submit(Request{ID: 1, Prompt: words(1, 3), MaxTokens: 3}, 0)
			e.Begin(0)
			e.Begin(0)
		},
		"one ID twice": func(e *Engine) {
			e.Submit(Request{ID: 1, Prompt: words(1, 3), MaxTokens: 3}, 0)
			e.Submit(Request{ID: 1, Prompt: words(1, 3), MaxTokens: 3}, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was taken")
				}
			}()
			use(NewEngine(small()))
		})
	}
}
