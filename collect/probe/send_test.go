package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// clockFrom counts from now.
func clockFrom(origin time.Time) func() time.Duration {
	return func() time.Duration { return time.Since(origin) }
}

// pipes is a network in memory: each connection is served by serve.
func pipes(serve func(net.Conn)) *http.Transport {
	t := newTransport(nil, dialTimeout)
	t.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			serve(server)
		}()
		return client, nil
	}
	return t
}

// part is data that a server writes, and how long it waits before.
type part struct {
	after time.Duration
	bytes string
}

// writing answers each request with a stream of parts, each in one write. It records when it wrote
// them.
func writing(wrote *[]time.Time, parts ...part) func(net.Conn) {
	return func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			request, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, request.Body)
			head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
			for _, p := range parts {
				time.Sleep(p.after)
				if wrote != nil {
					*wrote = append(*wrote, time.Now())
				}
				if _, err := fmt.Fprintf(conn, "%s%x\r\n%s\r\n", head, len(p.bytes), p.bytes); err != nil {
					return
				}
				head = ""
			}
			if _, err := io.WriteString(conn, head+"0\r\n\r\n"); err != nil {
				return
			}
		}
	}
}

func piped(t testing.TB, o Options) *Client {
	t.Helper()
	if o.Model == "" {
		o.Model = "m"
	}
	c, err := NewClient(address("http://server.test:8000"), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// For a complete request over a connection in memory, every time equals the server's own record.
func TestSendTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wrote []time.Time
		transport := pipes(writing(&wrote,
			part{40 * ms, ": ping\n\n"}, part{30 * ms, token}, part{7 * ms, token + token}, part{11 * ms, last}, part{0, usage + done}))
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			time.Sleep(3 * ms)
			return dial(ctx, network, address)
		}
		c := piped(t, Options{Transport: transport})
		origin := time.Now()
		time.Sleep(5 * ms)
		var seen []time.Duration
		for range 2 {
			wrote = nil
			sent := time.Since(origin)
			got, _ := c.Send(t.Context(), Request{Prompt: "p", MaxTokens: 3, KeepText: true, OnChunk: func(d time.Duration) { seen = append(seen, d) }}, clockFrom(origin))
			at := func(i int) time.Duration { return wrote[i].Sub(origin) }
			want := capture.Request{
				Sent: sent, Connect: 3 * ms, Written: sent + 3*ms, Answered: at(0),
				Chunks: []capture.Chunk{{At: at(1), Bytes: 1}, {At: at(2), Bytes: 1}, {At: at(2), Bytes: 1}},
				End:    at(4), Status: 200, Finish: "length", Text: "aaa",
				PromptTokens: stat.Some(11), CachedTokens: stat.Some(8), OutputTokens: stat.Some(3),
			}
			if sent > 5*ms {
				want.Connect, want.Reused, want.Written = 0, true, sent
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		if diff := cmp.Diff([]time.Duration{73 * ms, 80 * ms, 80 * ms, 70 * ms, 77 * ms, 77 * ms}, seen); diff != "" {
			t.Error(diff)
		}
		c.Close()
	})
}

// A chunk's time is the end of its event. If the server omits the empty line, that is the end of
// its data line, not the next event.
func TestSendTimesPieces(t *testing.T) {
	event := `data: {"choices":[{"text":"é"}]}`
	for _, tc := range []struct {
		name  string
		parts []part
		want  []time.Duration
	}{
		{"the empty line comes later", []part{{ms, event + "\n"}, {ms, "\n"}, {ms, done}}, []time.Duration{2 * ms}},
		{"within a rune", []part{{ms, event[:28]}, {ms, event[28:] + "\n\n"}, {ms, done}}, []time.Duration{2 * ms}},
		{"no empty lines", []part{{ms, event + "\n"}, {5 * ms, event + "\n"}, {5 * ms, done}}, []time.Duration{ms, 6 * ms}},
		{"CRLF, cut between", []part{{ms, event + "\r\n\r"}, {ms, "\n"}, {ms, done}}, []time.Duration{ms}},
		{"the end of the stream ends it", []part{{ms, `data: {"choices":[{"text":"a","finish_reason":"stop"}]}` + "\n"}, {ms, ":\n"}}, []time.Duration{ms}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := piped(t, Options{Transport: pipes(writing(nil, tc.parts...))})
				got, _ := c.Send(t.Context(), Request{MaxTokens: 3}, clockFrom(time.Now()))
				var at []time.Duration
				for _, chunk := range got.Chunks {
					at = append(at, chunk.At)
				}
				if diff := cmp.Diff(tc.want, at); diff != "" || got.Error != "" {
					t.Errorf("%s\n%s", got.Error, diff)
				}
				c.Close()
			})
		})
	}
}

