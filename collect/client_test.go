package collect

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestGetKeepsOneConnection(t *testing.T) {
	f := &fakeServer{answer: func(conn net.Conn, r *http.Request) bool { return ok(conn, "page of "+r.RequestURI) }}
	token, err := NewSecret("sk-1")
	if err != nil {
		t.Fatal(err)
	}
	c := f.client(t, func(o *Options) { o.Token, o.UserAgent = token, "rooftop/test" })
	for i, path := range []string{"/metrics", "/metrics", "/v1/models", "/metrics"} {
		body, err := c.Get(t.Context(), path, MetricsAccept, nil)
		if err != nil || string(body) != "page of "+path {
			t.Fatalf("request %d: %q, %v", i, body, err)
		}
	}
	if want := []string{"server:8000"}; !slices.Equal(f.dialed, want) {
		t.Errorf("dialed %v, want %v", f.dialed, want)
	}
	h := f.headers[0]
	for name, want := range map[string]string{
		"Accept": MetricsAccept, "Accept-Encoding": "identity", "Authorization": "Bearer sk-1", "User-Agent": "rooftop/test",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
}

func TestOneRequestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inFlight, most atomic.Int32
		f := &fakeServer{answer: func(conn net.Conn, _ *http.Request) bool {
			most.Store(max(most.Load(), inFlight.Add(1)))
			time.Sleep(time.Second)
			inFlight.Add(-1)
			return ok(conn, "page")
		}}
		c := f.client(t, nil)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, err := c.Get(t.Context(), "/metrics", MetricsAccept, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most.Load() != 1 || len(f.dialed) != 1 || len(f.requests) != 4 {
			t.Errorf("%d at once over %d connections, %d requests; want 1, 1, 4", most.Load(), len(f.dialed), len(f.requests))
		}
		c.Close()
	})
}

func TestSlowServerHitsTheDeadline(t *testing.T) {
	drip := func(conn net.Conn, _ *http.Request) bool {
		head := "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n"
		if _, err := conn.Write([]byte(head)); err != nil {
			return false
		}
		for {
			if _, err := conn.Write([]byte("x")); err != nil {
				return false
			}
			time.Sleep(time.Second)
		}
	}
	silent := func(conn net.Conn, _ *http.Request) bool {
		time.Sleep(time.Hour)
		return false
	}
	for name, answer := range map[string]func(net.Conn, *http.Request) bool{"a byte a second": drip, "silence": silent} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{answer: answer}
				c := f.client(t, func(o *Options) { o.Timeout = 3 * time.Second })
				start := time.Now()
				_, err := c.Get(t.Context(), "/metrics", MetricsAccept, nil)
				if took := time.Since(start); took != 3*time.Second {
					t.Errorf("gave up after %s, want 3s", took)
				}
				if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "within 3s") {
					t.Errorf("error %v, want ErrUnreachable with the deadline", err)
				}
				c.Close()
				time.Sleep(2 * time.Hour) // lets the fake's goroutines end
			})
		})
	}
}

func TestWaitingForTheTurnCountsAgainstTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: func(conn net.Conn, _ *http.Request) bool {
			time.Sleep(2 * time.Second)
			return ok(conn, "page")
		}}
		c := f.client(t, func(o *Options) { o.Timeout = 3 * time.Second })
		var failed atomic.Int32
		var wg sync.WaitGroup
		start := time.Now()
		for range 3 {
			wg.Go(func() {
				if _, err := c.Get(t.Context(), "/metrics", MetricsAccept, nil); errors.Is(err, ErrUnreachable) {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); took > 3*time.Second || failed.Load() != 2 {
			t.Errorf("%d failed after %s, want 2 within 3s", failed.Load(), took)
		}
		c.Close()
		time.Sleep(time.Minute)
	})
}

func TestCancelIsNotUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{answer: func(net.Conn, *http.Request) bool { time.Sleep(time.Hour); return false }}
		c := f.client(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := c.Get(ctx, "/metrics", MetricsAccept, nil)
		if !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
			t.Errorf("error %v, want the caller's own cancellation", err)
		}
		c.Close()
		time.Sleep(2 * time.Hour)
	})
}

