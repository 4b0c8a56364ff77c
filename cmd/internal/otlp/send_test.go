package otlp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name         string
		status       int
		kind, body   string
		want         string // URL stands for the endpoint
		spans, calls int
	}{
		{"unauthorized", 401, "", "", "otlp: URL/v1/traces answered 401 Unauthorized: give its key with --otlp-headers-file", 0, 2},
		{"not found", 404, "", "", "otlp: URL/v1/traces answered 404 Not Found: give --otlp-endpoint the base of its OTLP/HTTP receiver, without /v1/traces", 0, 2},
		{"too large", 413, "", "", "otlp: URL/v1/traces answered 413 Request Entity Too Large: raise its max_request_body_size", 0, 2},
		{"its own words", 400, "application/x-protobuf", string(protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "no\nsuch\x1b tenant")),
			`otlp: URL/v1/traces answered 400 Bad Request ("no such\x1b tenant"): is this an OTLP/HTTP receiver that takes protobuf? check --otlp-endpoint`, 0, 2},
		{"a page of words", 500, "text/html", "<html>", "otlp: URL/v1/traces answered 500 Internal Server Error: the collector is overloaded or failing; check its log", 0, 2},
		{"partial success", 200, "", string(partialAnswer(2, "too old")), `otlp: URL/v1/traces rejected 2 of 3 spans ("too old"): check the collector's log`, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := newCollector(t)
			to.answer = func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/traces") {
					w.Header().Set("Content-Type", c.kind)
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				}
			}
			run, s := recorded()
			result, err := Export(t.Context(), options(to.URL), run, s)
			if want := strings.ReplaceAll(c.want, "URL", to.URL); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			// Metrics are sent even if the trace was rejected.
			if int(result.Spans) != c.spans || len(to.paths) != c.calls || result.Points == 0 {
				t.Errorf("%+v after %v", result, to.paths)
			}
		})
	}
}

func TestBothSignalsRefused(t *testing.T) {
	to := newCollector(t)
	to.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	c, s := recorded()
	_, err := Export(t.Context(), options(to.URL), c, s)
	if err == nil || !strings.Contains(err.Error(), "/v1/traces answered 403") || !strings.Contains(err.Error(), "; and ") || !strings.Contains(err.Error(), "/v1/metrics answered 403") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	to, other := newCollector(t), newCollector(t)
	to.answer = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}
	o := options(to.URL)
	o.Headers, _ = ParseHeaders("Authorization: Bearer hidden")
	c, s := recorded()
	_, err := Export(t.Context(), o, c, s)
	if err == nil || !strings.Contains(err.Error(), "answered 307 Temporary Redirect: a redirect is not followed") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
	if len(other.paths) != 0 {
		t.Errorf("it was followed: %v", other.paths)
	}
	if got := to.headers[0].Get("Authorization"); got != "Bearer hidden" {
		t.Errorf("the key came as %q", got)
	}
}

func TestAWarningIsNoError(t *testing.T) {
	to := newCollector(t)
	to.answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(partialAnswer(0, "old version")) }
	c, s := recorded()
	result, err := Export(t.Context(), options(to.URL), c, s)
	if err != nil || len(result.Notes) != 2 || !strings.Contains(result.Notes[0], `said "old version"`) {
		t.Errorf("%v %v", result.Notes, err)
	}
}

func TestUnreachable(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := free.Addr().String()
	free.Close()
	grpc, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer grpc.Close()
	go func() {
		for {
			conn, err := grpc.Accept()
			if err != nil {
				return
			}
			// The reply of a gRPC server to HTTP/1.1: an HTTP/2 GOAWAY, then it closes.
			_, _ = conn.Write([]byte("\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"))
			conn.Close()
		}
	}()
	for _, w := range []struct{ name, at, want string }{
		{"nothing listens", closed, "otlp: no response from the collector: connection refused at http://" + closed + "/v1/traces: is it up, and is this its port for OTLP/HTTP (4318)?"},
		{"it speaks gRPC", grpc.Addr().String(), "otlp: no response from the collector: http://" + grpc.Addr().String() + "/v1/traces closed the connection: is this its port for OTLP/HTTP (4318), not gRPC (4317)?"},
	} {
		c, s := recorded()
		_, err := Export(t.Context(), options("http://"+w.at), c, s)
		if err == nil || err.Error() != w.want || !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: got  %v\nwant %s", w.name, err, w.want)
		}
	}
}

// TestASpeakerBeforeItsTurn is the gRPC server of [TestUnreachable] if net/http reads its reply
// before the request is sent: the order is a race.
func TestASpeakerBeforeItsTurn(t *testing.T) {
	e := exportOver(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("readLoopPeekFailLocked: %!w(<nil>)")
	})
	if _, err := e.all(t.Context()); !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "closed the connection: is this its port for OTLP/HTTP (4318), not gRPC (4317)?") {
		t.Errorf("got %v", err)
	}
}

// wire is a collector without a network.
type wire func(*http.Request) (*http.Response, error)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) { return w(r) }

func answer(status int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(&bytes.Buffer{})}
}

func exportOver(w wire) *export {
	c, s := recorded()
	o := options("http://collector:4318")
	return &export{o: &o, c: c, s: s, to: sender{transport: w, base: o.Endpoint}}
}

func TestTriesAgainWithinTheLimit(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(n int) *http.Response
		took   time.Duration
		calls  int
		good   bool
	}{
		{"good at once", func(int) *http.Response { return answer(200) }, 0, 2, true},
		{"busy twice", func(n int) *http.Response {
			if n < 2 {
				return answer(503)
			}
			return answer(200)
		}, 1500 * time.Millisecond, 4, true},
		{"told when to come back", func(n int) *http.Response {
			if n == 0 {
				return answer(429, "Retry-After", "7")
			}
			return answer(200)
		}, 7 * time.Second, 3, true},
		{"later than there is time", func(int) *http.Response { return answer(429, "Retry-After", "60") }, 0, 2, false},
		// 0.5 + 1 + 2 + 4 s for the trace; 0.5 + 1 s of the remaining time for the metrics.
		{"busy for good", func(int) *http.Response { return answer(503) }, 9 * time.Second, 8, false},
		{"wrong for good", func(int) *http.Response { return answer(400) }, 0, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				e := exportOver(func(*http.Request) (*http.Response, error) {
					calls++
					return c.answer(calls - 1), nil
				})
				began := time.Now()
				_, err := e.all(t.Context())
				if took := time.Since(began); (err == nil) != c.good || took != c.took || calls != c.calls {
					t.Errorf("%d calls in %s, %v; want %d in %s", calls, took, err, c.calls, c.took)
				}
			})
		})
	}
}

func TestASilentCollectorIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := exportOver(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		began := time.Now()
		_, err := e.all(t.Context())
		if took := time.Since(began); took != limit || err == nil || !strings.Contains(err.Error(), "took longer than 10s") {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

func TestACancelledExport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := exportOver(func(r *http.Request) (*http.Response, error) {
		cancel()
		return nil, r.Context().Err()
	})
	if _, err := e.all(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(partialAnswer(2, "too old"))
	f.Add(partialAnswer(1<<63, "\xff\n"))
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range []string{parsePartial(b).message, statusMessage(b)} {
			if strings.ContainsAny(s, "\n\r") || len(s) > maxMessageBytes+3 {
				t.Errorf("%q is not fit for a sentence", s)
			}
		}
	})
}