// streamOf joins messages as a server sends them.
func streamOf(messages ...string) string {
	return "data: " + strings.Join(messages, "\n\ndata: ") + "\n\n" + done
}

// Streams as engines send them, according to their source code.
func TestSendEngines(t *testing.T) {
	some := stat.Some
	for _, tc := range []struct {
		name, body string
		want       capture.Request
		kinds      []capture.ChunkKind
	}{
		{
			name: "vLLM 0.32 chat: an opening message without a token, several tokens a chunk, usage apart",
			body: streamOf(vllmChatOpens, `{"choices":[{"index":0,"delta":{"reasoning":"so"}}]}`, `{"choices":[{"index":0,"delta":{"content":""}}]}`, vllmChatToken,
				`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"prompt_tokens_details":null}}`),
			kinds: []capture.ChunkKind{capture.Reasoning, capture.Empty, capture.Text},
			want:  capture.Request{Finish: "stop", Text: " héllo", PromptTokens: some(9), OutputTokens: some(7)},
		},
		{
			name: "llama.cpp b6600 chat: role with content null, usage and timings in the last message",
			body: streamOf(`{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}]}`,
				`{"choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":"hm"}}]}`, `{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"a"}}]}`,
				`{"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}`,
				`{"choices":[],"usage":{"completion_tokens":3,"prompt_tokens":20,"total_tokens":23,"prompt_tokens_details":{"cached_tokens":12}},"timings":{"cache_n":12,"prompt_n":8,"prompt_ms":12.5,"predicted_n":3,"predicted_ms":40}}`),
			kinds: []capture.ChunkKind{capture.Reasoning, capture.Text},
			want: capture.Request{Finish: "stop", Text: "a", PromptTokens: some(20), CachedTokens: some(12), OutputTokens: some(3),
				PrefillSeconds: some(0.0125), DecodeSeconds: some(0.04)},
		},
		{
			name:  "llama.cpp without a usage report: its timings count",
			body:  streamOf(`{"choices":[{"text":"a"}]}`, `{"choices":[{"text":"","finish_reason":"length"}],"timings":{"cache_n":12,"prompt_n":8,"prompt_ms":12.5,"predicted_n":1,"predicted_ms":0}}`),
			kinds: []capture.ChunkKind{capture.Text},
			want: capture.Request{Finish: "length", Text: "a", PromptTokens: some(20), CachedTokens: some(12), OutputTokens: some(1),
				PrefillSeconds: some(0.0125), DecodeSeconds: some(0)},
		},
		{
			name:  "llama.cpp before cache_n: the prompt's length is not reported",
			body:  streamOf(`{"choices":[{"text":"a"}]}`, `{"choices":[{"text":"","finish_reason":"length"}],"timings":{"prompt_n":8,"prompt_ms":-1,"predicted_n":1,"predicted_ms":"x"}}`),
			kinds: []capture.ChunkKind{capture.Text},
			want:  capture.Request{Finish: "length", Text: "a"},
		},
		{
			name: "SGLang: reasoning tokens beside the counts",
			body: streamOf(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null}}],"usage":null}`,
				`{"choices":[{"index":0,"delta":{"content":null,"reasoning_content":"hm"}}]}`, `{"choices":[{"index":0,"delta":{"content":null},"finish_reason":"stop","matched_stop":2}]}`,
				`{"choices":[],"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2,"prompt_tokens_details":null,"reasoning_tokens":1}}`),
			kinds: []capture.ChunkKind{capture.Reasoning},
			want:  capture.Request{Finish: "stop", PromptTokens: some(5), OutputTokens: some(2), ReasoningTokens: some(1)},
		},
		{
			name: "Ollama: the role in each message, an end without text",
			body: streamOf(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}]}`, `{"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"1"}]},"finish_reason":null}]}`,
				`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}`),
			kinds: []capture.ChunkKind{capture.Text, capture.ToolCall},
			want:  capture.Request{Finish: "stop", Text: "a", PromptTokens: some(5), OutputTokens: some(3)},
		},
		{
			name: "TGI: the last token with the reason, and usage with it",
			body: streamOf(`{"choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"finish_reason":null}],"usage":null}`,
				`{"choices":[{"index":0,"delta":{"role":"assistant","content":"b"},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`),
			kinds: []capture.ChunkKind{capture.Text, capture.Text},
			want:  capture.Request{Finish: "length", Text: "ab", PromptTokens: some(5), OutputTokens: some(2)},
		},
		{
			name: "OpenAI: details of output tokens",
			body: streamOf(`{"choices":[{"delta":{"refusal":"no"}}]}`,
				`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}}`),
			kinds: []capture.ChunkKind{capture.Text},
			want:  capture.Request{PromptTokens: some(5), CachedTokens: some(0), OutputTokens: some(2), ReasoningTokens: some(0)},
		},
		{
			name: "a gateway that reports usage with the first message alone, not for the whole answer",
			body: streamOf(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`,
				`{"choices":[{"delta":{"content":"b"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`),
			kinds: []capture.ChunkKind{capture.Text, capture.Text},
			want:  capture.Request{Finish: "stop", Text: "ab", PromptTokens: some(5)},
		},
		{
			name:  "usage without anything in it, and without the prompt",
			body:  streamOf(`{"choices":[{"text":"a"}],"usage":{}}`, `{"choices":[{"text":"","finish_reason":"stop"}]}`, `{"choices":[],"usage":{"completion_tokens":1}}`),
			kinds: []capture.ChunkKind{capture.Text},
			want:  capture.Request{Finish: "stop", Text: "a", OutputTokens: some(1)},
		},
		{
			name:  "a report of zeros in place of counts",
			body:  streamOf(`{"choices":[{"text":"a"}]}`, `{"choices":[{"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`),
			kinds: []capture.ChunkKind{capture.Text},
			want:  capture.Request{Finish: "stop", Text: "a", Notes: []string{"the usage report counts no output tokens although text came: it is ignored"}},
		},
		{
			name:  "more tokens than were asked for",
			body:  streamOf(`{"choices":[{"text":"a"}]}`, `{"choices":[{"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":900}}`),
			kinds: []capture.ChunkKind{capture.Text},
			want: capture.Request{Finish: "stop", Text: "a", PromptTokens: some(1), OutputTokens: some(900),
				Notes: []string{"the usage report counts more output tokens than the request allows"}},
		},
		{
			name:  "data without content, and a reason that would move the cursor",
			body:  streamOf("", `{"choices":[{"text":"a"}]}`, ``, `{"choices":[{"text":"","finish_reason":"stop\u001b[2J`+strings.Repeat("!", 400)+`"}]}`),
			kinds: []capture.ChunkKind{capture.Text},
			want:  capture.Request{Finish: "stop?[2J" + strings.Repeat("!", maxFinishRunes-8), Text: "a"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newTestClient(t, Options{Model: "m"}, streaming(tc.body))
			got, _ := c.Send(t.Context(), Request{Messages: []Message{{"user", "p"}}, MaxTokens: 8, KeepText: true}, clockFrom(time.Now()))
			var kinds []capture.ChunkKind
			for _, chunk := range got.Chunks {
				kinds = append(kinds, chunk.Kind)
			}
			if diff := cmp.Diff(tc.kinds, kinds); diff != "" {
				t.Error(diff)
			}
			tc.want.Status = 200
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(capture.Request{}, "Sent", "End", "Chunks"), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// answering is a server with the same answer to every request.
func answering(status int, kind, body string) transport {
	return func(*http.Request) (*http.Response, error) { return answer(status, kind, text(body)), nil }
}

func TestSendErrors(t *testing.T) {
	const sse = "text/event-stream"
	broken := func(body string, err error) transport {
		return func(*http.Request) (*http.Response, error) {
			return answer(200, sse, io.NopCloser(io.MultiReader(strings.NewReader(body), failing{err}))), nil
		}
	}
	for _, tc := range []struct {
		name   string
		server transport
		chunks int
		want   string
	}{
		{"speaks first", func(*http.Request) (*http.Response, error) {
			return nil, errors.New("readLoopPeekFailLocked: %!w(<nil>)")
		}, 0, "server.test:8000 does not speak HTTP: is it the server's address?"},
		{"refused", func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED }, 0, "connection refused at server.test:8000: is the server up? check its address"},
		{"no such host", func(*http.Request) (*http.Response, error) { return nil, &net.DNSError{Name: "server.test"} }, 0, "unknown host server.test: check the server's address"},
		{"status", answering(503, "application/json", `{"error":{"message":"Loading model"}}`), 0, "the server answered with status 503 Service Unavailable: Loading model"},
		{"status of an older vLLM", answering(400, "application/json", `{"object":"error","message":"too long","code":400}`), 0, "the server answered with status 400 Bad Request: too long"},
		{"status of FastAPI", answering(422, "application/json", `{"detail":"no prompt"}`), 0, "the server answered with status 422 Unprocessable Entity: no prompt"},
		{"status with a plain error", answering(401, "application/json", `{"error":"Unauthorized"}`), 0, "the server answered with status 401 Unauthorized: Unauthorized"},
		{"status of a proxy", answering(502, "text/html", "<h1>Bad\n gateway</h1>"), 0, "the server answered with status 502 Bad Gateway: a web page (<h1>Bad gateway</h1>)"},
		{"status with an escape sequence", answering(500, "text/plain", "a\x1b[2Jb\xff"), 0, "the server answered with status 500 Internal Server Error: a?[2Jb\ufffd"},
		{"status with a long page", answering(500, "text/plain", strings.Repeat("x", 1000)), 0, "the server answered with status 500 Internal Server Error: " + strings.Repeat("x", maxMessageRunes) + "..."},
		{"closed", broken(token+token, io.EOF), 2, "the server closed the stream after the 2nd chunk, without [DONE] or a finish reason"},
		{"closed before a chunk", broken(": ping\n\ndata: {\"choices\":[]}\n\n", io.EOF), 0, "the server closed the stream before the first chunk, without [DONE] or a finish reason"},
		{"only a comment", broken(": ping\n\n", io.EOF), 0, "the server closed the stream before the first chunk, without [DONE] or a finish reason"},
		{"the first event is cut", broken("data: {\"choi", io.EOF), 0, "the server closed the stream before the first chunk, without [DONE] or a finish reason"},
		{"reset", broken(token, syscall.ECONNRESET), 1, "the connection broke after the 1st chunk: read stream: connection reset by peer"},
		{"error event", answering(200, sse, token+"event: error\ndata: {\"error\":{\"message\":\"CUDA error:\\nout of memory\"}}\n\n"), 1, "the server reported an error in the stream, after the 1st chunk: CUDA error: out of memory"},
		{"older error object", answering(200, sse, `data: {"object":"error","message":"too long","code":400}`+"\n\n"), 0, "the server reported an error in the stream, before the first chunk: too long"},
		{"error as the first message", answering(200, sse, `data: {"error":{"message":"prompt too long"}}`+"\n\n"), 0, "the server reported an error in the stream, before the first chunk: prompt too long"},
		{"error without words", answering(200, sse, "event: error\ndata:\n\n"), 0, "the server reported an error in the stream, before the first chunk: no message"},
		{"200 with an error, as JSON", answering(200, "application/json", `{"object":"error","message":"model not found"}`), 0, "the server answered 200 with an error instead of a stream: model not found"},
		{"200 with an error, called a stream", answering(200, sse, `{"error":"model \"x\" not found"}`+"\n"), 0, `the server answered 200 with an error instead of a stream: model "x" not found`},
		{"200 with a whole completion", answering(200, "application/json", `{"object":"chat.completion","choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`), 0, "the server did not stream: it sent the whole completion at once, so no token has a time; a proxy may buffer the stream"},
		{"200 with a web page", answering(200, "text/html", "<!doctype html><head><Title>Log  in</title>"), 0, "the server answered 200 with a web page (Log in): is that the address of an OpenAI-compatible server?"},
		{"200 with nothing", answering(200, sse, " \n"), 0, "the server answered 200 with an empty body: check its log"},
		{"200 with plain text", answering(200, "text/plain", "upstream\x1b connect error"), 0, "the server answered 200 with text/plain instead of an event stream: upstream? connect error"},
		{"JSON lines", answering(200, "application/x-ndjson", "{\"response\":\"a\"}\n{\"done\":true}\n"), 0, `the server answered 200 with application/x-ndjson instead of an event stream: {"response":"a"} {"done":true}`},
		{"not JSON", answering(200, sse, token+"data: hello\n\n"), 1, "message 2 of the stream is not JSON, after the 1st chunk: read stream: invalid character 'h' looking for beginning of value"},
		{"JSON of another kind", answering(200, sse, token+"data: [7]\n\n"), 1, "message 2 of the stream is not part of a completion, after the 1st chunk: read stream: json: cannot unmarshal array into Go value of type probe.wireChunk"},
		{"moved", func(*http.Request) (*http.Response, error) {
			r := answer(308, "text/html", text("<html>"))
			r.Header.Set("Location", "https://user:pass@other.test/v1/completions?key=1")
			return r, nil
		}, 0, "the server answered with status 308 Permanent Redirect: it redirects to https://other.test/v1/completions, which is not followed: give that address if you trust it"},
		{"repeats the key", answering(401, "application/json", `{"error":{"message":"wrong key: sk-0123456789, tenant: t-9876543210"}}`), 0, "the server answered with status 401 Unauthorized: wrong key: [redacted], tenant: [redacted]"},
		{"endless", answering(200, sse, strings.Repeat(token, 100)), 12 + extraChunks, "the server continued after the 20th chunk, beyond the 3 requested tokens"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newTestClient(t, Options{Model: "m", APIKey: "sk-0123456789", Headers: http.Header{"X-Tenant": {"t-9876543210"}}}, tc.server)
			got, err := c.Send(t.Context(), Request{Prompt: "p", MaxTokens: 3}, clockFrom(time.Now()))
			if err == nil || got.Error != tc.want || len(got.Chunks) != tc.chunks {
				t.Errorf("%d chunks, want %d;\n got %q\nwant %q", len(got.Chunks), tc.chunks, got.Error, tc.want)
			}
		})
	}
	t.Run("no tokens", func(t *testing.T) {
		c := newTestClient(t, Options{Model: "m"}, streaming(done))
		if got, err := c.Send(t.Context(), Request{}, clockFrom(time.Now())); err == nil || got.Error == "" || got.Status != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("cancelled by itself", func(t *testing.T) {
		c := newTestClient(t, Options{Model: "m"}, streaming(token+token+done))
		if got, _ := c.Send(t.Context(), Request{MaxTokens: 3, CancelAfter: 1}, clockFrom(time.Now())); got.Error != "closed by the client after the 1st chunk, as requested" {
			t.Errorf("got %q", got.Error)
		}
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// Every timeout has its own sentence and its own time.
func TestSendTimeouts(t *testing.T) {
	limits := Timeouts{Connect: 2 * sec, FirstToken: 10 * sec, Idle: 3 * sec, Whole: 61 * sec}
	slowly := make([]part, 40)
	for i := range slowly {
		slowly[i] = part{2 * sec, token}
	}
	for _, tc := range []struct {
		name  string
		dial  time.Duration
		parts []part
		ends  time.Duration
		want  string
	}{
		{"no connection", time.Hour, nil, 2 * sec, "no connection to server.test:8000 within 2s: check the address, and firewalls on the way"},
		{"no answer", 0, []part{{time.Hour, token}}, 10 * sec, "no token within 10s, and no response at all: is the server overloaded? check its queue and its log"},
		{"pings only", 0, []part{{sec, ": ping\n\n"}, {sec, ": ping\n\n"}, {time.Hour, token}}, 10 * sec, "no token within 10s of the send, although the response has begun: is the server overloaded? check its queue and its log"},
		{"stalls", 0, []part{{4 * sec, token}, {2 * sec, token}, {2 * sec, ": ping\n\n"}, {time.Hour, token}}, 9 * sec, "no token for 3s after the 2nd: the server stalled; check its log"},
		{"never ends", 0, []part{{sec, token}, {sec, last}, {time.Hour, done}}, 4 * sec, "the stream stayed open for 3s after its finish reason, without [DONE]"},
		{"too long", 0, slowly, 61 * sec, "not finished within 1m1s, stopped after the 30th chunk: allow more time or ask for fewer tokens"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := pipes(writing(nil, tc.parts...))
				dial := transport.DialContext
				transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					select {
					case <-time.After(tc.dial):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					return dial(ctx, network, address)
				}
				c := piped(t, Options{Transport: transport, Timeouts: limits})
				got, _ := c.Send(t.Context(), Request{MaxTokens: 40}, clockFrom(time.Now()))
				if got.Error != tc.want || got.End != tc.ends {
					t.Errorf("after %v:\n got %q\nwant %q", got.End, got.Error, tc.want)
				}
				c.Close()
				time.Sleep(2 * time.Hour) // until the server has noticed
			})
		})
	}
}

func TestSendDialects(t *testing.T) {
	const (
		vllm   = `{"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]","code":400}`
		openai = `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}`
		large  = `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 5000"}}`
	)
	for _, tc := range []struct {
		name    string
		answers []string // "" is a stream
		codes   int
		bodies  int // requests that were made
		fields  []string
		notes   int
		fails   bool
	}{
		{"takes all", []string{""}, 400, 1, []string{"max_tokens", "stream_options"}, 0, false},
		{"no stream_options (vLLM before 0.4.3)", []string{vllm, ""}, 400, 2, []string{"max_tokens"}, 1, false},
		{"validation error of FastAPI", []string{vllm, ""}, 422, 2, []string{"max_tokens"}, 1, false},
		{"max_completion_tokens (OpenAI since o1)", []string{openai, ""}, 400, 2, []string{"max_completion_tokens", "stream_options"}, 1, false},
		{"both", []string{vllm, openai, ""}, 400, 3, []string{"max_completion_tokens"}, 2, false},
		{"a limit that is too large is not a dialect", []string{large}, 400, 1, []string{"max_tokens", "stream_options"}, 0, true},
		{"an error of the server is none", []string{vllm}, 500, 1, []string{"max_tokens", "stream_options"}, 0, true},
		{"asked again once", []string{vllm, vllm}, 400, 2, []string{"max_tokens"}, 1, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made := 0
			var body map[string]any
			c := newTestClient(t, Options{Model: "m"}, func(r *http.Request) (*http.Response, error) {
				body = nil
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				said := tc.answers[made]
				if made++; said == "" {
					return answer(200, "text/event-stream", text(token+done)), nil
				}
				return answer(tc.codes, "application/json", text(said)), nil
			})
			got, _ := c.Send(t.Context(), Request{Messages: []Message{{"system", "s"}, {"user", "u"}}, MaxTokens: 5, Greedy: true}, clockFrom(time.Now()))
			var fields []string
			for _, field := range []string{"max_completion_tokens", "max_tokens", "stream_options"} {
				if body[field] != nil {
					fields = append(fields, field)
				}
			}
			if made != tc.bodies || len(got.Notes) != tc.notes || (got.Error != "") != tc.fails {
				t.Errorf("%d requests, notes %q, error %q", made, got.Notes, got.Error)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" || body["temperature"] != 0.0 {
				t.Errorf("%v\n%s", body, diff)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	sent := http.Header{}
	c := newTestClient(t, Options{Model: "m", APIKey: "k", Headers: http.Header{"X-Tenant": {"a", "b"}}}, func(r *http.Request) (*http.Response, error) {
		sent = r.Header.Clone()
		delete(sent, "Idempotency-Key") // present and empty: net/http sends none
		return answer(200, "text/event-stream", text(token+done)), nil
	})
	_, _ = c.Send(t.Context(), Request{MaxTokens: 1}, clockFrom(time.Now()))
	want := http.Header{"X-Tenant": {"a", "b"}, "Authorization": {"Bearer k"}, "Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Error(diff)
	}
	for _, tc := range []struct {
		name, value, key, want string
	}{
		{"Host", "x", "", "header Host: the request sets it itself; leave it out"},
		{"content-length", "1", "", "header content-length: the request sets it itself; leave it out"},
		{"Authorization", "Bearer x", "k", "header Authorization: the API key is sent there; give one of the two"},
		{"X-A", "secret\r\nHost: y", "", "header X-A: its value holds a line break or a control character; leave it out"},
		{"X A", "1", "", `header "X A": invalid header name; give NAME: VALUE`},
		{"x-a", "1", "", "header x-a: it is spelled X-A"},
		{"Authorization", "Bearer x", "", ""},
		{"X-A", "tab\tand ü", "", ""},
	} {
		_, err := NewClient(address("server:1"), Options{APIKey: tc.key, Headers: http.Header{tc.name: {tc.value}}})
		if got := fmt.Sprint(err); tc.want != "" && got != tc.want || tc.want == "" && err != nil {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestSendInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, Options{Transport: pipes(writing(nil, part{sec, token}, part{sec, token}, part{time.Hour, done})), Timeouts: Timeouts{Idle: time.Minute}})
		ctx, cancel := context.WithTimeout(t.Context(), 5*sec)
		defer cancel()
		got, _ := c.Send(ctx, Request{MaxTokens: 9, KeepText: true}, clockFrom(time.Now()))
		if got.Error != "interrupted after the 2nd chunk" || len(got.Chunks) != 2 || got.End != 5*sec || got.Text != "aa" {
			t.Errorf("got %+v", got)
		}
		c.Close()
		time.Sleep(2 * time.Hour) // until the server has noticed
	})
}

func TestSendAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var connections atomic.Int32
		transport := pipes(writing(nil, part{sec, token}, part{sec, last + done}))
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			connections.Add(1)
			return dial(ctx, network, address)
		}
		c := piped(t, Options{Transport: transport})
		var reported []int
		ctx, cancel := context.WithTimeout(t.Context(), 5500*ms)
		defer cancel()
		got, err := c.SendAll(ctx, Plan{Request: Request{Prompt: "p", MaxTokens: 2}, Repeat: 100, Concurrency: 3}, clockFrom(time.Now()), func(r *capture.Request) { reported = append(reported, r.ID) })
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 9 || len(reported) != 9 || connections.Load() != 3 {
			t.Fatalf("%d requests, %d reported, %d connections; want 9, 9, 3", len(got), len(reported), connections.Load())
		}
		inLane := map[int]int{}
		for i, r := range got {
			round := time.Duration(i / 3)
			if r.ID != i || r.Sent != round*2*sec || r.Reused != (i >= 3) {
				t.Errorf("request %d: %+v", i, r)
			}
			if late := i >= 6; late != (r.Error == "interrupted after the 1st chunk") || late == (r.Error == "") {
				t.Errorf("request %d: error %q", i, r.Error)
			}
			inLane[r.Lane]++
		}
		if diff := cmp.Diff(map[int]int{0: 3, 1: 3, 2: 3}, inLane); diff != "" {
			t.Error(diff)
		}
		c.Close()
		time.Sleep(time.Minute) // until the server has noticed
	})
	t.Run("no model", func(t *testing.T) {
		c := newTestClient(t, Options{}, func(*http.Request) (*http.Response, error) { return nil, errors.New("down") })
		got, err := c.SendAll(t.Context(), Plan{Request: Request{MaxTokens: 1}}, clockFrom(time.Now()), nil)
		if err == nil || got != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
}
