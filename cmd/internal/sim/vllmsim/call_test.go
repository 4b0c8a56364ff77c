package vllmsim

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

func TestRefusals(t *testing.T) {
	long := prompt(8193, 1)
	tests := []struct {
		name   string
		args   []string
		call   Call
		status int
		want   string
	}{
		{"prompt too long", nil, Call{Prompt: long}, 400,
			"This model's maximum context length is 8192 tokens. However, your prompt contains 8193 input tokens"},
		{"no room for output", nil, Call{Prompt: prompt(8192, 1)}, 400, "The decoder prompt (length 8192) plus the number of requested output tokens (at least 1)"},
		{"output beyond the model", nil, Call{Prompt: "a", MaxTokens: 8193}, 400, "max_tokens=8193 cannot be greater than max_model_len=8192"},
		{"negative output", nil, Call{Prompt: "a", MaxTokens: -3}, 400, "max_tokens must be at least 1, got -3."},
		{"more at least than at most", nil, Call{Prompt: "a", MaxTokens: 5, MinTokens: 6}, 400, "min_tokens must be less than or equal to max_tokens=5, got 6."},
		{"negative least", nil, Call{Prompt: "a", MinTokens: -1}, 400, "min_tokens must be greater than or equal to 0, got -1."},
		{"empty", nil, Call{}, 400, "The decoder prompt cannot be empty"},
		{"unknown model", nil, Call{Prompt: "a", Model: "gpt-4"}, 404, "The model `gpt-4` does not exist."},
		{"unknown adapter", []string{"--enable-lora", "--lora-modules", "red=/r"}, Call{Prompt: "a", Model: "blue"}, 404, "The model `blue` does not exist."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := start(t, parsed(t, tt.args...))
			_, err := v.Submit(v.Healthy(), tt.call, func(Update) { t.Error("a refused request got an update") })
			var r *Refusal
			if !errors.As(err, &r) || r.Status != tt.status || !strings.Contains(r.Message, tt.want) {
				t.Fatalf("error %v, want %d: %s", err, tt.status, tt.want)
			}
			drain(t, v)
			if len(v.requests) != 0 {
				t.Error("a refused request is in flight")
			}
			if n := scrape(t, v, v.now)["http_requests_total"]; n != 1 {
				t.Errorf("%v HTTP answers on the page, want the refusal", n)
			}
		})
	}
}

func TestAccepted(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		call   Call
		most   int // output tokens
		finish core.Reason
	}{
		{"output is capped by the model's length", nil, Call{Prompt: prompt(8000, 1), MaxTokens: 500, IgnoreEOS: true}, 192, core.Length},
		{"no limit takes the model's rest", nil, Call{Prompt: prompt(8100, 1), IgnoreEOS: true}, 92, core.Length},
		{"one token less than the model", nil, Call{Prompt: prompt(8191, 1), IgnoreEOS: true}, 1, core.Length},
		{"served name", nil, Call{Prompt: "a", Model: "meta-llama/Llama-3.1-8B-Instruct", MaxTokens: 2, IgnoreEOS: true}, 2, core.Length},
		{"adapter by model", []string{"--enable-lora", "--lora-modules", "red=/r"}, Call{Prompt: "a", Model: "red", MaxTokens: 2, IgnoreEOS: true}, 2, core.Length},
		{"token ids", nil, Call{Tokens: []core.Token{1, 2, 3}, MaxTokens: 2, IgnoreEOS: true}, 2, core.Length},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := start(t, parsed(t, tt.args...))
			got, _ := submit(t, v, v.Healthy(), tt.call)
			drain(t, v)
			if got.finish != tt.finish || got.tokens != tt.most || got.err != nil {
				t.Errorf("%d tokens, finish %v, error %v; want %d, %v", got.tokens, got.finish, got.err, tt.most, tt.finish)
			}
		})
	}
}

func TestOutputLengthsAreDrawnBySeed(t *testing.T) {
	mean := func(seed string) float64 {
		v, sum := start(t, parsed(t, "--sim-seed", seed)), 0
		for id := range core.ID(200) {
			sum += v.outputLength(id)
		}
		return float64(sum) / 200
	}
	if a, again, other := mean("5"), mean("5"), mean("6"); a != again || a == other || a < 150 || a > 350 {
		t.Errorf("means of %.0f and %.0f with one seed, %.0f with another", a, again, other)
	}
}

func TestConversationHitsItsOwnBlocks(t *testing.T) {
	v := start(t, parsed(t))
	first, _ := submit(t, v, v.Healthy(), Call{Prompt: prompt(160, 1), MaxTokens: 160, IgnoreEOS: true})
	drain(t, v)
	next := prompt(160, 1) + first.text.String() + " and now?"
	if n := len(AppendTokens(nil, next)); n != 160+160+3 {
		t.Fatalf("the second turn has %d tokens, want 323", n)
	}
	second, _ := submit(t, v, v.now+time.Second, Call{Prompt: next, MaxTokens: 1})
	drain(t, v)
	// The last generated token was sampled, never computed.
	if second.history.CachedTokens != 304 {
		t.Errorf("%d cached tokens of the second turn, want 304", second.history.CachedTokens)
	}
	salted, _ := submit(t, v, v.now+time.Second, Call{Prompt: next, MaxTokens: 1, Salt: "s"})
	drain(t, v)
	if salted.history.CachedTokens != 0 {
		t.Errorf("%d cached tokens under another salt, want none", salted.history.CachedTokens)
	}
}

func TestHealthAndRestart(t *testing.T) {
	s := parsed(t, "--sim-startup-time", "45s")
	one, err := Start(s, 10*time.Second, epoch)
	if err != nil {
		t.Fatal(err)
	}
	if got := one.Healthy(); got != 55*time.Second {
		t.Fatalf("healthy at %v, want 55s", got)
	}
	if _, err := one.Submit(54*time.Second, Call{Prompt: "a"}, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a starting server takes requests: %v", err)
	}
	done, _ := submit(t, one, 56*time.Second, Call{Prompt: prompt(400, 1), MaxTokens: 1})
	run(one, 60*time.Second)
	if done.tokens != 1 {
		t.Fatal("the first start did not serve")
	}

	two, err := Start(s, 75*time.Second, epoch.Add(65*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	page := scrape(t, two, two.Healthy())
	for _, name := range []string{"vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:time_to_first_token_seconds_count", "vllm:num_requests_running"} {
		if v, ok := page[name]; !ok || v != 0 {
			t.Errorf("%s = %v, %v on a new page, want 0", name, v, ok)
		}
	}
	was, is := scrape(t, one, 70*time.Second)["process_start_time_seconds"], page["process_start_time_seconds"]
	if is-was != 65 {
		t.Errorf("process start %v after %v, want 65 s between", is, was)
	}
	again, _ := submit(t, two, two.Healthy(), Call{Prompt: prompt(400, 1), MaxTokens: 1})
	drain(t, two)
	if again.history.CachedTokens != 0 {
		t.Errorf("%d tokens cached across a restart", again.history.CachedTokens)
	}
}
