package capture

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Record is a capture with its setup and its summary.
type Record struct {
	Setup   Setup
	Capture *Capture
	Summary *Summary
}

// Comparison is the result of comparing two captures. It is valid for these two runs: requests of
// one run share the server start, the host and the hour, so they are not independent restarts, and
// an interval over them is narrower than one over repeated runs of a configuration.
type Comparison struct {
	// Refused has every reason why the two cannot be compared; there are then no Changes.
	Refused []string             `json:"refused"`
	Differs []compare.Difference `json:"differs"` // differences that may explain the changes
	Changes []Change             `json:"-"`
	Notes   []string             `json:"notes"` // how to read the changes
}

// Change is a figure of both sides, with an interval over groups of requests.
type Change struct {
	Name string `json:"-"` // stable name, with the unit
	Unit string `json:"unit"`
	compare.Change
	RequestsA int `json:"requests_a"` // requests with the figure; 0 for a figure of a whole run
	RequestsB int `json:"requests_b"`
	// GroupsA and GroupsB are the numbers of means for the interval. Each is over as many requests
	// as are in flight at a time.
	GroupsA int `json:"groups_a"`
	GroupsB int `json:"groups_b"`
}

// minGroups is how many groups each side needs for an interval.
const minGroups = 2

// Compare compares b with a, or returns the reasons why they are not comparable. Both must have a
// summary.
func Compare(a, b *Record) Comparison {
	out := Comparison{Refused: refusals(a, b)}
	if len(out.Refused) > 0 {
		return out
	}
	out.Differs = differences(a, b)
	for _, f := range perRequest {
		out.Changes = append(out.Changes, f.compare(a, b))
	}
	for _, f := range perRun {
		out.Changes = append(out.Changes, f.compare(a, b))
	}
	out.Changes = slices.DeleteFunc(out.Changes, func(c Change) bool { return !c.A.OK && !c.B.OK })
	if a.Capture.Kind == Observation {
		out.Notes = append(out.Notes, "two observations may have served different requests: the values are shown without a verdict")
		out.Notes = append(out.Notes, countedNotes(a, b)...)
		return out
	}
	if concurrency := a.concurrency(); min(complete(a), complete(b)) < minGroups*concurrency {
		out.Notes = append(out.Notes, fmt.Sprintf("fewer than %d requests per side do not show the noise: use --repeat for a verdict", minGroups*concurrency))
		return out
	}
	if slices.ContainsFunc(out.Changes, func(c Change) bool { return c.Low.OK }) {
		out.Notes = append(out.Notes,
			"each interval covers 95 % on its own, over the requests of these two runs, with concurrent requests counted as one; they are not independent restarts, so it holds for these two runs, not for the two configurations",
		)
	}
	if slices.ContainsFunc(out.Changes, func(c Change) bool { return c.Verdict == compare.Unresolved }) {
		out.Notes = append(out.Notes, fmt.Sprintf("unresolved: the interval includes both no change and a change of more than %.0f %%; more requests on both sides (--repeat) narrow it, and so does a lower --concurrency, since concurrent requests count as one", 100*compare.EqualWithin))
	}
	if n, m := len(a.Capture.Requests), len(b.Capture.Requests); n != m {
		out.Notes = append(out.Notes, fmt.Sprintf("one side has %d requests, the other %d: figures of single requests use the first %d of each, so that a slow start weighs the same on both", n, m, min(n, m)))
	}
	return out
}

// requestFigure is a figure of single requests.
type requestFigure struct {
	name, unit string
	rate       bool // larger is faster
	// value returns the figure of a request with at least one chunk and the given tokens.
	value func(r *Request, tokens stat.Opt) stat.Opt
}

// gapFigure is the median gap between successive chunks.
const gapFigure = "itl_p50_s"

var perRequest = [...]requestFigure{
	{"ttft_s", "s", false, func(r *Request, _ stat.Opt) stat.Opt {
		ttft, _ := r.TTFT()
		return stat.Some(ttft.Seconds())
	}},
	{gapFigure, "s", false, func(r *Request, _ stat.Opt) stat.Opt { return r.medianGap() }},
	{"tpot_s", "s", false, func(r *Request, tokens stat.Opt) stat.Opt {
		if len(r.Chunks) < 2 { // the time between the tokens is unknown
			return stat.None
		}
		decode := r.Chunks[len(r.Chunks)-1].At - r.Chunks[0].At
		return stat.Some(decode.Seconds()).Div(stat.Some(tokens.Or(0) - 1))
	}},
	{"request_tokens_per_s", "tok/s", true, func(r *Request, tokens stat.Opt) stat.Opt { return tokens.Div(r.answerSeconds()) }},
	{"e2e_s", "s", false, func(r *Request, _ stat.Opt) stat.Opt { return r.answerSeconds() }},
}

// tokensPerChunk returns the mean tokens per chunk, None if the usage reports do not count the
// tokens.
func (s *Record) tokensPerChunk() stat.Opt {
	q := s.Summary.Requests
	if q == nil || q.Tokens.From != fromUsage {
		return stat.None
	}
	var tokens, chunks float64
	for i := range s.Capture.Requests {
		if r := &s.Capture.Requests[i]; r.Error == "" && r.OutputTokens.OK {
			tokens, chunks = tokens+r.OutputTokens.V, chunks+float64(len(r.Chunks))
		}
	}
	return stat.Some(tokens).Div(stat.Some(chunks))
}

