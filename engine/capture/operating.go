package capture

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// operating is the point at which the run decoded.
type operating struct {
	Batch     stat.Opt // sequences that decoded at once, mean over the time in which any did
	BatchFrom string   // "own requests", "the server's gauge"
	Context   stat.Opt // tokens that a sequence holds, mean: its prompt and half of its output
	// Rate is the output tokens per second of that batch, over the time in which any
	// sequence decoded, without those that a prefill ends with.
	Rate   stat.Opt
	Others bool   // other clients' sequences are in the batch
	Reason string // why there is none
}

// leastGauges is how many looks at the server's gauge make a mean.
const leastGauges = 3

// operating finds the point at which the run decoded: from rooftop's own requests,
// unless the server says that more ran than those.
func (c *Capture) operating(tokens Tokens) operating {
	o := c.ownPoint(tokens)
	running, loaded, reason := c.meanRunning()
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
			o.Reason = "no output token was counted while requests ran: they were not past their prompts"
		default:
			o.Rate = stat.Some(tokens.Used.V / (c.Span().Seconds() * loaded))
		}
	case running.OK && o.Batch.OK && running.V > o.Batch.V && c.othersRan(&tokens, running.V > 1.2*o.Batch.V+0.5):
		// Others are on the server: a step carries their sequences too, each as fast as
		// ours.
		o.Rate = o.Rate.Times(running.V / o.Batch.V)
		o.Batch, o.BatchFrom, o.Others = running, "the server's gauge", true
	}
	return o
}

// othersRan tells whether other clients were on the server: more requests ran than were
// under way from here, or more decoded at once, as the caller knows, and the server
// counts tokens that are not ours. By itself the latter may be our own prompts.
func (c *Capture) othersRan(tokens *Tokens, moreDecoded bool) bool {
	running, own, ok := c.besideOurs()
	return ok && running-own >= leastOthers || moreDecoded && tokens.foreign()
}

// leastOthers is how many requests of others, in the mean, are no accident: at a look,
// the server may not have noticed yet that one of ours has ended.
const leastOthers = 0.5

// besideOurs is how many requests the server says it ran, and how many were under way
// from here, means over the looks of the run at which any ran; ok where these are
// enough.
func (c *Capture) besideOurs() (running, own float64, ok bool) {
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

// ownPoint is the operating point by rooftop's own requests.
func (c *Capture) ownPoint(tokens Tokens) operating {
	var spans []span
	var busy time.Duration // of all sequences
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

// meanRunning is the mean of the server's running requests over the looks of the
// run at which any ran, and which share of the looks (0..1) those are; absent with
// the reason.
func (c *Capture) meanRunning() (mean stat.Opt, loaded float64, reason string) {
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
		return stat.None, 0, fmt.Sprintf("too short for a look at the server's page: a mean of the requests that run needs %d", leastGauges)
	case looks == 0:
		return stat.None, 0, "the server does not say how many requests run"
	case n < leastGauges:
		return stat.None, 0, fmt.Sprintf("requests ran at %d of %d looks at the server's page: a mean needs %d", n, looks, leastGauges)
	}
	return stat.Some(sum / float64(n)), float64(n) / float64(looks), ""
}

// span is a stretch of time.
type span struct{ from, to time.Duration }

// unionOf is the time in which at least one of the spans lies.
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
