package vllmsim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEndpoints(t *testing.T) {
	const permission = `"permission":[{"id":"modelperm-ID","object":"model_permission","created":0,"allow_create_engine":false,"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,"allow_view":true,"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}`
	card := func(id, root, parent, length string) string {
		return `{"id":"` + id + `","object":"model","created":0,"owned_by":"vllm","root":"` + root + `","parent":` + parent + `,"max_model_len":` + length + `,` + permission
	}
	notFound := `{"error":{"message":"Not Found","type":"Not Found","param":null,"code":404}}`
	wrongMethod := `{"error":{"message":"Method Not Allowed","type":"Method Not Allowed","param":null,"code":405}}`
	const asText = "text/plain; version=1.0.0; charset=utf-8"
	tests := []struct {
		name, method, path, body string
		status                   int
		kind, want               string
	}{
		{"health", "GET", "/health", "", 200, "", ""},
		{"ping", "GET", "/ping", "", 200, "", ""},
		{"ping by post", "POST", "/ping", "", 200, "", ""},
		{"version", "GET", "/version", "", 200, "application/json", `{"version":"0.32.0+sim"}`},
		{"metrics", "GET", "/metrics", "", 200, asText, "# TYPE sim_info gauge\nsim_info{seed=\"1\",time_scale=\"1\"} 1.0\n"},
		{"models", "GET", "/v1/models", "", 200, "application/json",
			`{"object":"list","data":[` + card("model", "org/model", "null", "4096") + "," + card("alias", "org/model", "null", "4096") + "," + card("adapter", "adapter", `"model"`, "null") + `]}`},
		{"tokenize", "POST", "/tokenize", `{"prompt":""}`, 200, "application/json", `{"count":0,"max_model_len":4096,"tokens":[],"token_strs":null}`},
		{"unknown path", "GET", "/v1/nothing", "", 404, "application/json", notFound},
		{"server info outside development mode", "GET", "/server_info?config_format=json", "", 404, "application/json", notFound},
		{"wrong method", "GET", "/v1/completions", "", 405, "application/json", wrongMethod},
		{"wrong method of a page", "DELETE", "/metrics", "", 405, "application/json", wrongMethod},
	}
	h := host(t, newFake(), fakeSettings())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, h, tt.method, tt.path, tt.body)
			if got.status != tt.status || got.header.Get("Content-Type") != tt.kind || got.header.Get("X-Simulated") != "1" {
				t.Errorf("status %d, header %v; want %d, %q", got.status, got.header, tt.status, tt.kind)
			}
			if diff := cmp.Diff(tt.want, got.body); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTokenizeAsTheServerDoes(t *testing.T) {
	h := host(t, newFake(), fakeSettings())
	for _, tt := range []struct{ name, body, want string }{
		{"prompt", `{"prompt":"one two three"}`, `{"count":3,`},
		{"chat", `{"model":"model","messages":[{"role":"user","content":"hi"}]}`, `{"count":10,`},
		{"chat without the answer's beginning", `{"messages":[{"role":"user","content":"hi"}],"add_generation_prompt":false}`, `{"count":6,`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ask(t, h, "POST", "/tokenize", tt.body); got.status != 200 || !strings.HasPrefix(got.body, tt.want) {
				t.Errorf("status %d, %s; want %s…", got.status, got.body, tt.want)
			}
		})
	}
}

