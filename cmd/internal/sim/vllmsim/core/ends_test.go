package core

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Fact 15, and the contract of Abort.
func TestAborts(t *testing.T) {
	eachGeneration(t, func(t *testing.T, c Config) {
		c.MaxNumSeqs = 2
		b := newBench(t, c)
		for id := range ID(4) {
			b.add(id+1, words(int(id), 5), 9)
		}
		b.begin()
		b.e.Abort(1) // running: this step's token is thrown away
		b.e.Abort(3) // waiting
		b.e.Abort(77)
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
		b.e.Abort(2)
		b.e.Abort(4)
		b.add(5, words(5, 5), 9)
		b.e.Abort(5)
		batch := b.begin() // only to report
		if len(batch.Work) != 0 || batch.Tokens != 0 {
			t.Errorf("work %+v of aborted requests", batch.Work)
		}
		if r := b.complete(); len(r.Outputs) != 3 || r.KVUsage != 0 || !b.e.Idle() {
			t.Errorf("%d ends, %+v", len(r.Outputs), r.State)
		}
		b.e.Abort(2) // long gone
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
