package capture

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Origins of Tokens.Used.
const (
	fromUsage  = "usage"
	fromChunks = "chunks"
	fromServer = "counter"
)

// count collects what tokens are counted from.
type count struct {
	whole, reported int     // whole requests; those of them with a usage report
	cut, cutChunks  int     // requests cut off without a report, and their chunks
	both            int     // requests with a usage report
	usage, chunks   float64 // of these
	ends            int     // of these, completed answers whose report has more tokens than chunks
	empty           int     // chunks without visible output
}

// tokens counts output tokens in three ways. Figures use the usage reports if every completed
// request has one, plus the chunks of requests that were cut off; otherwise the chunks.
func (c *Capture) tokens() Tokens {
	var t Tokens
	var n count
	for i := range c.Requests {
		n.add(&t, &c.Requests[i])
	}
	var why string
	t.Counter, why = c.pageGrowth(func(p *PageSample) stat.Opt { return p.GenerationTokens })
	switch {
	case t.Usage.OK && n.reported == n.whole:
		t.From, t.Used = fromUsage, stat.Some(t.Usage.V+float64(n.cutChunks))
	case t.Chunks > 0 || n.whole > 0:
		t.From, t.Used = fromChunks, stat.Some(float64(t.Chunks))
	}
	t.Differences = append(n.reports(&t), n.compared(&t)...)
	if running, own, ok := besideOurs(c); ok && running-own >= leastOthers && c.Counting != EachStep {
		t.Differences = append(t.Differences, fmt.Sprintf("other clients used the server: %.3g requests ran at once, %.3g of them from here; the counter includes their tokens as they end", running, own))
	}
	if difference := c.beside(&t, &n); difference != "" {
		t.Differences = append(t.Differences, difference)
	} else if why != "" && len(c.Pages) > 0 {
		t.Differences = append(t.Differences, "the server's own counter is not usable: "+why)
	}
	return t
}

// Above these limits a server's counter has counted tokens of other clients. Slightly more than the
// usage report is common: a stop string that is cut off was generated, and so were tokens accepted
// by speculation beyond the end.
const (
	foreignShare  = 0.05
	foreignTokens = 8
)

// foreign reports whether the server's counter includes tokens of other clients.
func (t *Tokens) foreign() bool {
	return t.Counter.OK && t.Usage.OK && t.Counter.V > t.Usage.V*(1+foreignShare)+foreignTokens
}

// countOf returns the tokens of a request as used for figures, None if unknown.
func (t *Tokens) countOf(r *Request) stat.Opt {
	switch {
	case t.From == fromUsage:
		return r.OutputTokens
	case t.From == fromChunks:
		return stat.Some(float64(len(r.Chunks)))
	}
	return stat.None
}

// add counts a request.
func (n *count) add(t *Tokens, r *Request) {
	for _, chunk := range r.Chunks {
		switch chunk.Kind {
		case Reasoning:
			t.ReasoningChunks++
		case ToolCall:
			t.ToolChunks++
		case Empty:
			n.empty++
		case Text:
		}
	}
	t.Chunks += len(r.Chunks)
	t.Usage = t.Usage.Plus(r.OutputTokens)
	t.ReasoningTokens = t.ReasoningTokens.Plus(r.ReasoningTokens)
	if r.Error == "" {
		n.whole++
	}
	switch {
	case r.OutputTokens.OK:
		if r.Error == "" {
			n.reported++
		}
		n.both++
		n.usage += r.OutputTokens.V
		n.chunks += float64(len(r.Chunks))
		if r.Finish != "" && r.OutputTokens.V > float64(len(r.Chunks)) {
			n.ends++
		}
	case r.Error != "" && len(r.Chunks) > 0:
		n.cut++
		n.cutChunks += len(r.Chunks)
	}
}

// reports describes missing usage reports.
func (n *count) reports(t *Tokens) []string {
	var all []string
	switch {
	case n.whole > 0 && n.reported == 0:
		all = append(all, "the server sent no usage report: tokens are counted as chunks, which may hold several each")
	case n.reported < n.whole:
		all = append(all, fmt.Sprintf("%d of %d complete requests have a usage report: tokens are counted as chunks, which may hold several each", n.reported, n.whole))
	case n.cut > 0 && t.From == fromUsage:
		all = append(all, fmt.Sprintf("cut off without a usage report: %d of %d requests; their tokens are counted as chunks, %d", n.cut, n.cut+n.both, n.cutChunks))
	}
	return all
}