func TestTransportErrorsNameTheNextStep(t *testing.T) {
	fail := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
	}
	tests := []struct {
		name string
		dial func(context.Context, string, string) (net.Conn, error)
		says string
	}{
		{"refused", fail(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "connection refused at http://server:8000/metrics: is the server up? check --url"},
		{"no such host", fail(&net.DNSError{Err: "no such host", Name: "server", IsNotFound: true}), "unknown host server"},
		{"no route", fail(os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "no route to host"},
		{"other protocol", (&fakeServer{answer: raw("SSH-2.0-OpenSSH_9.6\r\n")}).dial, "does not speak HTTP"},
		// net/http's error if the greeting is read before the request is sent.
		{"other protocol, sooner", fail(errors.New("readLoopPeekFailLocked: %!w(<nil>)")), "does not speak HTTP"},
		{"closed at once", (&fakeServer{answer: raw("")}).dial, "closed the connection"},
		{"closed within the body", (&fakeServer{answer: raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nvllm:")}).dial, "closed the"},
		{"closed within a chunk", (&fakeServer{answer: raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nvllm:")}).dial, "closed the"},
		{"unknown compression", (&fakeServer{answer: raw("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx")}).dial, `"br"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := (&fakeServer{}).client(t, func(o *Options) { o.Dial = tt.dial })
			_, err := c.Get(t.Context(), "/metrics", MetricsAccept, nil)
			if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want ErrUnreachable that says %q", err, tt.says)
			}
		})
	}
}

func TestStatusNamesTheNextStep(t *testing.T) {
	token, err := NewSecret("sk-1")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		code  int
		token Secret
		says  string
	}{
		{401, Secret{}, "--api-key-file"},
		{403, token, "was not accepted"},
		{404, Secret{}, "check --url"},
		{429, Secret{}, "in front of the server"},
		{500, Secret{}, "its log"},
		{503, Secret{}, "its log"},
		{204, Secret{}, "answered 204"},
		{304, Secret{}, "answered 304"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.code), func(t *testing.T) {
			f := &fakeServer{answer: func(conn net.Conn, _ *http.Request) bool {
				body := "error"
				if tt.code == 204 || tt.code == 304 {
					body = ""
				}
				_, err := fmt.Fprintf(conn, "HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s", tt.code, len(body), body)
				return err == nil
			}}
			c := f.client(t, func(o *Options) { o.Token = tt.token })
			for range 2 {
				_, err := c.Get(t.Context(), "/metrics", MetricsAccept, nil)
				var status *StatusError
				if !errors.As(err, &status) || status.Code != tt.code || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "sk-1") {
					t.Errorf("error %v, want status %d that says %q", err, tt.code, tt.says)
				}
			}
			if len(f.dialed) != 1 {
				t.Errorf("an error answer cost the connection: %d dials", len(f.dialed))
			}
		})
	}
}

// TestNothingButTheTargetIsContacted covers the ways in which a server or the environment may
// redirect rooftop to another address.
func TestNothingButTheTargetIsContacted(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://proxy.example:3128")
	}
	tests := []struct{ name, location string }{
		{"another host", "http://other.example:8000/metrics"},
		{"another port", "http://server:9000/metrics"},
		{"no port", "http://server/metrics"},
		{"https of the same host", "https://server:8000/metrics"},
		{"scheme-relative", "//other.example/metrics"},
		{"a user at another host", "http://server:8000@other.example/metrics"},
		{"a user at the same host", "http://me:pw@server:8000/metrics"},
		{"a file", "file:///etc/passwd"},
		{"no URL", "http://[::1/metrics"},
		{"a circle", "/metrics"},
	}
	token, err := NewSecret("sk-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fakeServer{answer: func(conn net.Conn, _ *http.Request) bool {
				_, err := fmt.Fprintf(conn, "HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", tt.location)
				return err == nil
			}}
			c := f.client(t, func(o *Options) { o.Token = token })
			_, err := c.Get(t.Context(), "/metrics", MetricsAccept, nil)
			if !errors.Is(err, ErrRedirect) || strings.Contains(err.Error(), "pw") {
				t.Errorf("error %v, want ErrRedirect", err)
			}
			for _, address := range f.dialed {
				if address != "server:8000" {
					t.Errorf("contacted %s", address)
				}
			}
		})
	}
}

func TestRedirectWithinTheServerIsRemembered(t *testing.T) {
	f := &fakeServer{answer: func(conn net.Conn, r *http.Request) bool {
		if r.RequestURI == "/metrics" {
			_, err := fmt.Fprint(conn, "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://server:8000/metrics/\r\nContent-Length: 0\r\n\r\n")
			return err == nil
		}
		return ok(conn, "page")
	}}
	c := f.client(t, nil)
	for range 3 {
		if body, err := c.Get(t.Context(), "/metrics", MetricsAccept, nil); err != nil || string(body) != "page" {
			t.Fatalf("got %q, %v", body, err)
		}
	}
	if want := []string{"/metrics", "/metrics/", "/metrics/", "/metrics/"}; !slices.Equal(f.requests, want) {
		t.Errorf("requests %v, want %v", f.requests, want)
	}
}

func TestPrefixAndQueryOfTheURL(t *testing.T) {
	f := &fakeServer{answer: func(conn net.Conn, _ *http.Request) bool { return ok(conn, "page") }}
	target, err := ParseTarget("http://server:8000/llama/metrics?format=prometheus")
	if err != nil {
		t.Fatal(err)
	}
	c := f.client(t, func(o *Options) { o.Target = target })
	for _, path := range []string{"/metrics", "/version"} {
		if _, err := c.Get(t.Context(), path, MetricsAccept, nil); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"/llama/metrics?format=prometheus", "/llama/version"}; !slices.Equal(f.requests, want) {
		t.Errorf("requests %v, want %v", f.requests, want)
	}
}

func TestLargeAnswersAreRefused(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		answer func(net.Conn, *http.Request) bool
	}{
		{"announced", raw("HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")},
		{"endless", func(conn net.Conn, _ *http.Request) bool {
			_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
			for err == nil {
				_, err = conn.Write(make([]byte, 64<<10))
			}
			return false
		}},
		{"compressed", func(conn net.Conn, _ *http.Request) bool {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", bomb.Len())
			_, err := conn.Write(bomb.Bytes())
			return err == nil
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &fakeServer{answer: tt.answer}
			c := f.client(t, func(o *Options) { o.MaxBytes = 1 << 20 })
			body, err := c.Get(t.Context(), "/metrics", MetricsAccept, nil)
			if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "more than 1 MiB") {
				t.Errorf("error %v, want ErrTooLarge", err)
			}
			if cap(body) > 4<<20 {
				t.Errorf("%d bytes were held", cap(body))
			}
		})
	}
}

func TestGzipIsReadThoughNotAskedFor(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, "page")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f := &fakeServer{answer: func(conn net.Conn, _ *http.Request) bool {
		_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", packed.Len(), packed.String())
		return err == nil
	}}
	body, err := f.client(t, nil).Get(t.Context(), "/metrics", MetricsAccept, nil)
	if err != nil || string(body) != "page" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") }))
	defer plain.Close()
	get := func(url, caFile string) (string, error) {
		target, err := ParseTarget(url)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewClient(Options{Target: target, CAFile: caFile})
		if err != nil {
			return "", err
		}
		defer c.Close()
		body, err := c.Get(t.Context(), "/metrics", MetricsAccept, nil)
		return string(body), err
	}
	if body, err := get(server.URL, ca); err != nil || body != "page" {
		t.Errorf("with the right CA: %q, %v", body, err)
	}
	fails := []struct{ name, url, ca, says string }{
		{"unknown authority", server.URL, "", "--ca-file"},
		{"another name", strings.Replace(server.URL, "127.0.0.1", "localhost", 1), ca, "another name"},
		{"https to a plain server", strings.Replace(plain.URL, "http", "https", 1), "", "does not speak TLS"},
		{"http to a TLS server", strings.Replace(server.URL, "https", "http", 1), "", "does it speak TLS"},
		{"no such CA file", server.URL, ca + ".none", "--ca-file"},
	}
	for _, tt := range fails {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := get(tt.url, tt.ca); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
		})
	}
}

func TestNewClientWantsATarget(t *testing.T) {
	if _, err := NewClient(Options{}); !errors.Is(err, ErrTarget) {
		t.Errorf("error %v, want ErrTarget", err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	target, err := ParseTarget("8000")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(Options{Target: target, CAFile: empty}); err == nil || !strings.Contains(err.Error(), "no PEM certificate") {
		t.Errorf("error %v, want one about the empty file", err)
	}
}
