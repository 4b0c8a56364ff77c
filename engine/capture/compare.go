package capture

import (
	"fmt"
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Side is one of two captures that are compared.
type Side struct {
	Setup   Setup
	Capture *Capture
	Summary *Summary
}

// Word says which way a figure moved from the first side to the second.
type Word string

// Words of a comparison.
const (
	Faster  Word = "faster"                         // the whole interval is on that side
	Slower  Word = "slower"                         // of no change
	Equal   Word = "no difference beyond the noise" // and the whole interval within EqualWithin
	Unclear Word = "cannot-tell"                    // the interval holds no change, and changes that matter
)

// EqualWithin is the change, either way, that is still none: above it an interval
// which holds no change says only that there were too few requests.
const EqualWithin = 0.1

// Comparison is what two captures say of each other. It holds for these two runs:
// the requests of one run share its start, its host and its hour, so that they are no
// independent restarts, and an interval over them is narrower than one over repeats
// of a configuration.
type Comparison struct {
	// Refused says why the two cannot be compared, every reason; there are no changes
	// then.
	Refused []string     `json:"refused"`
	Differs []Difference `json:"differs"` // what a comparison may be about
	Changes []Change     `json:"-"`
	Notes   []string     `json:"notes"` // what to know of the changes
}

// Difference is something that two comparable captures do not share.
type Difference struct {
	What string `json:"what"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Change is a figure on both sides.
type Change struct {
	Name  string   `json:"-"` // stable, with its unit
	Unit  string   `json:"unit"`
	A     stat.Opt `json:"a"`
	B     stat.Opt `json:"b"`
	Ratio stat.Opt `json:"ratio"` // B over A
	// Low and High are the 95 % interval of the ratio, over groups of requests.
	Low       stat.Opt `json:"ratio_low"`
	High      stat.Opt `json:"ratio_high"`
	RequestsA int      `json:"requests_a"` // that have the figure; 0 of one of a whole run
	RequestsB int      `json:"requests_b"`
	// GroupsA and GroupsB are the means that the interval rests on: of as many
	// requests each as are under way at a time.
	GroupsA int    `json:"groups_a"`
	GroupsB int    `json:"groups_b"`
	Word    Word   `json:"verdict"` // "" where nothing can be said
	Reason  string `json:"reason"`  // why a value or the verdict is absent
}

// leastGroups are the groups a side needs for an interval.
const leastGroups = 2

// Compare compares b with a, or says why they are not comparable. Neither side's
// summary may be nil.
func Compare(a, b *Side) Comparison {
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
		out.Notes = append(out.Notes, "what clients asked for was not held equal in two observations: values stand beside each other, without a verdict")
		out.Notes = append(out.Notes, countedNotes(a, b)...)
		return out
	}
	if atATime := a.atATime(); min(whole(a), whole(b)) < leastGroups*atATime {
		out.Notes = append(out.Notes, fmt.Sprintf("fewer than %d requests a side say nothing of the noise: give --repeat for a verdict", leastGroups*atATime))
		return out
	}
	if slices.ContainsFunc(out.Changes, func(c Change) bool { return c.Low.OK }) {
		out.Notes = append(out.Notes,
			"each interval is at 95 % by itself, over the requests of these two runs, those under way together taken as one; they are not independent restarts: it holds for the two runs, not for what two configurations do",
		)
	}
	if slices.ContainsFunc(out.Changes, func(c Change) bool { return c.Word == Unclear }) {
		out.Notes = append(out.Notes, fmt.Sprintf("cannot tell: the interval holds no change, and also one of more than %.0f %%; more requests on both sides (--repeat) make it narrower, and so do fewer at a time (--concurrency): those under way together count as one", 100*EqualWithin))
	}
	if n, m := len(a.Capture.Requests), len(b.Capture.Requests); n != m {
		out.Notes = append(out.Notes, fmt.Sprintf("one side has %d requests, the other %d: what a request took is of the first %d of each, so that a start that is slower weighs the same on both", n, m, min(n, m)))
	}
	return out
}

// requestFigure is a figure that every request has for itself.
type requestFigure struct {
	name, unit string
	rate       bool // more is faster
	// of a request with at least one chunk and so many tokens
	of func(r *Request, tokens stat.Opt) stat.Opt
}

// gapFigure is the median gap between neighbouring chunks.
const gapFigure = "itl_p50_s"

var perRequest = [...]requestFigure{
	{"ttft_s", "s", false, func(r *Request, _ stat.Opt) stat.Opt {
		return stat.Some((r.Chunks[0].At - r.Sent).Seconds())
	}},
	{gapFigure, "s", false, func(r *Request, _ stat.Opt) stat.Opt { return r.medianGap() }},
	{"tpot_s", "s", false, func(r *Request, tokens stat.Opt) stat.Opt {
		if len(r.Chunks) < 2 { // nothing is known of the time between them
			return stat.None
		}
		decode := r.Chunks[len(r.Chunks)-1].At - r.Chunks[0].At
		return stat.Some(decode.Seconds()).Div(stat.Some(tokens.Or(0) - 1))
	}},
	{"request_tokens_per_s", "tok/s", true, func(r *Request, tokens stat.Opt) stat.Opt { return tokens.Div(r.answerSeconds()) }},
	{"e2e_s", "s", false, func(r *Request, _ stat.Opt) stat.Opt { return r.answerSeconds() }},
}

// tokensPerChunk is how many tokens came in a chunk, where usage tells them.
func (s *Side) tokensPerChunk() stat.Opt {
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

// answerSeconds is the time from the send to the last chunk.
func (r *Request) answerSeconds() stat.Opt {
	return stat.Some((r.Chunks[len(r.Chunks)-1].At - r.Sent).Seconds())
}

// medianGap is the nearest-rank median in seconds of a request's gaps between chunks.
func (r *Request) medianGap() stat.Opt {
	if len(r.Chunks) < 2 {
		return stat.None
	}
	gaps := make([]float64, 0, len(r.Chunks)-1)
	for i := 1; i < len(r.Chunks); i++ {
		gaps = append(gaps, (r.Chunks[i].At - r.Chunks[i-1].At).Seconds())
	}
	slices.Sort(gaps)
	return stat.Some(gaps[(len(gaps)-1)/2])
}

// compare holds as many requests of one side against those of the other, from the
// first on: servers warm up, and a run of more requests has less of that.
func (f *requestFigure) compare(a, b *Side) Change {
	n := min(len(a.Capture.Requests), len(b.Capture.Requests))
	x, y := f.values(a, n), f.values(b, n)
	c := Change{Name: f.name, Unit: f.unit, A: meanOf(x), B: meanOf(y), RequestsA: len(x), RequestsB: len(y)}
	switch {
	case !c.A.OK || !c.B.OK:
		c.Reason = "no request of one side has it"
		return c
	case c.A.V <= 0 || c.B.V <= 0:
		c.Reason = "a value is not positive"
		return c
	}
	c.Ratio = c.B.Div(c.A)
	if s, t := a.tokensPerChunk(), b.tokensPerChunk(); f.name == gapFigure && apart(s, t) {
		c.Reason = fmt.Sprintf("there are %.3g and %.3g tokens a chunk: gaps between chunks are not times between tokens", s.V, t.V)
		return c
	}
	x, y = groups(x, a.atATime()), groups(y, b.atATime())
	c.GroupsA, c.GroupsB = len(x), len(y)
	if min(len(x), len(y)) < leastGroups {
		c.Reason = "one side has fewer requests than twice those under way at a time"
		return c
	}
	low, high, ok := logRatio(x, y)
	if !ok {
		c.Reason = "no request differs from another, so that the noise is not known"
		return c
	}
	c.Low, c.High = stat.Some(c.Ratio.V*math.Exp(low)), stat.Some(c.Ratio.V*math.Exp(high))
	c.Word = f.word(c.Low.V, c.High.V)
	return c
}

func (f *requestFigure) word(low, high float64) Word {
	switch {
	case low <= 1 && high >= 1 && low >= 1-EqualWithin && high <= 1+EqualWithin:
		return Equal
	case low <= 1 && high >= 1:
		return Unclear
	case low > 1 == f.rate:
		return Faster
	}
	return Slower
}

// values are those of the first n requests as far as they were answered to the end.
func (f *requestFigure) values(s *Side, n int) []float64 {
	var out []float64
	if s.Summary.Requests == nil {
		return nil
	}
	for i := range s.Capture.Requests[:n] {
		r := &s.Capture.Requests[i]
		if r.Error != "" || len(r.Chunks) == 0 {
			continue
		}
		if v := f.of(r, s.Summary.Requests.Tokens.of(r)); v.OK && !math.IsNaN(v.V) && !math.IsInf(v.V, 0) {
			out = append(out, v.V)
		}
	}
	return out
}

// mostAtATime is more than one program keeps under way.
const mostAtATime = 1 << 20

// atATime is how many requests of a side are under way together.
func (s *Side) atATime() int {
	if s.Setup.Request == nil {
		return 1
	}
	return min(max(1, s.Setup.Request.Concurrency), mostAtATime)
}

// runFigure is a figure of a whole run.
type runFigure struct {
	name, unit string
	of         func(*Side) stat.Opt
}

var perRun = [...]runFigure{
	{"output_tokens_per_s", "tok/s", func(s *Side) stat.Opt {
		if q := s.Summary.Requests; q != nil {
			return q.OutputPerSecond
		}
		return s.observedTokens().Times(1 / s.Summary.Span.Seconds())
	}},
	{"cpu_s_per_token", "s", func(s *Side) stat.Opt {
		if s.Summary.Tree == nil {
			return stat.None
		}
		return s.Summary.Tree.Total.CPUSeconds.Div(s.generated())
	}},
	{"rss_peak_bytes", "B", func(s *Side) stat.Opt {
		if s.Summary.Tree == nil {
			return stat.None
		}
		return s.Summary.Tree.Total.RSS.Peak
	}},
	{JoulesPerToken, "J", func(s *Side) stat.Opt {
		for _, q := range s.Summary.Derived {
			if q.Name == JoulesPerToken {
				return q.Value
			}
		}
		return stat.None
	}},
}

// generated is the output of the run in tokens, of an observation by the server's
// counter.
func (s *Side) generated() stat.Opt {
	if q := s.Summary.Requests; q != nil {
		return q.Tokens.Used
	}
	return s.observedTokens()
}

// observedTokens are those of an observation; absent where its counter does not tell
// them, or no time was observed.
func (s *Side) observedTokens() stat.Opt {
	if s.Summary.Span <= 0 {
		return stat.None
	}
	return s.Capture.Counted().Tokens
}

// countedNotes say what the counters of two observations leave open.
func countedNotes(a, b *Side) []string {
	var out []string
	for _, side := range [...]struct {
		name string
		*Side
	}{{"A", a}, {"B", b}} {
		switch n := side.Capture.Counted(); {
		case n.Reason != "":
			out = append(out, "the output of "+side.name+" is not known: "+n.Reason)
		case n.Estimate:
			out = append(out, "the output of "+side.name+" is an estimate: "+n.Note)
		}
	}
	return out
}

func (f *runFigure) compare(a, b *Side) Change {
	c := Change{Name: f.name, Unit: f.unit, A: f.of(a), B: f.of(b), Reason: "one value a run has no noise to be held against"}
	if !c.A.OK || !c.B.OK {
		c.Reason = "one side does not have it"
		return c
	}
	c.Ratio = c.B.Div(c.A)
	return c
}

// whole is how many requests were answered to the end.
func whole(s *Side) int {
	if s.Summary.Requests == nil {
		return 0
	}
	return s.Summary.Requests.Whole
}
