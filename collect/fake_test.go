package collect

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
)

// fakeServer answers connections in memory and records the dialled addresses.
type fakeServer struct {
	// answer writes raw bytes in reply to one request; it returns false to close.
	answer func(net.Conn, *http.Request) bool

	mu       sync.Mutex
	dialed   []string // addresses, in order
	requests []string // request targets, in order
	headers  []http.Header
}

// dial returns connections to the fake server only.
func (f *fakeServer) dial(_ context.Context, _, address string) (net.Conn, error) {
	f.mu.Lock()
	f.dialed = append(f.dialed, address)
	f.mu.Unlock()
	client, server := net.Pipe()
	go f.serve(server)
	return client, nil
}

func (f *fakeServer) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.requests = append(f.requests, req.RequestURI)
		f.headers = append(f.headers, req.Header)
		f.mu.Unlock()
		if !f.answer(conn, req) {
			return
		}
	}
}

// client returns a client of the fake server at http://server:8000.
func (f *fakeServer) client(t *testing.T, change func(*Options)) *Client {
	t.Helper()
	target, err := ParseTarget("http://server:8000")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Target: target, Dial: f.dial}
	if change != nil {
		change(&o)
	}
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ok writes a 200 with a body.
func ok(conn net.Conn, body string) bool {
	_, err := fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err == nil
}

// raw writes bytes and closes the connection.
func raw(text string) func(net.Conn, *http.Request) bool {
	return func(conn net.Conn, _ *http.Request) bool {
		_, _ = conn.Write([]byte(text))
		return false
	}
}
