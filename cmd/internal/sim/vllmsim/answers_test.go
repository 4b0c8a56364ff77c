package vllmsim

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// words is the text of the first n tokens that the fake generates.
func answerWords(n int) []string {
	var all []string
	for i := range n {
		all = append(all, TokenText(core.Token(i+7)))
	}
	return all
}

// events joins the data of a stream's events in wire format.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// The streams of vLLM 0.32.0, byte for byte, as its serving_completion and
// serving_chat write them.
func TestStreams(t *testing.T) {
	w := answerWords(2)
	completion := func(text, finish, rest string) string {
		return `{"id":"cmpl-ID","object":"text_completion","created":0,"model":"model","choices":[{"index":0,"text":"` + text +
			`","logprobs":null,"finish_reason":` + finish + `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]` + rest + `}`
	}
	chat := func(choice, rest string) string {
		return `{"id":"chatcmpl-ID","object":"chat.completion.chunk","created":0,"model":"model","choices":[{"index":0,` + choice + `]` + rest + `}`
	}
	const print = `,"system_fingerprint":"FP"`
	tests := []struct {
		name, path, body, want string
	}{
		{
			"completion", "/v1/completions", `{"model":"model","prompt":"one two three","max_tokens":2,"stream":true}`,
			events(completion(w[0], "null", ""), completion(w[1], `"length"`, print), "[DONE]"),
		},
		{
			"completion with usage", "/v1/completions", `{"prompt":"one two three","max_tokens":2,"stream":true,"stream_options":{"include_usage":true}}`,
			events(completion(w[0], "null", ""), completion(w[1], `"length"`, ""),
				`{"id":"cmpl-ID","object":"text_completion","created":0,"model":"model","choices":[],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2},"system_fingerprint":"FP"}`, "[DONE]"),
		},
		{
			"chat", "/v1/chat/completions", `{"model":"alias","messages":[{"role":"user","content":"hi"}],"max_tokens":2,"stream":true}`,
			events(
				chat(`"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`, `,"prompt_token_ids":null,"prompt_text":null`),
				chat(`"delta":{"content":"`+w[0]+`"},"logprobs":null,"finish_reason":null,"token_ids":null}`, ""),
				chat(`"delta":{"content":"`+w[1]+`"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}`, print), "[DONE]"),
		},
		{
			"chat with usage", "/v1/chat/completions",
			`{"messages":[{"role":"user","content":"hi"}],"max_completion_tokens":1,"max_tokens":9,"stream":true,"stream_options":{"include_usage":true}}`,
			events(
				chat(`"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`, `,"prompt_token_ids":null,"prompt_text":null`),
				chat(`"delta":{"content":"`+w[0]+`"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}`, ""),
				`{"id":"chatcmpl-ID","object":"chat.completion.chunk","created":0,"model":"model","choices":[],"usage":{"prompt_tokens":10,"total_tokens":11,"completion_tokens":1},"system_fingerprint":"FP"}`, "[DONE]"),
		},
	}
	h := host(t, newFake(), fakeSettings())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, h, http.MethodPost, tt.path, tt.body)
			if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") || got.header.Get("X-Simulated") != "1" {
				t.Errorf("status %d, header %v", got.status, got.header)
			}
			if diff := cmp.Diff(tt.want, got.body); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWholeAnswers(t *testing.T) {
	three, four := strings.Join(answerWords(3), ""), strings.Join(answerWords(4), "")
	const tail = `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`
	choice := func(text, finish string) string {
		return `{"index":0,"text":"` + text + `","logprobs":null,"finish_reason":"` + finish + `","stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}`
	}
	whole := func(choices, usage string) string {
		return `{"id":"cmpl-ID","object":"text_completion","created":0,"model":"model","choices":[` + choices +
			`],"service_tier":null,"system_fingerprint":"FP","usage":` + usage + tail
	}
	tests := []struct {
		name, path, body, want string
	}{
		{
			"completion", "/v1/completions", `{"prompt":"one two three","max_tokens":3}`,
			whole(choice(three, "length"), `{"prompt_tokens":3,"total_tokens":6,"completion_tokens":3,"prompt_tokens_details":null,"completion_tokens_details":null}`),
		},
		{
			"token ids", "/v1/completions", `{"prompt":[40000,40001],"max_tokens":3}`,
			whole(choice(three, "length"), `{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3,"prompt_tokens_details":null,"completion_tokens_details":null}`),
		},
		{
			"chat that ends by itself", "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`,
			`{"id":"chatcmpl-ID","object":"chat.completion","created":0,"model":"model","choices":[{"index":0,"message":{"role":"assistant","content":"` + four +
				`","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null,"routed_experts":null}],` +
				`"service_tier":null,"system_fingerprint":"FP","usage":{"prompt_tokens":10,"total_tokens":14,"completion_tokens":4,"prompt_tokens_details":null,"completion_tokens_details":null},` +
				`"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null` + tail,
		},
	}
	h := host(t, newFake(), fakeSettings())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, h, http.MethodPost, tt.path, tt.body)
			if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("status %d, header %v", got.status, got.header)
			}
			if diff := cmp.Diff(tt.want, got.body); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !json.Valid([]byte(got.body)) {
				t.Error("the answer is not JSON")
			}
		})
	}
}

