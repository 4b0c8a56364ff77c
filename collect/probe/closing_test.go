package probe

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestSendOnAConnectionThatIsClosed has a server that accepts a second request on a connection and
// closes it without an answer. A client sees this if it sends between the last chunk and the end of
// the connection (llama.cpp b11549).
func TestSendOnAConnectionThatIsClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var keys []string // that were sent, of all requests
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(connection)
			for answered := false; ; answered = true {
				request, err := http.ReadRequest(in)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, request.Body)
				keys = append(keys, request.Header.Values("Idempotency-Key")...)
				if answered {
					break
				}
				data := "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\ndata: [DONE]\n\n"
				_, _ = fmt.Fprintf(connection, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nKeep-Alive: timeout=5\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(data), data)
			}
			_ = connection.Close()
		}
	}()

	client, err := NewClient(address(listener.Addr().String()), Options{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := client.Send(t.Context(), Request{Prompt: "p", MaxTokens: 1}, clockFrom(time.Now())); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	client.Close()
	_ = listener.Close()
	<-served
	if len(keys) > 0 {
		t.Errorf("keys %q were sent", keys)
	}
}
