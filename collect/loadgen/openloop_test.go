package loadgen

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// A server that answers one request at a time and stalls for five seconds delays all requests that
// arrive meanwhile. A client that waits for its answer before it sends the next would measure one
// slow request.
func TestNoCoordinatedOmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := Load{
			Arrival: Constant, Rate: 10, PromptTokens: Fixed(4), OutputTokens: Fixed(1), Seed: 1, Duration: 100 * sec, SLO: SLO{TTFT: sec},
		}
		// Sending is delayed as well: the send lag shows it, and the latency from the actual send
		// does not.
		slot := make(chan struct{}, 1)
		began := time.Now()
		stall := sendFunc(func(ctx context.Context, r probe.Request, clock func() time.Duration) (capture.Request, error) {
			slot <- struct{}{}
			defer func() { <-slot }()
			result := capture.Request{Sent: clock()}
			if since := time.Since(began); since >= 10*sec && since < 11*sec {
				time.Sleep(5 * sec)
			}
			time.Sleep(20 * ms)
			result.Chunks = arrivedAt(clock())
			r.OnChunk(clock() - result.Sent)
			return result, nil
		})
		got, err := Run(t.Context(), stall, load, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Sent != 1000 || got.Requests != 1000 {
			t.Errorf("%d sent, %d answered, want 1000", got.Sent, got.Requests)
		}
		// The backlog of 50 requests shrinks by 80 ms per request: about 62 requests wait, the
		// first 5 s, the last 0, so 1 % of all wait at least 4.2 s.
		if p := got.TTFT.P99; p < 4*sec || p > 5*sec {
			t.Errorf("TTFT p99 is %v from the intended time, want 4 to 5 s", p)
		}
		if p := got.TTFTSent.P99; p > 30*ms {
			t.Errorf("TTFT p99 is %v from the actual send, want 20 ms: this is what omission hides", p)
		}
		if p := got.SendLag.P99; p < 4*sec {
			t.Errorf("send lag p99 is %v, want it to show that requests were sent late", p)
		}
		// Requests that waited more than 980 ms: those of the first 4.1 s.
		if g := got.Goodput; g.Judged != 1000 || g.Good < 945 || g.Good > 955 {
			t.Errorf("%d of %d are good, want about 950 of 1000", g.Good, g.Judged)
		}
	})
}

// sendFunc answers requests in process.
type sendFunc func(ctx context.Context, r probe.Request, clock func() time.Duration) (capture.Request, error)

func (f sendFunc) Send(ctx context.Context, r probe.Request, clock func() time.Duration) (capture.Request, error) {
	return f(ctx, r, clock)
}

// arrivedAt returns chunks with the given times.
func arrivedAt(moments ...time.Duration) (chunks []capture.Chunk) {
	for _, at := range moments {
		chunks = append(chunks, capture.Chunk{At: at})
	}
	return chunks
}

// An open loop follows its schedule while a server is down, and the requests before and after are
// the same as without the outage.
func TestOpenLoopSurvivesRestart(t *testing.T) {
	for _, retry := range []bool{false, true} {
		t.Run(fmt.Sprint("retry ", retry), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				load := open(Poisson, 20)
				load.Duration, load.Retry = 60*sec, retry
				if retry {
					load.Deadline = 15 * sec
				}
				up := newServer()
				steady, err := Run(t.Context(), up, load, nil)
				if err != nil {
					t.Fatal(err)
				}
				down := newServer()
				down.fail = func(_ int, since time.Duration) error {
					if since >= 20*sec && since < 30*sec {
						return syscall.ECONNREFUSED
					}
					return nil
				}
				got, err := Run(t.Context(), down, load, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got.Sent != steady.Sent || got.SendLag.Max != 0 {
					t.Errorf("%d sent with a lag of %v, want the %d of a server that stays up", got.Sent, got.SendLag.Max, steady.Sent)
				}
				if !retry {
					// The requests are the same in text and time.
					if diff := cmp.Diff(up.at, down.at); diff != "" {
						t.Error(diff)
					}
					if got.Errors < 150 || got.Errors > 250 || got.Retries != 0 || got.Requests+got.Errors+got.Unfinished != got.Sent {
						t.Errorf("%d errors, %d answered, want those of ten seconds to fail: %d sent", got.Errors, got.Requests, got.Sent)
					}
					return
				}
				if got.Errors != 0 || got.Retries < 200 || got.Requests+got.Unfinished != got.Sent {
					t.Errorf("%d errors, %d retries, %d of %d answered, want all answered", got.Errors, got.Retries, got.Requests, got.Sent)
				}
				// Latencies include the wait for the server.
				if got.TTFT.Max < 9*sec || got.TTFT.Max > 13*sec {
					t.Errorf("TTFT of up to %v, want about 10 s", got.TTFT.Max)
				}
			})
		})
	}
}

func TestRunCancelsAndGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		load := open(Constant, 10)
		load.OutputTokens, load.Cancel, load.Deadline, load.Requests = Fixed(50), 0.5, 400*ms, 200
		load.SLO = SLO{E2E: sec}
		got, err := Run(t.Context(), s, load, nil)
		if err != nil {
			t.Fatal(err)
		}
		// First token after 100 ms, 30 more by 400 ms: requests that are not cancelled by then
		// reach their deadline.
		if got.Requests != 0 || got.Errors != 0 || got.Cancelled+got.Expired != 200 || got.Cancelled < 40 || got.Expired < 100 {
			t.Errorf("%d answered, %d failed, %d cancelled, %d given up", got.Requests, got.Errors, got.Cancelled, got.Expired)
		}
		if got.NoFirstToken != 0 {
			t.Errorf("%d without a first token, which all had after 100 ms", got.NoFirstToken)
		}
		if got.Goodput.Judged != got.Expired || got.Goodput.Good != 0 {
			t.Errorf("%+v, want the %d given up to count as missed", got.Goodput, got.Expired)
		}
		if got.Elapsed < 19900*ms || got.Elapsed > 20300*ms {
			t.Errorf("took %v, want the last request of 19.9 s to be given up after 400 ms at most", got.Elapsed)
		}
	})
}

// Requests given up before their first token are missing from TTFT, and are counted.
func TestRunTellsOfMissingFirstTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := open(Constant, 10)
		load.Deadline, load.Requests = 350*ms, 20
		load.Phases = []Phase{Hold(10, sec), Hold(10, sec)}
		var n atomic.Int64
		got, err := Run(t.Context(), sendFunc(func(ctx context.Context, r probe.Request, clock func() time.Duration) (capture.Request, error) {
			result := capture.Request{Sent: clock()}
			if n.Add(1)%2 == 0 {
				time.Sleep(100 * ms)
				result.Chunks = arrivedAt(result.Sent + 100*ms)
				r.OnChunk(100 * ms)
			}
			<-ctx.Done()
			return result, context.Cause(ctx)
		}), load, nil)
		if err != nil {
			t.Fatal(err)
		}
		// The end of the run cuts off the last three.
		if got.Expired != 17 || got.NoFirstToken != 9 || got.Phases[0].NoFirstToken+got.Phases[1].NoFirstToken != 9 {
			t.Errorf("%d given up, %d of them without a first token, want 17 and 9", got.Expired, got.NoFirstToken)
		}
	})
}

func TestRunScoresPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		load := open(Constant, 0)
		load.Phases = []Phase{{Name: "low", Duration: 10 * sec, From: 5, To: 5}, {Name: "high", Duration: 10 * sec, From: 20, To: 20}}
		s.fail = func(n int, _ time.Duration) error {
			if n >= 100 && n < 110 {
				return &probe.StatusError{Code: 500}
			}
			return nil
		}
		got, err := Run(t.Context(), s, load, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Phases) != 2 {
			t.Fatalf("%d phases", len(got.Phases))
		}
		low, high := got.Phases[0], got.Phases[1]
		if low.Sent != 50 || low.Requests != 50 || low.OfferedPerSecond != 5 || low.OutputTokens != 100 || low.To != 10*sec || low.Name != "low" {
			t.Errorf("got %+v", low)
		}
		// Two tokens after 110 ms: the last three requests are cut off.
		if high.Sent != 200 || high.Errors != 10 || high.Unfinished != 2 || high.Requests != 188 || high.From != 10*sec || high.FromLevel != 20 {
			t.Errorf("got %+v", high)
		}
		if got.Sent != 250 || got.TTFT.Count != low.TTFT.Count+high.TTFT.Count || got.Elapsed != 20*sec {
			t.Errorf("got %+v", got.Score)
		}
	})
}

