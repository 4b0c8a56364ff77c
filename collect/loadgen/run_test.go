package loadgen

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// server answers in process: first token after wait, then one every gap. It fails the requests for
// which fail returns true.
type server struct {
	wait, gap time.Duration
	fail      func(n int, since time.Duration) error // n counts requests from 0

	began    time.Time
	mu       sync.Mutex
	requests []probe.Request
	at       []time.Duration
	flying   int
	most     int
}

func newServer() *server { return &server{wait: 100 * ms, gap: 10 * ms, began: time.Now()} }

func (s *server) Send(ctx context.Context, r probe.Request, clock func() time.Duration) (capture.Request, error) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r)
	s.at = append(s.at, time.Since(s.began))
	s.flying++
	s.most = max(s.most, s.flying)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.flying--
		s.mu.Unlock()
	}()
	result := capture.Request{Sent: clock()}
	if s.fail != nil {
		if err := s.fail(n, time.Since(s.began)); err != nil {
			return result, err
		}
	}
	delay := s.wait
	for range r.MaxTokens {
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(delay):
		}
		delay = s.gap
		result.Chunks = append(result.Chunks, capture.Chunk{At: clock()})
		if r.KeepText {
			result.Text += " token"
		}
		r.OnChunk(clock() - result.Sent)
		if r.CancelAfter == len(result.Chunks) {
			return result, probe.ErrCancelled
		}
	}
	result.PromptTokens, result.Status = stat.Some(float64(len(r.Prompt))), 200
	return result, nil
}

func chat(clients int) Load {
	return Load{Clients: clients, PromptTokens: Fixed(20), OutputTokens: Fixed(11), Style: Characters, Together: true, Seed: 1}
}

func TestRunMeasures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		load := chat(4)
		load.Requests = 40
		got, err := Run(t.Context(), s, load, nil)
		if err != nil {
			t.Fatal(err)
		}
		// 10 rounds of 4 requests, each 100 ms + 10 gaps of 10 ms.
		flat := func(n int, d time.Duration) capture.Distribution {
			return capture.Distribution{Count: n, Mean: d, P50: d, P95: d, P99: d, Max: d}
		}
		want := Summary{
			Schema:  Schema,
			Started: s.began, Elapsed: 2 * time.Second, Clients: 4, Seed: 1,
			Score: Score{
				Sent: 40, Requests: 40,
				PromptTokens: 800, OutputTokens: 440, OutputPerSecond: 220, RequestsPerSecond: 20, OfferedPerSecond: 20,
				TTFT: flat(40, 100*ms), ITL: flat(400, 10*ms), TPOT: flat(40, 10*ms), E2E: flat(40, 200*ms),
				TTFTSent: flat(40, 100*ms), E2ESent: flat(40, 200*ms), SendLag: flat(40, 0),
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if s.most != 4 {
			t.Errorf("%d requests in flight, want 4", s.most)
		}
	})
}

func TestRunCutsAtDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := chat(2)
		load.Duration = 955 * ms
		got, err := Run(t.Context(), newServer(), load, nil)
		if err != nil {
			t.Fatal(err)
		}
		// 4 complete rounds in 800 ms; the fifth is cut off after its tokens at 900 to 950 ms.
		if got.Requests != 8 || got.Unfinished != 2 || got.Errors != 0 || got.Elapsed != 955*ms {
			t.Errorf("got %d requests, %d unfinished, %d errors in %v", got.Requests, got.Unfinished, got.Errors, got.Elapsed)
		}
		if want := 8*11 + 2*6; got.OutputTokens != want {
			t.Errorf("got %d output tokens, want %d", got.OutputTokens, want)
		}
		if got.E2E.Count != 8 || got.TTFT.Count != 10 {
			t.Errorf("got %d end-to-end times and %d first tokens, want 8 and 10", got.E2E.Count, got.TTFT.Count)
		}
	})
}

func TestRunSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.fail = func(_ int, since time.Duration) error {
			if since >= time.Second && since < 4*time.Second {
				return syscall.ECONNREFUSED
			}
			return nil
		}
		load := chat(1)
		load.Duration = 6100 * ms
		got, err := Run(t.Context(), s, load, nil)
		if err != nil {
			t.Fatal(err)
		}
		// 5 requests in the first second. Failures at 1.0 s and then after a backoff of 0.1, 0.2,
		// 0.4, 0.8 and 1.6 s, with the last one at 4.1 s answered: 5 failures. Then 10 requests in
		// the remaining 2 s.
		if got.Requests != 15 || got.Errors != 5 {
			t.Errorf("got %d requests and %d errors, want 15 and 5", got.Requests, got.Errors)
		}
		want := []Failure{{Kind: "connection refused", Count: 5, Example: syscall.ECONNREFUSED.Error()}}
		if diff := cmp.Diff(want, got.Failures); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRunGivesUpWhenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.fail = func(int, time.Duration) error { return &probe.StatusError{Code: 401, Message: "Unauthorized"} }
		load := chat(3)
		load.Duration = time.Hour
		got, err := Run(t.Context(), s, load, nil)
		want := "the server refuses these requests: status 401 Unauthorized: Unauthorized"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if got.Elapsed != 0 || got.Errors == 0 {
			t.Errorf("got %v and %d errors, want an end at once", got.Elapsed, got.Errors)
		}
	})
}

