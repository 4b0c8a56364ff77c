package vllmsim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// streams starts sixteen long answers.
func streams(t testing.TB, v *Server) []*tally {
	t.Helper()
	var all []*tally
	for i := range 16 {
		got, _ := submit(t, v, v.Healthy(), Call{Prompt: prompt(50, uint64(i)), MaxTokens: 4000, IgnoreEOS: true})
		all = append(all, got)
	}
	return all
}

func near(got, want, tolerance float64) bool {
	return got >= want*(1-tolerance) && got <= want*(1+tolerance)
}

func TestStallForGoodStopsTheClock(t *testing.T) {
	v := start(t, parsed(t, "--sim-fault", "stall@1s"))
	streams(t, v)
	run(v, v.Healthy()+time.Minute)
	if at, ok := v.Next(); ok {
		t.Errorf("something will happen at %v on a server that stands still", at)
	}
	if _, err := v.Submit(v.now, Call{Prompt: "x", MaxTokens: 1}, nil); err != nil {
		t.Errorf("the front end of a stalled engine refuses: %v", err)
	}
}

func TestResetCutsConnectionsAndContinues(t *testing.T) {
	v := start(t, parsed(t, "--sim-fault", "reset@5s+2s"))
	h := v.Healthy()
	all := streams(t, v)
	run(v, h+6*time.Second)
	for i, c := range all {
		if !errors.Is(c.err, ErrClosed) || c.ends != 1 {
			t.Errorf("client %d: %v", i, c.err)
		}
	}
	if _, err := v.Submit(h+6*time.Second, Call{Prompt: "x", MaxTokens: 1}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("connection taken during the reset: %v", err)
	}
	page := scrape(t, v, h+6*time.Second)
	if page["vllm:num_requests_running"] != 0 || page["vllm:kv_cache_usage_perc"] != 0 || page["vllm:request_success_total"] != 0 {
		t.Errorf("the engine still has cut requests: %v running", page["vllm:num_requests_running"])
	}
	got, _ := submit(t, v, h+8*time.Second, Call{Prompt: "x", MaxTokens: 3, IgnoreEOS: true})
	run(v, h+10*time.Second)
	if got.tokens != 3 {
		t.Errorf("%d tokens after the reset, want 3", got.tokens)
	}
}

func TestNetworkThatRecoversKeepsOrder(t *testing.T) {
	text := func(args ...string) string {
		v := start(t, parsed(t, args...))
		var b strings.Builder
		last := time.Duration(0)
		_, err := v.Submit(v.Healthy(), Call{Prompt: "hello", MaxTokens: 300, IgnoreEOS: true}, func(u Update) {
			if u.At < last {
				t.Fatalf("update at %v after one at %v", u.At, last)
			}
			last = u.At
			b.WriteString(u.Text)
			if u.Finish != core.NotFinished {
				b.WriteString(" END")
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		drain(t, v)
		return b.String()
	}
	want, got := text(), text("--sim-fault", "network@0+1500msx2s")
	if len(want) < 300*5 || !strings.HasSuffix(want, " END") {
		t.Fatalf("answer without a fault: %q", want)
	}
	if got != want {
		t.Error("a network that recovers brings the answer out of order")
	}
}

func TestCancelOfAnAnswerUnderWay(t *testing.T) {
	v := start(t, parsed(t, "--sim-fault", "network@0x5s"))
	got, id := submit(t, v, v.Healthy(), Call{Prompt: "hello", MaxTokens: 2, IgnoreEOS: true})
	run(v, v.Healthy()+2*time.Second)
	if len(v.requests) != 1 {
		t.Errorf("%d in flight while the answer is under way", len(v.requests))
	}
	v.Cancel(v.Healthy()+2*time.Second, id)
	drain(t, v)
	if n := scrape(t, v, v.now)["http_requests_total"]; got.updates != 0 || len(v.requests) != 0 || n != 1 {
		t.Errorf("%d updates, %d in flight, %v HTTP answers, want 0, 0, 1", got.updates, len(v.requests), n)
	}
}

func TestStallOfAnIdleEngine(t *testing.T) {
	v := start(t, parsed(t, "--sim-fault", "stall@1s+5s"))
	h := v.Healthy()
	got, _ := submit(t, v, h+3*time.Second, Call{Prompt: "hello", MaxTokens: 1})
	drain(t, v)
	if got.tokens != 1 || got.history.Scheduled != h+6*time.Second {
		t.Errorf("%d tokens, scheduled at %v, want it at the end of the stall, %v", got.tokens, got.history.Scheduled, h+6*time.Second)
	}
}

func TestInjectReachesTheStepUnderWay(t *testing.T) {
	v := start(t, parsed(t))
	h := v.Healthy()
	streams(t, v)
	run(v, h+5*time.Second)
	if err := v.Inject(h+5*time.Second, settings.Fault{Kind: "stall", Rank: -1, For: 3 * time.Second}); err != nil {
		t.Fatal(err)
	}
	n := scrape(t, v, h+5*time.Second+100*time.Millisecond)["vllm:generation_tokens_total"]
	if later := scrape(t, v, h+7900*time.Millisecond)["vllm:generation_tokens_total"]; later != n {
		t.Errorf("%v tokens after the freeze, %v at its start", later, n)
	}
	if later := scrape(t, v, h+9*time.Second)["vllm:generation_tokens_total"]; later <= n {
		t.Error("the engine did not continue")
	}
}

func TestFaultsOfRanksThatAreNotThere(t *testing.T) {
	v := start(t, parsed(t, "--data-parallel-size", "2"))
	for _, kind := range []string{"skew", "stall", "slow"} {
		if err := v.Inject(v.Healthy(), settings.Fault{Kind: kind, Rank: 2, Factor: 2}); err == nil || !strings.Contains(err.Error(), "no rank 2, only 0 to 1") {
			t.Errorf("%s of rank 2 of 2: %v", kind, err)
		}
	}
	if err := v.Inject(v.Healthy(), settings.Fault{Kind: "skew", Rank: 1}); err != nil {
		t.Error(err)
	}
	got, _ := submit(t, v, v.Healthy(), Call{Prompt: "hello", MaxTokens: 3, IgnoreEOS: true})
	drain(t, v)
	if got.tokens != 3 {
		t.Errorf("%d tokens from a skewed server, want 3", got.tokens)
	}
	s := parsed(t)
	s.Faults = []settings.Fault{{Kind: "stall", Rank: 1}}
	if _, err := Start(s, 0, epoch); err == nil {
		t.Error("a server of one rank starts with a fault of its second")
	}
}
