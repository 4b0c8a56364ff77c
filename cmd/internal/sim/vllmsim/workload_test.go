package vllmsim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// gaps collects the times between tokens that clients see.
type gaps struct {
	all  []time.Duration
	done int
}

// closed keeps n clients busy for a time after a minute of warm-up.
func closed(t testing.TB, v *Server, n int, length time.Duration, call func(r *rand.Rand) Call) *gaps {
	t.Helper()
	g := &gaps{}
	r := rand.New(rand.NewPCG(3, 3))
	from := v.Healthy() + time.Minute
	var send func(at time.Duration)
	send = func(at time.Duration) {
		last := time.Duration(0)
		if _, err := v.Submit(at, call(r), func(u Update) {
			if last > 0 && u.At > from {
				g.all = append(g.all, u.At-last)
			}
			last = u.At
			if u.Finish != core.NotFinished {
				if u.At > from {
					g.done++
				}
				send(u.At)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		send(v.Healthy() + time.Duration(i)*97*time.Millisecond)
	}
	run(v, from+length)
	slices.Sort(g.all)
	return g
}

func (g *gaps) quantile(q float64) time.Duration {
	return g.all[min(len(g.all)-1, int(q*float64(len(g.all))))]
}

// TestPreemptionSignature: preemption leaves the usual gap between tokens as it
// is and shows in its longest ones.
func TestPreemptionSignature(t *testing.T) {
	serve := func(blocks string) (*Server, *gaps) {
		v := start(t, parsed(t, "--sim-gpu", "NVIDIA H100 80GB HBM3", "--num-gpu-blocks-override", blocks))
		return v, closed(t, v, 64, 3*time.Minute, func(r *rand.Rand) Call {
			return Call{Prompt: prompt(256, r.Uint64()), MaxTokens: 768 + r.IntN(512), IgnoreEOS: true, Quiet: true}
		})
	}
	v, tight := serve("2000")
	page := scrape(t, v, v.now)
	if page["vllm:num_preemptions_total"] < 100 {
		t.Fatalf("%v preemptions in four minutes", page["vllm:num_preemptions_total"])
	}
	if use := page["vllm:kv_cache_usage_perc"]; use < 0.95 {
		t.Errorf("usage %.3f under preemption, want about 1", use)
	}
	if waits, runs := page["vllm:num_requests_waiting"], page["vllm:num_requests_running"]; waits < 10 || runs > 50 || waits+runs < 62 {
		t.Errorf("%v run and %v wait of 64", runs, waits)
	}
	roomy, wide := serve("8000")
	if n := scrape(t, roomy, roomy.now)["vllm:num_preemptions_total"]; n != 0 {
		t.Fatalf("%v preemptions in a pool with room for all", n)
	}
	if a, b := tight.quantile(0.5), wide.quantile(0.5); a > b {
		t.Errorf("median gap %v under preemption, %v with room: fewer run, so it cannot be longer", a, b)
	}
	if longest := tight.quantile(1); longest < time.Second || longest < 20*wide.quantile(1) {
		t.Errorf("longest gap %v under preemption, %v with room: want seconds", longest, wide.quantile(1))
	}
	if tight.done >= wide.done {
		t.Errorf("%d answers under preemption, %d with room", tight.done, wide.done)
	}
}

// TestSharedPrefix: 1,024 of 1,280 prompt tokens are shared, of which whole blocks
// hit.
func TestSharedPrefix(t *testing.T) {
	serve := func(args ...string) (hit float64, done int) {
		v := start(t, parsed(t, append(args, "--sim-gpu", "NVIDIA H100 80GB HBM3", "--num-gpu-blocks-override", "6000")...))
		shared := prompt(1024, 1)
		g := closed(t, v, 48, 2*time.Minute, func(r *rand.Rand) Call {
			return Call{Prompt: shared + " " + prompt(256, r.Uint64()), MaxTokens: 128, IgnoreEOS: true, Quiet: true}
		})
		if page := scrape(t, v, v.now); page["vllm:prefix_cache_queries_total"] > 0 {
			hit = page["vllm:prefix_cache_hits_total"] / page["vllm:prefix_cache_queries_total"]
		}
		return hit, g.done
	}
	hit, with := serve()
	if hit < 0.78 || hit > 0.82 {
		t.Errorf("hit rate %.3f, want 0.80", hit)
	}
	if none, without := serve("--no-enable-prefix-caching"); none != 0 || float64(with) < 1.3*float64(without) {
		t.Errorf("%d answers with the cache, %d without, whose hit rate is %v", with, without, none)
	}
}

// TestYoungServerIsSlow: the first steps of a server take longer.
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
