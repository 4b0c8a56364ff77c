package vllm

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/rooftop-dev/rooftop/collect"
)

// server is an HTTP server over connections in memory. It records what was asked of it.
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

// serve answers the requests of one connection.
func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
		s.mu.Unlock()
		w := httptest.NewRecorder()
		s.answer(w, r)
		answer := w.Result()
		answer.ContentLength = int64(w.Body.Len())
		if answer.Write(conn) != nil {
			return
		}
	}
}

// client returns a client whose every connection leads to the server.
func (s *server) client(t testing.TB, key collect.Secret) *collect.Client {
	t.Helper()
	target, err := collect.ParseTarget("http://server:8000")
	if err != nil {
		t.Fatal(err)
	}
	c, err := collect.NewClient(collect.Options{Target: target, Token: key, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go s.serve(far)
		return near, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