// Flags of the front end that change answers.
func TestFrontEndFlags(t *testing.T) {
	s := fakeSettings()
	s.Argv = []string{"org/model", "--enable-prompt-tokens-details"}
	m := newFake()
	h := host(t, m, s)
	got := ask(t, h, http.MethodPost, "/v1/completions", `{"prompt":"one two three","max_tokens":1,"stream":true,"stream_options":{"include_usage":true}}`)
	want := `"prompt_tokens_details":{"cached_tokens":3}},"system_fingerprint":"FP"}`
	if !strings.Contains(got.body, want) {
		t.Errorf("the stream lacks %s:\n%s", want, got.body)
	}
	got = ask(t, h, http.MethodPost, "/v1/completions", `{"prompt":"one two three","max_tokens":1}`)
	if want := `"prompt_tokens_details":{"cached_tokens":3,"created_cache_tokens":null,"multimodal_tokens":null}`; !strings.Contains(got.body, want) {
		t.Errorf("the answer lacks %s:\n%s", want, got.body)
	}
}

func TestAnAdapterAnswersByItsName(t *testing.T) {
	got := ask(t, host(t, newFake(), fakeSettings()), http.MethodPost, "/v1/completions", `{"prompt":"x","model":"adapter","max_tokens":1}`)
	if !strings.Contains(got.body, `"model":"adapter"`) {
		t.Errorf("an adapter's answer names another model: %s", got.body)
	}
}

// The parameters of a call reach the server.
func TestCalls(t *testing.T) {
	m := newFake()
	h := host(t, m, fakeSettings())
	tests := []struct {
		name, path, body string
		want             Call
	}{
		{
			"completion", "/v1/completions",
			`{"prompt":"hi","max_tokens":3,"min_tokens":2,"ignore_eos":true,"priority":-4,"cache_salt":"s","stream":true,"temperature":0.5,"seed":1,"stop":["\n\n"],"n":1,"user":"u","new_member":{}}`,
			Call{Prompt: "hi", MaxTokens: 3, MinTokens: 2, IgnoreEOS: true, Priority: -4, Salt: "s", Path: "/v1/completions"},
		},
		{"usual length", "/v1/completions", `{"prompt":"hi","max_tokens":null}`, Call{Prompt: "hi", MaxTokens: 16, Path: "/v1/completions", Once: true}},
		{
			"chat", "/v1/chat/completions", `{"model":"model","messages":[{"role":"system","content":"be"},{"role":"user","content":"hi"}]}`,
			Call{Prompt: "<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", Model: "model", Path: "/v1/chat/completions", Once: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ask(t, h, http.MethodPost, tt.path, tt.body); got.status != http.StatusOK {
				t.Fatalf("status %d: %s", got.status, got.body)
			}
			if diff := cmp.Diff(tt.want, <-m.submitted); diff != "" {
				t.Errorf("call (-want +got):\n%s", diff)
			}
		})
	}
}

