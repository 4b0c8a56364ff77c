package core

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// small is a configuration that tests vary.
func small() Config {
	return Config{
		MaxNumSeqs: 4, MaxNumBatchedTokens: 64, MaxModelLen: 256, BlockSize: 4, NumBlocks: 65,
		PrefixCaching: true, ChunkedPrefill: true, ReserveFullISL: true,
	}
}

// Idle reports whether no request is queued or running and no end is left to report.
func (e *Engine) Idle() bool {
	return len(e.byID) == 0 && len(e.ends) == 0 && !e.ahead
}

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
	b.e.Submit(r)
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
	return b.e.Complete(b.now)
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
			history := *o.History
			o.History = &history
			outputs = append(outputs, o)
		}
	}
	return steps, outputs
}

func (b *bench) wantRows(want ...[2]int) Report {
	b.t.Helper()
	got, r := b.step()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		b.t.Errorf("work (-want +got)\n%s", d)
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
