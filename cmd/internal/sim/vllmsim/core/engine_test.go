package core

import (
	"testing"
	"time"
)

// small is a configuration that tests vary.
func small() Config {
	return Config{
		MaxNumSeqs: 4, MaxNumBatchedTokens: 64, MaxModelLen: 256, BlockSize: 4, NumBlocks: 65,
		PrefixCaching: true, ChunkedPrefill: true, ReserveFullISL: true,
	}
}

func TestDrain(t *testing.T) {
	for _, async := range []bool{false, true} {
		c := small()
		c.AsyncScheduling = async
		c.NumBlocks = 12
		e := NewEngine(c)
		tokens, ends := 0, 0
		for i := range ID(10) {
			e.Submit(Request{ID: i, Prompt: []Token{1, 2, 3, Token(i), 5}, MaxTokens: 20}, 0)
		}
		now := time.Duration(0)
		for range 2000 {
			if _, ok := e.Begin(now); !ok {
				break
			}
			now += time.Millisecond
			for _, o := range e.Complete(now).Outputs {
				if o.HasToken {
					tokens++
				}
				if o.Finish != NotFinished {
					ends++
				}
			}
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if !e.Idle() || tokens != 200 || ends != 10 || e.State() != (State{}) {
			t.Errorf("async %v: idle %v after %d tokens and %d ends, state %+v", async, e.Idle(), tokens, ends, e.State())
		}
	}
}
