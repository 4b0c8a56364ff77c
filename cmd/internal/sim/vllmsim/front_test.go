package vllmsim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

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
