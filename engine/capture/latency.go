package capture

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// requestsSummary summarizes the requests; it returns nil without any. TTFT and ITL include the
// output of requests that were cut off. E2E, TPOT and the rates of single requests cover only
// completed ones, up to the last chunk.
func (c *Capture) requestsSummary() *RequestsSummary {
	if len(c.Requests) == 0 {
		return nil
	}
	s := &RequestsSummary{Sent: len(c.Requests), Failures: failures(c.Requests)}
	s.Tokens = c.tokens()
	var t times
	prompts := true // known for all completed requests; a partial sum would be misleading. vLLM leaves out a cached part of 0
	for i := range c.Requests {
		r := &c.Requests[i]
		if r.Error == "" {
			s.Whole++
			prompts = prompts && r.PromptTokens.OK
		}
		s.PromptTokens, s.CachedTokens = s.PromptTokens.Plus(r.PromptTokens), s.CachedTokens.Plus(r.CachedTokens)
		t.add(r, s.Tokens.countOf(r))
	}
	if !prompts {
		s.PromptTokens, s.CachedTokens = stat.None, stat.None
	}
	s.TTFT, s.ITL, s.TPOT = distributionOf(t.ttft), distributionOf(t.itl), distributionOf(t.tpot)
	s.E2E, s.Connect = distributionOf(t.e2e), distributionOf(t.connect)
	s.RequestPerSecond, s.DecodePerSecond = stat.Mean(t.perRequest), stat.Mean(t.perDecode)
	if span := c.Span(); span > 0 {
		s.OutputPerSecond = s.Tokens.Used.Times(1 / span.Seconds())
	}
	s.Server = c.serverTTFT()
	return s
}

// times has the times of all requests.
type times struct {
	ttft, itl, tpot, e2e, connect []time.Duration
	perRequest, perDecode         []float64 // tokens per second
}

// add adds the times of one request with a number of tokens, None if unknown.
func (t *times) add(r *Request, tokens stat.Opt) {
	if !r.Reused && r.Connect > 0 {
		t.connect = append(t.connect, r.Connect)
	}
	ttft, ok := r.TTFT()
	if !ok {
		return
	}
	t.ttft = append(t.ttft, ttft)
	for i := range len(r.Chunks) - 1 {
		t.itl = append(t.itl, r.Chunks[i+1].At-r.Chunks[i].At)
	}
	if r.Error != "" {
		return
	}
	e2e, _ := r.E2E()
	t.e2e = append(t.e2e, e2e)
	if !tokens.OK {
		return
	}
	if e2e > 0 {
		t.perRequest = append(t.perRequest, tokens.V/e2e.Seconds())
	}
	if tpot, ok := r.TPOT(tokens.V); ok {
		t.tpot = append(t.tpot, tpot)
		if e2e > ttft {
			t.perDecode = append(t.perDecode, (tokens.V-1)/(e2e-ttft).Seconds())
		}
	}
}

// distributionOf returns exact statistics of times, by nearest rank. It sorts them.
func distributionOf(times []time.Duration) Distribution {
	if len(times) == 0 {
		return Distribution{}
	}
	slices.Sort(times)
	sum := 0.0
	for _, v := range times {
		sum += float64(v)
	}
	rank := func(percent int) time.Duration { return times[max((len(times)*percent+99)/100, 1)-1] }
	return Distribution{
		Count: len(times), Mean: time.Duration(math.Round(sum / float64(len(times)))),
		P50: rank(50), P95: rank(95), P99: rank(99), Max: times[len(times)-1],
	}
}

// failures returns the kinds of errors, in order of first appearance. Errors that differ only in
// numbers, such as the number of chunks, are of one kind.
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

// InterruptedPrefix begins the error of a request that its sender cut off.
const InterruptedPrefix = "interrupted "

// Interrupted reports whether the sender cut off the requests, so that the server is not at fault.
func (f *Failure) Interrupted() bool { return strings.HasPrefix(f.Error, InterruptedPrefix) }

// withoutNumbers replaces each number, with its unit or suffix (30s, 17th), by a placeholder.
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
