package capture

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// counters returns pages just before and after a run of a second, between which some fields grew.
func counters(grow ...func(*PageSample, float64)) []PageSample {
	before, after := PageSample{At: -msec}, PageSample{At: time.Second + msec}
	for _, g := range grow {
		g(&before, 0)
		g(&after, 1)
	}
	return []PageSample{before, {At: time.Second / 2, Error: "slow"}, after}
}

func grew(by float64, value func(*PageSample) *stat.Opt) func(*PageSample, float64) {
	return func(p *PageSample, share float64) { *value(p) = stat.Some(100 + share*by) }
}

func generated(p *PageSample) *stat.Opt { return &p.GenerationTokens }
func finished(p *PageSample) *stat.Opt  { return &p.Requests }

func TestTokens(t *testing.T) {
	kinds := func(k ...ChunkKind) func(*Request) {
		return func(r *Request) {
			for i := range k {
				r.Chunks[i].Kind = k[i]
			}
		}
	}
	for _, tc := range []struct {
		name     string
		requests []Request
		pages    []PageSample
		want     Tokens
	}{
		{"all three agree", []Request{streamed(0, 1, 2).usage(2), streamed(0, 1).usage(1)}, counters(grew(3, generated)),
			Tokens{Usage: stat.Some(3), Chunks: 3, Counter: stat.Some(3), Used: stat.Some(3), From: "usage"}},
		{"no usage report", []Request{streamed(0, 1, 2)}, nil,
			Tokens{Chunks: 2, Used: stat.Some(2), From: "chunks", Differences: []string{"the server sent no usage report: tokens are counted as chunks, which may hold several each"}}},
		{"a report of one of two", []Request{streamed(0, 1, 2), streamed(0, 1).usage(1)}, nil,
			Tokens{Usage: stat.Some(1), Chunks: 3, Used: stat.Some(3), From: "chunks", Differences: []string{"1 of 2 complete requests have a usage report: tokens are counted as chunks, which may hold several each"}}},
		{"an end token", []Request{streamed(0, 1, 2).usage(3), streamed(0, 1).usage(2)}, nil,
			Tokens{Usage: stat.Some(5), Chunks: 3, Used: stat.Some(5), From: "usage", Differences: []string{"usage counts 2 more tokens than chunks: a token without text that comes with the finish reason, such as an end token, is not a chunk"}}},
		{"several tokens a chunk", []Request{streamed(0, 1, 2).usage(9)}, nil,
			Tokens{Usage: stat.Some(9), Chunks: 2, Used: stat.Some(9), From: "usage", Differences: []string{"usage counts 9 tokens in 2 chunks, 4.50 each: the server uses speculative decoding, or sends several tokens at a time (stream interval, or text held back until it is complete); inter-token latencies are those between chunks"}}},
		{"a parser of tool calls", []Request{streamed(0, 1, 2).usage(9).with(kinds(Text, ToolCall))}, nil,
			Tokens{Usage: stat.Some(9), Chunks: 2, ToolChunks: 1, Used: stat.Some(9), From: "usage", Differences: []string{"usage counts 9 tokens in 2 chunks, 4.50 each: the server uses speculative decoding, or sends several tokens at a time (stream interval, or text held back until it is complete), or its reasoning and tool-call parsers drop tokens; inter-token latencies are those between chunks"}}},
		{"not streamed at all", []Request{streamed(0).usage(9).with(func(r *Request) { r.Error = "did not stream" })}, nil,
			Tokens{Usage: stat.Some(9), Used: stat.Some(9), From: "usage", Differences: []string{"usage counts 9 tokens but no chunk arrived: the server did not stream them"}}},
		{"empty chunks", []Request{streamed(0, 1, 2, 3).usage(2).with(kinds(Empty, Text, Text))}, nil,
			Tokens{Usage: stat.Some(2), Chunks: 3, Used: stat.Some(2), From: "usage", Differences: []string{"1 more chunks than usage counts tokens: 1 of them have no visible content"}}},
		{"reasoning deltas", []Request{streamed(0, 1, 2, 3).usage(2).with(kinds(Reasoning, Reasoning, Text)).with(func(r *Request) { r.ReasoningTokens = stat.Some(1) })}, nil,
			Tokens{Usage: stat.Some(2), Chunks: 3, ReasoningChunks: 2, ReasoningTokens: stat.Some(1), Used: stat.Some(2), From: "usage", Differences: []string{"1 more chunks than usage counts tokens: one token may end one part of an answer and begin another, such as reasoning or a tool call"}}},
		{"more chunks, no cause", []Request{streamed(0, 1, 2, 3).usage(2)}, nil,
			Tokens{Usage: stat.Some(2), Chunks: 3, Used: stat.Some(2), From: "usage", Differences: []string{"1 more chunks than usage counts tokens: the server splits tokens, or its usage report omits some"}}},
		{"hidden reasoning", []Request{streamed(0, 1, 2).usage(2).with(func(r *Request) { r.ReasoningTokens = stat.Some(40) })}, nil,
			Tokens{Usage: stat.Some(2), Chunks: 2, ReasoningTokens: stat.Some(40), Used: stat.Some(2), From: "usage", Differences: []string{"the server counts 40 reasoning tokens but streamed none separately: they are in the time to first token, or came as text"}}},
		{"cut off", []Request{streamed(0, 1, 2).usage(2), streamed(0, 1, 2, 3).broken("x")}, counters(grew(9, generated)),
			Tokens{Usage: stat.Some(2), Chunks: 5, Counter: stat.Some(9), Used: stat.Some(5), From: "usage", Differences: []string{
				"cut off without a usage report: 1 of 2 requests; their tokens are counted as chunks, 3",
				"the server's counter grew by 9, 4 more than these requests had: interrupted requests continued on the server"}}},
		{"all cut off", []Request{streamed(0, 1, 2, 3).broken("x")}, nil,
			Tokens{Chunks: 3, Used: stat.Some(3), From: "chunks"}},
		{"others, who finished requests", []Request{streamed(0, 1, 2).usage(2)}, counters(grew(50, generated), grew(4, finished)),
			Tokens{Usage: stat.Some(2), Chunks: 2, Counter: stat.Some(50), Used: stat.Some(2), From: "usage", Differences: []string{"the server's counter grew by 50, 48 more than these requests had: other clients used the server: it finished 4 requests, of which 1 came from here"}}},
		{"others, who finished none", []Request{streamed(0, 1, 2).usage(2)}, counters(grew(50, generated)),
			Tokens{Usage: stat.Some(2), Chunks: 2, Counter: stat.Some(50), Used: stat.Some(2), From: "usage", Differences: []string{"the server's counter grew by 50, 48 more than these requests had: other clients used the server"}}},
		{"a counter above chunks", []Request{streamed(0, 1, 2)}, counters(grew(4, generated)),
			Tokens{Chunks: 2, Counter: stat.Some(4), Used: stat.Some(2), From: "chunks", Differences: []string{
				"the server sent no usage report: tokens are counted as chunks, which may hold several each",
				"the server's counter grew by 4, 2 more than these requests had: chunks hold several tokens each"}}},
		{"a counter that is late", []Request{streamed(0, 1, 2).usage(2)}, counters(grew(0, generated)),
			Tokens{Usage: stat.Some(2), Chunks: 2, Counter: stat.Some(0), Used: stat.Some(2), From: "usage", Differences: []string{"the server's counter grew by 0, 2 less than these requests had: it was read before the server had counted the last of them, or it omits some"}}},
		{"a server that was restarted", []Request{streamed(0, 1, 2).usage(2)}, counters(grew(-7, generated)),
			Tokens{Usage: stat.Some(2), Chunks: 2, Used: stat.Some(2), From: "usage", Differences: []string{"the server's own counter is not usable: it fell during the run: was the server restarted?"}}},
		{"no page before the run", []Request{streamed(0, 1, 2).usage(2)}, counters(grew(2, generated))[2:],
			Tokens{Usage: stat.Some(2), Chunks: 2, Used: stat.Some(2), From: "usage", Differences: []string{"the server's own counter is not usable: its metrics could not be read before the run"}}},
		{"no page after the run", []Request{streamed(0, 1, 2).usage(2)}, counters(grew(2, generated))[:2],
			Tokens{Usage: stat.Some(2), Chunks: 2, Used: stat.Some(2), From: "usage", Differences: []string{"the server's own counter is not usable: its metrics could not be read after the run"}}},
		{"nothing came", []Request{Request{}.broken("refused")}, nil, Tokens{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Capture{End: time.Second, Requests: tc.requests, Pages: tc.pages}
			if diff := cmp.Diff(tc.want, c.tokens(), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestServerTTFT(t *testing.T) {
	sum := func(p *PageSample) *stat.Opt { return &p.TTFTSum }
	number := func(p *PageSample) *stat.Opt { return &p.TTFTCount }
	queue := func(p *PageSample) *stat.Opt { return &p.QueueSum }
	queued := func(p *PageSample) *stat.Opt { return &p.QueueCount }
	prefill := func(p *PageSample) *stat.Opt { return &p.PrefillSum }
	prefilled := func(p *PageSample) *stat.Opt { return &p.PrefillCount }
	timed := func(seconds float64) func(*Request) {
		return func(r *Request) { r.PrefillSeconds = stat.Some(seconds) }
	}
	two := []Request{streamed(0, 100, 110), streamed(0, 300)} // a mean of 0.2 s
	for _, tc := range []struct {
		name     string
		requests []Request
		pages    []PageSample
		want     ServerTTFT
	}{
		{"ours alone", two, counters(grew(0.3, sum), grew(2, number), grew(0.1, queue), grew(2, queued), grew(0.2, prefill), grew(2, prefilled)),
			ServerTTFT{Client: stat.Some(0.2), Server: stat.Some(0.15), Outside: stat.Some(0.05), Queue: stat.Some(0.05), Prefill: stat.Some(0.1), From: "vLLM metrics"}},
		{"a queue with others in it", two, counters(grew(0.3, sum), grew(2, number), grew(0.1, queue), grew(3, queued)),
			ServerTTFT{Client: stat.Some(0.2), Server: stat.Some(0.15), Outside: stat.Some(0.05), From: "vLLM metrics"}},
		{"others among them", two, counters(grew(0.9, sum), grew(3, number)),
			ServerTTFT{Client: stat.Some(0.2), Server: stat.Some(0.3), From: "vLLM metrics", Reason: "the server counted 3 first tokens, but 2 arrived here: its mean covers all of them, so the rest cannot be split"}},
		{"as many of others, longer", two, counters(grew(1, sum), grew(2, number)),
			ServerTTFT{Client: stat.Some(0.2), Server: stat.Some(0.5), From: "vLLM metrics", Reason: "the server's mean is longer than that of these requests, so it includes others: the rest cannot be split"}},
		{"none counted", two, counters(grew(0, sum), grew(0, number)), ServerTTFT{Client: stat.Some(0.2), Reason: "the server counted no first token during the run"}},
		{"timings, of one request alone", []Request{two[0].with(timed(0.06)), two[1]}, nil,
			ServerTTFT{Client: stat.Some(0.1), Prefill: stat.Some(0.06), From: "timings of the answer", Reason: prefillAlone}},
		{"timings rather than a mean with others", []Request{two[0].with(timed(0.06))}, counters(grew(0.9, sum), grew(3, number)),
			ServerTTFT{Client: stat.Some(0.1), Prefill: stat.Some(0.06), From: "timings of the answer", Reason: prefillAlone}},
		{"no metrics", two, nil, ServerTTFT{Client: stat.Some(0.2), Reason: "the server's own time to first token is unknown: the server's metrics were not read"}},
		{"metrics without it", two, counters(), ServerTTFT{Client: stat.Some(0.2), Reason: "the server's metrics have no time to first token"}},
		{"restarted", two, counters(grew(-0.3, sum), grew(-2, number)), ServerTTFT{Client: stat.Some(0.2), Reason: "the server's own time to first token is unknown: it fell during the run: was the server restarted?"}},
		{"no first token", []Request{Request{}.broken("x")}, counters(grew(0.3, sum), grew(2, number)), ServerTTFT{Reason: "no request reached its first token"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := Capture{End: time.Second, Requests: tc.requests, Pages: tc.pages, PagesFrom: "vLLM"}
			if diff := cmp.Diff(tc.want, c.serverTTFT(), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
