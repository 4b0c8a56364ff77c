package core

import (
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// timeOf is the time of a step of llama-3.1-8b in bf16 on one H100, of few
// constants: weights or arithmetic, whichever is slower, then reading and writing
// attention. It serves to compare runs; no test asks for its absolute values.
func timeOf(b *Batch) time.Duration {
	const (
		bandwidth = 3.35e12 * 0.83
		compute   = 989e12 * 0.68
		attention = 989e12 * 0.35
		weights   = 15e9  // bytes
		kv        = 131e3 // bytes per token
		fixed     = 0.6e-3
	)
	if len(b.Work) == 0 {
		return 0
	}
	seconds := fixed + max(weights/bandwidth, weights*float64(b.Tokens)/compute)
	for _, w := range b.Work {
		if w.New == 1 {
			seconds += float64(w.Context) * kv / bandwidth
		} else {
			seconds += 4 * 32 * 4096 * float64(w.New) * (float64(w.Context) + float64(w.New)/2) / attention
		}
	}
	return time.Duration(seconds * 1e9)
}

// outcome is the result of a closed-loop run.
type outcome struct {
	tokensPerSec   float64
	preemptions    int
	hitRate        float64
	p50, p99, max  time.Duration // between tokens
	thrownAway     int           // computed tokens that preemptions lost
	foundAgain     int           // of these, found in the cache on return
	generated      int
	fullAndWaiting int // steps with the pool above 95 %, somebody waiting and a slot free
	steps          int
}

// closed runs users who ask again as soon as they are answered, until all
// requests are through. The output of request i has outputs(i) tokens.
func closed(t *testing.T, c Config, users, requests int, prompt func(i int) []Token, outputs func(i int) int) outcome {
	t.Helper()
	l := newLedger(t, c)
	l.every = 97
	var o outcome
	n := 0
	submit := func() {
		if n < requests {
			n++
			l.submit(Request{ID: ID(n), Prompt: prompt(n), MaxTokens: outputs(n)})
		}
	}
	for range users {
		submit()
	}
	computed := map[ID]int{}
	var gaps []time.Duration
	for !l.e.Idle() {
		r, ok := l.step(func(b *Batch) time.Duration {
			for _, id := range b.Preempted {
				o.thrownAway += computed[id]
			}
			for _, w := range b.Work {
				if computed[w.ID] > 0 && w.Prefill && slices.Contains(b.Admitted, w.ID) {
					o.foundAgain += w.Context
				}
				computed[w.ID] = w.Context + w.New
			}
			return timeOf(b)
		}, nil)
		if !ok {
			t.Fatal("requests are left and nothing is to be done")
		}
		o.steps++
		if r.KVUsage > 0.95 && r.WaitingCapacity > 0 && r.Running < c.MaxNumSeqs {
			o.fullAndWaiting++
		}
		for _, out := range r.Outputs {
			if out.HasToken && !out.First {
				gaps = append(gaps, out.Gap)
			}
			if out.Finish != NotFinished {
				submit()
			}
		}
	}
	l.drained(requests)
	slices.Sort(gaps)
	o.tokensPerSec = float64(l.tokens) / l.now.Seconds()
	o.preemptions = l.preempted[0]
	o.generated = l.tokens
	if l.queries > 0 {
		o.hitRate = float64(l.hits) / float64(l.queries)
	}
	o.p50, o.p99, o.max = gaps[len(gaps)/2], gaps[len(gaps)*99/100], gaps[len(gaps)-1]
	return o
}

// own returns a prompt that no other request shares.
func own(length int) func(int) []Token {
	return func(i int) []Token { return words(i, length) }
}

// about is an output length around 1,024 tokens: of several, so that users do not
// move in step.
func about(i int) int { return 1024 + (i*397)%513 - 256 }

func starved(blocks int) Config {
	return Config{
		MaxNumSeqs: 256, MaxNumBatchedTokens: 2048, MaxModelLen: 8192, BlockSize: 16, NumBlocks: blocks,
		PrefixCaching: true, ChunkedPrefill: true, ReserveFullISL: true,
	}
}

// TestThroughputRisesWithThePool is an order that real servers show:
// more blocks never give less throughput, which saturates when nobody is preempted.
func TestThroughputRisesWithThePool(t *testing.T) {
	pools := []int{300, 900, 2400, 3600, 6400}
	if longtest.Tests {
		pools = []int{300, 600, 900, 1200, 1800, 2400, 3600, 5200, 6400, 26312}
	}
	for _, async := range []bool{false, true} {
		var last outcome
		for i, blocks := range pools {
			c := starved(blocks)
			c.AsyncScheduling = async
			o := closed(t, c, 64, 256, own(256), about)
			t.Logf("async %v, %5d blocks: %5.0f tokens/s, %4d preemptions", async, blocks, o.tokensPerSec, o.preemptions)
			if i > 0 && o.tokensPerSec < 0.98*last.tokensPerSec {
				t.Errorf("%d blocks give %.0f tokens/s, fewer gave %.0f", blocks, o.tokensPerSec, last.tokensPerSec)
			}
			// 64 requests of at most 1,536 tokens hold 6,144 blocks.
			if blocks <= 2400 && o.preemptions < 100 || blocks > 6144 && o.preemptions > 0 ||
				blocks > 2400 && o.preemptions > last.preemptions {
				t.Errorf("%d blocks: %d preemptions, %d with fewer blocks", blocks, o.preemptions, last.preemptions)
			}
			last = o
		}
	}
}

// TestPreemptionSignature shows what preemption looks like from
// outside, and how little of the lost work the cache wins back.
func TestPreemptionSignature(t *testing.T) {
	o := closed(t, starved(2000), 64, 256, own(256), about)
	free := closed(t, starved(26312), 64, 256, own(256), about)
	t.Logf("starved %+v", o)
	t.Logf("free    %+v", free)
	switch {
	case o.preemptions < 50 || free.preemptions > 0:
		t.Errorf("%d preemptions, and %d with all the blocks one could need", o.preemptions, free.preemptions)
	case o.fullAndWaiting < o.steps/2:
		t.Errorf("the pool was full with somebody waiting in %d of %d steps", o.fullAndWaiting, o.steps)
	case o.p50 > free.p50:
		t.Errorf("median gap %v, %v without preemption: it should not show there", o.p50, free.p50)
	case o.max < 100*o.p50 || o.max < time.Second:
		t.Errorf("longest gap %v, median %v: a victim waits for seconds", o.max, o.p50)
	case float64(o.foundAgain) > 0.5*float64(o.thrownAway):
		t.Errorf("%d of %d lost tokens were found again", o.foundAgain, o.thrownAway)
	}

	guarded := starved(2000)
	guarded.Watermark = 0.05
	if w := closed(t, guarded, 64, 256, own(256), about); w.preemptions >= o.preemptions*3/4 || w.tokensPerSec < 0.9*o.tokensPerSec {
		t.Errorf("with a watermark of 5 %%: %d preemptions of %d, %.0f tokens/s of %.0f", w.preemptions, o.preemptions, w.tokensPerSec, o.tokensPerSec)
	}
	uncached := starved(2000)
	uncached.PrefixCaching = false
	if u := closed(t, uncached, 64, 256, own(256), about); u.tokensPerSec < 0.9*o.tokensPerSec || u.tokensPerSec > 1.02*o.tokensPerSec {
		t.Errorf("without the cache %.0f tokens/s, with it %.0f", u.tokensPerSec, o.tokensPerSec)
	}
}

// TestSharedPrefix shares one prefix between requests.
func TestSharedPrefix(t *testing.T) {
	prefix := words(1, 1024)
	prompt := func(i int) []Token { return append(prefix[:1024:1024], words(100_000+i, 256)...) }
	output := func(i int) int { return 128 + (i*37)%65 - 32 }
	c := starved(6000)
	on := closed(t, c, 64, 512, prompt, output)
	c.PrefixCaching = false
	off := closed(t, c, 64, 512, prompt, output)
	t.Logf("cached   %+v", on)
	t.Logf("uncached %+v", off)
	if on.hitRate < 0.777 || on.hitRate > 0.817 {
		t.Errorf("hit rate %.3f, want 0.797 within 2 points", on.hitRate)
	}
	if off.hitRate != 0 || on.tokensPerSec < 1.2*off.tokensPerSec || on.p99 > off.p99 {
		t.Errorf("%.0f tokens/s and p99 %v with the cache, %.0f and %v without", on.tokensPerSec, on.p99, off.tokensPerSec, off.p99)
	}
}
