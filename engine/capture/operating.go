package capture

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// operating is the operating point of the decoding during the run.
type operating struct {
	Batch     stat.Opt // sequences decoded at once, mean over the time in which any was
	BatchFrom string   // "own requests", "the server's gauge"
	Context   stat.Opt // mean tokens of a sequence: its prompt and half of its output
	// Rate is the output in tokens per second of that batch, over the time in which any sequence
	// was decoded. It excludes the token that each prefill produces.
	Rate   stat.Opt
	Others bool   // the batch includes other clients' sequences
	Reason string // why there is no operating point
}

// leastGauges is how many samples of the server's gauge are needed for a mean.
const leastGauges = 3

// operating determines the operating point: from rooftop's own requests, unless the server reports
// that more were running.
func (c *Capture) operating(tokens Tokens) operating {
	o := ownPoint(c, tokens)
	running, loaded, reason := meanRunning(c)
	switch {
	case c.Kind == Observation:
		if !running.OK {
			o.Reason = reason
			return o
		}
		o.Batch, o.BatchFrom = running, "the server's gauge"
		switch {
		case !tokens.Used.OK || c.Span() <= 0:
			o.Reason = cmp.Or(c.Counted().Reason, "the server does not count its tokens")
		case tokens.Used.V <= 0:
			o.Reason = "no output token was counted while requests ran: they were still in prefill"
		default:
			o.Rate = stat.Some(tokens.Used.V / (c.Span().Seconds() * loaded))
		}
	case !running.OK:
		if _, more := c.finishedMore(); more { // our own requests are only a part of the batch
			return operating{Context: o.Context, Others: true, Reason: "other clients used the server, and " + reason}
		}
	case o.Batch.OK && running.V > o.Batch.V && othersRan(c, &tokens, running.V > 1.2*o.Batch.V+0.5):
		// Steps also process the sequences of other clients, each as fast as ours.
		o.Rate = o.Rate.Times(running.V / o.Batch.V)
		o.Batch, o.BatchFrom, o.Others = running, "the server's gauge", true
	}
	return o
}

// othersRan reports whether other clients used the server. Either more requests ran or decoded at
// once than ours, as the caller determined, and the server counts additional tokens. Additional
// tokens alone may be our own prompts.
func othersRan(c *Capture, tokens *Tokens, moreDecoded bool) bool {
	running, own, ok := besideOurs(c)
	return ok && running-own >= leastOthers || moreDecoded && tokens.foreign()
}

// leastOthers is the minimum mean number of other clients' requests that is not a coincidence: in a
// sample, the server may not have noticed yet that one of our requests has ended.
const leastOthers = 0.5

// besideOurs returns how many requests the server reports as running, and how many of ours were in
// flight: means over the samples of the run with running requests. ok is false if there are too few
// samples.
func besideOurs(c *Capture) (running, own float64, ok bool) {
	n := 0.0
	for i := range c.Pages {
		p := &c.Pages[i]
		if p.At < c.Begin || p.At > c.End || !p.runs() {
			continue
		}
		n++
		running += p.Running.V
		for j := range c.Requests {
			if r := &c.Requests[j]; r.Sent <= p.At && p.At <= r.End {
				own++
			}
		}
	}
	if n < leastGauges {
		return 0, 0, false
	}
	return running / n, own / n, true
}

// ownPoint returns the operating point of rooftop's own requests.
func ownPoint(c *Capture, tokens Tokens) operating {
	var spans []span
	var busy time.Duration // sum over all sequences
	var after, context float64
	counted := 0
	perChunk := 1.0
	if tokens.Used.OK && tokens.Chunks > 0 {
		perChunk = tokens.Used.V / float64(tokens.Chunks)
	}
	for i := range c.Requests {
		r := &c.Requests[i]
		if r.PromptTokens.OK {
			context += r.PromptTokens.V + float64(len(r.Chunks))*perChunk/2
			counted++
		}
		if len(r.Chunks) < 2 {
			continue
		}
		first, last := r.Chunks[0].At, r.Chunks[len(r.Chunks)-1].At
		spans = append(spans, span{first, last})
		busy += last - first
		after += float64(len(r.Chunks)-1) * perChunk
	}
	var o operating
	if counted > 0 {
		o.Context = stat.Some(context / float64(counted))
	}
	union := unionOf(spans)
	if union <= 0 {
		o.Reason = "no request has two chunks"
		return o
	}
	o.Batch, o.BatchFrom = stat.Some(busy.Seconds()/union.Seconds()), "own requests"
	o.Rate = stat.Some(after / union.Seconds())
	return o
}

// meanRunning returns the mean of the server's running requests over the samples of the run with
// any, and the share (0..1) of these samples. It is absent, with the reason, if there are too few.
func meanRunning(c *Capture) (mean stat.Opt, loaded float64, reason string) {
	sum, n, looks, told := 0.0, 0, 0, false
	for i := range c.Pages {
		p := &c.Pages[i]
		told = told || p.Running.OK
		if p.At < c.Begin || p.At > c.End || !p.Running.OK {
			continue
		}
		looks++
		if p.Running.V > 0 {
			sum += p.Running.V
			n++
		}
	}
	switch {
	case looks == 0 && told:
		return stat.None, 0, fmt.Sprintf("too short to sample the server's metrics: the mean of running requests needs %d", leastGauges)
	case looks == 0:
		return stat.None, 0, "the server does not report its running requests"
	case n < leastGauges:
		return stat.None, 0, fmt.Sprintf("requests ran at %d of %d samples of the server's metrics: a mean needs %d", n, looks, leastGauges)
	}
	return stat.Some(sum / float64(n)), float64(n) / float64(looks), ""
}

// span is a time range.
type span struct{ from, to time.Duration }

// unionOf returns the total time covered by at least one of the spans.
func unionOf(spans []span) time.Duration {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var sum, reached time.Duration
	for i, s := range spans {
		if i == 0 || s.from > reached {
			reached = s.from
		}
		if s.to > reached {
			sum += s.to - reached
			reached = s.to
		}
	}
	return sum
}
