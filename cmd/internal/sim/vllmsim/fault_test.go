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

// tokens sums what clients got so far.
func tokens(all []*tally) int {
	n := 0
	for _, c := range all {
		n += c.tokens
	}
	return n
}

// rates returns the tokens of three windows of five seconds: before, during and
// after a fault from 10 s to 20 s.
func rates(t testing.TB, v *Server, all []*tally) (before, during, after int) {
	t.Helper()
	h := v.Healthy()
	window := func(from, to time.Duration) int {
		run(v, h+from)
		n := tokens(all)
		run(v, h+to)
		return tokens(all) - n
	}
	return window(4*time.Second, 9*time.Second), window(12*time.Second, 17*time.Second), window(24*time.Second, 29*time.Second)
}

func near(got, want, tolerance float64) bool {
	return got >= want*(1-tolerance) && got <= want*(1+tolerance)
}

func TestErrorsAreAnsweredAndCounted(t *testing.T) {
	v := start(t, parsed(t, "--sim-fault", "errors@5s+10sx0.25"))
	h := v.Healthy()
	failed := func(at time.Duration) (n int) {
		for i := range 40 {
			_, err := v.Submit(at, Call{Prompt: prompt(50, uint64(i)), MaxTokens: 1}, func(Update) {})
			var r *Refusal
			if errors.As(err, &r) {
				n++
				if r.Status != 500 {
					t.Errorf("answered %d", r.Status)
				}
			}
		}
		return n
	}
	if before, during, after := failed(h+time.Second), failed(h+6*time.Second), failed(h+16*time.Second); before != 0 || during != 10 || after != 0 {
		t.Errorf("of 40 each %d, %d and %d failed, want 0, 10 and 0", before, during, after)
	}
	page := string(v.Page(nil, h+20*time.Second))
	if want := `status="5xx"} 10.0`; !strings.Contains(page, want) {
		t.Errorf("the page does not count %s", want)
	}
}

func TestStallFreezesTheEngineAlone(t *testing.T) {
	v := start(t, parsed(t, "--sim-fault", "stall@10s+10s"))
	h := v.Healthy()
	streams(t, v)
	run(v, h+12*time.Second)
	first := scrape(t, v, h+12*time.Second)
	late, _ := submit(t, v, h+12*time.Second, Call{Prompt: "hello", MaxTokens: 1})
	run(v, h+19*time.Second)
	second := scrape(t, v, h+19*time.Second)
	for _, name := range []string{"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:generation_tokens_total"} {
		if first[name] != second[name] {
			t.Errorf("%s moved from %v to %v while the engine was frozen", name, first[name], second[name])
		}
	}
	if second["vllm:num_requests_running"] != 16 {
		t.Errorf("running = %v, want the frozen 16", second["vllm:num_requests_running"])
	}
	if late.updates != 0 {
		t.Error("a frozen engine answered")
	}
	run(v, h+25*time.Second)
	if late.tokens != 1 || late.history.FirstToken < h+20*time.Second {
		t.Errorf("request of the stall: %d tokens, first at %v, want it after %v", late.tokens, late.first, h+20*time.Second)
	}
	if late.history.Scheduled < h+20*time.Second {
		t.Errorf("scheduled at %v, in the stall", late.history.Scheduled)
	}
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

func TestSlowLengthensStepsAndShowsOnTheGPU(t *testing.T) {
	v := start(t, parsed(t, "--sim-fault", "slow@10s+10sx1.5"))
	h := v.Healthy()
	all := streams(t, v)
	before, during, after := rates(t, v, all)
	// Contexts grow meanwhile: the value without the fault is in between.
	if clean := float64(before+after) / 2; !near(float64(during), clean/1.5, 0.03) {
		t.Errorf("tokens before, during and after: %d, %d, %d, want a third less in between", before, during, after)
	}
	w := start(t, parsed(t, "--sim-fault", "slow@10s+10sx1.5"))
	streams(t, w)
	run(w, h+8*time.Second)
	if bits := w.GPUs(h + 8*time.Second)[0].Throttle; bits != 0 {
		t.Errorf("throttle bits %#x before the fault", bits)
	}
	run(w, h+15*time.Second)
	if bits := w.GPUs(h + 15*time.Second)[0].Throttle; bits == 0 {
		t.Error("no throttle bit on a throttled GPU")
	}
}

func TestDie(t *testing.T) {
	v := start(t, parsed(t, "--sim-fault", "die@5s"))
	h := v.Healthy()
	all := streams(t, v)
	run(v, h+4*time.Second)
	if v.Dead() {
		t.Fatal("dead before its time")
	}
	run(v, h+10*time.Second)
	if !v.Dead() {
		t.Fatal("not dead")
	}
	for i, c := range all {
		if c.ends != 1 || !errors.Is(c.err, ErrDead) || c.last != h+5*time.Second {
			t.Errorf("client %d: %d ends, error %v at %v", i, c.ends, c.err, c.last)
		}
	}
	if _, err := v.Submit(h+11*time.Second, Call{Prompt: "x", MaxTokens: 1}, nil); !errors.Is(err, ErrDead) {
		t.Errorf("a dead engine takes requests: %v", err)
	}
	if _, ok := v.Next(); ok {
		t.Error("something will happen to a dead engine")
	}
	if page := scrape(t, v, h+12*time.Second); page["vllm:num_requests_running"] != 16 || page["vllm:request_success_total"] != 0 {
		t.Errorf("running %v, successes %v, want what it showed when it died", page["vllm:num_requests_running"], page["vllm:request_success_total"])
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

func TestNetworkDelaysClientsAndNotThePage(t *testing.T) {
	const delay = 300 * time.Millisecond
	call := Call{Prompt: prompt(100, 1), MaxTokens: 40, IgnoreEOS: true}
	clean := start(t, parsed(t))
	want, _ := submit(t, clean, clean.Healthy()+time.Second, call)
	drain(t, clean)
	v := start(t, parsed(t, "--sim-fault", "network@0x300ms"))
	got, _ := submit(t, v, v.Healthy()+time.Second, call)
	drain(t, v)
	if got.first != want.first+delay || got.last != want.last+delay || got.tokens != want.tokens {
		t.Errorf("seen from %v to %v, want %v later than %v to %v", got.first, got.last, delay, want.first, want.last)
	}
	if a, b := scrape(t, clean, time.Hour), scrape(t, v, time.Hour); a["vllm:time_to_first_token_seconds_sum"] != b["vllm:time_to_first_token_seconds_sum"] {
		t.Error("a slow network shows on the page")
	}
	if len(v.requests) != 0 {
		t.Errorf("%d in flight", len(v.requests))
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
