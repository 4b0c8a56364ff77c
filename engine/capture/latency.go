package capture

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// requestsSummary is what the requests came to; nil without any. TTFT and ITL take in
// requests that were cut off, as far as they came; E2E, TPOT and the rates of single
// requests are of whole ones, up to the last chunk.
func (c *Capture) requestsSummary() *RequestsSummary {
	if len(c.Requests) == 0 {
		return nil
	}
	s := &RequestsSummary{Sent: len(c.Requests), Failures: failures(c.Requests)}
	s.Tokens = c.tokens()
	var t times
	prompts := true // are known of all whole requests: a part would look like the sum. vLLM leaves out a cached part of 0
	for i := range c.Requests {
		r := &c.Requests[i]
		if r.Error == "" {
			s.Whole++
			prompts = prompts && r.PromptTokens.OK
		}
		s.PromptTokens, s.CachedTokens = s.PromptTokens.Plus(r.PromptTokens), s.CachedTokens.Plus(r.CachedTokens)
		t.take(r, s.Tokens.of(r))
	}
	if !prompts {
		s.PromptTokens, s.CachedTokens = stat.None, stat.None
	}
	s.TTFT, s.ITL, s.TPOT = distributionOf(t.ttft), distributionOf(t.itl), distributionOf(t.tpot)
	s.E2E, s.Connect = distributionOf(t.e2e), distributionOf(t.connect)
	s.RequestPerSecond, s.DecodePerSecond = meanOf(t.perRequest), meanOf(t.perDecode)
	if span := c.Span(); span > 0 {
		s.OutputPerSecond = s.Tokens.Used.Times(1 / span.Seconds())
	}
	s.Server = c.serverTTFT()
	return s
}

// times are those of all requests.
type times struct {
	ttft, itl, tpot, e2e, connect []time.Duration
	perRequest, perDecode         []float64 // tokens per second
}

// take adds those of one request of so many tokens; absent is unknown.
func (t *times) take(r *Request, tokens stat.Opt) {
	if !r.Reused && r.Connect > 0 {
		t.connect = append(t.connect, r.Connect)
	}
	if len(r.Chunks) == 0 {
		return
	}
	first, last := r.Chunks[0].At, r.Chunks[len(r.Chunks)-1].At
	t.ttft = append(t.ttft, first-r.Sent)
	for i := range len(r.Chunks) - 1 {
		t.itl = append(t.itl, r.Chunks[i+1].At-r.Chunks[i].At)
	}
	if r.Error != "" {
		return
	}
	t.e2e = append(t.e2e, last-r.Sent)
	if !tokens.OK {
		return
	}
	if last > r.Sent {
		t.perRequest = append(t.perRequest, tokens.V/(last-r.Sent).Seconds())
	}
	// Where all tokens came in one chunk nothing is known of the time between them.
	if tokens.V >= 2 && len(r.Chunks) >= 2 {
		t.tpot = append(t.tpot, time.Duration(math.Round(float64(last-first)/(tokens.V-1))))
		if last > first {
			t.perDecode = append(t.perDecode, (tokens.V-1)/(last-first).Seconds())
		}
	}
}

// distributionOf describes times exactly, by nearest rank. It sorts them.
func distributionOf(of []time.Duration) Distribution {
	if len(of) == 0 {
		return Distribution{}
	}
	slices.Sort(of)
	var sum float64
	for _, v := range of {
		sum += float64(v)
	}
	return Distribution{
		Count: len(of), Mean: time.Duration(math.Round(sum / float64(len(of)))),
		P50: nearestRank(of, 50), P95: nearestRank(of, 95), P99: nearestRank(of, 99), Max: of[len(of)-1],
	}
}

// nearestRank is the smallest of sorted values that at least percent of all do not
// exceed.
func nearestRank(sorted []time.Duration, percent int) time.Duration {
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}

// meanOf values; absent of none.
func meanOf(of []float64) stat.Opt {
	if len(of) == 0 {
		return stat.None
	}
	var sum float64
	for _, v := range of {
		sum += v
	}
	return stat.Some(sum / float64(len(of)))
}

// failures are the kinds of error, in order of first appearance. Errors that differ in
// numbers alone, as in how many chunks came before, are of one kind.
func failures(requests []Request) []Failure {
	var all []Failure
	at := map[string]int{}
	for i := range requests {
		text := requests[i].Error
		if text == "" {
			continue
		}
		kind := withoutNumbers(text)
		if known, ok := at[kind]; ok {
			f := &all[known]
			f.Count++
			f.Example = f.Example || f.Error != text
			continue
		}
		at[kind] = len(all)
		all = append(all, Failure{Error: text, Count: 1})
	}
	return all
}

// Interrupted tells whether requests were cut off by whoever sent them, as
// collect/probe words it: the server is not to blame for those.
func (f *Failure) Interrupted() bool { return strings.HasPrefix(f.Error, "interrupted ") }

// withoutNumbers puts one sign in place of each number, with the letters that hang on
// it (30s, 17th).
func withoutNumbers(text string) string {
	var b strings.Builder
	within := false
	for _, r := range text {
		digit, letter := '0' <= r && r <= '9', 'a' <= r && r <= 'z'
		if digit && !within {
			b.WriteByte('#')
		}
		if within = digit || within && letter; !within {
			b.WriteRune(r)
		}
	}
	return b.String()
}
