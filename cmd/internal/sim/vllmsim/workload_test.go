package vllmsim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// closed keeps n clients busy for a time after a minute of warm-up and returns how many requests were answered then.
func closed(t testing.TB, v *Server, n int, length time.Duration, call func(r *rand.Rand) Call) (done int) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 3))
	from := v.Healthy() + time.Minute
	var send func(at time.Duration)
	send = func(at time.Duration) {
		if _, err := v.Submit(at, call(r), func(u Update) {
			if u.Finish == core.NotFinished {
				return
			}
			if u.At > from {
				done++
			}
			send(u.At)
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		send(v.Healthy() + time.Duration(i)*97*time.Millisecond)
	}
	run(v, from+length)
	return done
}

// TestSharedPrefix: 1,024 of 1,280 prompt tokens are shared, of which whole blocks
// hit.
func TestSharedPrefix(t *testing.T) {
	serve := func(args ...string) (hit float64, done int) {
		v := start(t, parsed(t, append(args, "--sim-gpu", "NVIDIA H100 80GB HBM3", "--num-gpu-blocks-override", "6000")...))
		shared := prompt(1024, 1)
		done = closed(t, v, 48, 2*time.Minute, func(r *rand.Rand) Call {
			return Call{Prompt: shared + " " + prompt(256, r.Uint64()), MaxTokens: 128, IgnoreEOS: true, Quiet: true}
		})
		if page := scrape(t, v, v.now); page["vllm:prefix_cache_queries_total"] > 0 {
			hit = page["vllm:prefix_cache_hits_total"] / page["vllm:prefix_cache_queries_total"]
		}
		return hit, done
	}
	hit, with := serve()
	if hit < 0.78 || hit > 0.82 {
		t.Errorf("hit rate %.3f, want 0.80", hit)
	}
	if none, without := serve("--no-enable-prefix-caching"); none != 0 || float64(with) < 1.3*float64(without) {
		t.Errorf("%d answers with the cache, %d without, whose hit rate is %v", with, without, none)
	}
}

// TestYoungServerIsSlow checks that the first steps of a server take longer.
func TestYoungServerIsSlow(t *testing.T) {
	v := start(t, parsed(t))
	call := Call{Prompt: prompt(100, 1), MaxTokens: 10, IgnoreEOS: true}
	first, _ := submit(t, v, v.Healthy(), call)
	drain(t, v)
	call.Prompt = prompt(100, 2)
	second, _ := submit(t, v, v.now+time.Second, call)
	drain(t, v)
	took := func(c *tally) time.Duration { return c.history.LastToken - c.history.Scheduled }
	if extra := took(first) - took(second); extra < warmUp || extra > 3*warmUp {
		t.Errorf("first request took %v, the second %v", took(first), took(second))
	}
}