// compared describes how usage reports and chunks differ, over requests with both.
func (n *count) compared(t *Tokens) []string {
	var all []string
	switch more := n.usage - n.chunks; {
	case n.both == 0 || more == 0:
	case more > 0 && more <= float64(n.ends):
		all = append(all, fmt.Sprintf("usage counts %.0f more tokens than chunks: a token without text that comes with the finish reason, such as an end token, is not a chunk", more))
	case more > 0 && n.chunks == 0:
		all = append(all, fmt.Sprintf("usage counts %.0f tokens but no chunk arrived: the server did not stream them", n.usage))
	case more > 0:
		cause := "the server uses speculative decoding, or sends several tokens at a time (stream interval, or text held back until it is complete)"
		if t.ToolChunks > 0 || t.ReasoningChunks > 0 {
			cause += ", or its reasoning and tool-call parsers drop tokens"
		}
		all = append(all, fmt.Sprintf("usage counts %.0f tokens in %.0f chunks, %.2f each: %s; inter-token latencies are those between chunks", n.usage, n.chunks, n.usage/n.chunks, cause))
	case n.empty > 0 && float64(n.empty) >= -more:
		all = append(all, fmt.Sprintf("%.0f more chunks than usage counts tokens: %d of them have no visible content", -more, n.empty))
	case t.ToolChunks > 0 || t.ReasoningChunks > 0:
		all = append(all, fmt.Sprintf("%.0f more chunks than usage counts tokens: one token may end one part of an answer and begin another, such as reasoning or a tool call", -more))
	default:
		all = append(all, fmt.Sprintf("%.0f more chunks than usage counts tokens: the server splits tokens, or its usage report omits some", -more))
	}
	if t.ReasoningTokens.V > 0 && t.ReasoningChunks == 0 {
		all = append(all, fmt.Sprintf("the server counts %.0f reasoning tokens but streamed none separately: they are in the time to first token, or came as text", t.ReasoningTokens.V))
	}
	return all
}

// finishedMore returns how many requests the server finished, and whether these are more than were sent from here.
func (c *Capture) finishedMore() (n float64, more bool) {
	finished, _ := c.pageGrowth(func(p *PageSample) stat.Opt { return p.Requests })
	return finished.V, finished.OK && finished.V > float64(len(c.Requests))
}

// beside describes how the server's own counter differs from Used.
func (c *Capture) beside(t *Tokens, n *count) string {
	if !t.Counter.OK || !t.Used.OK || t.Counter.V == t.Used.V {
		return ""
	}
	more := t.Counter.V - t.Used.V
	if more < 0 {
		return fmt.Sprintf("the server's counter grew by %.0f, %.0f less than these requests had: it was read before the server had counted the last of them, or it omits some", t.Counter.V, -more)
	}
	var causes []string
	if finished, more := c.finishedMore(); more {
		causes = append(causes, fmt.Sprintf("other clients used the server: it finished %.0f requests, of which %d came from here", finished, len(c.Requests)))
	}
	if whole := len(c.Requests) == n.whole; !whole {
		causes = append(causes, "interrupted requests continued on the server")
	}
	if t.From == fromChunks {
		causes = append(causes, "chunks hold several tokens each")
	}
	if len(causes) == 0 {
		causes = append(causes, "other clients used the server")
	}
	return fmt.Sprintf("the server's counter grew by %.0f, %.0f more than these requests had: %s", t.Counter.V, more, strings.Join(causes, ", or "))
}

// pageGrowth returns the growth of a number of the server's page from the last reading before the
// run to the last of all. It is absent, with the reason, if the readings do not enclose the run,
// lack the number, or if it fell.
func (c *Capture) pageGrowth(value func(*PageSample) stat.Opt) (growth stat.Opt, reason string) {
	if len(c.Pages) == 0 {
		return stat.None, "the server's metrics were not read"
	}
	var before, after *PageSample
	for i := range c.Pages {
		p := &c.Pages[i]
		if p.Error != "" {
			continue
		}
		if p.At <= c.Begin {
			before = p
		}
		if p.At >= c.End {
			after = p
		}
	}
	switch {
	case before == nil:
		return stat.None, "its metrics could not be read before the run"
	case after == nil || before == after:
		return stat.None, "its metrics could not be read after the run"
	case !value(before).OK || !value(after).OK:
		return stat.None, "its metrics do not have it"
	case value(after).V < value(before).V:
		return stat.None, "it fell during the run: was the server restarted?"
	}
	return grown(value(before), value(after)), ""
}
