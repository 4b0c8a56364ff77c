package vllmsim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// ttftParts returns the means of time to first token and of the part of it that the engine explains, in seconds.
func ttftParts(page map[string]float64) (ttft, engine float64) {
	mean := func(name string) float64 {
		return page["vllm:"+name+"_seconds_sum"] / page["vllm:"+name+"_seconds_count"]
	}
	return mean("time_to_first_token"), mean("request_queue_time") + mean("request_prefill_time")
}

// offer submits n requests at a rate, with long prompts that are cached except for the end, and one output token:
// work for the front end alone.
func offer(t testing.TB, v *Server, n int, gap time.Duration) {
	t.Helper()
	shared := prompt(6000, 1)
	for i := range n {
		c := Call{Prompt: fmt.Sprint(shared, " ", i), MaxTokens: 1, Quiet: true}
		if _, err := v.Submit(v.Healthy()+time.Duration(i)*gap, c, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOverloadedFrontEndShowsBeyondTheQueue(t *testing.T) {
	const n = 400
	// 30,000 characters take the tokenizer about 9.5 ms.
	run := func(gap time.Duration, args ...string) (ttft, engine, cores float64) {
		v := start(t, parsed(t, args...))
		offer(t, v, n, gap)
		half := v.Healthy() + n*gap/2
		a := scrape(t, v, half)
		b := scrape(t, v, half+time.Second)
		drain(t, v)
		ttft, engine = ttftParts(scrape(t, v, v.now))
		return ttft, engine, b["process_cpu_seconds_total"] - a["process_cpu_seconds_total"]
	}
	ttft, engine, cores := run(30 * time.Millisecond)
	if ttft-engine > 0.02 || cores > 0.6 {
		t.Errorf("at a third of its rate: TTFT %.3f s, engine %.3f s, %.2f cores", ttft, engine, cores)
	}
	ttft, engine, cores = run(5 * time.Millisecond)
	if ttft-engine < 0.5 || ttft < 2*engine {
		t.Errorf("at twice its rate: TTFT %.3f s, of it the engine %.3f s, want most of it elsewhere", ttft, engine)
	}
	// One for the tokenizer thread, and the loop's 2.6 ms every 5 ms.
	if cores < 1.4 || cores > 1.6 {
		t.Errorf("an overloaded API server uses %.2f cores, want 1.5", cores)
	}
	shared, _, _ := run(5*time.Millisecond, "--api-server-count", "4")
	if shared > ttft/5 {
		t.Errorf("four API servers: TTFT %.3f s, one alone %.3f s", shared, ttft)
	}
}

func TestStreamingCapsTheTokensOfOneAPIServer(t *testing.T) {
	// 512 streams on eight ranks are more than one Python process can write out.
	rate := func(args ...string) (tokens, lag float64) {
		v := start(t, parsed(t, append(args, "--data-parallel-size", "8", "--max-num-seqs", "256", "--max-num-batched-tokens", "8192", "--num-gpu-blocks-override", "20000")...))
		var seen, last time.Duration
		for i := range 1024 {
			if _, err := v.Submit(v.Healthy(), Call{Prompt: prompt(20, uint64(i)), MaxTokens: 1500, IgnoreEOS: true, Quiet: true}, func(u Update) {
				seen = u.At
				if u.History != nil {
					last = max(last, u.At-u.History.LastToken)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		h := v.Healthy()
		a := scrape(t, v, h+8*time.Second)["vllm:generation_tokens_total"]
		b := scrape(t, v, h+18*time.Second)["vllm:generation_tokens_total"]
		if seen == 0 {
			t.Fatal("nothing arrives")
		}
		return (b - a) / 10, last.Seconds()
	}
	one, _ := rate("--api-server-count", "1")
	if one < 15000 || one > 25000 {
		t.Errorf("one API server writes %.0f tokens a second, want 15,000 to 25,000", one)
	}
	if eight, _ := rate("--api-server-count", "8"); eight < 1.5*one {
		t.Errorf("eight API servers write %.0f tokens a second, one %.0f", eight, one)
	}
	if coarse, _ := rate("--api-server-count", "1", "--stream-interval", "10"); coarse < 1.3*one {
		t.Errorf("with a stream interval of 10 one API server writes %.0f tokens a second, else %.0f", coarse, one)
	}
}

// TestLagOfTheAPIServerIsOnThePage: vLLM takes the time of its latencies when
// the API server handles a step's outputs, not when the engine made them.
func TestLagOfTheAPIServerIsOnThePage(t *testing.T) {
	v := start(t, parsed(t, "--max-num-seqs", "1024", "--num-gpu-blocks-override", "20000", "--sim-gpu", "NVIDIA B200", "--data-parallel-size", "4", "--api-server-count", "1"))
	var all []*tally
	for i := range 1024 {
		got, _ := submit(t, v, v.Healthy(), Call{Prompt: prompt(20, uint64(i)), MaxTokens: 300, IgnoreEOS: true, Quiet: true})
		all = append(all, got)
	}
	drain(t, v)
	var client, engine float64
	for _, c := range all {
		client += (c.last - c.history.Arrival).Seconds()
		engine += (c.history.LastToken - c.history.Arrival).Seconds()
	}
	page := scrape(t, v, v.now)["vllm:e2e_request_latency_seconds_sum"]
	if client < 1.1*engine {
		t.Fatalf("clients wait %.0f s in all, the engine accounts for %.0f: the API server is not behind", client, engine)
	}
	if !near(page, client, 0.02) {
		t.Errorf("the page says %.0f s, clients %.0f s, the engine alone %.0f s", page, client, engine)
	}
}

func TestStreamInterval(t *testing.T) {
	v := start(t, parsed(t, "--stream-interval", "8"))
	var sizes []int
	if _, err := v.Submit(v.Healthy(), Call{Prompt: "hello", MaxTokens: 20, IgnoreEOS: true}, func(u Update) {
		sizes = append(sizes, len(u.Tokens))
		if words := len(strings.Fields(u.Text)); words != len(u.Tokens) {
			t.Errorf("%d words for %d tokens", words, len(u.Tokens))
		}
	}); err != nil {
		t.Fatal(err)
	}
	drain(t, v)
	if got := fmt.Sprint(sizes); got != "[1 8 8 3]" {
		t.Errorf("updates of %s tokens, want the first at once, then eight by eight", got)
	}
}

// TestCancelAtEveryStage cancels one of two equal requests a moment later each
// time, from before its arrival to after its end.
func TestCancelAtEveryStage(t *testing.T) {
	const moment = 700 * time.Microsecond
	step := 7 * moment // an odd number, for both ways to drive
	if longtest.Tests {
		step = moment
	}
	for at := time.Duration(0); at < 600*time.Millisecond; at += step {
		v := start(t, parsed(t))
		h := v.Healthy()
		got, id := submit(t, v, h+time.Millisecond, Call{Prompt: prompt(300, 1), MaxTokens: 8, IgnoreEOS: true})
		other, _ := submit(t, v, h+time.Millisecond, Call{Prompt: prompt(300, 2), MaxTokens: 8, IgnoreEOS: true})
		// The driver may also advance time late.
		inTime := at/moment%2 == 0
		if inTime {
			run(v, h+at)
		}
		v.Cancel(h+at, id)
		seen := got.updates
		drain(t, v)
		page := scrape(t, v, v.now)
		switch {
		case got.updates != seen:
			t.Errorf("cancelled at %v: %d updates afterwards", at, got.updates-seen)
		case other.tokens != 8 || other.ends != 1:
			t.Errorf("cancelled at %v: the other got %d tokens", at, other.tokens)
		case len(v.requests) != 0 || page["vllm:num_requests_running"] != 0 || page["vllm:kv_cache_usage_perc"] != 0:
			t.Errorf("cancelled at %v: %d in flight, %v running, usage %v", at, len(v.requests), page["vllm:num_requests_running"], page["vllm:kv_cache_usage_perc"])
		case inTime && int(page["vllm:generation_tokens_total"]) != got.tokens+other.tokens:
			t.Errorf("cancelled at %v: clients got %d + %d tokens, the page has %v", at, got.tokens, other.tokens, page["vllm:generation_tokens_total"])
		case page["http_requests_total"] != 2:
			t.Errorf("cancelled at %v: %v HTTP answers", at, page["http_requests_total"])
		}
	}
}

func TestSinkMayUseTheServer(t *testing.T) {
	v := start(t, parsed(t))
	var chain int
	var last time.Duration
	var again Sink
	var victim core.ID
	again = func(u Update) {
		if u.Finish == core.NotFinished {
			return
		}
		if u.At < last {
			t.Errorf("answer at %v after one at %v", u.At, last)
		}
		last = u.At
		if chain++; chain == 50 {
			v.Cancel(u.At, victim)
			return
		}
		if _, err := v.Submit(u.At+time.Duration(chain%3)*time.Millisecond, Call{Prompt: prompt(20, uint64(chain)), MaxTokens: 2, IgnoreEOS: true}, again); err != nil {
			t.Fatal(err)
		}
	}
	_, victim = submit(t, v, v.Healthy(), Call{Prompt: "victim", MaxTokens: 8000, IgnoreEOS: true})
	if _, err := v.Submit(v.Healthy(), Call{Prompt: "first", MaxTokens: 1}, again); err != nil {
		t.Fatal(err)
	}
	drain(t, v)
	if chain != 50 || len(v.requests) != 0 {
		t.Errorf("%d answers, %d in flight", chain, len(v.requests))
	}
}
