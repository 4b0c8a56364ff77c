package capture

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const msec = time.Millisecond

// streamed returns a complete request with chunks of text at the given milliseconds.
func streamed(sent int, at ...int) Request {
	r := Request{Sent: time.Duration(sent) * msec, Status: 200, Finish: "length", Reused: true}
	for _, ms := range at {
		r.Chunks = append(r.Chunks, Chunk{At: time.Duration(ms) * msec, Bytes: 4})
	}
	return r
}

func (r Request) with(change func(*Request)) Request {
	change(&r)
	return r
}

// usage gives a request the server's count.
func (r Request) usage(tokens float64) Request {
	r.OutputTokens = stat.Some(tokens)
	return r
}

// broken returns the request as one that was cut off.
func (r Request) broken(why string) Request {
	r.Error, r.Finish = why, ""
	return r
}

func TestDistribution(t *testing.T) {
	up := func(n int) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(n-i))
		}
		return all
	}
	for _, tc := range []struct {
		name string
		of   []time.Duration
		want Distribution
	}{
		{"none", nil, Distribution{}},
		{"one", up(1), Distribution{1, 1, 1, 1, 1, 1}},
		{"two: the median is the lower", up(2), Distribution{2, 2, 1, 2, 2, 2}},
		{"a hundred", up(100), Distribution{100, 51, 50, 95, 99, 100}},
		{"a hundred and one", up(101), Distribution{101, 51, 51, 96, 100, 101}},
		{"twenty: p99 is the largest", up(20), Distribution{20, 11, 10, 19, 20, 20}},
	} {
		if diff := cmp.Diff(tc.want, distributionOf(tc.of)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestRequestsSummary(t *testing.T) {
	if got := (&Capture{Kind: Observation}).requestsSummary(); got != nil {
		t.Errorf("an observation has requests: %+v", got)
	}
	fresh := streamed(0, 100, 110, 130).usage(5).with(func(r *Request) {
		r.Reused, r.Connect = false, 3*msec
		r.PromptTokens, r.CachedTokens = stat.Some(10), stat.Some(4)
	})
	one := streamed(200, 260).usage(1).with(func(r *Request) { r.PromptTokens = stat.Some(10) })
	lump := streamed(300, 400).usage(4).with(func(r *Request) { r.PromptTokens = stat.Some(10) })
	cut := streamed(500, 520, 560).broken("no token for 30s after the 2nd: the server stalled")
	lost := Request{Sent: 600 * msec}.broken("connection refused")
	again := Request{Sent: 700 * msec}.broken("connection refused")
	stalled := streamed(700, 710).broken("no token for 30s after the 1st: the server stalled")
	c := Capture{Kind: Probe, End: 2 * time.Second, Requests: []Request{fresh, one, lump, cut, lost, again, stalled}}
	got := c.requestsSummary()
	want := &RequestsSummary{
		Sent: 7, Whole: 3,
		Failures: []Failure{{"no token for 30s after the 2nd: the server stalled", 2, true}, {"connection refused", 2, false}},
		TTFT:     distributionOf([]time.Duration{100 * msec, 60 * msec, 100 * msec, 20 * msec, 10 * msec}),
		ITL:      distributionOf([]time.Duration{10 * msec, 20 * msec, 40 * msec}),
		TPOT:     distributionOf([]time.Duration{7500 * time.Microsecond}),
		E2E:      distributionOf([]time.Duration{130 * msec, 60 * msec, 100 * msec}),
		Connect:  distributionOf([]time.Duration{3 * msec}),
		// 10 from three reports, and 3 chunks of those that were cut off.
		OutputPerSecond:  stat.Some(13.0 / 2),
		RequestPerSecond: stat.Some((5/0.13 + 1/0.06 + 4/0.1) / 3),
		DecodePerSecond:  stat.Some(4 / 0.03),
		PromptTokens:     stat.Some(30), CachedTokens: stat.Some(4),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(RequestsSummary{}, "Tokens", "Server"), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Error(diff)
	}
}

// The prompt tokens of only some requests are not shown as those of all; a request that was cut off
// may lack them.
func TestPromptTokensOfAll(t *testing.T) {
	told := Request{PromptTokens: stat.Some(7), CachedTokens: stat.Some(2)}
	for _, tc := range []struct {
		name           string
		other          Request
		prompt, cached stat.Opt
	}{
		{"all reported", told, stat.Some(14), stat.Some(4)},
		{"a whole one did not report", Request{}, stat.None, stat.None},
		{"one that was cut off did not report", Request{Error: "cut"}, stat.Some(7), stat.Some(2)},
	} {
		c := Capture{Requests: []Request{told, tc.other}}
		if s := c.requestsSummary(); s.PromptTokens != tc.prompt || s.CachedTokens != tc.cached {
			t.Errorf("%s: got %v, %v", tc.name, s.PromptTokens, s.CachedTokens)
		}
	}
}

// Requests interrupted by the user do not count as failures of the server.
func TestInterruptedRequestsAreNoFailuresOfTheServer(t *testing.T) {
	for text, want := range map[string]bool{"interrupted after the 2nd chunk": true, "the server closed the stream after the 2nd chunk": false} {
		if f := (Failure{Error: text}); f.Interrupted() != want {
			t.Errorf("%q: interrupted is %t", text, !want)
		}
	}
}
