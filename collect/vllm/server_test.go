package vllm

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/rooftop-dev/rooftop/collect"
)

// server is an HTTP server over connections in memory. It records what was
// asked of it.
type server struct {
	answer http.HandlerFunc

	mu    sync.Mutex
	asked []string
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// client returns a client whose every connection leads to the server.
func (s *server) client(t testing.TB, key collect.Secret) *collect.Client {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
		s.mu.Unlock()
		s.answer(w, r)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l)
	}()
	target, err := collect.ParseTarget("http://server:8000")
	if err != nil {
		t.Fatal(err)
	}
	c, err := collect.NewClient(collect.Options{Target: target, Token: key, Dial: l.dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		_ = srv.Close()
		<-served
	})
	return c
}

// pipes is a listener whose connections never leave the process.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
	case <-ctx.Done():
	}
	return nil, net.ErrClosed
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr is what net.Listener wants.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func contextWithCancel(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}