// A second turn begins with the tokens of the first turn's prompt and answer, so
// that their blocks are found again.
func TestTheNextTurnBeginsWithTheLast(t *testing.T) {
	render := func(messages string) []core.Token {
		t.Helper()
		body, refused := parseBody([]byte(`{"messages":` + messages + `}`))
		if refused != nil {
			t.Fatal(refused)
		}
		text, refused := body.chat()
		if refused != nil {
			t.Fatal(refused)
		}
		return AppendTokens(nil, text)
	}
	generated := []core.Token{5, 30000, 17, 32767, 0}
	first := render(`[{"role":"user","content":"Tell me more, please."}]`)
	second := render(`[{"role":"user","content":"Tell me more, please."},{"role":"assistant","content":"` + JoinTokens(generated) + `"},{"role":"user","content":"Go on"}]`)
	want := append(append([]core.Token(nil), first...), generated...)
	if len(second) < len(want) {
		t.Fatalf("the second prompt has %d tokens, fewer than the first and its answer, %d", len(second), len(want))
	}
	if diff := cmp.Diff(want, second[:len(want)]); diff != "" {
		t.Errorf("(-first and answer +second):\n%s", diff)
	}
	// Marks cost five tokens a message, and four for the answer to come.
	if got, want := len(render(`[{"role":"user","content":"hi"}]`)), 5+1+4; got != want {
		t.Errorf("a chat of one token has %d tokens, want %d", got, want)
	}
}

func TestFailures(t *testing.T) {
	const internal = `{"error":{"message":"Internal server error","type":"InternalServerError","param":null,"code":500}}`
	long := &Refusal{Status: 400, Type: "BadRequestError", Param: "input_tokens", Message: "This model's maximum context length is 4096 tokens."}
	for _, tt := range []struct {
		name   string
		spoil  func(m *fakeMachine)
		stream string
		status int
		want   string // at the end of the answer
	}{
		{"refused by the server", func(m *fakeMachine) { m.refuse = long }, "true", 400, `4096 tokens.","type":"BadRequestError","param":"input_tokens","code":400}}`},
		{"before the first token", func(m *fakeMachine) { m.failNow = true }, "true", 500, internal},
		{"of a whole answer", func(m *fakeMachine) { m.failNow = true }, "false", 500, internal},
		{"within a stream", func(m *fakeMachine) { m.fail = errors.New("lost") }, "true", 200,
			events(`{"error":{"message":"lost","type":"InternalServerError","param":null,"code":500}}`, "[DONE]")},
		{"dead engine", func(m *fakeMachine) { m.dead = true }, "true", 500, `"type":"InternalServerError","param":null,"code":500}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFake()
			tt.spoil(m)
			h := host(t, m, fakeSettings())
			got := ask(t, h, http.MethodPost, "/v1/completions", `{"prompt":"x","max_tokens":3,"stream":`+tt.stream+`}`)
			if got.status != tt.status || !strings.HasSuffix(got.body, tt.want) {
				t.Errorf("status %d, %s; want %d and %s", got.status, got.body, tt.status, tt.want)
			}
			health, page := ask(t, h, http.MethodGet, "/health", ""), ask(t, h, http.MethodGet, "/metrics", "")
			if dead := health.status == 503 && health.body == ""; dead != m.dead || page.status != 200 {
				t.Errorf("health answers %d %q, the page %d", health.status, health.body, page.status)
			}
		})
	}
	t.Run("cut connection", func(t *testing.T) {
		m := newFake()
		m.refuse = ErrClosed
		w, err := http.Post(host(t, m, fakeSettings()).URL()+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"x"}`))
		if err == nil {
			w.Body.Close()
			t.Errorf("status %d, want a connection that breaks", w.StatusCode)
		}
	})
}