// answerSeconds returns the time from the send to the last chunk.
func (r *Request) answerSeconds() stat.Opt {
	e2e, _ := r.E2E()
	return stat.Some(e2e.Seconds())
}

// medianGap returns the nearest-rank median of a request's gaps between chunks, in seconds.
func (r *Request) medianGap() stat.Opt {
	var gaps []float64
	for i := 1; i < len(r.Chunks); i++ {
		gaps = append(gaps, (r.Chunks[i].At - r.Chunks[i-1].At).Seconds())
	}
	slices.Sort(gaps)
	return stat.NearestRank(gaps, 0.5)
}

// compare uses the same number of requests of each side, from the first one on: servers warm up,
// and that is a smaller part of a longer run.
func (f *requestFigure) compare(a, b *Record) Change {
	n := min(len(a.Capture.Requests), len(b.Capture.Requests))
	x, y := f.values(a, n), f.values(b, n)
	c := Change{Name: f.name, Unit: f.unit, Change: compare.New(stat.Mean(x), stat.Mean(y)), RequestsA: len(x), RequestsB: len(y)}
	if !c.Ratio.OK {
		return c
	}
	if s, t := a.tokensPerChunk(), b.tokensPerChunk(); f.name == gapFigure && apart(s, t) {
		c.Reason = fmt.Sprintf("%.3g and %.3g tokens per chunk: gaps between chunks are not times between tokens", s.V, t.V)
		return c
	}
	x, y = groups(x, a.concurrency()), groups(y, b.concurrency())
	c.GroupsA, c.GroupsB = len(x), len(y)
	if min(len(x), len(y)) < minGroups {
		c.Reason = "one side has fewer requests than twice its concurrency"
		return c
	}
	low, high, ok := logRatio(x, y)
	if !ok {
		c.Reason = "all requests have the same value: the noise is unknown"
		return c
	}
	c.SetInterval(c.Ratio.V*math.Exp(low), c.Ratio.V*math.Exp(high), f.rate)
	return c
}

// values returns the figure of each completed request among the first n.
func (f *requestFigure) values(s *Record, n int) []float64 {
	var out []float64
	if s.Summary.Requests == nil {
		return nil
	}
	for i := range s.Capture.Requests[:n] {
		r := &s.Capture.Requests[i]
		if r.Error != "" || len(r.Chunks) == 0 {
			continue
		}
		if v := f.value(r, s.Summary.Requests.Tokens.countOf(r)); v.Finite().OK {
			out = append(out, v.V)
		}
	}
	return out
}

// maxConcurrency is more than one program can keep in flight.
const maxConcurrency = 1 << 20

// concurrency returns how many requests of a side are in flight at a time.
func (s *Record) concurrency() int {
	if s.Setup.Request == nil {
		return 1
	}
	return min(max(1, s.Setup.Request.Concurrency), maxConcurrency)
}

// runFigure is a figure of a whole run.
type runFigure struct {
	name, unit string
	value      func(*Record) stat.Opt
}

var perRun = [...]runFigure{
	{"output_tokens_per_s", "tok/s", func(s *Record) stat.Opt {
		if q := s.Summary.Requests; q != nil {
			return q.OutputPerSecond
		}
		return s.observedTokens().Times(1 / s.Summary.Span.Seconds())
	}},
	{"cpu_s_per_token", "s", func(s *Record) stat.Opt {
		if s.Summary.Tree == nil {
			return stat.None
		}
		return s.Summary.Tree.Total.CPUSeconds.Div(s.generated())
	}},
	{"rss_peak_bytes", "B", func(s *Record) stat.Opt {
		if s.Summary.Tree == nil {
			return stat.None
		}
		return s.Summary.Tree.Total.RSS.Peak
	}},
	{JoulesPerToken, "J", func(s *Record) stat.Opt {
		for _, q := range s.Summary.Derived {
			if q.Name == JoulesPerToken {
				return q.Value
			}
		}
		return stat.None
	}},
}

// generated returns the number of output tokens, for an observation by the server's counter.
func (s *Record) generated() stat.Opt {
	if q := s.Summary.Requests; q != nil {
		return q.Tokens.Used
	}
	return s.observedTokens()
}

// observedTokens returns the output tokens of an observation. It returns None if its counter does
// not show them, or the observation has no duration.
func (s *Record) observedTokens() stat.Opt {
	if s.Summary.Span <= 0 {
		return stat.None
	}
	return s.Capture.Counted().Tokens
}

// countedNotes describes the uncertainty of the counters of two observations.
func countedNotes(a, b *Record) []string {
	var out []string
	for _, side := range [...]struct {
		name string
		*Record
	}{{"A", a}, {"B", b}} {
		switch n := side.Capture.Counted(); {
		case n.Reason != "":
			out = append(out, "the output of "+side.name+" is unknown: "+n.Reason)
		case n.Estimate:
			out = append(out, "the output of "+side.name+" is an estimate: "+n.Note)
		}
	}
	return out
}

func (f *runFigure) compare(a, b *Record) Change {
	c := Change{Name: f.name, Unit: f.unit, Change: compare.New(f.value(a), f.value(b))}
	c.Reason = cmp.Or(c.Reason, "a single value per run does not show the noise")
	return c
}

// complete returns how many requests were completed.
func complete(s *Record) int {
	if s.Summary.Requests == nil {
		return 0
	}
	return s.Summary.Requests.Whole
}
