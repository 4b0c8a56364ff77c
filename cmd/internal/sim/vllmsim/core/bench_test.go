package core

import (
	"fmt"
	"testing"
	"time"
)

// loop keeps an engine at a number of running requests: each that ends is
// followed by a new one.
type loop struct {
	e      *Engine
	next   ID
	prompt []Token
	output int
	shared int // leading tokens that all prompts have in common
	now    time.Duration
}

func (l *loop) submit() {
	l.next++
	p := make([]Token, len(l.prompt))
	for i := range p {
		p[i] = Token(i)
		if i >= l.shared {
			p[i] = Token(uint64(l.next)*7919+uint64(i)) & 0x7fffffff
		}
	}
	l.e.Submit(Request{ID: l.next, Arrival: l.now, Prompt: p, MaxTokens: l.output})
}

func (l *loop) step() bool {
	_, ok := l.e.Begin(l.now)
	if !ok {
		return false
	}
	l.now += time.Millisecond
	for _, o := range l.e.Complete(l.now).Outputs {
		if o.Finish != NotFinished {
			l.submit()
		}
	}
	return true
}

func BenchmarkStep(b *testing.B) {
	for _, batch := range []int{1, 16, 64, 256, 1024} {
		for _, async := range []bool{false, true} {
			b.Run(fmt.Sprintf("batch=%d/async=%v", batch, async), func(b *testing.B) {
				e := NewEngine(Config{
					MaxNumSeqs: batch, MaxNumBatchedTokens: 8192, MaxModelLen: 16384, BlockSize: 16, NumBlocks: 30_000,
					PrefixCaching: true, ChunkedPrefill: true, ReserveFullISL: true, AsyncScheduling: async,
				})
				l := loop{e: e, prompt: make([]Token, 64), output: 400}
				for range batch {
					l.submit()
				}
				for range 100 {
					l.step()
				}
				b.ReportAllocs()
				for b.Loop() {
					l.step()
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
			})
		}
	}
}