// The tokens of a stream that spans phases belong to the phases in which its chunks arrived, and
// add up to the server's count.
func TestRunSpreadsTokensOverPhases(t *testing.T) {
	for _, tc := range []struct {
		name      string
		chunks    []time.Duration
		count     int
		low, high int
	}{
		{"several tokens a chunk", []time.Duration{5 * sec, 6 * sec, 12 * sec}, 30, 20, 10},
		{"chunks without a token", []time.Duration{5 * sec, 6 * sec, 7 * sec, 12 * sec}, 2, 1, 1},
		{"no token at all", []time.Duration{5 * sec, 12 * sec}, 0, 0, 0},
		{"all in the later", []time.Duration{11 * sec, 12 * sec}, 3, 0, 3},
		{"a count beyond products of 64 bits", []time.Duration{5 * sec, 12 * sec}, 1 << 40, 1 << 39, 1 << 39},
		{"a count without chunks", nil, 7, 0, 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				load := open(Constant, 0)
				load.Phases = []Phase{Hold(1, 10*sec), Hold(1, 10*sec)}
				load.Requests = 1
				got, err := Run(t.Context(), sendFunc(func(_ context.Context, r probe.Request, clock func() time.Duration) (capture.Request, error) {
					result := capture.Request{Sent: clock(), OutputTokens: stat.Some(float64(tc.count))}
					for _, at := range tc.chunks {
						time.Sleep(result.Sent + at - clock())
						result.Chunks = append(result.Chunks, arrivedAt(result.Sent+at)...)
						r.OnChunk(at)
					}
					time.Sleep(result.Sent + 13*sec - clock())
					return result, nil
				}), load, nil)
				if err != nil || len(got.Phases) != 2 {
					t.Fatal(len(got.Phases), err)
				}
				if low, high := got.Phases[0].OutputTokens, got.Phases[1].OutputTokens; low != tc.low || high != tc.high || got.OutputTokens != tc.count {
					t.Errorf("%d and %d tokens of %d, want %d and %d of %d", low, high, got.OutputTokens, tc.low, tc.high, tc.count)
				}
			})
		})
	}
}

func TestSLO(t *testing.T) {
	chunks := func(gaps ...time.Duration) *capture.Request {
		r := &capture.Request{}
		at := time.Duration(0)
		for _, g := range gaps {
			at += g
			r.Chunks = append(r.Chunks, arrivedAt(at)...)
		}
		return r
	}
	hundred := []time.Duration{100 * ms}
	for range 99 {
		hundred = append(hundred, 10*ms)
	}
	hiccup := append(append([]time.Duration{}, hundred...), 500*ms)
	for _, tc := range []struct {
		name string
		slo  SLO
		lag  time.Duration
		r    *capture.Request
		want bool
	}{
		{"nothing asked", SLO{}, 0, chunks(100 * ms), true},
		{"nothing came", SLO{TTFT: sec}, 0, chunks(), false},
		{"first token in time", SLO{TTFT: 100 * ms}, 0, chunks(100*ms, sec), true},
		{"first token late", SLO{TTFT: 99 * ms}, 0, chunks(100 * ms), false},
		{"first token late as it was sent late", SLO{TTFT: 100 * ms}, ms, chunks(100 * ms), false},
		{"end to end", SLO{E2E: 109 * ms}, 0, chunks(100*ms, 10*ms), false},
		{"time per token", SLO{TPOT: 55 * ms}, 0, chunks(100*ms, 10*ms, 100*ms), true},
		{"time per token too long", SLO{TPOT: 54 * ms}, 0, chunks(100*ms, 10*ms, 100*ms), false},
		{"one token has no time per token", SLO{TPOT: ms, ITL: ms}, 0, chunks(100 * ms), true},
		{"one long gap of two", SLO{ITL: 50 * ms}, 0, chunks(100*ms, 10*ms, 100*ms), false},
		{"one long gap of a hundred", SLO{ITL: 50 * ms}, 0, chunks(hiccup...), true},
		{"one of two objectives", SLO{TTFT: sec, E2E: 99 * ms}, 0, chunks(100 * ms), false},
	} {
		if got := tc.slo.met(tc.lag, tc.r); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

// A request cut off by the end of the run counts if it had already missed an objective.
func TestGoodputOfUnfinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := Load{Clients: 3, PromptTokens: Fixed(4), OutputTokens: Fixed(1), Together: true, Duration: 10 * sec, SLO: SLO{TTFT: 5 * sec}}
		var n atomic.Int64
		got, err := Run(t.Context(), sendFunc(func(ctx context.Context, r probe.Request, clock func() time.Duration) (capture.Request, error) {
			result := capture.Request{Sent: clock()}
			if n.Add(1) == 1 {
				<-ctx.Done() // never answered
				return result, context.Cause(ctx)
			}
			select {
			case <-time.After(4 * sec):
			case <-ctx.Done():
				return result, context.Cause(ctx)
			}
			result.Chunks = arrivedAt(result.Sent + 4*sec)
			r.OnChunk(4 * sec)
			return result, nil
		}), load, nil)
		if err != nil {
			t.Fatal(err)
		}
		// Two clients get answers at 4 and 8 s, and have a request in flight for 2 s.
		if got.Goodput.Good != 4 || got.Goodput.Judged != 5 || got.Unfinished != 3 {
			t.Errorf("%+v with %d unfinished, want 4 of 5: one waits for ten seconds", got.Goodput, got.Unfinished)
		}
		if share := got.Goodput.Share; share != stat.Some(0.8) || got.Goodput.PerSecond != 0.4 {
			t.Errorf("share %v, %v a second", share, got.Goodput.PerSecond)
		}
	})
}