func TestHTTPRefusals(t *testing.T) {
	tests := []struct {
		name, path, body string
		status           int
		want             string // within the answer
	}{
		{"no JSON", "/v1/completions", `{`, 400, `"type":"Bad Request","param":"body"`},
		{"no object", "/v1/completions", `null`, 400, `valid dictionary`},
		{"nothing", "/v1/completions", ` `, 400, `Field required`},
		{"no prompt", "/v1/completions", `{"model":"model"}`, 400, `Either prompt or prompt_embeds must be provided and non-empty.`},
		{"empty prompt", "/v1/completions", `{"prompt":""}`, 400, `Either prompt or prompt_embeds must be provided and non-empty.`},
		{"empty list", "/v1/completions", `{"prompt":[]}`, 400, `The decoder prompt cannot be empty`},
		{"a prompt of another kind", "/v1/completions", `{"prompt":{"a":1}}`, 400, `"param":"body.prompt"`},
		{"several prompts", "/v1/completions", `{"prompt":["a","b"]}`, 400, `prompt is not simulated: a request has one prompt`},
		{"negative token", "/v1/completions", `{"prompt":[-1]}`, 400, `greater than or equal to 0`},
		{"no tokens", "/v1/completions", `{"prompt":"a","max_tokens":0}`, 400, `"message":"max_tokens must be at least 1, got 0.","type":"BadRequestError","param":"max_tokens","code":400`},
		{"half a token", "/v1/completions", `{"prompt":"a","max_tokens":1.5}`, 400, `"param":"body.max_tokens"`},
		{"tokens as text", "/v1/completions", `{"prompt":"a","max_tokens":"many"}`, 400, `"param":"body.max_tokens"`},
		{"stream options without stream", "/v1/completions", `{"prompt":"a","stream_options":{"include_usage":true}}`, 400, "Stream options can only be defined when `stream=True`."},
		{"logprobs", "/v1/completions", `{"prompt":"a","logprobs":3}`, 400, `simulated server: logprobs is not simulated`},
		{"logprobs of the tokens alone", "/v1/completions", `{"prompt":"a","logprobs":0}`, 400, `simulated server: logprobs is not simulated`},
		{"several answers", "/v1/completions", `{"prompt":"a","n":2}`, 400, `simulated server: n is not simulated`},
		{"best of", "/v1/completions", `{"prompt":"a","best_of":2}`, 400, `best_of is not simulated`},
		{"stop that could occur", "/v1/completions", `{"prompt":"a","stop":"bada"}`, 400, `stop is not simulated`},
		{"stop token", "/v1/completions", `{"prompt":"a","stop_token_ids":[4]}`, 400, `stop_token_ids is not simulated`},
		{"response format", "/v1/completions", `{"prompt":"a","response_format":{"type":"json_object"}}`, 400, `response_format is not simulated`},
		{"guided decoding", "/v1/completions", `{"prompt":"a","guided_choice":["x"]}`, 400, `guided_choice is not simulated`},
		{"longer chunks", "/v1/completions", `{"prompt":"a","stream":true,"stream_interval":8}`, 400, `stream_interval is not simulated`},
		{"echo", "/v1/completions", `{"prompt":"a","echo":true}`, 400, `echo is not simulated`},
		{"no messages", "/v1/chat/completions", `{"model":"model"}`, 400, `messages: Field required`},
		{"no message", "/v1/chat/completions", `{"messages":[]}`, 400, `at least 1 item`},
		{"no role", "/v1/chat/completions", `{"messages":[{"content":"x"}]}`, 400, `role: Field required`},
		{"image", "/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, 400, `a part of type image_url is not text`},
		{"tools", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function"}]}`, 400, `tools is not simulated`},
		{"answer of a tool", "/v1/chat/completions", `{"messages":[{"role":"tool","content":"x"}]}`, 400, `tool_calls is not simulated`},
		{"probabilities of a chat", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"logprobs":true}`, 400, `logprobs is not simulated`},
		{"unknown model to generate with", "/v1/completions", `{"model":"other","prompt":"x"}`, 404, `Valid aliases: model, alias.`},
		{"unknown model", "/tokenize", `{"model":"other","prompt":"x"}`, 404, "{\"error\":{\"message\":\"The model `other` does not exist. Valid aliases: model, alias.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"},
	}
	m := newFake()
	h := host(t, m, fakeSettings())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ask(t, h, "POST", tt.path, tt.body)
			if got.status != tt.status || !strings.Contains(got.body, tt.want) {
				t.Errorf("status %d, %s; want %d with %s", got.status, got.body, tt.status, tt.want)
			}
		})
	}
	if len(m.submitted) > 0 {
		t.Errorf("%d of the refused requests reached the server", len(m.submitted))
	}
	t.Run("another kind of body", func(t *testing.T) {
		if got := ask(t, h, "POST", "/v1/completions", `{"prompt":"x"}`, "Content-Type", "text/plain"); got.status != 400 || !strings.Contains(got.body, "Unsupported Media Type") {
			t.Errorf("status %d, %s", got.status, got.body)
		}
	})
	t.Run("too large", func(t *testing.T) {
		// By one byte: a server that leaves more unread resets the connection, and the client may not see its answer.
		if got := ask(t, h, "POST", "/v1/completions", strings.Repeat("x", maxBody+1)); got.status != 413 {
			t.Errorf("status %d, %s", got.status, got.body)
		}
	})
}

func TestKey(t *testing.T) {
	s := fakeSettings()
	s.APIKey = "sesame"
	h := host(t, newFake(), s)
	for _, tt := range []struct {
		name, method, path, key string
		status                  int
	}{
		{"none", "GET", "/v1/models", "", 401},
		{"another", "GET", "/v1/models", "Bearer open", 401},
		{"another scheme", "GET", "/v1/models", "Basic sesame", 401},
		{"the key", "GET", "/v1/models", "Bearer sesame", 200},
		{"the scheme in any case", "GET", "/v1/models", "bearer sesame", 200},
		{"a path that is not there", "GET", "/v1/nothing", "", 401},
		{"metrics want none", "GET", "/metrics", "", 200},
		{"health wants none", "GET", "/health", "", 200},
		{"neither does a preflight", "OPTIONS", "/v1/models", "", 405},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var header []string
			if tt.key != "" {
				header = []string{"Authorization", tt.key}
			}
			got := ask(t, h, tt.method, tt.path, "", header...)
			if got.status != tt.status {
				t.Errorf("status %d, want %d", got.status, tt.status)
			}
			if want := `{"error":"Unauthorized"}`; tt.status == 401 && got.body != want {
				t.Errorf("answer %s, want %s", got.body, want)
			}
		})
	}
}

// The page counts refusals that the server itself does not see.
func TestCountedAnswers(t *testing.T) {
	m := newFake()
	h := host(t, m, fakeSettings())
	ask(t, h, "GET", "/v1/models", "")
	ask(t, h, "POST", "/tokenize", `{"prompt":1}`)
	ask(t, h, "POST", "/v1/completions", `{"prompt":""}`)
	ask(t, h, "GET", "/nothing", "")
	ask(t, h, "GET", "/health", "")
	ask(t, h, "GET", "/sim/state", "") // runs behind the posts before it
	m.mu.Lock()
	defer m.mu.Unlock()
	want := []string{"/v1/completions Bad Request"}
	if diff := cmp.Diff(want, m.answered); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzRequests(f *testing.F) {
	for _, seed := range []string{
		`{"prompt":"a","max_tokens":3,"stream":true,"stream_options":{"include_usage":true}}`, `{"prompt":[[1],[2]]}`, `{"prompt":["a",1]}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, `{"stop":["a"],"n":null,"tools":[]}`, `[]`, `{"prompt":[1e99]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, refused := parseBody([]byte(body))
		if refused != nil {
			return
		}
		c, refused := got.call(16, "")
		if refused == nil && c.MaxTokens < 1 {
			t.Errorf("%s was let pass as %+v", body, c)
		}
		if refused := got.prompt(&c); refused == nil && (c.Prompt == "") == (len(c.Tokens) == 0) {
			t.Errorf("%s was let pass with no prompt, or two", body)
		}
		_ = got.check(1)
		_, _ = got.chat()
	})
}
