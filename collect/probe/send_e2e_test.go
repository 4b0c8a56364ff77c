//go:build e2e && linux

package probe

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// record is what the server in this process knows of its streams.
type record struct {
	mu         sync.Mutex
	seen       map[string]bool // connections that had a request
	number     int
	ttft, gaps []time.Duration // the first of each connection apart
}

// arrive counts a request. Waits for the first token differ, so that the lanes do not
// march in step.
func (s *record) arrive(from string) (warm bool, first time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	warm, s.seen[from] = s.seen[from], true
	s.number++
	return warm, 40*ms + time.Duration(s.number*37%101)*ms
}

// serve streams tokens at a pace after a first wait, and records when it wrote each.
func (s *record) serve(pace time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived := time.Now()
		warm, first := s.arrive(r.RemoteAddr)
		var body struct {
			MaxTokens int `json:"max_tokens"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		w.Header().Set("Content-Type", "text/event-stream")
		flush := http.NewResponseController(w)
		wrote := make([]time.Time, 0, body.MaxTokens)
		for i := range body.MaxTokens {
			time.Sleep(time.Until(arrived.Add(first + time.Duration(i)*pace)))
			_, _ = io.WriteString(w, "data: "+vllmToken+"\n\n")
			_ = flush.Flush()
			wrote = append(wrote, time.Now())
		}
		_, _ = fmt.Fprintf(w, `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", body.MaxTokens)
		s.mu.Lock()
		defer s.mu.Unlock()
		if warm {
			s.ttft = append(s.ttft, wrote[0].Sub(arrived))
		}
		for i := range wrote[1:] {
			s.gaps = append(s.gaps, wrote[i+1].Sub(wrote[i]))
		}
	})
}

// rank is the smallest value that a share of all does not exceed.
func rank(of []time.Duration, share float64) time.Duration {
	slices.Sort(of)
	return of[max(int(math.Ceil(share*float64(len(of))))-1, 0)]
}

// Issue 7 asks for a TTFT and an inter-token distribution within 1 ms of an in-process server's
// own record, with 1 and with 64 streams. The machine that is shared with others gets eight
// tries. If goroutines that do nothing but read the same streams also miss that in eight tries,
// the test is inconclusive on this machine.
func TestE2ESend(t *testing.T) {
	for _, tc := range []struct {
		streams, repeat, tokens int
	}{{1, 40, 25}, {64, 640, 25}} {
		t.Run(fmt.Sprintf("%d streams", tc.streams), func(t *testing.T) {
			best := func(send func(t *testing.T, target collect.Target, streams, repeat, tokens int) []capture.Request) time.Duration {
				worst := time.Duration(math.MaxInt64)
				for try := 0; try < 8 && worst > ms; try++ {
					worst = min(worst, measuredError(t, send, tc.streams, tc.repeat, tc.tokens))
				}
				return worst
			}
			worst := best(sendAll)
			if worst <= ms {
				return
			}
			if plain := best(readPlainly); plain > ms {
				t.Skipf("NOT CHECKED: the client's clock with %d streams: it differs from the server's record by %v, a loop that only reads by %v", tc.streams, worst, plain)
			}
			t.Errorf("differs from the server's record by %v, want 1 ms at most", worst)
		})
	}
}

// sendAll sends requests with the client under test.
func sendAll(t *testing.T, target collect.Target, streams, repeat, tokens int) []capture.Request {
	t.Helper()
	c, err := NewClient(target, Options{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.SendAll(t.Context(), Plan{Request: Request{Prompt: "p", MaxTokens: tokens}, Repeat: repeat, Concurrency: streams}, clockFrom(time.Now()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// readPlainly sends requests with the least code that can: it takes the time of each line that has a token.
func readPlainly(t *testing.T, target collect.Target, streams, repeat, tokens int) []capture.Request {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams}}
	defer client.CloseIdleConnections()
	clock := clockFrom(time.Now())
	got := make([]capture.Request, repeat)
	var wait sync.WaitGroup
	for stream := range streams {
		wait.Go(func() {
			for i := stream; i < repeat; i += streams {
				r := &got[i]
				r.Sent = clock()
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { r.Reused = c.Reused }})
				ask, _ := http.NewRequestWithContext(ctx, http.MethodPost, target.Base()+"/v1/completions", strings.NewReader(fmt.Sprintf(`{"max_tokens":%d}`, tokens)))
				reply, err := client.Do(ask)
				if err != nil {
					r.Error = err.Error()
					continue
				}
				for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
					if strings.Contains(lines.Text(), vllmToken) {
						r.Chunks = append(r.Chunks, capture.Chunk{At: clock()})
					}
				}
				_ = reply.Body.Close()
			}
		})
	}
	wait.Wait()
	return got
}

// measuredError runs streams and returns the largest difference of a quantile.
func measuredError(t *testing.T, send func(t *testing.T, target collect.Target, streams, repeat, tokens int) []capture.Request, streams, repeat, tokens int) time.Duration {
	t.Helper()
	served := record{seen: map[string]bool{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: served.serve(20 * ms)}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()
	got := send(t, address(listener.Addr().String()), streams, repeat, tokens)
	var ttft, gaps []time.Duration
	for _, r := range got {
		if r.Error != "" || len(r.Chunks) != tokens {
			t.Fatalf("%d chunks, want %d: %s", len(r.Chunks), tokens, r.Error)
		}
		if r.Reused {
			ttft = append(ttft, r.Chunks[0].At-r.Sent)
		}
		for i := range r.Chunks[1:] {
			gaps = append(gaps, r.Chunks[i+1].At-r.Chunks[i].At)
		}
	}
	served.mu.Lock()
	defer served.mu.Unlock()
	if len(ttft) != len(served.ttft) || len(gaps) != len(served.gaps) {
		t.Fatalf("%d TTFT and %d gaps, the server has %d and %d", len(ttft), len(gaps), len(served.ttft), len(served.gaps))
	}
	var worst time.Duration
	for _, q := range []float64{0.5, 0.95, 0.99} {
		a, b, x, y := rank(ttft, q), rank(served.ttft, q), rank(gaps, q), rank(served.gaps, q)
		t.Logf("%d streams, p%.0f: TTFT %v, the server's record %v; inter-token %v, the server's record %v", streams, q*100, a, b, x, y)
		worst = max(worst, (a - b).Abs(), (x - y).Abs())
	}
	return worst
}
