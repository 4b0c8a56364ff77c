package probe

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Summary is what a run offered and got. Rates are over Elapsed and count
// whatever arrived in it, also of requests that the end cut off; the latencies
// of such requests are left out, except the TTFT and ITL they had.
type Summary struct {
	Started    time.Time
	Elapsed    time.Duration
	Clients    int
	Requests   int // answered in full
	Errors     int // failed
	Unfinished int // cut by the end of the run

	PromptTokens int // of requests answered in full, by the server's count
	CachedTokens int // of these, found in a cache; 0 where the server does not tell
	OutputTokens int // all that arrived

	OutputPerSecond   float64 // output tokens
	RequestsPerSecond float64 // answered in full

	TTFT, ITL, TPOT, E2E Latency

	// Failures tells the errors apart, most frequent first.
	Failures []Failure
}

// Failure is one kind of error of a run.
type Failure struct {
	Kind    string `json:"kind"` // "status 503", "connection refused", "truncated", ...
	Count   int    `json:"count"`
	Example string `json:"example"` // the first of its kind
}

// Progress is a run so far.
type Progress struct {
	Elapsed      time.Duration
	InFlight     int
	Requests     int // answered in full
	Errors       int
	OutputTokens int // chunks of requests in flight count as one token each
	LastError    string
}

// MarshalJSON writes the summary with units in its names.
func (s Summary) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Started           time.Time `json:"started"`
		Elapsed           float64   `json:"elapsed_s"`
		Clients           int       `json:"clients"`
		Requests          int       `json:"requests"`
		Errors            int       `json:"errors"`
		Unfinished        int       `json:"unfinished"`
		PromptTokens      int       `json:"prompt_tokens"`
		CachedTokens      int       `json:"cached_tokens"`
		OutputTokens      int       `json:"output_tokens"`
		OutputPerSecond   float64   `json:"output_tokens_per_s"`
		RequestsPerSecond float64   `json:"requests_per_s"`
		TTFT              Latency   `json:"ttft"`
		ITL               Latency   `json:"itl"`
		TPOT              Latency   `json:"tpot"`
		E2E               Latency   `json:"e2e"`
		Failures          []Failure `json:"failures"`
	}{
		s.Started, s.Elapsed.Seconds(), s.Clients, s.Requests, s.Errors, s.Unfinished,
		s.PromptTokens, s.CachedTokens, s.OutputTokens, s.OutputPerSecond, s.RequestsPerSecond,
		s.TTFT, s.ITL, s.TPOT, s.E2E, append([]Failure{}, s.Failures...),
	})
}

// maxKinds bounds the kinds of errors that a run tells apart.
const maxKinds = 32

// tally adds up results from all clients.
type tally struct {
	mu                   sync.Mutex
	sum                  Summary
	inFlight             int
	lastError            string
	kinds                map[string]*Failure
	ttft, itl, tpot, e2e recorder
}

func (t *tally) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight++
}

// chunk counts output as it arrives.
func (t *tally) chunk(time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.OutputTokens++
}

// end takes in a finished request. Ended says that the run was over, so that
// an error is the run's own doing.
func (t *tally) end(r *Result, err error, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
	t.sum.OutputTokens += r.OutputTokens - len(r.Chunks)
	if first, ok := r.TTFT(); ok {
		t.ttft.add(first)
	}
	for i := 1; i < len(r.Chunks); i++ {
		t.itl.add(r.Chunks[i] - r.Chunks[i-1])
	}
	switch {
	case err == nil:
		t.sum.Requests++
		t.sum.PromptTokens += r.PromptTokens
		t.sum.CachedTokens += r.CachedTokens
		if d, ok := r.E2E(); ok {
			t.e2e.add(d)
		}
		if d, ok := r.TPOT(); ok {
			t.tpot.add(d)
		}
	case ended:
		t.sum.Unfinished++
	default:
		t.fail(err)
	}
}

func (t *tally) fail(err error) {
	t.sum.Errors++
	t.lastError = err.Error()
	kind := kindOf(err)
	if t.kinds[kind] == nil && len(t.kinds) >= maxKinds {
		kind = "other"
	}
	if t.kinds[kind] == nil {
		t.kinds[kind] = &Failure{Kind: kind, Example: err.Error()}
	}
	t.kinds[kind].Count++
}

// kindOf names an error by what a reader would do about it.
func kindOf(err error) string {
	var status *StatusError
	var stream *StreamError
	var network net.Error
	switch {
	case errors.As(err, &status):
		return fmt.Sprintf("status %d", status.Code)
	case errors.As(err, &stream):
		return "error in the stream"
	case errors.Is(err, ErrTruncated):
		return "truncated stream"
	case errors.Is(err, ErrOverrun):
		return "overlong stream"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "connection broken"
	}
	return "other"
}

func (t *tally) progress(elapsed time.Duration) Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Progress{
		Elapsed:      elapsed,
		InFlight:     t.inFlight,
		Requests:     t.sum.Requests,
		Errors:       t.sum.Errors,
		OutputTokens: t.sum.OutputTokens,
		LastError:    t.lastError,
	}
}

func (t *tally) summary(elapsed time.Duration) Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sum
	s.Elapsed = elapsed
	if seconds := elapsed.Seconds(); seconds > 0 {
		s.OutputPerSecond = float64(s.OutputTokens) / seconds
		s.RequestsPerSecond = float64(s.Requests) / seconds
	}
	s.TTFT, s.ITL, s.TPOT, s.E2E = t.ttft.latency(), t.itl.latency(), t.tpot.latency(), t.e2e.latency()
	for _, failure := range t.kinds {
		s.Failures = append(s.Failures, *failure)
	}
	slices.SortFunc(s.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	return s
}