// A request that is too long does not affect the others.
func TestRunEnduresFaultyRequests(t *testing.T) {
	for _, tc := range []struct {
		name   string
		faulty func(n int) bool
		errors int
		gaveUp bool
	}{
		{"the first", func(n int) bool { return n == 0 }, 1, false},
		{"seven of the first eight", func(n int) bool { return n < 8 && n != 5 }, 7, false},
		{"each of the first eight", func(int) bool { return true }, 8, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.fail = func(n int, _ time.Duration) error {
					if tc.faulty(n) {
						return &probe.StatusError{Code: 400, Message: "too long"}
					}
					return nil
				}
				load := open(Constant, 100)
				load.Requests, load.Retry = 40, true
				got, err := Run(t.Context(), s, load, nil)
				if (err != nil) != tc.gaveUp || got.Errors != tc.errors || got.Retries != 0 {
					t.Errorf("got %v, %d errors, %d retries, want %d errors", err, got.Errors, got.Retries, tc.errors)
				}
				if !tc.gaveUp && got.Requests != 40-tc.errors {
					t.Errorf("%d answered of 40", got.Requests)
				}
			})
		})
	}
}

// After answered requests a refusal is an ordinary failure: a proxy answers 404 while its backend
// restarts.
func TestRunEnduresRefusalsAfterSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.fail = func(n int, _ time.Duration) error {
			if n%2 == 1 {
				return &probe.StatusError{Code: 404}
			}
			return nil
		}
		load := chat(1)
		load.Requests = 6
		got, err := Run(t.Context(), s, load, nil)
		if err != nil || got.Requests != 3 || got.Errors != 3 {
			t.Errorf("got %d requests, %d errors, %v", got.Requests, got.Errors, err)
		}
	})
}

func TestRunStopsWithContext(t *testing.T) {
	for _, tc := range []struct {
		name string
		load func(*Load)
		want error
	}{
		{"before its limit", func(l *Load) { l.Duration = time.Hour }, context.Canceled},
		{"before its last request", func(l *Load) { l.Requests = 1 << 30 }, context.Canceled},
		{"without a limit", func(*Load) {}, nil},
		{"while thinking", func(l *Load) { l.Think = Always(time.Hour) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(1005*ms, cancel)
				load := chat(8)
				tc.load(&load)
				got, err := Run(ctx, newServer(), load, nil)
				if !errors.Is(err, tc.want) {
					t.Errorf("got %v, want %v", err, tc.want)
				}
				if got.Elapsed != 1005*ms || got.Requests == 0 || got.Errors != 0 {
					t.Errorf("got %d requests, %d errors in %v", got.Requests, got.Errors, got.Elapsed)
				}
			})
		})
	}
}

func TestRunRefusesBadLoads(t *testing.T) {
	good := chat(1)
	good.Requests = 1
	for _, tc := range []struct {
		name  string
		spoil func(*Load)
		want  string
	}{
		{"no clients", func(l *Load) { l.Clients = 0 }, "clients is 0"},
		{"no output", func(l *Load) { l.OutputTokens = Lengths{} }, "output tokens start at 0"},
		{"output backwards", func(l *Load) { l.OutputTokens = Between(5, 4) }, "output tokens end at 4, below their start 5"},
		{"prompt backwards", func(l *Load) { l.PromptTokens = Between(5, 4) }, "prompt tokens end at 4"},
		{"no prompt", func(l *Load) { l.PromptTokens = Fixed(0) }, "prompt tokens start at 0"},
		{"all prefix", func(l *Load) { l.SharedPrefixTokens = 20 }, "leaves no room in a prompt of 20"},
		{"all prefix on average", func(l *Load) { l.PromptTokens, l.SharedPrefixTokens = LognormalMean(100, 1, 0), 100 }, "shared prefix of 100 tokens leaves no room in prompts of 100"},
		{"too many phases", func(l *Load) { l.Phases = slices.Repeat([]Phase{Hold(1, sec)}, 257) }, "257 phases exceed the limit of 256"},
		{"negative prefix", func(l *Load) { l.SharedPrefixTokens = -1 }, "shared prefix is -1"},
		{"negative time", func(l *Load) { l.Stagger = -1 }, "negative"},
		{"negative requests", func(l *Load) { l.Requests = -1 }, "requests is -1"},
	} {
		load := good
		tc.spoil(&load)
		s := newServer()
		if _, err := Run(t.Context(), s, load, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
		}
		if len(s.requests) > 0 {
			t.Errorf("%s: a request was sent", tc.name)
		}
	}
}

func TestKindOf(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&probe.StatusError{Code: 429}, "status 429"},
		{&probe.StreamError{}, "error in the stream"},
		{probe.ErrTruncated, "truncated stream"},
		{probe.ErrOverrun, "overlong stream"},
		{syscall.ECONNREFUSED, "connection refused"},
		{syscall.ECONNRESET, "connection broken"},
		{context.DeadlineExceeded, "timeout"},
		{errors.New("x"), "other"},
	} {
		if got := kindOf(errors.Join(tc.err)); got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.err, got, tc.want)
		}
	}
}
