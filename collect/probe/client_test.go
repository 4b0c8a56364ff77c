package probe

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// transport answers requests in process.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, kind string, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: body}
}

func text(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }

const (
	token = `data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}` + "\n\n"
	last  = `data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}` + "\n\n"
	usage = `data: {"choices":[],"usage":{"prompt_tokens":11,"total_tokens":14,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}}` + "\n\n"
	done  = "data: [DONE]\n\n"
)

func newTestClient(t *testing.T, o Options, f transport) *Client {
	t.Helper()
	o.Transport = f
	c, err := NewClient(address("http://server.test:8000"), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func streaming(body string) transport {
	return func(*http.Request) (*http.Response, error) {
		return answer(http.StatusOK, "text/event-stream; charset=utf-8", text(body)), nil
	}
}

// address parses the address of a server.
func address(text string) collect.Target {
	target, err := collect.ParseTarget(text)
	if err != nil {
		panic(err)
	}
	return target
}

func TestSendSends(t *testing.T) {
	var path, key string
	var body map[string]any
	c := newTestClient(t, Options{Model: "m", APIKey: "k1"}, func(r *http.Request) (*http.Response, error) {
		path, key = r.Method+" "+r.URL.Path, r.Header.Get("Authorization")
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		return answer(http.StatusOK, "text/event-stream", text(done)), nil
	})
	if _, err := c.Send(t.Context(), Request{Prompt: "hi", MaxTokens: 3, IgnoreEOS: true}, clockFrom(time.Now())); err != nil {
		t.Fatal(err)
	}
	// There is no seed: a per-request seed stops the CPU engine of vLLM 0.32.0.
	want := map[string]any{
		"model": "m", "prompt": "hi", "max_tokens": 3.0, "stream": true, "ignore_eos": true,
		"stream_options": map[string]any{"include_usage": true},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if path != "POST /v1/completions" || key != "Bearer k1" {
		t.Errorf("got %s with %q", path, key)
	}
}

// A redirect is not followed: the request and its token are sent only once.
func TestClientFollowsNoRedirect(t *testing.T) {
	var asked []string
	c := newTestClient(t, Options{Model: "m", APIKey: "hunter2"}, func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Host)
		response := answer(http.StatusTemporaryRedirect, "text/html", text(""))
		response.Header.Set("Location", "http://elsewhere.test/v1/completions")
		return response, nil
	})
	var status *StatusError
	if _, err := c.Send(t.Context(), Request{MaxTokens: 1}, clockFrom(time.Now())); !errors.As(err, &status) || status.Code != 307 {
		t.Errorf("got %v, want status 307", err)
	}
	if diff := cmp.Diff([]string{"server.test:8000"}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestModel(t *testing.T) {
	for _, tc := range []struct {
		name       string
		status     int
		body       string
		want, fail string
	}{
		{name: "first", status: 200, body: `{"data":[{"id":"a"},{"id":"b"}]}`, want: "a"},
		{name: "none", status: 200, body: `{"data":[]}`, fail: "list models at http://server.test:8000/v1/models: the server names none; give the model's name"},
		{name: "key needed", status: 401, body: `{"error":"Unauthorized"}`, fail: "list models at http://server.test:8000/v1/models: status 401 Unauthorized: Unauthorized"},
		{name: "a page", status: 200, body: "<html>", fail: "list models at http://server.test:8000/v1/models: the server answered with a web page (<html>): is that the address of an OpenAI-compatible server?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked := 0
			c := newTestClient(t, Options{}, func(*http.Request) (*http.Response, error) {
				asked++
				return answer(tc.status, "application/json", text(tc.body)), nil
			})
			for range 2 {
				got, err := c.Model(t.Context())
				if tc.fail == "" && err != nil {
					t.Fatal(err)
				}
				if tc.fail != "" && (err == nil || err.Error() != tc.fail) {
					t.Errorf("got error %v, want %s", err, tc.fail)
				}
				if got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			}
			if tc.fail == "" && asked != 1 {
				t.Errorf("asked %d times, want once", asked)
			}
		})
	}
}

// A server that never answers delays a client by ten seconds, and not at all after its context has
// ended.
func TestAskingEnds(t *testing.T) {
	silent := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	for _, tc := range []struct {
		name  string
		model string
		ask   func(context.Context, *Client) error
		want  string
	}{
		{"model", "", func(ctx context.Context, c *Client) error { _, err := c.Model(ctx); return err }, "list models at http://server.test:8000/v1/models: no answer in 10s"},
		{"tokens of a word", "m", func(ctx context.Context, c *Client) error { _, err := c.Calibrate(ctx, someWords); return err }, "count tokens: no answer in 10s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTestClient(t, Options{Model: tc.model}, silent)
				begin := time.Now()
				err := tc.ask(t.Context(), c)
				if err == nil || err.Error() != tc.want || time.Since(begin) != askTimeout || Unreachable(err) {
					t.Errorf("got %v after %v, want %s after %v", err, time.Since(begin), tc.want, askTimeout)
				}
				ctx, cancel := context.WithTimeout(t.Context(), sec)
				defer cancel()
				begin = time.Now()
				if err := tc.ask(ctx, c); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != sec {
					t.Errorf("got %v after %v, want the end of the context after 1 s", err, time.Since(begin))
				}
			})
		})
	}
}

// A server that keeps the connection open after [DONE] delays a client by at most closeGrace.
func TestSendLeavesLingeringStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t, Options{Model: "m"}, func(*http.Request) (*http.Response, error) {
			read, write := io.Pipe()
			go func() { _, _ = io.WriteString(write, token+done) }()
			return answer(http.StatusOK, "text/event-stream", read), nil
		})
		begin := time.Now()
		if _, err := c.Send(t.Context(), Request{MaxTokens: 1}, clockFrom(time.Now())); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != closeGrace {
			t.Errorf("took %v, want %v", took, closeGrace)
		}
	})
}
