package capture

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// What Tokens.Used is made of.
const (
	fromUsage  = "usage"
	fromChunks = "chunks"
	fromServer = "counter"
)

// count gathers what tokens are told from.
type count struct {
	whole, reported int     // whole requests; those of them with a usage report
	cut, cutChunks  int     // requests cut off without one, and what came of them
	both            int     // requests with a usage report
	usage, chunks   float64 // of these
	ends            int     // of these, where the report has more tokens than chunks came and the answer ended
	empty           int     // chunks of no visible kind
}

// tokens counts output tokens three ways. Figures go by the usage reports where every
// whole request has one, with the chunks of those that were cut off, else by chunks.
func (c *Capture) tokens() Tokens {
	var t Tokens
	var n count
	for i := range c.Requests {
		n.take(&t, &c.Requests[i])
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
	if running, own, ok := c.besideOurs(); ok && running-own >= leastOthers && c.Counting != EachStep {
		t.Differences = append(t.Differences, fmt.Sprintf("other clients were on the server: %.3g requests ran at once, %.3g of them from here; the counter has their tokens as they end", running, own))
	}
	if difference := c.beside(&t, &n); difference != "" {
		t.Differences = append(t.Differences, difference)
	} else if why != "" && len(c.Pages) > 0 {
		t.Differences = append(t.Differences, "the server's own counter is no witness: "+why)
	}
	return t
}

// Above these a server's counter has grown by tokens of other clients. A little more
// than usage is common: a stop string that is cut off was generated, and so were
// tokens beyond the end that speculation had accepted.
const (
	foreignShare  = 0.05
	foreignTokens = 8
)

// foreign tells whether the server's counter grew by tokens of other clients.
func (t *Tokens) foreign() bool {
	return t.Counter.OK && t.Usage.OK && t.Counter.V > t.Usage.V*(1+foreignShare)+foreignTokens
}

// of is how many tokens a request had, by what figures go by.
func (t *Tokens) of(r *Request) stat.Opt {
	switch {
	case t.From == fromUsage:
		return r.OutputTokens
	case t.From == fromChunks:
		return stat.Some(float64(len(r.Chunks)))
	}
	return stat.None
}

// take adds a request.
func (n *count) take(t *Tokens, r *Request) {
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

// reports says where usage reports are missing.
func (n *count) reports(t *Tokens) []string {
	var all []string
	switch {
	case n.whole > 0 && n.reported == 0:
		all = append(all, "the server gave no usage report: tokens are counted in chunks, which may hold several each")
	case n.reported < n.whole:
		all = append(all, fmt.Sprintf("%d of %d whole requests have a usage report: tokens are counted in chunks, which may hold several each", n.reported, n.whole))
	case n.cut > 0 && t.From == fromUsage:
		all = append(all, fmt.Sprintf("cut off without a usage report: %d of %d requests; what came of them counts by chunks, %d", n.cut, n.cut+n.both, n.cutChunks))
	}
	return all
}

// compared says how usage reports and chunks differ, over requests that have both.
func (n *count) compared(t *Tokens) []string {
	var all []string
	switch more := n.usage - n.chunks; {
	case n.both == 0 || more == 0:
	case more > 0 && more <= float64(n.ends):
		all = append(all, fmt.Sprintf("usage counts %.0f more than chunks came: a token that came with the finish reason and had no text, as an end token has none, is no chunk", more))
	case more > 0 && n.chunks == 0:
		all = append(all, fmt.Sprintf("usage counts %.0f tokens and no chunk came: the server did not stream them", n.usage))
	case more > 0:
		cause := "the server speculates, or sends several tokens at a time (its stream interval, or text held back until it is whole)"
		if t.ToolChunks > 0 || t.ReasoningChunks > 0 {
			cause += ", or its parsers of reasoning and tool calls keep tokens to themselves"
		}
		all = append(all, fmt.Sprintf("usage counts %.0f tokens in %.0f chunks, %.2f each: %s; inter-token times are those between chunks", n.usage, n.chunks, n.usage/n.chunks, cause))
	case n.empty > 0 && float64(n.empty) >= -more:
		all = append(all, fmt.Sprintf("%.0f more chunks came than usage counts tokens: %d of them hold nothing that is visible", -more, n.empty))
	case t.ToolChunks > 0 || t.ReasoningChunks > 0:
		all = append(all, fmt.Sprintf("%.0f more chunks came than usage counts tokens: one token may end one part of an answer and begin another, reasoning and tool calls among them", -more))
	default:
		all = append(all, fmt.Sprintf("%.0f more chunks came than usage counts tokens: the server divides tokens, or its usage report leaves some out", -more))
	}
	if t.ReasoningTokens.V > 0 && t.ReasoningChunks == 0 {
		all = append(all, fmt.Sprintf("the server counts %.0f reasoning tokens and streamed none apart: the time to first token holds them, or they came as text", t.ReasoningTokens.V))
	}
	return all
}

// beside says how the server's own counter differs from what is used.
func (c *Capture) beside(t *Tokens, n *count) string {
	if !t.Counter.OK || !t.Used.OK || t.Counter.V == t.Used.V {
		return ""
	}
	more := t.Counter.V - t.Used.V
	if more < 0 {
		return fmt.Sprintf("the server's counter grew by %.0f, %.0f less than these requests had: it was read before the server had counted the last of them, or it leaves some out", t.Counter.V, -more)
	}
	var causes []string
	finished, _ := c.pageGrowth(func(p *PageSample) stat.Opt { return p.Requests })
	if finished.OK && finished.V > float64(len(c.Requests)) {
		causes = append(causes, fmt.Sprintf("other clients were on it: it finished %.0f requests, %d were sent from here", finished.V, len(c.Requests)))
	}
	if whole := len(c.Requests) == n.whole; !whole {
		causes = append(causes, "requests that were cut off went on there")
	}
	if t.From == fromChunks {
		causes = append(causes, "chunks hold several tokens each")
	}
	if len(causes) == 0 {
		causes = append(causes, "other clients were on it")
	}
	return fmt.Sprintf("the server's counter grew by %.0f, %.0f more than these requests had: %s", t.Counter.V, more, strings.Join(causes, ", or "))
}

// pageGrowth is how much a number of the server's page grew from the last reading
// before the run to the last of all; absent, with the reason, where the readings do not
// enclose the run, lack the number, or saw it fall.
func (c *Capture) pageGrowth(of func(*PageSample) stat.Opt) (growth stat.Opt, reason string) {
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
		return stat.None, "its page could not be read before the run"
	case after == nil || before == after:
		return stat.None, "its page could not be read after the run"
	case !of(before).OK || !of(after).OK:
		return stat.None, "its page does not have it"
	case of(after).V < of(before).V:
		return stat.None, "it fell during the run: was the server restarted?"
	}
	return grown(of(before), of(after)), ""
}
